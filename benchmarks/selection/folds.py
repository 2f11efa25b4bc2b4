"""Claim: ten penalties by five folds, ten times as fast as `LogisticRegressionCV` at no worse log loss.

    python -m benchmarks.selection.folds
    python -m benchmarks.selection.folds --data iris --data letter

The same penalties, folds and score; a third of the rows is kept for the log loss that both are judged by.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks import data, report
from benchmarks.battery import cases
from benchmarks.selection.timing import in_process, quietly
from manyclass import GLMClassifierCV

CASES = (
    *("iris", "wine", "breast_cancer", "digits", "optdigits", "satimage", "pendigits", "letter", "mnist"),
    *("banking77-tfidf-3", "20news-8-classes", "a9a", "gauss-3000x1000-k20-decay-noise", "gauss-10000x256-k100-decay"),
)
ALPHAS = np.logspace(-6, -1, 10)
SHORT = 20.0
"""Seconds of the peer up to which it is repeated as ours is."""


def main(
    names: Annotated[list[str] | None, typer.Option("--data", help="Names of cases of the battery, or files.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which the peer is stopped.")] = 300.0,
    repeats: Annotated[int, typer.Option(help="Of a fit; the fastest counts.")] = 3,
) -> None:
    columns = ["data", "n×d×k", "GLMClassifierCV, s", "log loss", "LogisticRegressionCV, s", "log loss", "ratio"]
    table = report.Table("Ten penalties by five folds, seconds of the processor", columns, live=True)
    ratios: list[float] = []
    options: dict[str, Any] = {"cv": StratifiedKFold(5), "scoring": "neg_log_loss"}
    for name in names or CASES:
        X, y = cases.arrays(name)
        data.check_one_label(name, y)
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=0, stratify=y)
        train, test = np.sort(train), np.sort(test)
        part = X[train], y[train]
        model, ours = quietly(partial(GLMClassifierCV(ALPHAS, **options).fit, *part), repeats)
        ended = in_process(partial(_peer, *part, X[test], options, repeats), limit)
        peer = None if ended is None else ended[0]
        found = ["", f"> {limit:g}", ""] if peer is None else [f"{log_loss(y[test], peer[0]):.4f}", f"{peer[1]:.2f}"]
        ratios.append((limit if peer is None else peer[1]) / ours)
        of_peer = [found[1], found[0]]
        shape = f"{len(train)}×{X.shape[1]}×{len(np.unique(y))}"
        own = f"{log_loss(y[test], model.predict_proba(X[test])):.4f}"
        table.add(name, shape, f"{ours:.3f}", own, *of_peer, f"{'> ' * (peer is None)}{ratios[-1]:.1f}")
    table.note(f"Geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.1f}.")
    table.publish("selection_folds")


def _peer(X: Any, y: np.ndarray, new: Any, options: dict[str, Any], repeats: int) -> tuple[np.ndarray, float]:
    """Probabilities of new rows, and the fewest seconds of a fit, of which short ones are repeated, too."""
    model = LogisticRegressionCV(
        Cs=1 / (ALPHAS * len(y)), l1_ratios=(0,), use_legacy_attributes=False, max_iter=1000, **options
    )
    _, seconds = quietly(partial(model.fit, X, y))
    if seconds < SHORT:
        seconds = min(seconds, quietly(partial(model.fit, X, y), repeats - 1)[1])
    return model.predict_proba(new), seconds


if __name__ == "__main__":
    typer.run(main)

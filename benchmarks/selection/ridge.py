"""Claim: the whole path of ridge penalties costs a few fits, and a fifth of `RidgeClassifierCV` on the same grid.

    python -m benchmarks.selection.ridge            # MNIST with 4096 features, 30 alphas; 20 000 × 512, 100 classes, 10
    python -m benchmarks.selection.ridge --rows 10000

``one fit`` is `GLMClassifier(loss="squared")` at one alpha. Leave-one-out is also compared with refits without the row.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import typer
from sklearn.linear_model import Ridge, RidgeClassifierCV

from benchmarks import data, report
from benchmarks.selection.timing import in_process, quietly
from manyclass import GLMClassifier, GLMClassifierCV
from manyclass.features import RandomFourierFeatures


def fourier(n_features: int, n_rows: int | None) -> data.Rows:
    """MNIST, and random Fourier features of its 50 principal components."""
    from sklearn.decomposition import PCA

    X, y = data.mnist()
    X, y = X[:n_rows], y[:n_rows]
    P = PCA(50, random_state=0).fit_transform(X[:]).astype(np.float32)
    maker = RandomFourierFeatures(random_state=0).fit(P)
    return maker.draw(n_features, np.random.default_rng(0)).transform(P), y


def gaussian(n: int = 20_000, d: int = 512, k: int = 100) -> data.Rows:
    rng = np.random.default_rng(0)
    means, y = rng.standard_normal((k, d)), rng.integers(0, k, n)
    return (means[y] + 4 * rng.standard_normal((n, d))).astype(np.float32), y


def path(table: report.Table, title: str, X: np.ndarray, y: np.ndarray, n_alphas: int, limit: float) -> None:
    alphas = np.logspace(-7, 0, n_alphas) * float(np.mean(np.sum(X[:2000] ** 2, axis=1)))
    _, one = quietly(lambda: GLMClassifier(alpha=alphas[n_alphas // 2], loss="squared").fit(X, y))
    for cv in ("gcv", "loo"):
        model, ours = quietly(partial(GLMClassifierCV(alphas, cv=cv, loss="squared").fit, X, y))
        table.add(title, n_alphas, f"GLMClassifierCV, {cv}", f"{ours:.2f}", f"{ours / one:.1f}", f"{model.alpha_:.2g}")
    table.add(title, 1, "one fit", f"{one:.2f}", "1.0", f"{alphas[n_alphas // 2]:.2g}")
    peer = in_process(lambda: RidgeClassifierCV(alphas * len(y)).fit(X, y).alpha_ / len(y), limit)
    seconds, alpha = (f"> {limit:g}", "") if peer is None else (f"{peer[1]:.2f}", f"{peer[0]:.2g}")
    ratio = (limit if peer is None else peer[1]) / ours
    table.add(title, n_alphas, "RidgeClassifierCV", seconds, "", alpha)
    table.note(f"{title}: RidgeClassifierCV takes {'more than ' * (peer is None)}{ratio:.1f} times as long as loo.")


def brute_force(n_rows: int = 300) -> float:
    """The largest difference of the squared errors of left-out rows from those of refits, relative to the largest."""
    from sklearn.datasets import load_digits

    X, y = (part[:n_rows] for part in load_digits(return_X_y=True))
    alphas, Y = np.logspace(2, -4, 7), (y[:, None] == np.unique(y)).astype(float)
    exact = -GLMClassifierCV(alphas, cv="loo", loss="squared", alpha_per_output=True).fit(X, y).scores_[0]
    refits = np.zeros_like(exact)
    for place, alpha in enumerate(alphas):
        for i in range(n_rows):
            others = np.arange(n_rows) != i
            model = Ridge(alpha * n_rows).fit(X[others], Y[others])
            refits[place] += (model.predict(X[i : i + 1])[0] - Y[i]) ** 2 / n_rows
    scale = float(np.sum(exact * refits) / np.sum(refits**2))  # of the codes of the classes: 0 and 1, or −1 and 1
    return float(np.max(np.abs(exact - scale * refits)) / np.max(exact))


def main(
    rows: Annotated[int | None, typer.Option(help="Of MNIST; all by default.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a peer is stopped.")] = 600.0,
) -> None:
    columns = ["data", "alphas", "estimator", "s", "of one fit", "alpha"]
    table = report.Table("A path of ridge penalties, seconds of the processor", columns, live=True)
    path(table, "20 000 × 512, 100 classes", *gaussian(), 10, limit)
    path(table, "MNIST, 4096 features", *fourier(4096, rows), 30, limit)
    table.note(f"Leave-one-out against refits, digits, 300 rows, 7 alphas: {brute_force():.1e} apart at most.")
    table.publish("selection_ridge")


if __name__ == "__main__":
    typer.run(main)

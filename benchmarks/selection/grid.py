"""Claim: 45 penalties with rows held out in at most three times the seconds of the hardest single fit.

python -m benchmarks.selection.grid                  # MNIST, 2048 random Fourier features
python -m benchmarks.selection.grid --rows 10000
python -m benchmarks.selection.grid --data letter    # a case of the battery, or a file
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import typer

from benchmarks import data, report
from benchmarks.battery import cases
from benchmarks.selection.timing import quietly
from manyclass import GLMClassifier, GLMClassifierCV

HARDEST = 4
"""Penalties, from the smallest that the path came to, of which the slowest single fit is looked for."""


def main(
    name: Annotated[str, typer.Option("--data", help="A case of the battery, a file, or mnist-fourier.")] = (
        "mnist-fourier"
    ),
    rows: Annotated[int | None, typer.Option(help="All by default.")] = None,
    n_alphas: Annotated[int, typer.Option()] = 45,
) -> None:
    X, y = data.load(name) if name in data.PROBLEMS else cases.arrays(name)
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    held, train = np.sort(order[: len(order) // 6]), np.sort(order[len(order) // 6 :])
    held_out = X[held], y[held]
    model, ours = quietly(lambda: GLMClassifierCV(n_alphas, cv=held_out).fit(X[train], y[train]))
    tried = model.alphas_[np.isfinite(model.scores_[0])]
    table = report.Table(
        f"{name}, {len(train)} × {X.shape[1]}: {n_alphas} penalties with rows held out, seconds of the processor",
        ["what", "alpha", "s", "passes"],
        live=True,
    )
    table.add(f"GLMClassifierCV, {len(tried)} of {n_alphas} tried", f"{model.alpha_:.2g}", f"{ours:.2f}", "")
    single = []
    for alpha in dict.fromkeys([*tried[-HARDEST:], model.alpha_]):
        fit, seconds = quietly(partial(GLMClassifier(float(alpha)).fit, X[train], y[train]))
        single.append(seconds)
        table.add("GLMClassifier", f"{alpha:.2g}", f"{seconds:.2f}", f"{fit.n_passes_:.0f}")
    ended = f"; the search ends where the score has turned, at {tried[-1]:.2g}" * (len(tried) < n_alphas)
    table.note(
        f"The path takes {ours / max(single):.2f} times as long as the hardest single fit{ended}; the final fit to "
        f"{len(train)} rows is part of it."
    )
    table.publish("selection_grid" + ("" if name == "mnist-fourier" else f"_{data.title(name)}"))


if __name__ == "__main__":
    typer.run(main)

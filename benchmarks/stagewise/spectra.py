"""Well and badly conditioned rows (Fig. 4 of *Least Squares Revisited*): σ₂/σ₁₀₀₀, and the sum of singular values.

``python -m benchmarks.stagewise.spectra``
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data as sets
from benchmarks import text
from benchmarks.report import Table, figure
from benchmarks.stagewise import mnist, newsgroups, table1
from manyclass.diagnostics import spectrum

WIDTH, RANK = 3000, 1000
DATA = ("20newsgroups", "rcv1-like-4", "mnist")


def rows(name: str, width: int, bandwidth: float) -> Any:
    """As the paper has them: log(1 + tf), and random Fourier features of images; other sparse rows as they are."""
    if name == "20newsgroups":
        return newsgroups.problem(0)[0]
    X = text.load(name)[0] if name in text.PROBLEMS else sets.rows(name)[0]
    if not isinstance(X, np.ndarray):
        return X
    return table1.fourier(mnist.projected(min(mnist.DIMENSIONS, X.shape[1]), source=name), width, bandwidth, 0)[0]


def main(
    data: Annotated[list[str] | None, typer.Option(help=f"Sets or files, by default {', '.join(DATA)}.")] = None,
    rank: int = RANK,
    width: int = WIDTH,
    max_rows: Annotated[int, typer.Option(help="Rows taken at most, the first.")] = 60_000,
    bandwidth: Annotated[float, typer.Option(help="Times the median squared distance; of images.")] = 1.0,
) -> None:
    columns = ["data", "rows", "features", f"σ₂/σ_{rank}", "σ₁/σ₂"]
    table = Table("Largest singular values of rows that are not centred", columns, live=True)
    page = "stagewise_spectra" if bandwidth == 1 else f"stagewise_spectra_bandwidth_{bandwidth:g}"
    with figure(page) as ax:
        for name in data or DATA:
            X = rows(name, width, bandwidth)[:max_rows]
            sigma = np.sqrt(spectrum(X, n_components=rank, center=False).eigenvalues)
            ratio, first = sigma[1] / sigma[-1], sigma[0] / sigma[1]
            table.add(sets.title(name), X.shape[0], X.shape[1], f"{ratio:.3g}", f"{first:.3g}")
            ax.plot(np.arange(1, len(sigma) + 1), np.cumsum(sigma) / sigma.sum(), label=sets.title(name))
        ax.set(xlabel="rank", ylabel=f"share of the {rank} largest singular values", ylim=(0, 1))
        ax.legend()
    table.note(
        f"20 Newsgroups: log(1 + tf). MNIST: {width} random Fourier features of 50 principal components, "
        f"bandwidth {bandwidth:g} times the median squared distance. At most the first {max_rows:,} rows."
    )
    table.publish(page)


if __name__ == "__main__":
    typer.run(main)

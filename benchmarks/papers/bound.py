"""*Stochastic Bound Majorization*; its curves print no numbers but the gains."""

from __future__ import annotations

from benchmarks.papers.entry import Call, Entry, Number


def settings(method: str, paper: str) -> Number:
    return Number(f"{method}: chosen gain", paper, (method,), "settings")


ENTRIES = (
    Entry(
        "bound/figure-1",
        "Two symmetric, overlapping classes (generated): L-BFGS, SGD, ASGD and SBM per pass",
        (Call("bound.toy:main", quick={"passes": 10}),),
        (settings("SGD", "η₀ = 1e-8, m = 1"), settings("ASGD", "η₀ = 1e-5, τ = 1, m = 1"), settings("SBM", "η = 1/t")),
    ),
    Entry(
        "bound/figure-2",
        "ecoli: L-BFGS, SGD, ASGD, BBM and SBM per pass and per update",
        (Call("bound.ecoli:main", {"data": "ecoli"}, quick={"splits": 1, "starts": 2}),),
        (
            settings("SGD", "η₀ = 1e-2, m = 10"),
            settings("ASGD", "η₀ = 1e-1, τ = 500, m = 10"),
            Number("updates of SBM that lose ground", "none", ("SBM",), "that lose ground"),
        ),
    ),
    Entry(
        "bound/figure-3",
        "MNIST at full rank, and sparse text at low rank, beside SGD and ASGD per pass and per second",
        (
            Call("bound.mnist:main", {"data": "mnist"}, quick={"rows": 2000, "passes": 5, "starts": 1}),
            Call("bound.low_rank:main", needs=("mnist", "20newsgroups"), quick={"rows": 600, "passes": 5}),
            Call("bound.text:main", {"name": "newsgroups"}, quick=None),
            Call("bound.text:main", {"name": "a9a"}, quick={"passes": 5}),
        ),
        (
            settings("SGD", "MNIST: η₀ = 1e-1, m = 100"),
            settings("ASGD", "MNIST: η₀ = 1e-1, τ = 1e5, m = 100"),
            settings("SBM rank 1", "Text: η₀ = 1/t"),
        ),
    ),
)

"""*Accelerated Dual Learning by Homotopic Initialization*; its curves print no numbers."""

from __future__ import annotations

from benchmarks.papers.entry import Call, Entry, Number

SETS = ("a9a", "w8a", "adult", "kddcup", "mnist")
QUICK = {"reference_seconds": 8.0}


def starts(name: str, what: str, loss: str, further: tuple[Call, ...] = ()) -> Entry:
    return Entry(
        name,
        f"{what}: zero start and homotopic start by epoch, dual and primal suboptimality and test loss",
        tuple(
            Call(
                "dual.homotopy:compare",
                {"source": source},
                full={"losses": (loss,)},
                quick={"losses": (loss,)} | QUICK if source in SETS[:2] else None,
                quick_rows=None,
            )
            for source in SETS
        )
        + further,
        (
            Number("a9a: epochs (s) to 1e-2, from zero", "curves only", (loss, "from zero"), "epochs (s) to 0.01"),
            Number("the same from ν = 0.25·√μ", "curves only", (loss, "ν = 0.25·√alpha"), "epochs (s) to 0.01"),
        ),
    )


ENTRIES = (
    Entry(
        "homotopy/table-1",
        "Response correlation τ of the data sets, and which reading of its definition gives the published numbers",
        (
            Call("dual.spectra:all_data", {"names": SETS[:2]}, quick_rows=None),
            Call("dual.spectra:all_data", {"names": SETS[2:]}, quick=None),
            Call("dual.spectra:definitions", needs=SETS[:2], quick_rows=None),
        ),
        (
            Number("τ of a9a", "0.2", ("a9a",), "τ"),
            Number("τ of w8a", "1.4", ("w8a",), "τ"),
            Number("τ of covtype, gisette, ijcnn1, SUSY", "5.5, 100, 6, 1.2"),
        ),
    ),
    Entry(
        "homotopy/figure-1",
        "Gradient descent on ridge regression against its worst-case rate and the bounds of Lemmas 5 and 7",
        (Call("dual.descent:compare", {"names": SETS[:2]}, quick_rows=None),),
        (
            Number("a9a: left after 100 steps", "far below the worst case", ("a9a", "measured, from zero"), "t = 100"),
            Number("a9a: worst-case rate", "", ("a9a", "worst-case rate"), "t = 100"),
        ),
    ),
    Entry(
        "homotopy/figure-2",
        "Correlation of each eigenfeature with the response against its variance",
        (Call("dual.spectra:draw", needs=SETS[:2], quick_rows=None),),
    ),
    starts("homotopy/figure-3", "Dual ridge regression", "squared"),
    Entry(
        "homotopy/figure-4",
        "Ten hidden layers: gradient descent from a random start and from the layers of a trained smaller network",
        (
            Call("dual.layerwise:main", {"name": "mnist"}, quick={"rows": 500, "steps": 100}),
            Call("dual.layerwise:main", {"name": "cifar10"}, quick={"rows": 500, "steps": 100}),
        ),
    ),
    starts(
        "homotopy/figure-5",
        "Dual SVM",
        "hinge",
        (
            Call("dual.svm:main", {"sources": ("w8a",)}, quick=QUICK, quick_rows=None),
            Call("dual.svm:main", {"sources": ("mnist",)}, quick=None),
        ),
    ),
    starts("homotopy/section-4", "Dual of the log loss, of which the paper conjectures the same", "logistic"),
    Entry(
        "homotopy/theorem-8",
        "Steps: those of (18) in coordinate ascent, and those of the biased gradient, beside the steps that we take",
        (Call("dual.steps:main", {"names": ("a9a", "w8a", "adult")}, quick={"rows": 1_000, "steps": 50}),),
        (
            Number("a9a: dual left after 100 epochs, steps of (18), from a*_ν", "", ("of (18)", "a*_ν"), "after 100"),
            Number("the same with 1/G_rr", "", ("1/G_rr", "a*_ν"), "after 100"),
        ),
    ),
)

"""*Characterizing Inverse Time Dependency in Multi-class Learning*, which prints numbers for one figure alone."""

from __future__ import annotations

from benchmarks.papers.entry import Call, Entry, Number

FLAT = "falls, then stays flat (curves)"
TIME_NUMBERS = tuple(
    Number(f"rows from which the time to an error is flat: {name}", FLAT, (name,), "flat from")
    for name in (
        "softmax",
        "crammer_singer",
        "perceptron",
        "softmax, as printed",
        "crammer_singer, as printed",
        "perceptron, as printed",
    )
)
QUICK = {"max_steps": 5_000, "seeds": 2, "sizes": 4}

ENTRIES = (
    Entry(
        "inverse-time/figure-1",
        "Time to a test error, and error after T steps, by training rows: three losses on RCV1-4 and RCV1-53",
        (
            Call("stochastic.inverse_dependency:main", {"data": "rcv1-4"}, quick=QUICK),
            Call("stochastic.inverse_dependency:main", {"data": "rcv1-53"}, full={"seeds": 5}, quick=QUICK),
        ),
        TIME_NUMBERS,
    ),
    Entry(
        "inverse-time/figure-2",
        "The same on a third set with more classes: kddcup (23) in place of ODP (11), which is not to be had",
        (
            Call(
                "stochastic.inverse_dependency:main", {"data": "kddcup"}, quick=QUICK | {"seeds": 5}, quick_rows=50_000
            ),
        ),
    ),
    Entry(
        "inverse-time/figure-3",
        "Test error after T steps of joint losses and of one binary loss per class, same λ and r",
        (
            Call(
                "stochastic.joint_versus_ovr:main",
                {"data": ("rcv1-4", "letter")},
                quick={"max_steps": 4_000, "seeds": 2},
            ),
            Call("stochastic.joint_versus_ovr:main", {"data": ("rcv1-53", "20news-unit", "kddcup")}, quick=None),
        ),
        (
            Number("LR below K-binaryLR, SVM below K-Pegasos", "on all three sets", (), ""),
            Number("most steps, RCV1-4, LR", "", ("rcv1-like-4", "softmax"), "T = 200,000"),
            Number("most steps, RCV1-4, K-binaryLR", "", ("rcv1-like-4", "K-binaryLR"), "T = 200,000"),
            Number("most steps, RCV1-53, LR", "", ("rcv1-like-53", "softmax"), "T = 200,000"),
            Number("most steps, RCV1-53, K-binaryLR", "", ("rcv1-like-53", "K-binaryLR"), "T = 200,000"),
        ),
    ),
    Entry(
        "inverse-time/figure-4",
        "Pegasos against SVM-multiclass (its algorithm, in NumPy), LIBLINEAR and SDCA at the same objective",
        (
            Call(
                "stochastic.batch_svm:main",
                {"data": ("rcv1-4", "rcv1-53")},
                quick={"size": [2_000, 8_000, 32_000], "limit": 10.0},
            ),
        ),
        (
            Number("RCV1-4, half the rows: s of SVM-multiclass to 97.2 %", "77.88", ("200,000", "cutting planes"), "s"),
            Number("s of Pegasos to that accuracy", "7.28", ("200,000", "cutting planes"), "Pegasos: s to 0.2"),
            Number("ratio", "10.7", ("200,000", "cutting planes"), "ratio"),
        ),
    ),
    Entry(
        "inverse-time/theorem-3",
        "Theorem 3's λ(n, T) = c·√(a/T + 1/n) against the best λ for each number of rows and of steps",
        (
            Call(
                "stochastic.lambda_of_rows:main",
                {"data": "rcv1-4"},
                quick={"max_steps": 16_000, "size": [2_000, 8_000, 32_000], "seeds": 2},
            ),
        ),
    ),
)

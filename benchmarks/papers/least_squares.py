"""*Least Squares Revisited*."""

from __future__ import annotations

from benchmarks.papers.entry import Call, Entry, Number

ENTRIES = (
    Entry(
        "least-squares/table-1",
        "MNIST: linear, logistic and calibrated least squares on pixels and on 4000 and 8000 random Fourier features",
        (
            Call("stagewise.table1:table", {"source": "mnist"}, quick={"seeds": "1", "widths": "512"}, quick_rows=None),
            Call(
                "stagewise.curves:generators",
                {"source": "mnist"},
                quick={"n_components": 1024, "seeds": 2},
                quick_rows=None,
            ),
        ),
        (
            *(
                Number(f"{features}: {name}, error %", paper, (features,), column)
                for features, papers in (
                    ("raw pixels", ("14.1", "7.8", "8.1")),
                    ("4000 features", ("1.83", "1.48", "1.54")),
                    ("8000 features", ("1.48", "1.33", "1.36")),
                )
                for name, column, paper in zip(
                    ("linear", "logistic", "calibrated"), ("linear", "softmax", "calibrated"), papers, strict=True
                )
            ),
        ),
    ),
    Entry(
        "least-squares/figure-1",
        "MNIST: test error against seconds by inner update and block size",
        (
            Call(
                "stagewise.curves:figure_1",
                {"source": "mnist"},
                quick={"n_components": 2048, "n_passes": 1},
                quick_rows=10_000,
            ),
            Call(
                "stagewise.printed:main",
                {"source": "mnist"},
                quick={"n_components": 2048, "blocks": "300,1024"},
                quick_rows=10_000,
            ),
        ),
        (
            Number("s and error %, blocks of 512: linear", "sooner than logistic", ("squared",), "blocks of 512"),
            Number("the same: calibrated", "below linear", ("calibrated",), "blocks of 512"),
            Number("the same: logistic", "slower, 1.1 % in the end", ("softmax",), "blocks of 512"),
            Number("blocks of 1024: calibrated", "small blocks are better", ("calibrated",), "blocks of 1024"),
        ),
    ),
    Entry(
        "least-squares/figure-2",
        "MNIST: our stagewise models beside LIBLINEAR, Vowpal Wabbit and Snap ML on the same random features",
        (
            Call(
                "stagewise.fig2:compare",
                needs=("mnist",),
                quick={"widths": (1024,), "methods": ("stagewise", "-s 4")},
                quick_rows=10_000,
            ),
        ),
        (
            Number("times as fast as every competitor: linear, calibrated", "≥ 10", (), ""),
            Number("LIBLINEAR -s 2 over ours", "≥ 10", ("LIBLINEAR -s 2",), "8192 features"),
            Number("LIBLINEAR -s 4 over ours", "≥ 10", ("LIBLINEAR -s 4",), "8192 features"),
            Number("error % with 65 536 features: calibrated", "1.1", ("stagewise, calibrated",), "65536 features"),
            Number("the same: logistic", "1.1", ("stagewise, softmax",), "65536 features"),
        ),
    ),
    Entry(
        "least-squares/figure-3",
        "CIFAR-10: test accuracy of models on filter responses, and of their average",
        (
            Call("stagewise.cifar:exact", needs=("cifar10",), quick={"filters": "32"}),
            Call("stagewise.cifar:averages", needs=("cifar10",), quick={"filters": 16, "models": 2}),
            Call("stagewise.cifar:linear", needs=("cifar10",), quick={"filters": 50, "visits": 1}),
        ),
        (
            Number("accuracy %, about 400 filters (here 1024)", "> 80", ("1024",), "accuracy"),
            Number("accuracy %, four models averaged", "> 85", ("4",), "average"),
        ),
    ),
    Entry(
        "least-squares/figure-4",
        "Spectra: how much of the singular values the largest are, on text and on images",
        (
            Call(
                "stagewise.spectra:main",
                {"data": ("20newsgroups", "rcv1-4", "mnist")},
                quick={"rank": 200, "width": 500, "max_rows": 5_000},
            ),
        ),
        (
            Number("σ₂/σ₁₀₀₀ of 20 Newsgroups", "19.8", ("20newsgroups",), "σ₂/σ_1000"),
            Number("σ₂/σ₁₀₀₀ of RCV1", "14", ("rcv1-like-4",), "σ₂/σ_1000"),
            Number("σ₂/σ₁₀₀₀ of MNIST, 3000 features", "72000", ("mnist",), "σ₂/σ_1000"),
        ),
    ),
    Entry(
        "least-squares/table-2",
        "20 Newsgroups: stagewise least squares on words beside LIBLINEAR and Vowpal Wabbit",
        (
            Call(
                "stagewise.newsgroups:main",
                needs=("20newsgroups",),
                quick={"seeds": 1, "method": ["gradient", "random", "-s 1"]},
                quick_rows=None,
            ),
            Call("stagewise.newsgroups:main", {"name": "rcv1-4"}, quick={"method": ["gradient", "frequency"]}),
        ),
        (
            Number("stagewise, error %", "11.7", ("manyclass stagewise, squared, gradient",), "test error"),
            Number("stagewise, s", "40", ("manyclass stagewise, squared, gradient",), "seconds"),
            Number("LIBLINEAR, error %", "13.8", ("LIBLINEAR -s 1",), "test error"),
            Number("LIBLINEAR, s", "27", ("LIBLINEAR -s 1",), "seconds"),
            Number("Vowpal Wabbit, error %", "12.4", ("Vowpal Wabbit",), "test error"),
            Number("Vowpal Wabbit, s", "2.5", ("Vowpal Wabbit",), "seconds"),
            Number(
                "RCV1: stagewise, error %", "2.77", ("manyclass stagewise, squared, gradient, 2 × 2000",), "test error"
            ),
            Number("RCV1: LIBLINEAR, Vowpal Wabbit, error %", "2.73, 2.75"),
        ),
    ),
)

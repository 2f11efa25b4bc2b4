"""Prediction sets without rows kept aside, beside split conformal prediction with a fifth of the rows kept aside.

    python -m benchmarks.prediction_sets          # letter, mnist, banking77, 20news
    python -m benchmarks.prediction_sets letter   # one of them

`GLMClassifierCV(leave_one_out=True)` learns from all rows and compares with them, each left out by one Newton step.
MAPIE's ``SplitConformalClassifier`` with ``conformity_score="lac"``, which is the same rule, gets `GLMClassifier` at
the same penalty from four fifths of the rows and compares with the rest. Coverage and sizes are those of the test
rows. Needs ``pip install mapie``.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, train_test_split

from benchmarks.data import Split, data_dir, mnist, split
from benchmarks.report import Table
from manyclass import GLMClassifier, GLMClassifierCV

COVERAGE = 0.9
ALPHAS = (1e-3, 1e-4, 1e-5)
N_DIRECTIONS = 256


def _letter() -> Split:
    """The columns, scaled to unit variance."""
    X, y, X_test, y_test = split("letter", test_size=0.25)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    return (X - mean) / deviation, y, (X_test - mean) / deviation, y_test


def _mnist() -> Split:
    """50 principal components and then 512 Fourier features."""
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import RBFSampler

    (X, y), (X_test, y_test) = mnist("train"), mnist("test")
    pca = PCA(50, random_state=0).fit(X[::10])
    features = RBFSampler(gamma=0.02, n_components=512, random_state=0).fit(pca.transform(X[:10]))
    P, P_test = (16.0 * features.transform(pca.transform(part)).astype(np.float32) for part in (X, X_test))
    return P, y, P_test, y_test


def _text(texts: list[str], labels: list[str]) -> Split:
    """TF-IDF, its leading singular directions, unit length; the parts of the set put together and parted at random.

    Their own are of different months (20news) or balances (banking77), and no promise of coverage spans that.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    words = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32)
    made = make_pipeline(words, TruncatedSVD(N_DIRECTIONS, random_state=0), Normalizer())
    y = np.unique(labels, return_inverse=True)[1]
    first, second, y, y_test = train_test_split(texts, y, test_size=0.4, random_state=0, stratify=y)
    return made.fit_transform(first).astype(np.float32), y, made.transform(second).astype(np.float32), y_test


def _banking77() -> Split:
    rows: list[list[str]] = []
    for name in ("train", "test"):
        with (data_dir() / "banking77" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows += list(csv.reader(file))[1:]
    return _text([row[0] for row in rows], [row[1] for row in rows])


def _newsgroups() -> Split:
    from benchmarks.text import newsgroups_texts

    parts = newsgroups_texts()
    return _text(*(parts["train"][place] + parts["test"][place] for place in (0, 1)))


SETS: dict[str, Callable[[], Split]] = {
    "letter": _letter,
    "mnist": _mnist,
    "banking77": _banking77,
    "20news": _newsgroups,
}


def _row(sets: np.ndarray, y: np.ndarray, seconds: float) -> tuple[str, ...]:
    covered, size = sets[np.arange(len(y)), y], sets.sum(axis=1)
    return f"{covered.mean():.3f}", f"{size.mean():.2f}", f"{np.mean(size == 1):.2f}", f"{seconds:.1f}"


def compare(name: str, table: Table) -> None:
    """Both on one set."""
    from mapie.classification import SplitConformalClassifier

    X, y, X_test, y_test = SETS[name]()
    shape = f"{X.shape[0]:,} × {X.shape[1]}, {len(np.unique(y))}"
    started = time.perf_counter()
    parts = ShuffleSplit(1, test_size=0.2, random_state=0)
    ours = GLMClassifierCV(alphas=ALPHAS, cv=parts, leave_one_out=True).fit(X, y)
    spent = time.perf_counter() - started
    error = f"{100 * np.mean(ours.predict(X_test) != y_test):.1f} %"
    table.add(name, shape, "leave-one-out, all rows", error, *_row(ours.predict_set(X_test, COVERAGE), y_test, spent))
    learn, judge, y_learn, y_judge = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    started = time.perf_counter()
    model: Any = GLMClassifier(alpha=ours.alpha_).fit(learn, y_learn)
    peer = SplitConformalClassifier(model, confidence_level=COVERAGE, conformity_score="lac", prefit=True)
    peer.conformalize(judge, y_judge)
    spent = time.perf_counter() - started
    sets = np.asarray(peer.predict_set(X_test)[1])[:, :, 0]
    error = f"{100 * np.mean(model.predict(X_test) != y_test):.1f} %"
    table.add(name, shape, "MAPIE, a fifth kept aside", error, *_row(sets, y_test, spent))


def main(names: list[str]) -> None:
    columns = ["set", "rows × columns, classes", "method", "error", "coverage", "mean size", "sets of one", "s"]
    table = Table(f"Prediction sets of {100 * COVERAGE:.0f} % coverage", columns, live=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or SETS:
            compare(name, table)
    table.note(
        "Seconds of the first include the choice of the penalty, by a fifth of the rows; the second has it given."
    )
    table.publish("prediction_sets")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The problems of the paper, with the bias as a last column that is penalised like the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import data, text
from benchmarks.objective import column_loss
from manyclass import GLMClassifier
from manyclass.data import as_rows
from manyclass.data.labels import Labels
from manyclass.model import Problem as Objective

TWO_COLUMNS = 0.5
"""λ of the one column of two classes, over that of the paper's two."""


@dataclass(frozen=True)
class Problem:
    """Rows, class codes 0..k-1, and λ: minus J = Σ_j −log p(y_j | x_j) + λ/2 ‖θ‖² is n times our F.

    With two classes θ is one column, the difference of the paper's two, which are ±θ/2: the λ of the paper is twice
    this one, and steps of its SGD move θ by twice its gain.
    """

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    lam: float = 1.0

    @property
    def n_classes(self) -> int:
        return int(max(self.y.max(), self.y_test.max())) + 1

    @property
    def shape(self) -> tuple[int, int]:
        """Of θ."""
        return self.X.shape[1], 1 if self.n_classes == 2 else self.n_classes

    @property
    def alpha(self) -> float:
        return self.lam / len(self.y)

    def objective(self) -> Objective:
        labels, rows = Labels(np.arange(self.n_classes), self.y, None), as_rows(self.X)
        loss = column_loss(labels, "softmax")
        return Objective(rows, labels.targets(rows, loss.label_values), loss, self.alpha, fit_intercept=False)

    def log_likelihood_and_error(self, theta: np.ndarray, part: str = "test") -> tuple[float, float]:
        """Mean log p(y | x) and share of wrong rows."""
        X, y = (self.X, self.y) if part == "train" else (self.X_test, self.y_test)
        with np.errstate(all="ignore"):
            Z = X @ theta
            if Z.shape[1] == 1:
                Z = np.hstack([np.zeros_like(Z), Z])
            right = Z[np.arange(len(y)), y] - logsumexp(Z, axis=1)
        if not np.isfinite(right).all():
            return -np.inf, 1.0
        return float(right.mean()), float(np.mean(Z.argmax(axis=1) != y))

    def held_out(self, share: float = 0.2, seed: int = 0) -> Problem:
        """The training rows in two parts, λ in proportion: for choosing settings without the test rows."""
        rest, out = train_test_split(np.arange(len(self.y)), test_size=share, stratify=self.y, random_state=seed)
        parts = {"X": self.X[rest], "y": self.y[rest], "X_test": self.X[out], "y_test": self.y[out]}
        return replace(self, lam=self.lam * (1 - share), **parts)


def with_bias(X: Any) -> Any:
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X.astype(float), np.ones((X.shape[0], 1))]))
    return np.column_stack([X.astype(float), np.ones(len(X))])


def with_best_lambda(problem: Problem, grid: tuple[float, ...], folds: int = 5) -> Problem:
    """λ by cross-validated log-likelihood over the training rows, at the exact optimum."""

    def score(lam: float) -> float:
        total = 0.0
        for train, out in StratifiedKFold(folds, shuffle=True, random_state=0).split(problem.X, problem.y):
            alpha = lam / len(problem.y)
            model = GLMClassifier(alpha=alpha, tol=1e-7, max_iter=1000, fit_intercept=False)
            model.fit(problem.X[train], problem.y[train])
            P = model.predict_proba(problem.X[out])
            total += float(np.log(np.maximum(P[np.arange(len(out)), problem.y[out]], 1e-300)).sum())
        return total

    return replace(problem, lam=max(grid, key=score))


def toy(n: int = 1000, seed: int = 0) -> Problem:
    """Two classes, symmetric about the origin, that overlap.

    Along one axis, long, the classes do not differ, but each row's gradient points there; along the other, 300 times
    shorter, their means are two standard deviations apart. The axes are turned by 30°, so that scaling the columns
    does not help.
    """
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n)
    sign = np.where(y == 1, 1.0, -1.0)
    long = 300.0 * rng.choice([-1.0, 1.0], 2 * n) + 30.0 * rng.standard_normal(2 * n)
    short = sign + rng.standard_normal(2 * n)
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    X = with_bias(np.column_stack([c * long - s * short, s * long + c * short]))
    train, test = train_test_split(np.arange(2 * n), test_size=0.5, stratify=y, random_state=seed)
    return Problem("toy", X[train], y[train], X[test], y[test], lam=TWO_COLUMNS * 10.0)


def ecoli(split: int, name: str = "ecoli", standardise: bool = True) -> Problem:
    """A random split of ecoli, or of another dense set or file."""
    X, y = data.rows(name)
    y = np.unique(y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, stratify=y, random_state=split)
    scaler = StandardScaler(with_mean=standardise, with_std=standardise).fit(X)
    return Problem(data.title(name), with_bias(scaler.transform(X)), y, with_bias(scaler.transform(X_test)), y_test)


def mnist_components(n_rows: int = 10_000, name: str = "mnist", split: int | None = None) -> Problem:
    """50 principal components and the bias: kd = 510 for MNIST; or of another dense set or file.

    The first `n_rows` training rows and all test rows; with `split`, n_rows and a ninth of that at random from all.
    """
    X, y, X_test, y_test = data.split(name, several=False)
    if split is not None:
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        n_test = min(n_rows // 9, len(y) // 10)
        n_rows = min(n_rows, len(y) - n_test)
        X, X_test, y, y_test = train_test_split(
            X, y, train_size=n_rows, test_size=n_test, stratify=y, random_state=split
        )
    pca = PCA(min(50, X.shape[1]), random_state=0).fit(X[:n_rows])
    parts = with_bias(pca.transform(X[:n_rows])), y[:n_rows], with_bias(pca.transform(X_test)), y_test
    return Problem("MNIST" if name == "mnist" else data.title(name), *parts, lam=1e-2)


def newsgroups() -> Problem:
    X, y, X_test, y_test = text.load("20news-two-groups")
    return Problem("20 Newsgroups, 2 groups", with_bias(X), y, with_bias(X_test), y_test)


def dense_text(n_rows: int = 1500, n_words: int = 11_960) -> Problem:
    """Two groups of 20 Newsgroups as dense rows of their most frequent words: the size of the paper's Text."""
    X, y, X_test, y_test = text.load("20news-two-groups")
    X, y = sparse.vstack([X, X_test]).tocsr(), np.concatenate([y, y_test])
    words = np.argsort(-np.diff(X.tocsc().indptr), kind="stable")[:n_words]
    return two_of("20 Newsgroups, 2 groups, dense", X[:, words].toarray(), y, n_rows, lam=10.0)


def products_of_pixels(n_rows: int = 1500, n_features: int = 5000) -> Problem:
    """Digits 4 and 9, their pixels and products of random pairs of pixels: how gisette was made, at its size."""
    X, y, *_ = data.split("mnist")
    X, y = X[(y == 4) | (y == 9)], y[(y == 4) | (y == 9)]
    varying = np.flatnonzero(X.std(axis=0) > 0.05)
    left, right = np.random.default_rng(0).choice(varying, (2, n_features - X.shape[1]))
    kept = np.random.default_rng(1).permutation(len(y))[: n_rows + n_rows // 9]
    X, y = X[kept], y[kept]
    return two_of("4 against 9, products of pixels", np.hstack([X, X[:, left] * X[:, right]]), y, n_rows, lam=1.0)


def two_of(name: str, X: np.ndarray, y: np.ndarray, n_rows: int, lam: float) -> Problem:
    """n_rows random rows to train and a ninth of that to test, or 90 % and the rest; `lam` is the paper's λ."""
    n_rows = min(n_rows, int(0.9 * len(y)))
    y = np.unique(y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(
        with_bias(X), y, train_size=n_rows, test_size=min(n_rows // 9 + 1, len(y) - n_rows), stratify=y, random_state=0
    )
    return Problem(name, X, y, X_test, y_test, lam=TWO_COLUMNS * lam)


def of(name: str) -> Problem:
    """Two groups of 20 Newsgroups, or the rows of a set or file as they are."""
    if name == "newsgroups":
        return newsgroups()
    X, y, X_test, y_test = data.split(name, several=False)
    return Problem(data.title(name), with_bias(X), y, with_bias(X_test), y_test)

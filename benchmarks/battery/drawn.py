"""Labelled rows drawn at random: of mixtures, of linear and other teachers, of topics, tables and factors.

For defaults to be right on what nobody tuned them on. As a case of the battery such a set is called ``drawn-SEED``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

MOST_WORDS = 5000
NOISES = (0.0, 0.1, 0.5, 1.0)
"""Gumbel noise in the scores of a teacher, in units of their standard deviation."""

Drawn = tuple[Any, np.ndarray, str]
"""Rows, class numbers, and what is odd about them."""


def arrays(seed: int) -> tuple[Any, np.ndarray]:
    """Rows in float32 and class numbers: `told` says which."""
    X, y, _ = _drawn(seed)
    return X.astype(np.float32), y


def told(seed: int) -> str:
    return _drawn(seed)[2]


@cache
def _drawn(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(2.2, 4.2))
    k = int(np.clip(10 ** rng.uniform(0.3, 1.8), 2, n // 10))
    d = int(10 ** rng.uniform(0.6, 2.9))
    name = str(rng.choice(list(FAMILIES)))
    X, y, what = FAMILIES[name](rng, n, d, k)
    return X, y, f"{name} {what}".strip()


def taught(rng: np.random.Generator, scores: np.ndarray, told: str = "") -> tuple[np.ndarray, str]:
    """The class with the largest score, after some noise."""
    noise = float(rng.choice(NOISES))
    scores = scores + noise * scores.std() * rng.gumbel(size=scores.shape)
    return scores.argmax(axis=1), f"{told} noise {noise:g}".strip()


def mixture(rng: np.random.Generator, n: int, d: int, k: int) -> Drawn:
    """One to three clusters a class, the classes perhaps of very different size."""
    n_clusters = int(rng.integers(1, 4))
    centers = rng.standard_normal((k * n_clusters, d)) * 10 ** rng.uniform(-0.5, 0.5) * 2 / math.sqrt(d)
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, float(rng.choice([0.5, 2, 100])))))
    spread = np.arange(1, d + 1) ** -rng.uniform(0, 0.7)
    return centers[y + k * rng.integers(0, n_clusters, n)] + rng.standard_normal((n, d)) * spread, y, ""


def linear_teacher(rng: np.random.Generator, n: int, d: int, k: int) -> Drawn:
    """Scores linear in columns that are alike, decay, are mostly 0, or have heavy tails."""
    told = str(rng.choice(["flat", "decaying", "sparse", "heavy tails"]))
    X: Any = rng.standard_t(3, (n, d)) if told == "heavy tails" else rng.standard_normal((n, d))
    if told == "decaying":
        X = X * np.arange(1, d + 1) ** -rng.uniform(0.3, 1.2)
    if told == "sparse":
        X = sparse.csr_array(np.where(rng.random((n, d)) < 10 ** rng.uniform(-2, -0.3), np.abs(X), 0.0))
    return X, *taught(rng, X @ rng.standard_normal((d, k)), told)


def network(rng: np.random.Generator, n: int, d: int, k: int) -> Drawn:
    """Scores of a network with one hidden layer."""
    X, n_hidden = rng.standard_normal((n, d)), int(10 ** rng.uniform(0.5, 2))
    hidden = np.tanh(X @ rng.standard_normal((d, n_hidden)) / math.sqrt(d) * rng.uniform(0.5, 3))
    return X, *taught(rng, hidden @ rng.standard_normal((n_hidden, k)))


def topics(rng: np.random.Generator, n: int, d: int, k: int) -> Drawn:
    """Words of a topic for each class and of a common one, as TF-IDF."""
    n_words = int(np.clip(10 * d, 50, min(MOST_WORDS, 4e7 / n)))
    of_class, common = rng.dirichlet(np.full(n_words, 0.05), k), rng.dirichlet(np.full(n_words, 0.2))
    y, share = rng.integers(0, k, n), rng.uniform(0.02, 0.5)
    mixed = share * of_class + (1 - share) * common
    lengths = rng.poisson(rng.uniform(10, 100), n) + 1
    counts = np.stack([rng.multinomial(length, mixed[label]) for length, label in zip(lengths, y, strict=True)])
    X = counts * (np.log((n + 1) / (1 + (counts > 0).sum(axis=0))) + 1)
    return sparse.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y, ""


def tables(rng: np.random.Generator, n: int, _: int, k: int) -> Drawn:
    """Indicators of categories beside skewed numbers, these perhaps in units of very different size."""
    categories = [
        np.eye(size)[rng.choice(size, n, p=rng.dirichlet(np.ones(size)))]
        for size in rng.integers(2, 20, int(rng.integers(2, 9)))
    ]
    numbers = np.exp(rng.standard_normal((n, int(rng.integers(1, 10)))) * rng.uniform(0.2, 1.0))
    numbers *= 10 ** rng.uniform(-2, 3, numbers.shape[1])
    alike = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    known = np.hstack([*categories, alike])
    scores = known @ rng.standard_normal((known.shape[1], k))
    hidden = np.tanh(known @ rng.standard_normal((known.shape[1], 30)))
    scores += rng.uniform(0, 1) * hidden @ rng.standard_normal((30, k))
    in_units = bool(rng.random() < 0.5)
    y, told = taught(rng, scores, "units of different size" if in_units else "")
    return np.hstack([*categories, numbers if in_units else alike]), y, told


def factors(rng: np.random.Generator, n: int, d: int, k: int) -> Drawn:
    """Columns that mix a few factors, of which the scores are linear; perhaps far from the origin."""
    n_factors = int(min(d, 10 ** rng.uniform(0.3, 1.5)))
    hidden = rng.standard_normal((n, n_factors))
    X = hidden @ rng.standard_normal((n_factors, d)) / math.sqrt(n_factors) + 0.3 * rng.standard_normal((n, d))
    y, told = taught(rng, hidden @ rng.standard_normal((n_factors, k)))
    if rng.random() < 0.5:
        X, told = X * 10 ** rng.uniform(-1, 1, d) + 10 ** rng.uniform(0, 2), f"{told}, far from the origin"
    return X, y, told


FAMILIES: dict[str, Callable[[np.random.Generator, int, int, int], Drawn]] = {
    "mixture": mixture,
    "linear teacher": linear_teacher,
    "network": network,
    "topics": topics,
    "table": tables,
    "factors": factors,
}

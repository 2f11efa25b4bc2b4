"""Claim: 20 Newsgroups, 15 000 random training posts: at most 11.7 % error with stagewise least squares on text.

Blocks of 500 words, two passes, λ = 30 (alpha = λ/n), as in *Least Squares Revisited*, Table 2; LIBLINEAR and Vowpal
Wabbit on the same matrix beside it, their parameters chosen on a fifth of the training posts.

``python -m benchmarks.stagewise.newsgroups``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
import typer
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import data, text
from benchmarks.report import Table
from benchmarks.stagewise import peers
from benchmarks.stochastic.peers import grid, installed
from manyclass import StagewiseClassifier
from manyclass.features import FeatureSubset

ALPHAS = (1e-3, 1e-4, 1e-5)
N_TRAIN, PENALTY, BLOCK, N_PASSES = 15_000, 30.0, 500, 2
Problem = tuple[sparse.csr_matrix, np.ndarray, sparse.csr_matrix, np.ndarray]


def problem(seed: int) -> Problem:
    """log(1 + tf) of the words in at least three training posts, headers kept; a random split."""
    parts = text.newsgroups_texts()
    posts = np.array(parts["train"][0] + parts["test"][0], dtype=object)
    y = np.unique(parts["train"][1] + parts["test"][1], return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: data.allowed(N_TRAIN)], order[N_TRAIN:][: data.allowed(len(order))]
    vectorizer = CountVectorizer(min_df=3, dtype=np.float32)
    X, X_test = vectorizer.fit_transform(posts[train]), vectorizer.transform(posts[test])
    for part in (X, X_test):
        part.data = np.log1p(part.data)
        part.sort_indices()
    return X, y[train], X_test, y[test]


def stagewise(order: str) -> StagewiseClassifier:
    return StagewiseClassifier(
        FeatureSubset(order=order),
        n_components=None,
        block_size=BLOCK,
        max_iter=N_PASSES,
        alpha=PENALTY / data.allowed(N_TRAIN),
        random_state=0,
    )


def ours(order: str, split: Problem) -> tuple[float, float]:
    X, y, X_test, y_test = split
    model = stagewise(order)
    started = time.process_time()
    model.fit(X, y)
    return time.process_time() - started, 100 * float(np.mean(model.predict(X_test) != y_test))


def tuned(peer: peers.Method, split: Problem) -> tuple[float, float]:
    X, y = split[:2]
    n_held = len(y) // 5
    if "alpha" in peer.settings[0]:
        peer = replace(peer, settings=grid(alpha=ALPHAS))
    setting = peers.chosen_setting(peer, X[n_held:], y[n_held:], X[:n_held], y[:n_held])
    return peers.measure(peer, setting, *split)


def main(
    seeds: int = 3, method: Annotated[list[str] | None, typer.Option(help="Part of a method's name.")] = None
) -> None:
    splits = [problem(seed) for seed in range(seeds)]
    X = splits[0][0]
    table = Table(
        f"20 Newsgroups, {X.shape[0]} random training posts of {X.shape[1]} words",
        ["method", "seconds", "test error, %"],
    )
    runs: dict[str, Callable[[Problem], tuple[float, float]]] = {
        f"manyclass stagewise, squared, {order}": partial(ours, order) for order in ("gradient", "frequency", "random")
    }
    runs |= {name: partial(tuned, peer) for name, peer in peers.PEERS.items() if name != "Snap ML"}
    for name, run in runs.items():
        if not installed(name) or (method and not any(part in name for part in method)):
            continue
        measured = np.array([run(split) for split in splits])
        seconds, errors = measured[:, 0], measured[:, 1]
        spread = f" ± {errors.std(ddof=1):.2f}" if seeds > 1 else ""
        table.add(name, f"{np.median(seconds):.1f}", f"{errors.mean():.2f}{spread}")
    table.note(
        f"Mean and standard deviation over {seeds} random splits; median seconds of training alone. Published "
        "(another release of the posts): stagewise 11.7, Vowpal Wabbit 12.4, LIBLINEAR 13.8 %."
    )
    table.publish("stagewise_newsgroups")


if __name__ == "__main__":
    typer.run(main)

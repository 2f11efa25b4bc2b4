"""Sparse problems: 20 Newsgroups by date, a seeded stand-in for Reuters RCV1, or files.

Made once and kept as .npz files in benchmarks/.cache. A problem is (X_train, y_train, X_test, y_test), X a float32 CSR
matrix and y class indices.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from benchmarks.data import CACHE, data_dir, is_file, split

Problem = tuple[sparse.csr_matrix, np.ndarray, sparse.csr_matrix, np.ndarray]


def newsgroups_texts(only: tuple[str, ...] = ()) -> dict[str, tuple[list[str], list[str]]]:
    """Raw posts and their groups of both parts of the archive; all groups unless some are named."""
    parts: dict[str, tuple[list[str], list[str]]] = {"train": ([], []), "test": ([], [])}
    with tarfile.open(data_dir() / "20newsgroups" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            pieces = member.name.split("/")
            file = archive.extractfile(member) if member.isfile() else None
            if file is None or len(pieces) < 3 or (only and pieces[-2] not in only):
                continue
            texts, groups = parts["test" if "test" in pieces[-3] else "train"]
            texts.append(file.read().decode("latin1"))
            groups.append(pieces[-2])
    return parts


def _newsgroups(unit_norm: bool, only: tuple[str, ...] = (), min_df: int = 3) -> Problem:
    """log(1 + tf) of the words in at least `min_df` training posts."""
    parts = newsgroups_texts(only)
    vectorizer = CountVectorizer(min_df=min_df, dtype=np.float32)
    train, test = vectorizer.fit_transform(parts["train"][0]), vectorizer.transform(parts["test"][0])
    for X in (train, test):
        X.data = np.log1p(X.data)
        X.sort_indices()
    if unit_norm:
        train, test = normalize(train), normalize(test)
    groups, y_train = np.unique(parts["train"][1], return_inverse=True)
    return train, y_train, test, np.searchsorted(groups, parts["test"][1])


def rcv1_like(
    n_classes: int, n_rows: int = 600_000, n_test: int = 20_000, n_features: int = 47_000, non_zeros: int = 70
) -> Problem:
    """Documents of about `non_zeros` distinct words at unit norm, words and classes both with Zipf frequencies.

    Every class lifts the frequency of a set of words of its own; a document mixes its class's words with common ones
    and, in part, with those of another class, and 2 % of the labels are wrong, so that no model is perfect. Values are
    log(1 + tf) times the inverse document frequency at unit length, as in the distributed RCV1 vectors.
    """
    rng = np.random.default_rng(n_classes)
    total = n_rows + n_test
    common = 1.0 / (np.arange(n_features) + 10.0)
    common_cdf = np.cumsum(common / common.sum())
    topic_cdfs = []
    for _ in range(n_classes):
        lift = np.where(rng.random(n_features) < 0.03, rng.gamma(0.5, 1.0, n_features), 0.0)
        weight = common**0.8 * lift
        topic_cdfs.append(np.cumsum(weight / weight.sum()))
    prior = 1.0 / np.arange(1, n_classes + 1) ** 0.7
    y = rng.choice(n_classes, total, p=prior / prior.sum())
    second = rng.choice(n_classes, total, p=prior / prior.sum())
    # Some tokens repeat a word, so more are drawn than there are distinct words.
    length = np.maximum(rng.poisson(1.06 * non_zeros, total), 5)
    own, other = rng.beta(2.0, 4.0, total), rng.beta(1.0, 12.0, total)
    document = np.repeat(np.arange(total), length)
    kind = rng.random(len(document))
    words = np.minimum(np.searchsorted(common_cdf, rng.random(len(document))), n_features - 1).astype(np.int32)
    from_own = kind < own[document]
    from_other = ~from_own & (kind < (own + other)[document])
    for source, topics in ((from_own, y), (from_other, second)):
        chosen = np.flatnonzero(source)
        topic = topics[document[chosen]]
        for c in range(n_classes):
            mine = chosen[topic == c]
            words[mine] = np.minimum(np.searchsorted(topic_cdfs[c], rng.random(len(mine))), n_features - 1)
    X = sparse.csr_matrix(
        (np.ones(len(words), np.float32), words, np.concatenate([[0], np.cumsum(length)])), shape=(total, n_features)
    )
    X.sum_duplicates()
    frequency = np.bincount(X.indices, minlength=n_features)
    X.data = np.log1p(X.data) * np.log(total / np.maximum(frequency, 1))[X.indices].astype(np.float32)
    X = normalize(X)
    wrong = rng.random(total) < 0.02
    y[wrong] = rng.integers(0, n_classes, int(wrong.sum()))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "20news-log": lambda: _newsgroups(unit_norm=False),
    "20news-unit": lambda: _newsgroups(unit_norm=True),
    # The groups of the data set that *Stochastic Bound Majorization* calls Text, with every word.
    "20news-two-groups": lambda: _newsgroups(True, ("comp.os.ms-windows.misc", "comp.sys.mac.hardware"), min_df=1),
    "rcv1-like-4": lambda: rcv1_like(4),
    "rcv1-like-53": lambda: rcv1_like(53),
    "rcv1-like-4-small": lambda: rcv1_like(4, 60_000, 5000),
    "rcv1-like-53-small": lambda: rcv1_like(53, 60_000, 5000),
}


def load(name: str) -> Problem:
    """A problem of the above, or the rows of a file or two, as `benchmarks.data.split` has them."""
    if is_file(name):
        X_train, y_train, X_test, y_test = split(name)
        return (
            sparse.csr_matrix(X_train, dtype=np.float32),
            y_train,
            sparse.csr_matrix(X_test, dtype=np.float32),
            y_test,
        )
    path = CACHE / f"{name}.npz"
    if not path.exists():
        X_train, y_train, X_test, y_test = PROBLEMS[name]()
        arrays = {"y_train": y_train, "y_test": y_test}
        for part, X in (("train", X_train), ("test", X_test)):
            arrays |= {f"{part}_data": X.data, f"{part}_indices": X.indices, f"{part}_indptr": X.indptr}
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp.npz")
        np.savez(unfinished, n_features=X_train.shape[1], **arrays)  # type: ignore[arg-type]
        unfinished.replace(path)
    with np.load(path) as saved:
        width = int(saved["n_features"])
        X_train, X_test = (
            sparse.csr_matrix(
                (saved[f"{part}_data"], saved[f"{part}_indices"], saved[f"{part}_indptr"]),
                shape=(len(saved[f"{part}_indptr"]) - 1, width),
            )
            for part in ("train", "test")
        )
        return X_train, saved["y_train"], X_test, saved["y_test"]

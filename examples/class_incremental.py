"""
Classes that arrive a few at a time
===================================

After each step the model is that of all rows so far, fitted at once. ``python examples/class_incremental.py`` takes
scikit-learn's digits, two classes at a time, or banking77 from the folder that MANYCLASS_DATA names, ten at a time;
``--data FILE.npz`` takes arrays X and y.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from manyclass import GLMClassifier

ALPHA = 1e-5


def load(path: str | None) -> tuple[np.ndarray, np.ndarray, int]:
    """X, y and how many classes come at a time."""
    if path is not None:
        with np.load(path, allow_pickle=False) as file:
            return file["X"], file["y"], 10
    folder = Path(os.environ.get("MANYCLASS_DATA", "")) / "banking77"
    if os.environ.get("MANYCLASS_DATA") and (folder / "train.csv").is_file():
        return *banking77(folder / "train.csv"), 10
    X, y = load_digits(return_X_y=True)
    return X / 16, y, 2


def banking77(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Questions to a bank, as tf-idf in 256 dimensions."""
    import csv

    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    with path.open(newline="", encoding="utf-8") as file:
        texts, labels = zip(*list(csv.reader(file))[1:], strict=True)
    X = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit_transform(texts)
    return TruncatedSVD(256, random_state=0).fit_transform(X).astype(np.float32), np.array(labels)


def steps(X: np.ndarray, y: np.ndarray, at_a_time: int, n_steps: int | None = None) -> list[tuple[int, float, float]]:
    """(classes so far, accuracy of the stream, accuracy of one fit) after each step, on held-out rows of those."""
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    order = np.random.default_rng(0).permutation(np.unique(y))
    stream, found = GLMClassifier(ALPHA, loss="squared"), []
    for start in range(0, len(order), at_a_time)[:n_steps]:
        new = np.isin(y, order[start : start + at_a_time])
        stream.partial_fit(X[new], y[new])
        seen, judged = (np.isin(labels, order[: start + at_a_time]) for labels in (y, y_test))
        joint = GLMClassifier(ALPHA, loss="squared").fit(X[seen], y[seen])
        both = (model.score(X_test[judged], y_test[judged]) for model in (stream, joint))
        found.append((min(start + at_a_time, len(order)), *both))
        print("{:4d} classes: accuracy {:.4f} in pieces, {:.4f} in one fit".format(*found[-1]), flush=True)
    return found


def plot(found: list[tuple[int, float, float]], path: str | None) -> None:
    from matplotlib import pyplot as plt

    classes, pieces, joint = zip(*found, strict=True)
    figure, axes = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
    axes.plot(classes, joint, linewidth=5, alpha=0.35, label="one fit to all classes so far")
    axes.plot(classes, pieces, "k.-", linewidth=1, label="partial_fit, a few classes at a time")
    axes.set(xlabel="classes so far", ylabel="accuracy on held-out rows of them")
    axes.legend()
    if path is None:
        plt.show()
    else:
        figure.savefig(path, dpi=150)
        print(f"saved {path}")


def main(arguments: list[str] | None = None) -> list[tuple[int, float, float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE.npz", help="Arrays X and y.")
    parser.add_argument("--quick", action="store_true", help="The first three steps on digits.")
    parser.add_argument("--output", metavar="FILE.png", help="Save the plot instead of showing it.")
    options = parser.parse_args(arguments)
    if options.quick:
        X, y = load_digits(return_X_y=True)
        found = steps(X / 16, y, 2, 3)
    else:
        found = steps(*load(options.data))
    plot(found, options.output)
    return found


if __name__ == "__main__":
    main()

"""The rows that candidates learn from and are judged by, in rounds of more and more rows."""

import numpy as np

from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.fit.held_out import copies_of_rows, folds_by_content, hold_out

FEW_ROWS, FOLDS = 3000, 5
"""Fewer rows than this are cross-validated, in so many folds."""
FIRST_ROWS, GROWTH, MOST_HELD_OUT = 2000, 4, 10_000
"""For more rows: rows of the first round, the factor to the next round, and rows that judge, at most."""
WORDS_SHARE = 1 / 16
"""A smaller share of rows of text has too few of all words to compare penalties."""
MINORITY = 50
"""Rows outside of the largest class that are needed to compare models."""
SIXTIETHS = 60
"""Rows with copies are divided into so many parts at least, some of which are held out."""

Parts = dict[int, tuple[np.ndarray, np.ndarray]]
"""By the number of the part: (rows to learn from, rows to judge by)."""


def enough_rows(codes: np.ndarray | None, n_rows: int, only_linear: bool) -> float:
    """The number of rows that is enough to compare models: some have to be outside of the largest class.

    If only linear models are compared, it is a sixteenth of all rows or more: all of them together take less time on
    these than one of them on all rows, and fewer rows would lack too many rare words.
    """
    of_words = WORDS_SHARE * n_rows if only_linear else 0.0
    return of_words if codes is None else max(of_words, MINORITY / (1.0 - np.bincount(codes).max() / len(codes)))


def splits(rows: Rows, labels: Labels, fraction: float, rng: np.random.Generator) -> list[Parts]:
    """The parts of each round; no rounds unless two classes have at least two rows.

    Few rows are cross-validated: first in one fold, then in all. Of many, more and more are learned from, and the same
    ones judge each time.
    """
    n, codes = rows.n_rows, labels.strata
    if n < FEW_ROWS:
        n_folds = min(FOLDS, n if codes is None else int(np.sort(np.bincount(codes))[-2]))
        if n_folds < 2:
            return []
        fold = folds_by_content(rows, codes, None, n_folds)
        for one in _in_one(fold, codes):
            if np.sum(codes == one) > 1:
                fold[codes == one] = np.arange(np.sum(codes == one)) % n_folds
        parts = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in np.unique(fold)]
        return [{0: parts[0]}, dict(enumerate(parts))] if len(parts) > 1 else []
    is_judge = _held_out(rows, codes, min(fraction, MOST_HELD_OUT / n), rng)
    for one in _in_one(is_judge, codes):
        is_judge[codes == one] = False
    learn, judge = in_random_order(np.flatnonzero(~is_judge), codes, rng), np.flatnonzero(is_judge)
    rounds: list[Parts] = []
    n_rows = max(FIRST_ROWS, 4 * labels.n_classes)
    while n_rows < len(learn):
        rounds.append({len(rounds): (learn[:n_rows], judge)})
        n_rows *= GROWTH
    return [*rounds, {len(rounds): (learn, judge)}]


def _held_out(rows: Rows, codes: np.ndarray | None, share: float, rng: np.random.Generator) -> np.ndarray:
    """A mask of rows that judge, drawn at random, or by content if there are copies of rows, which stay together."""
    n = rows.n_rows
    if len(np.unique(copies_of_rows(rows, codes))) == n:
        return np.isin(np.arange(n), hold_out(rows, codes, None, share, rng).index)
    n_parts = max(SIXTIETHS, round(1.0 / share))
    return folds_by_content(rows, codes, None, n_parts) < min(max(round(share * n_parts), 1), n_parts - 1)


def _in_one(part: np.ndarray, codes: np.ndarray | None) -> list[int]:
    """Classes whose rows are all in one part, such as copies of a single row."""
    if codes is None:
        return []
    low, high = np.full(codes.max() + 1, part.max()), np.full(codes.max() + 1, part.min())
    np.minimum.at(low, codes, part)
    np.maximum.at(high, codes, part)
    return list(np.flatnonzero(low >= high))


def in_random_order(index: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Numbers of rows, shuffled, with one of each class first, so that the first rows hold all classes."""
    index = rng.permutation(index)
    if codes is None:
        return index
    first = np.unique(codes[index], return_index=True)[1]
    return np.concatenate([index[first], np.delete(index, first)])

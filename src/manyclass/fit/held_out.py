"""Rows that are held out of a fit, and folds: divisions of the rows in which copies stay together."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from manyclass.data import Rows, as_rows
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.data.summary import row_keys
from manyclass.execution import Parts
from manyclass.model import Problem
from manyclass.model.losses.base import loss_sums

MOST_COPIES = 4
"""Up to so many equal rows count as copies of one (see `copies_of_rows`)."""
SEEN = 64
"""Different rows of a class whose values are looked at."""


@dataclass(frozen=True)
class HeldOut:
    """Which rows are fitted to, and which are held out. No row of X is copied."""

    weight: Array  # s_i of the rows that are fitted to, 0 for the others; `Parts` if the rows lie in parts
    scored: Array  # s_i of the held-out rows, 0 for the others; or `Parts`
    index: Any  # numbers of the held-out rows; or `Parts`

    def loss(self, problem: Problem, coef: Array, intercept: Array) -> float:
        """The mean loss of a linear model on the held-out rows of a problem."""
        total, mass = problem.sum(_held_out_losses, self.scored, self.index, coef, intercept)
        return float(total / mass)


def _held_out_losses(
    part: Problem, scored: Array, index: np.ndarray, coef: Array, intercept: Array
) -> tuple[float, float]:
    rows, xp = part.rows, part.xp
    blocks = rows.blocks_of(index, rows.rows_per_block(part.n_outputs))
    scores = ((some, block.matmat(coef) + intercept) for some, block in blocks)
    weight = xp.take(scored, rows.asarray(index, dtype=xp.int64), axis=0)
    return loss_sums(part.loss, part.targets.take(index), weight, scores, xp)


def hold_out(
    rows: Rows, strata: np.ndarray | None, weight: Array | None, fraction: float, rng: np.random.Generator
) -> HeldOut:
    """Divide the rows of positive weight: by class, if each class has two rows, and no part would lack a class."""
    from sklearn.model_selection import train_test_split

    present = present_rows(rows.n_rows, weight)
    classes = None if strata is None else np.unique(strata[present], return_inverse=True)[1]
    strata = classes
    if strata is not None:
        n_out = int(np.ceil(fraction * len(present)))
        counts = np.bincount(strata)
        if counts.min() < 2 or min(n_out, len(present) - n_out) < len(counts):
            strata = None
    if len(present) < 2:
        raise ValueError("Only one row has a weight, so none can be held out; set early_stopping=False.")
    if not 0 < np.ceil(fraction * len(present)) < len(present):
        raise ValueError(
            f"validation_fraction={fraction} of {len(present)} rows leaves none to fit; lower it, or set "
            "early_stopping=False."
        )
    seed = int(rng.integers(2**31))
    _, out = train_test_split(present, test_size=fraction, random_state=seed, stratify=strata)
    out = np.sort(out)
    if classes is not None and strata is None:
        out = _without_whole_classes(out, present, classes)
    mask = np.zeros(rows.n_rows)
    mask[out] = 1.0
    scored = rows.asarray(mask)
    base = 1.0 if weight is None else weight
    return HeldOut(base * (1.0 - scored), base * scored, out)


def _without_whole_classes(out: np.ndarray, present: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The rows held out without the first of each class that has no other rows; as given if none were left."""
    held = np.searchsorted(present, out)
    lost = np.setdiff1d(classes[held], np.delete(classes, held))
    of_each, first = np.unique(classes[held], return_index=True)
    kept = np.delete(out, first[np.isin(of_each, lost)])
    return kept if len(kept) else out


def hold_out_in_parts(rows: Rows, y: Parts, weight: Parts | None, fraction: float, rng: np.random.Generator) -> HeldOut:
    """`hold_out` for rows in parts, each of which is divided by itself."""
    divided = y.map(_divided, weight, rows.dtype, fraction, rng, name="hold out")
    kept, scored, index = (divided.map(itemgetter(place)) for place in range(3))
    if not scored.sum(np.sum) > 0:
        raise ValueError("No part has two rows that have a weight, so none can be held out; set early_stopping=False.")
    return HeldOut(kept, scored, index)


def _divided(
    y: Any, weight: Array | None, dtype: Any, fraction: float, rng: np.random.Generator
) -> tuple[Array, Array, np.ndarray]:
    y = np.asarray(y)
    every = np.ones(len(y), dtype) if weight is None else weight
    if np.count_nonzero(every) < 2:
        return every, 0 * every, np.arange(0)
    strata = np.unique(y, return_inverse=True)[1] if y.ndim == 1 else None
    found = hold_out(as_rows(np.empty((len(y), 0), dtype)), strata, every, fraction, rng)
    return found.weight, found.scored, found.index


def folds_by_content(rows: Rows, strata: np.ndarray | None, weight: Array | None, n_folds: int) -> np.ndarray:
    """The fold of each row, −1 for rows of weight 0: stratified, and decided by the content of a row, not its place.

    The rows of a class are sorted along a direction in space, and then dealt out at random, always in the same way.
    Copies of a row go to the same fold (see `copies_of_rows`). So a small whole weight is the same as the row given so
    often, and neither the order of the rows nor the names of the classes matter. If they were dealt out in turn along
    the direction, each row would have near neighbours in all other folds, and a model that remembers these would be
    right about the rows left out.
    """
    present = present_rows(rows.n_rows, weight)
    fold = np.full(rows.n_rows, -1)
    same, along, classes = _places(rows, strata, weight, present)
    least = np.full(classes.max() + 1, np.inf)
    np.minimum.at(least, classes, along)
    order = np.lexsort((same, along, classes, least[classes]))
    is_new = np.append(True, (np.diff(same[order]) != 0) | (np.diff(classes[order]) != 0))
    is_new |= _is_alone(rows, present, same, classes)[order]
    group, of_class = np.cumsum(is_new) - 1, np.cumsum(np.append(False, np.diff(classes[order]) != 0))[is_new]
    dealt = np.lexsort((np.random.default_rng(0).random(len(of_class)), of_class))
    place = np.empty(len(dealt), dtype=np.int64)
    place[dealt] = np.arange(len(dealt))
    fold[present[order]] = place[group] % n_folds
    return fold


def copies_of_rows(rows: Rows, strata: np.ndarray | None) -> np.ndarray:
    """A number for each row; rows that are copies of one have the same number.

    A few equal rows of one class are copies, as of a rare class that was oversampled. Many equal rows, or equal rows of
    several classes, are no copies: there are too few columns to tell rows apart, and if they were kept together, fits
    without them would not know some values of a column at all. Rows that are all given equally often, whatever that
    number, are those rows given once.

    Many is more than `MOST_COPIES`. In another case a class may have more: if rows of the class with the most different
    rows mostly differ, columns do tell rows apart. Then `MOST_COPIES` times the mean number of equal rows of the class
    is allowed, unless the values of its columns make no more combinations than it has rows.
    """
    every = np.arange(rows.n_rows)
    same, _, classes = _places(rows, strata, None, every)
    found = np.where(_is_alone(rows, every, same, classes), len(same) + every, same)
    numbers: np.ndarray = np.unique(found, return_inverse=True)[1]
    return numbers


def _places(
    rows: Rows, strata: np.ndarray | None, weight: Array | None, present: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the `present` rows: a number that equal rows share, the place along a random direction, and the class."""
    # Far from the origin, rounding would make different rows equal along the direction.
    near, direction = rows.pilot(weight, 1.0, constant=True), np.random.default_rng(0).random((rows.n_features, 3))
    direction = rows.asarray(direction[:, :1] - direction[:, 1:2], dtype=rows.xp.float64)
    along = to_numpy((rows if near is None else rows.shifted(near)).matmat(direction))[present, 0]
    _, first, same = np.unique(row_keys(rows)[present], return_index=True, return_inverse=True)
    classes = np.zeros(len(present), dtype=np.int64)
    if strata is not None:
        classes = np.unique(strata[present], return_inverse=True)[1]
    return same, along[first][same], classes


def _is_alone(rows: Rows, present: np.ndarray, same: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Whether each row is no copy, even if others are equal (see `copies_of_rows`)."""
    first, times = np.unique(same, return_index=True, return_counts=True)[1:]
    of_each = classes[first]
    different, n_rows = np.bincount(of_each, minlength=classes.max() + 1), np.bincount(classes)
    times_given = np.gcd.reduce(times)  # rows that are all given so often are what they are given once
    times, n_rows = times // times_given, n_rows // times_given
    largest, most = int(np.argmax(different)), np.full(len(n_rows), float(MOST_COPIES))
    if n_rows[largest] <= 0.5 * MOST_COPIES * different[largest]:
        for one in np.unique(of_each[times > MOST_COPIES]):
            some = present[first[of_each == one][:SEEN]]
            values = np.sort(to_numpy(rows.take(some).dense()), axis=0)
            # The number of different rows that these values of the columns could make.
            if np.sum(np.log(1.0 + np.sum(np.diff(values, axis=0) > 0, axis=0))) > np.log(n_rows[one]):
                most[one] *= max(n_rows[one] / max(different[one], 1), 1.0)
    is_alone: np.ndarray = times[same] > most[classes]
    is_alone |= np.bincount(same, classes != classes[first][same])[same] > 0
    return is_alone

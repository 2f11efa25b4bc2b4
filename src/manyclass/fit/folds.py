"""Which rows a model is fitted to and which judge it, again and again: folds, splitters, rows from elsewhere."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.fit.held_out import folds_by_content


@dataclass(frozen=True)
class Fold:
    """Rows that are fitted to, and rows that judge.

    `weight` is s_i of the rows that are fitted to, 0 for the others; None where all are, with weight 1. `index` says
    which rows judge, of `rows` where these are not the rows of the fit. It is a complement where every row of the fit
    is fitted to or judges.
    """

    weight: Array | None
    index: np.ndarray
    rows: Rows | None
    is_complement: bool

    def scores(self, rows: Rows, coef: Array, intercept: Array) -> Array:
        """Scores of the rows that judge, which are never all gathered at once."""
        coef, intercept = rows.asarray(coef), rows.asarray(intercept)
        blocks = rows.blocks_of(self.index, rows.rows_per_block(int(coef.shape[1])))
        return rows.xp.concat([block.matmat(coef) + intercept for _, block in blocks])


class TooFewRowsError(ValueError):
    """A fold would have nothing to be fitted to, or nothing to judge by."""


def folds(cv: Any, rows: Rows, y: Any, strata: np.ndarray | None, weight: Array | None) -> list[Fold]:
    """The folds that `cv` asks for.

    A number of folds means those that the content of the rows decides (`folds_by_content`). Rows that a split names
    twice count twice, as in a bootstrap.
    """
    every_fold = []
    for train, test in _splits(cv, rows, y, strata, weight):
        test = _indices(test, rows.n_rows)
        mask = np.bincount(_indices(train, rows.n_rows), minlength=rows.n_rows).astype(np.float64)
        fitted = rows.asarray(mask) if weight is None else weight * rows.asarray(mask)
        if weight is not None:
            test = test[to_numpy(weight)[test] > 0]
        if not len(test) or not float(rows.xp.sum(fitted)) > 0:
            told = f"cv={cv!r}" if np.isscalar(cv) else "A split of cv"
            raise TooFewRowsError(
                f"{told} leaves a fold without rows of positive weight to fit or to judge; use fewer folds, or more "
                "rows that differ (a number of folds keeps equal rows together)."
            )
        seen = np.bincount(test, minlength=rows.n_rows) + mask
        every_fold.append(Fold(fitted, test, None, bool(np.all(seen[present_rows(rows.n_rows, weight)] == 1.0))))
    if not every_fold:
        raise ValueError(f"cv={cv!r} holds no fold; give a number of folds, a splitter, or pairs of (train, test).")
    return every_fold


def _indices(given: Any, n_rows: int) -> np.ndarray:
    """Numbers of rows from 0, of a list of them or a mask."""
    given = np.asarray(given)
    if given.dtype == bool and given.shape == (n_rows,):
        return np.flatnonzero(given)
    found: np.ndarray = given.astype(np.int64)
    outside = (found != given) | (found < -n_rows) | (found >= n_rows)
    if given.dtype == bool or given.ndim != 1 or outside.any():
        raise ValueError(
            f"cv holds a split that does not name rows of X; give row numbers from 0 to {n_rows - 1}, or {n_rows} "
            "truth values."
        )
    return np.where(found < 0, found + n_rows, found)


def _splits(cv: Any, rows: Rows, y: Any, strata: np.ndarray | None, weight: Array | None) -> Any:
    if isinstance(cv, int | np.integer):
        fold = folds_by_content(rows, strata, weight, int(cv))
        return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(int(cv))]
    from sklearn.model_selection import check_cv

    cv = cv if hasattr(cv, "split") else list(cv)
    if isinstance(cv, list) and any(len(pair) != 2 for pair in cv):
        raise ValueError(
            "cv holds a split that is no pair of (train, test); rows held out are a tuple (X, y) of two arrays."
        )
    try:
        return list(check_cv(cv, y, classifier=True).split(np.zeros((rows.n_rows, 1)), y))
    except ValueError as error:
        if "'groups' parameter" not in str(error):
            raise
        raise ValueError("cv splits by groups: give its splits, cv=list(splitter.split(X, y, groups)).") from error


def known_to_fold(codes: np.ndarray, fold: Fold) -> np.ndarray:
    """Of each row that judges, whether some row of its class is fitted to."""
    weight = None if fold.weight is None else to_numpy(fold.weight)
    known: np.ndarray = np.bincount(codes, weight)[codes[fold.index]] > 0
    return known


def known_to_others(codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Of each row, whether one of its class is left where it is left out, or all but one of its copies are."""
    weight = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    known: np.ndarray = np.bincount(codes, weight)[codes] > np.minimum(weight, 1.0)
    return known


def of_known(weight: np.ndarray | None, known: np.ndarray) -> np.ndarray | None:
    """The weights of rows that judge, where those of classes that the model cannot know say nothing of it.

    All count where none is of a class that it knows.
    """
    counted = known if weight is None else weight * known
    return weight if known.all() or not counted.any() else counted.astype(np.float64)


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Over the folds that have a score; nan for penalties of which one of these has none, as where none was tried.

    Shapes are (n_folds, n_alphas, ...) and (n_alphas, ...).
    """
    scores = scores[~without_score(scores)]
    mean: np.ndarray = scores.mean(axis=0) if len(scores) else np.full(scores.shape[1:], np.nan)
    if np.isnan(mean).all() and not np.isnan(scores).all():  # each has none of another penalty
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mean = np.nanmean(scores, axis=0)
    return mean


def without_score(scores: np.ndarray) -> np.ndarray:
    """Which folds have no score at any penalty, as a class is in none of their rows, where others have."""
    missing: np.ndarray = np.isnan(scores).reshape(len(scores), -1).all(axis=1)
    return missing if not missing.all() else ~missing

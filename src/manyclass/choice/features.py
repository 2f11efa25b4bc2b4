"""Whether features are worth generating, or the columns as they are predict better."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyclass.data import ClassTargets
from manyclass.data.dense import DenseRows
from manyclass.data.penalty import best, path_of_rows
from manyclass.data.rows import to_numpy
from manyclass.model import Problem

SAMPLED_ROWS = 768
"""Rows whose leave-one-out errors are compared: two decompositions in a few tenths of a second."""
SAMPLED_FEATURES, FEWEST_FEATURES, MOST_DRAWN = 2048, 512, 5e7
"""Features that are generated, or so many fewer that no more random numbers than that are drawn for them."""
CLEARLY = 0.98
"""Share of the error that the columns must save: with more rows than were looked at, generated features gain more."""


def errors_of_representations(
    problem: Problem, generator: Any, guide: Any, n_components: int | None
) -> dict[str, float]:
    """Leave-one-out errors of ridge regression, at the best penalty, on the columns and on generated features.

    Both are of the same sample of rows, and of one block of features: the share of rows whose class is not the one with
    the largest score, or, where rows do not have one class each, the squared error over that of the mean.
    """
    rows, xp = problem.rows, problem.xp
    rng, index = np.random.default_rng(0), problem.sample(SAMPLED_ROWS)
    sample, weight = rows.take(index), None
    if problem.weight is not None:
        weight = xp.astype(xp.take(problem.weight, rows.asarray(index, xp.int64), axis=0), xp.float64)
    Y = xp.astype(problem.targets.take(index).dense(slice(None), sample.zeros((0,)), xp), xp.float64)
    guide = None if guide is None else to_numpy(guide)[index]
    generator.fit(sample.unwrapped(), guide, sample_weight=None if weight is None else to_numpy(weight))
    n_features = max(min(SAMPLED_FEATURES, int(MOST_DRAWN / rows.n_features)), FEWEST_FEATURES)
    drawn = generator.draw(min(n_components or n_features, n_features), rng)
    has_classes = isinstance(problem.targets, ClassTargets)
    found = {}
    for name, kind in (("columns", sample), (type(generator).__name__, DenseRows(drawn.generate(sample)))):
        if problem.on_block is not None:
            problem.on_block()
        alphas, errors, left_out = path_of_rows(kind, Y, weight, fit_intercept=problem.fit_intercept)
        residual = left_out(float(best(alphas, errors)))
        if has_classes:
            found[name] = _share_wrong(residual, Y, xp)
        else:
            found[name] = float(xp.sum(residual**2)) / max(float(xp.sum((Y - xp.mean(Y, axis=0)) ** 2)), 1e-300)
    return found


def _share_wrong(residual: Any, Y: Any, xp: Any) -> float:
    """A model of all other rows predicts y − r."""
    predicted = Y - residual
    if Y.shape[1] > 1:
        return float(xp.mean(xp.astype(xp.argmax(predicted, axis=1) != xp.argmax(Y, axis=1), xp.float64)))
    middle = 0.5 * (xp.max(Y) + xp.min(Y))
    return float(xp.mean(xp.astype((predicted > middle) != (middle < Y), xp.float64)))


def columns_suffice(errors: dict[str, float]) -> bool:
    return errors["columns"] <= CLEARLY * min(error for name, error in errors.items() if name != "columns")

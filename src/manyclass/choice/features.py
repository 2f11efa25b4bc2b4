"""Compares columns, standardized columns and generated features, by leave-one-out errors on a sample of rows."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from manyclass.choice.frame import occurring
from manyclass.data import ClassTargets, GeneratedRows, Rows
from manyclass.data.generated import in_units
from manyclass.data.memory import room_for
from manyclass.data.penalty import best, path_of_rows
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.data.summary import are_in_memory, row_keys
from manyclass.data.units import in_other_units
from manyclass.fit.held_out import copies_of_rows
from manyclass.model import Problem
from manyclass.model.losses import ZeroOneLoss

SAMPLED_ROWS = 768
"""Rows of the sample: two decompositions take a few tenths of a second."""
SAMPLED_FEATURES, FEWEST_FEATURES, MOST_DRAWN = 2048, 512, 5e7
"""Features that are generated for the sample: at most and at least, and random numbers, of a second about."""
SMALLEST_SHARE = 1 / 16
"""If memory is short, rows and features are cut down to this share at most."""
CLEARLY = 0.98
"""Columns are better if their error is below this share: with more rows, generated features will gain more."""
UNLIKE = 10.0
"""Ratio of the spreads of two columns from which on standardized columns are tried."""
FEWEST_HELD = 8
"""Rows that have to hold a value of a sparse column for its spread to be known."""
FAR_BETTER = 0.9
"""Another unit or bandwidth has to bring the error below this share: it also changes the penalty, and the sample is
small."""
BANDWIDTHS = (4.0, 1 / 4, 1 / 16, 1 / 64)
"""Bandwidths that are tried, in units of the median squared distance, which does not depend on the responses."""
MOST_OUTPUTS = 128
"""If rows have no classes, so many outputs are compared: those with the largest variance, as they have most errors."""
COLUMNS, IN_UNITS = "columns", "standardized columns"
EVERY, USUAL = "all", "in usual units"


class LeftOut(NamedTuple):
    """Predictions of rows by models that have not seen them, the labels in the units of the loss, and the weights."""

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None


def column_units(problem: Problem) -> Array | None:
    """The standard deviation of each column, float64, if they differ so much that no penalty can be right for all.

    It is 1 for constant columns. None if columns are similar, and for sparse rows in pieces. For a sparse column, only
    rows that hold a value count: rare words are not small. Columns with few such rows have the median of the others.
    """
    xp, rows = problem.xp, problem.rows
    held = rows.holding(problem.weight)
    if held is None and not rows.can_be_centred:
        return None
    variance = problem.feature_variance
    varies = counts = variance > 0
    if held is not None:
        counts = varies & (held * rows.n_rows >= FEWEST_HELD * problem.total_weight)
        variance = variance * problem.total_weight / xp.where(varies, held, xp.ones_like(held))
    spread = xp.sqrt(xp.where(varies, variance, xp.ones_like(variance)))
    seen = spread[counts]
    if not bool(xp.any(counts)) or float(xp.max(seen)) <= UNLIKE * float(xp.min(seen)):
        return None
    return xp.where(counts | ~varies, spread, xp.sort(seen)[seen.shape[0] // 2])


def advice(problem: Problem) -> str:
    """Advice about columns of very different size, for a warning. Empty if that would take a pass over a file."""
    in_memory = math.isinf(problem.rows.block_limit)
    unit = column_units(problem) if in_memory and problem.rows.can_be_centred else None
    if unit is None:
        return ""
    ratio = float(problem.xp.max(unit) / problem.xp.min(unit))
    return (
        f" Columns differ in size by a factor of {ratio:.0e}: standardise them (sklearn.preprocessing.StandardScaler)."
    )


def in_units_is_better(errors: Mapping[str, float], given: str, in_units: str) -> bool:
    return in_units in errors and errors[in_units] < FAR_BETTER * errors[given]


def in_units_is_no_worse(errors: Mapping[str, float]) -> bool:
    """Whether standardized columns are at least as good: enough for a model that chooses its penalty again."""
    return IN_UNITS in errors and CLEARLY * errors[IN_UNITS] <= errors[COLUMNS]


def errors_of_representations(
    problem: Problem,
    unit: Array | None = None,
    generators: Mapping[str, Any] | None = None,
    guide: Any = None,
    n_components: int | None = None,
    left_out: dict[str, LeftOut] | None = None,
) -> dict[str, float]:
    """Leave-one-out errors of ridge regression, at the best penalty, on the columns and on generated features.

    All use the same sample of rows, and one block of features. The error is the share of wrong classes, or, if rows do
    not have one class each, the squared error divided by that of predicting the mean. Left-out predictions are added to
    `left_out`.
    """
    rows, xp, generators = problem.rows, problem.xp, generators or {}
    most = min(rows.n_rows, SAMPLED_ROWS)
    n_columns = int(min(rows.n_features, most * rows.row_bytes / rows.itemsize))  # sparse rows may hold fewer
    n_drawn = features_to_look_at(n_columns, n_components) if generators else 0
    n_rows, n_features = _affordable(most, n_drawn, n_columns, problem.memory_limit)
    index = problem.sample(n_rows)
    part, columns = occurring(problem.taken(index))
    part, index, copies = _without_copies(part, index, guide)
    unit = unit if unit is None or columns is None else unit[columns]
    sample, targets = part.rows, part.targets
    weight, Y = _weight_and_responses(part)
    guide = None if guide is None else to_numpy(guide)[index]
    kinds: dict[str, Rows] = {COLUMNS: sample}
    if unit is not None:
        kinds[IN_UNITS] = in_units(sample, unit)
    for name, generator in generators.items():
        problem.on_block(n_features * sample.n_features / MOST_DRAWN)
        generator.n_components = n_features  # to draw more of them takes long if columns are many
        generator.fit(sample, guide, sample_weight=None if weight is None else to_numpy(weight))
        kinds[name] = GeneratedRows(sample, generator)
    has_classes, compared = isinstance(targets, ClassTargets), outputs_to_compare(to_numpy(Y))
    found = {}
    for name, kind in kinds.items():
        problem.on_block()
        residual = _residual_left_out(kind, Y, weight, problem.fit_intercept)
        if left_out is not None:
            of_rows = None if weight is None else to_numpy(weight)
            left_out[name] = LeftOut(to_numpy(Y - residual), to_numpy(Y), of_rows)
        if has_classes:
            wrong = to_numpy(ZeroOneLoss().values(Y - residual, slice(None), targets, xp))
            found[name] = float(np.average(wrong, weights=copies))
        else:
            found[name] = _unexplained(to_numpy(residual)[:, compared], to_numpy(Y)[:, compared], copies)
    return found


def usual_rows(problem: Problem) -> np.ndarray:
    """A mask of the rows in the units of most (`in_other_units`); of all rows of a file, and if a class has no others.

    All rows are alike where labels are several, too.
    """
    rows, targets = problem.rows, problem.targets
    every = np.ones(rows.n_rows, dtype=bool)
    if not (are_in_memory(rows) and isinstance(targets, ClassTargets)):
        return every
    present = np.zeros(rows.n_rows, dtype=bool)
    present[present_rows(rows.n_rows, problem.weight)] = True
    usual = ~in_other_units(rows, rows.take(problem.sample(SAMPLED_ROWS)))
    codes = to_numpy(targets.codes)
    return usual if set(codes[present & usual]) == set(codes[present]) else every


def others_cost_more(problem: Problem, usual: np.ndarray) -> bool:
    """Whether least squares on the `usual` rows alone has so many errors less among these that it has less in all, even
    if it were wrong about all others. By more than the error of counts, and by leave-one-out on a sample.

    The sample has its share of the other rows, and at least as many as there are columns: each may take one direction.
    """
    rows, others = problem.rows, np.flatnonzero(~usual)
    if len(others):
        others = np.intersect1d(others, present_rows(rows.n_rows, problem.weight))
    if not len(others):
        return False
    alone = problem.variant(weight=problem.weights_of(usual)[0])
    index = alone.sample(SAMPLED_ROWS)
    n_usual = len(present_rows(rows.n_rows, alone.weight))
    n_others = max(math.ceil(len(others) * len(index) / n_usual), rows.n_features)
    some = np.random.default_rng(0).choice(others, min(n_others, len(others), SAMPLED_ROWS), replace=False)
    wrong = []
    for rows_of_fit in (np.append(index, some), index):
        problem.on_block()
        wrong.append(_wrong_left_out(problem.taken(rows_of_fit))[: len(index)])
    beside, without = wrong
    fewer, doubt = beside.sum() - without.sum(), math.sqrt(beside.sum() + without.sum())
    return bool(fewer - doubt > len(others) * len(index) / n_usual)


def _wrong_left_out(part: Problem) -> np.ndarray:
    """Whether ridge regression at its best penalty is wrong about the class of each row when it is left out."""
    weight, Y = _weight_and_responses(part)
    residual = _residual_left_out(part.rows, Y, weight, part.fit_intercept)
    return to_numpy(ZeroOneLoss().values(Y - residual, slice(None), part.targets, part.xp))


def _weight_and_responses(part: Problem) -> tuple[Array | None, Array]:
    """In float64; weights up to 1, so that all of a row is left out."""
    xp = part.xp
    weight = None if part.weight is None else xp.astype(part.weight, xp.float64) / float(xp.max(part.weight))
    return weight, xp.astype(part.targets.dense(slice(None), part.rows.zeros((0,)), xp), xp.float64)


def _residual_left_out(rows: Rows, Y: Array, weight: Array | None, fit_intercept: bool) -> Array:
    """Of ridge regression at its best penalty, when each row is left out."""
    alphas, errors, without = path_of_rows(rows, Y, weight, fit_intercept=fit_intercept)
    return without(best(alphas, errors))


def better_bandwidths(
    problem: Problem,
    generators: Mapping[str, Any],
    errors: dict[str, float],
    guide: Any,
    n_components: int | None,
    left_out: dict[str, LeftOut] | None,
) -> dict[str, float]:
    """By generator, a bandwidth with a clearly smaller error than that of the fitted one, if there is any.

    Its error and left-out predictions replace those in `errors` and `left_out`. Clearly is also by more than the error
    of counts. Wide rows are not tried: all distances between them are alike, kernels nearly linear at any bandwidth,
    and to draw features for each bandwidth would take longer than the fit.
    """
    if problem.rows.n_features > SAMPLED_ROWS:
        return {}
    others = {
        f"{times:g} {name}": clone(one).set_params(bandwidth=times * one.bandwidth_)
        for name, one in generators.items()
        for times in BANDWIDTHS
    }
    predicted: dict[str, LeftOut] = {}
    found = errors_of_representations(problem, None, others, guide, n_components, predicted)
    counted = min(problem.rows.n_rows, SAMPLED_ROWS) if isinstance(problem.targets, ClassTargets) else math.inf
    chosen = {}
    for name in generators:
        least = min((f"{times:g} {name}" for times in BANDWIDTHS), key=found.__getitem__)
        doubt = math.sqrt((errors[name] + found[least]) / counted)
        if found[least] < min(FAR_BETTER * errors[name], errors[name] - doubt):
            chosen[name], errors[name] = others[least].bandwidth, found[least]
            if left_out is not None:
                left_out[name] = predicted[least]
    return chosen


def outputs_to_compare(Y: np.ndarray) -> np.ndarray:
    """The outputs with the largest variance, at most `MOST_OUTPUTS`."""
    return np.argsort(-np.var(Y, axis=0), kind="stable")[:MOST_OUTPUTS]


def _unexplained(residual: np.ndarray, Y: np.ndarray, copies: np.ndarray) -> float:
    """Σ r², divided by that of predicting the mean."""
    constant = Y - np.average(Y, axis=0, weights=copies)
    return float(np.sum(copies @ residual**2) / max(np.sum(copies @ constant**2), 1e-300))


def _without_copies(part: Problem, index: np.ndarray, guide: Any) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Each row once, with the weight of all its copies, which would know it when it is left out; and their counts."""
    first, copies, weight = _merged(part, None if guide is None else to_numpy(guide)[index])
    if len(first) == len(index):
        return part, index, copies
    kept = part.taken(first)
    return kept.variant(weight=kept.rows.asarray(weight)), index[first], copies


def _merged(part: Problem, guide: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One copy of each row, the number of copies, and their weight. Copies also have equal responses."""
    numbers = np.arange(part.rows.n_rows)
    if guide is not None:
        numbers = copies_of_rows(part.rows, guide) if guide.ndim == 1 else _copies_of_pairs(part.rows, guide)
    _, first, copies = np.unique(numbers, return_index=True, return_counts=True)
    return first, copies, np.bincount(numbers, None if part.weight is None else to_numpy(part.weight))


def _copies_of_pairs(rows: Rows, Y: np.ndarray) -> np.ndarray:
    """As `copies_of_rows`, for rows with responses. If most responses differ, all equal pairs are copies."""
    labels = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
    numbers: np.ndarray = np.unique(np.stack([row_keys(rows), labels]), axis=1, return_inverse=True)[1].ravel()
    return numbers if 2 * labels.max() > numbers.max() else copies_of_rows(rows, labels)


def weight_of_copies(problem: Problem, guide: Any) -> Array | None:
    """Weights in which one copy of each row has the weight of all, and the others 0; None if there are no copies."""
    n_rows = problem.rows.n_rows
    present = present_rows(n_rows, problem.weight)
    first, _, weight = _merged(problem if len(present) == n_rows else problem.taken(present), to_numpy(guide)[present])
    if len(first) == len(present):
        return None
    found = np.zeros(n_rows)
    found[present[first]] = weight
    return problem.rows.asarray(found)


def features_to_look_at(n_columns: int, n_components: int | None) -> int:
    most = max(min(SAMPLED_FEATURES, int(MOST_DRAWN / max(n_columns, 1))), FEWEST_FEATURES)
    return min(n_components or most, most)


def _affordable(n_rows: int, n_drawn: int, n_features: int, memory_limit: float | None) -> tuple[int, int]:
    """The rows and features of the sample: as many as given, or a share of both that fits into half of the room."""
    room, share = 0.5 * room_for(memory_limit), 1.0
    while share > SMALLEST_SHARE:
        m, p = share * n_rows, share * n_drawn
        # Matrices of a decomposition, rows and their features, and a draw in both precisions.
        if 40.0 * m * m + m * (8.0 * n_features + 16.0 * p) + 12.0 * p * n_features <= room:
            break
        share /= 2
    return max(int(share * n_rows), 2), max(int(share * n_drawn), 1)


def columns_suffice(errors: Mapping[str, float], n_columns: int) -> bool:
    """Whether columns are better than generated features, each in its better form.

    Columns have to be clearly better, unless they outnumber the rows of the sample. Then generated features have to be:
    columns also gain with more rows, kernels are nearly linear, and features take long to draw.
    """
    of_columns = [error for name, error in errors.items() if name in (COLUMNS, IN_UNITS)]
    share = CLEARLY if n_columns <= SAMPLED_ROWS else 1.0 / CLEARLY
    return min(of_columns) <= share * min(error for name, error in errors.items() if name not in (COLUMNS, IN_UNITS))

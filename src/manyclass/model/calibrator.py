"""Calibration by least squares: the combination of simple functions of the predictions nearest to the targets."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any, Self

from array_api_compat import array_namespace, device

from manyclass.data import DenseRows, Moments, Rows
from manyclass.data.factor import Metric
from manyclass.data.memory import room_for
from manyclass.data.moments import MomentSums
from manyclass.data.rows import BLOCK_BYTES, Array, present_rows
from manyclass.model.problem import Problem
from manyclass.model.sets import ConvexSet

WIDE_FEATURES = 1024
"""Up to so many basis columns, sums are in float64, as powers of the same number are far from orthogonal."""
MOST_ROWS = 1024
"""Rows that are summed between two looks at the clock: with 9000 basis columns they take a second or two."""
RIDGE = 1e-8
"""Penalty relative to the mean variance of the basis columns: enough that rounding does not decide."""
OF_ROUNDING = 0.1
"""Another penalty, relative to the precision of the predictions times the mean square of the basis columns. Large
coefficients that cancel amplify rounding; with this penalty to no more than its root."""

ROWS_A_FUNCTION = 10
"""With more than `WIDE_FEATURES` functions, or several labels per row, the joint fit takes so many rows per function;
with fewer rows, each output has functions of its own prediction only. p functions fit a share p/n of the noise of n
rows, and take n·p². For fewer functions of exclusive classes, larger penalties reduce that share."""
MATRICES, DECOMPOSITION = 6, 4
"""Matrices of the size of the Gram matrix of the functions that a fit holds; and factor on the time of solving, if
rounding makes it decompose that matrix."""

Map = tuple[Array, Array]
"""Coefficients of shape (n_functions·n_outputs, n_outputs), or (n_functions, n_outputs) if each output has functions of
its own prediction only; and an intercept."""


class Calibrator:
    """v ↦ Π(M G(v) + c): basis functions, a linear map fitted by least squares, and projection onto the domain.

    The basis G is elementwise: a number is a power, a callable maps an array to one of the same shape; the identity is
    added when it is missing, for without it the squared error could rise. The domain is where predictions live:
    projection onto a convex set that holds the targets never takes them further away.
    """

    def __init__(self, basis: Sequence[float | Callable[[Array], Array]], domain: ConvexSet):
        self.basis = tuple(basis) if 1 in basis else (1, *basis)
        self.domain = domain

    def functions(self, V: Array, xp: Any) -> Array:
        """u = G(v), of shape (n_rows, n_functions·n_outputs)."""
        return xp.concat([g(V) if callable(g) else _power(V, g) for g in self.basis], axis=1)

    def fit(self, problem: Problem, V: Any) -> Map:
        """argmin_{M, c} Σ s_i ‖y_i − M u_i − c‖².

        It solves for the change from M G(v) = v, with a tiny ridge: predictions on the simplex make the functions
        linearly dependent, and a ridge step from the identity still never raises the error. If rows are too few for
        the functions of all outputs, or their Gram matrix does not fit into memory (see `is_joint`), each output is
        fitted by functions of its own prediction only.

        The ``on_block`` of the problem is called between blocks of rows, and, with the expected seconds, before the
        equations are solved. For rows in parts, V is what `Problem.map` gives.
        """
        n, width = problem.rows.n_rows, problem.n_outputs * len(self.basis)
        if not is_joint(problem, width):
            return _map_of_each(problem.sum(sums_of_each, V, self), self.basis.index(1), problem.rows)
        began = time.perf_counter()
        moments = problem.sum(sums_of_all, V, self)
        problem.on_block(DECOMPOSITION * (time.perf_counter() - began) * width / n)
        xp, k = problem.xp, problem.n_outputs
        coef, intercept = _step(moments, width, problem.rows.precision)
        first = self.basis.index(1) * k
        coef[first : first + k, :] += xp.eye(k, dtype=coef.dtype, device=coef.device)
        return xp.astype(coef, problem.rows.dtype), xp.astype(intercept, problem.rows.dtype)

    def scores(self, V: Array, fitted: Map, xp: Any) -> Array:
        """M G(v) + c."""
        coef, intercept = fitted
        functions = self.functions(V, xp)
        if int(coef.shape[0]) == int(functions.shape[1]):
            return functions @ coef + intercept
        return xp.sum(xp.reshape(functions, (-1, *coef.shape)) * coef, axis=1) + intercept

    def apply(self, V: Array, fitted: Map, xp: Any) -> Array:
        """Π(M G(v) + c)."""
        return self.domain.project(self.scores(V, fitted, xp), xp)


def is_joint(problem: Problem, width: int) -> bool:
    """Whether every output is fitted by the functions of all outputs, `width` in number."""
    needed = width if width <= WIDE_FEATURES and problem.targets.exclusive else ROWS_A_FUNCTION * width
    has_room = MATRICES * 8.0 * width**2 <= room_for(problem.memory_limit)
    return has_room and problem.effective_rows(problem.weight) >= needed


def overwrite(part: Problem, V: Array, calibrator: Calibrator, fitted: Map) -> None:
    """`Calibrator.apply` in place, in blocks of rows."""
    rows = DenseRows(V)
    for where, block in rows.blocks(rows.rows_per_block(rows.n_features * len(calibrator.basis))):
        V[where, :] = calibrator.apply(block.dense(), fitted, rows.xp)


def sums_of_all(part: Problem, V: Array, calibrator: Calibrator) -> Moments:
    """The moments of all functions, with targets less predictions as responses."""
    rows, targets, sample_weight = DenseRows(V), part.targets, part.weight
    present = present_rows(rows.n_rows, sample_weight)
    if 0 < len(present) < rows.n_rows:  # rows that are left out take as many products as others
        rows, targets = rows.take(present), targets.take(present)
        sample_weight = rows.xp.take(sample_weight, rows.asarray(present, rows.xp.int64))
    xp, k = rows.xp, part.n_outputs
    width = k * len(calibrator.basis)
    dtype = xp.float64 if width <= WIDE_FEATURES else rows.dtype
    sums, seconds = None, 0.0
    # A block as large as the Gram matrix, or of many rows: adding that up then costs little beside the products.
    for where, block in rows.blocks(min(rows.rows_per_block(width, max(BLOCK_BYTES, 8 * width**2)), MOST_ROWS)):
        part.on_block(seconds)
        began = time.perf_counter()
        values = xp.astype(block.dense(), dtype, copy=False)
        functions = DenseRows(calibrator.functions(values, xp))
        weight = None if sample_weight is None else xp.astype(sample_weight[where], dtype, copy=False)
        if sums is None:  # a row that is left out may lie far from all others
            counted = weight if weight is not None and bool(xp.any(weight > 0)) else None
            sums = MomentSums(functions, k, functions.mean(counted))
        sums.add(functions, weight, targets.dense(where, values, xp) - values)
        seconds = time.perf_counter() - began
    assert sums is not None
    return sums.result()


def _step(moments: Moments, width: int, precision: float) -> tuple[Array, Array]:
    """The change of M and c, with a tiny ridge; for sums in float32 with one that fits their rounding."""
    xp = array_namespace(moments.xx)
    if width > WIDE_FEATURES:
        coef = Metric(moments.covariance, precision).solve(moments.cross_covariance)
        return coef, moments.target_mean - moments.mean @ coef
    scale = max(float(xp.sum(xp.linalg.diagonal(moments.covariance))) / width, 0.0)
    square = scale + float(xp.sum(moments.mean**2)) / width
    return moments.solve(RIDGE * scale + OF_ROUNDING * precision * square)


@dataclass
class SumsOfEach:
    """Weighted sums of a few columns c_i of every output, and of products of pairs of these, around a point.

    `second` is Σ s c_i c_j, of shape (n_columns, n_columns − 1, n_outputs).
    """

    total: float
    first: Array
    second: Array
    pilot: Array

    def __add__(self, other: Self) -> Self:
        step = other.pilot - self.pilot
        first, m = other.first + other.total * step, self.second.shape[1]
        moved = other.second + step[:, None, :] * other.first[None, :m, :] + first[:, None, :] * step[None, :m, :]
        return replace(self, total=self.total + other.total, first=self.first + first, second=self.second + moved)


def sums_of_each(part: Problem, V: Array, calibrator: Calibrator) -> SumsOfEach:
    """Sums for each output, whose columns are its functions, and last the targets less the predictions."""
    rows, m, sums = DenseRows(V), len(calibrator.basis), None
    xp, k = rows.xp, part.n_outputs
    for where, block in rows.blocks(rows.rows_per_block(k * m)):
        values = xp.astype(block.dense(), xp.float64)
        weight = block.weights(None if part.weight is None else part.weight[where])
        weight = xp.astype(weight, xp.float64)[:, None]
        columns = [g(values) if callable(g) else _power(values, g) for g in calibrator.basis]
        columns.append(part.targets.dense(where, values, xp) - values)
        if sums is None:
            first, second = (rows.zeros(shape, dtype=xp.float64) for shape in ((m + 1, k), (m + 1, m, k)))
            counted = max(float(xp.sum(weight)), 1e-300)
            pilot = xp.stack([xp.sum(weight * column, axis=0) for column in columns]) / counted
            sums = SumsOfEach(0.0, first, second, pilot)
        columns = [column - sums.pilot[i, :] for i, column in enumerate(columns)]
        sums.total = sums.total + xp.sum(weight)
        for i, column in enumerate(columns):
            weighted = weight * column
            sums.first[i, :] += xp.sum(weighted, axis=0)
            for j in range(min(i + 1, m)):
                sums.second[i, j, :] += xp.sum(weighted * columns[j], axis=0)
    assert sums is not None
    sums.total = float(sums.total)
    for i in range(m):
        sums.second[:i, i, :] = sums.second[i, :i, :]
    return sums


def _map_of_each(sums: SumsOfEach, identity: int, rows: Rows) -> Map:
    """The map whose coefficients, of shape (n_functions, n_outputs), belong to one output each."""
    xp, m = array_namespace(sums.first), sums.second.shape[1]
    mean = sums.first / sums.total
    covariance = sums.second / sums.total - mean[:, None, :] * mean[None, :m, :]
    gram = xp.permute_dims(covariance[:m, :, :], (2, 0, 1))
    scale = xp.sum(xp.linalg.diagonal(gram), axis=1) / m
    eye = xp.eye(m, dtype=xp.float64, device=device(gram))
    centers = sums.pilot + mean
    square = scale + xp.sum(centers[:m, :] ** 2, axis=0) / m
    ridge = RIDGE * xp.where(scale > 0, scale, xp.ones_like(scale)) + OF_ROUNDING * rows.precision * square
    cross = xp.permute_dims(covariance[m, :, :], (1, 0))[:, :, None]
    coef = xp.permute_dims(xp.linalg.solve(gram + ridge[:, None, None] * eye, cross)[:, :, 0], (1, 0))
    intercept = centers[m, :] - xp.sum(centers[:m, :] * coef, axis=0)
    coef = coef + eye[:, identity][:, None]
    return xp.astype(coef, rows.dtype), xp.astype(intercept, rows.dtype)


def _power(V: Array, exponent: float) -> Array:
    """V**exponent; small whole ones as products, which are many times faster."""
    if exponent not in (1, 2, 3, 4):
        return V**exponent
    return reduce(mul, [V] * int(exponent))

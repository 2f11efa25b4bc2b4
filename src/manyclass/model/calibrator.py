"""Least-squares calibration: which combination of simple functions of the predictions comes nearest to the targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import mul
from typing import Any

from manyclass.data import DenseRows, Rows, Targets
from manyclass.data.memory import room_for
from manyclass.data.moments import MomentSums
from manyclass.data.rows import BLOCK_BYTES, Array
from manyclass.model.sets import ConvexSet

WIDE_FEATURES = 1024
"""Basis columns up to which they are summed in float64: powers of the same number are far from orthogonal."""

RIDGE = 1e-8
"""Penalty relative to the mean variance of the basis columns: enough to settle what rounding would decide."""

MATRICES, DECOMPOSITION = 6, 4
"""Of the size of their Gram matrix that fitting functions keeps; and how many times as long as flops say solving takes,
where rounding makes it decompose that matrix."""

Map = tuple[Array, Array]
"""Coefficients of shape (n_functions·n_outputs, n_outputs), or (n_functions, n_outputs) where each output has functions
of its own, and an intercept."""


class Calibrator:
    """v ↦ Π(M G(v) + c): basis functions, a linear map fitted by least squares, and projection onto the domain.

    Parameters
    ----------
    basis : sequence of numbers or callables
        G, elementwise: a number is a power, a callable maps an array to one of the same shape. The identity is added
        when it is missing, for without it the squared error could rise.
    domain : ConvexSet
        Where predictions live: projection onto a convex set that holds the targets never takes them further away.
    """

    def __init__(self, basis: Sequence[float | Callable[[Array], Array]], domain: ConvexSet):
        self.basis = tuple(basis) if 1 in basis else (1, *basis)
        self.domain = domain

    def functions(self, V: Array, xp: Any) -> Array:
        """u = G(v), of shape (n_rows, n_functions·n_outputs)."""
        return xp.concat([g(V) if callable(g) else _power(V, g) for g in self.basis], axis=1)

    def fit(
        self,
        V: Array,
        targets: Targets,
        sample_weight: Array | None,
        on_block: Callable[..., None] | None = None,
        memory_limit: float | None = None,
    ) -> Map:
        """argmin_{M, c} Σ s_i ‖y_i − M u_i − c‖².

        What is solved for is the change from M G(v) = v, with a trace of a ridge: predictions on the simplex make the
        functions linearly dependent, and a ridge step from the identity still never raises the error. With fewer rows
        than functions, where every answer could be met exactly, or where their Gram matrix does not fit into memory,
        each output is fitted by functions of its own prediction alone.

        Parameters
        ----------
        V : array of shape (n_rows, n_outputs)
        on_block : callable, optional
            Called between blocks of rows, and before the equations are solved with the seconds that this may take.
        memory_limit : float, optional
            Bytes; by default what is free.
        """
        width = targets.n_outputs * len(self.basis)
        whole = width <= int(V.shape[0]) and MATRICES * 8.0 * width**2 <= room_for(memory_limit)[0]
        return (
            self._fit_all(V, targets, sample_weight, on_block) if whole else self._fit_each(V, targets, sample_weight)
        )

    def _fit_all(
        self, V: Array, targets: Targets, sample_weight: Array | None, on_block: Callable[..., None] | None
    ) -> Map:
        rows = DenseRows(V)
        xp, k = rows.xp, targets.n_outputs
        width = k * len(self.basis)
        dtype = xp.float64 if width <= WIDE_FEATURES else rows.dtype
        sums, began = None, time.perf_counter()
        # A block as large as the Gram matrix: adding that up then costs little beside the products.
        for part, block in rows.blocks(rows.rows_per_block(width, max(BLOCK_BYTES, 8 * width**2))):
            if on_block is not None:
                on_block()
            values = xp.astype(block.dense(), dtype, copy=False)
            functions = DenseRows(self.functions(values, xp))
            sums = MomentSums(functions, k, functions.mean()) if sums is None else sums
            weight = None if sample_weight is None else xp.astype(sample_weight[part], dtype, copy=False)
            sums.add(functions, weight, targets.dense(part, values, xp) - values)
        assert sums is not None
        if on_block is not None:
            on_block(DECOMPOSITION * (time.perf_counter() - began) * width / rows.n_rows)
        moments = sums.result()
        scale = float(xp.sum(xp.linalg.diagonal(moments.covariance))) / width
        coef, intercept = moments.solve(RIDGE * scale)
        first = self.basis.index(1) * k
        coef[first : first + k, :] += xp.eye(k, dtype=coef.dtype, device=coef.device)
        return xp.astype(coef, V.dtype), xp.astype(intercept, V.dtype)

    def _fit_each(self, V: Array, targets: Targets, sample_weight: Array | None) -> Map:
        """The map whose coefficients, of shape (n_functions, n_outputs), belong to one output each."""
        rows, m = DenseRows(V), len(self.basis)
        xp, k = rows.xp, targets.n_outputs
        total, pilot = 0.0, None
        first = rows.zeros((m + 1, k), dtype=xp.float64)
        second = rows.zeros((m + 1, m, k), dtype=xp.float64)
        for part, block in rows.blocks(rows.rows_per_block(k * m)):
            values = xp.astype(block.dense(), xp.float64)
            weight = rows.ones(block.n_rows) if sample_weight is None else sample_weight[part]
            weight = xp.astype(weight, xp.float64)[:, None]
            columns = [g(values) if callable(g) else _power(values, g) for g in self.basis]
            columns.append(targets.dense(part, values, xp) - values)
            pilot = [xp.mean(column, axis=0) for column in columns] if pilot is None else pilot
            columns = [column - center for column, center in zip(columns, pilot, strict=True)]
            total += float(xp.sum(weight))
            for i, column in enumerate(columns):
                weighted = weight * column
                first[i, :] += xp.sum(weighted, axis=0)
                for j in range(min(i + 1, m)):
                    second[i, j, :] += xp.sum(weighted * columns[j], axis=0)
        assert pilot is not None
        mean = first / total
        covariance = second / total - mean[:, None, :] * mean[None, :m, :]
        gram = xp.permute_dims(covariance[:m, :, :], (2, 0, 1))
        gram = xp.tril(gram) + xp.matrix_transpose(xp.tril(gram, k=-1))
        scale = xp.sum(xp.linalg.diagonal(gram), axis=1) / m
        eye = xp.eye(m, dtype=xp.float64, device=rows.device)
        ridge = RIDGE * xp.where(scale > 0, scale, xp.ones_like(scale))
        cross = xp.permute_dims(covariance[m, :, :], (1, 0))[:, :, None]
        coef = xp.permute_dims(xp.linalg.solve(gram + ridge[:, None, None] * eye, cross)[:, :, 0], (1, 0))
        centers = xp.stack(pilot) + mean
        intercept = centers[m, :] - xp.sum(centers[:m, :] * coef, axis=0)
        coef = coef + xp.astype(eye[:, self.basis.index(1)], xp.float64)[:, None]
        return xp.astype(coef, V.dtype), xp.astype(intercept, V.dtype)

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

    def overwrite(self, V: Array, fitted: Map) -> None:
        """`apply` in place, in blocks of rows."""
        rows = DenseRows(V)
        for part, block in self._blocks(rows):
            V[part, :] = self.apply(block.dense(), fitted, rows.xp)

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, Rows]]:
        return rows.blocks(rows.rows_per_block(rows.n_features * len(self.basis)))


def _power(V: Array, exponent: float) -> Array:
    """V**exponent; small whole ones as products, which are many times faster."""
    if exponent not in (1, 2, 3, 4):
        return V**exponent
    return reduce(mul, [V] * int(exponent))

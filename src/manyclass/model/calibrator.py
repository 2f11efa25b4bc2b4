"""Least-squares calibration: which combination of simple functions of the predictions comes nearest to the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import mul
from typing import Any

from manyclass.data import DenseRows, Rows, Targets
from manyclass.data.moments import MomentSums
from manyclass.data.rows import BLOCK_BYTES, Array
from manyclass.model.sets import ConvexSet

WIDE_FEATURES = 1024
"""Basis columns up to which they are summed in float64: powers of the same number are far from orthogonal."""

RIDGE = 1e-8
"""Penalty relative to the mean variance of the basis columns: enough to settle what rounding would decide."""

Map = tuple[Array, Array]
"""Coefficients of shape (n_functions·n_outputs, n_outputs), and an intercept."""


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

    def fit(self, V: Array, targets: Targets, sample_weight: Array | None) -> Map:
        """argmin_{M, c} Σ s_i ‖y_i − M u_i − c‖².

        What is solved for is the change from M G(v) = v, with a trace of a ridge: predictions on the simplex make the
        functions linearly dependent, and a ridge step from the identity still never raises the error.
        """
        rows = DenseRows(V)
        xp, k = rows.xp, targets.n_outputs
        width = k * len(self.basis)
        dtype = xp.float64 if width <= WIDE_FEATURES else rows.dtype
        sums = None
        # A block as large as the Gram matrix: adding that up then costs little beside the products.
        for part, block in rows.blocks(rows.rows_per_block(width, max(BLOCK_BYTES, 8 * width**2))):
            values = xp.astype(block.dense(), dtype, copy=False)
            functions = DenseRows(self.functions(values, xp))
            sums = MomentSums(functions, k, functions.mean()) if sums is None else sums
            weight = None if sample_weight is None else xp.astype(sample_weight[part], dtype, copy=False)
            sums.add(functions, weight, targets.dense(part, values, xp) - values)
        assert sums is not None
        moments = sums.result()
        scale = float(xp.sum(xp.linalg.diagonal(moments.covariance))) / width
        coef, intercept = moments.solve(RIDGE * scale)
        first = self.basis.index(1) * k
        coef[first : first + k, :] += xp.eye(k, dtype=coef.dtype, device=coef.device)
        return xp.astype(coef, V.dtype), xp.astype(intercept, V.dtype)

    def scores(self, V: Array, fitted: Map, xp: Any) -> Array:
        """M G(v) + c."""
        return self.functions(V, xp) @ fitted[0] + fitted[1]

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

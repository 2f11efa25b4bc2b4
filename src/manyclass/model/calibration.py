"""Least-squares calibration: which combination of simple functions of the predictions comes nearest to the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from manyclass.data.design import Array, Design
from manyclass.data.moments import Moments
from manyclass.data.targets import Targets
from manyclass.model.domains import Domain

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
    domain : Domain
        Where predictions live: projection onto a convex set that holds the targets never takes them further away.
    """

    def __init__(self, basis: Sequence[float | Callable[[Array], Array]], domain: Domain):
        self.basis = tuple(basis) if 1 in basis else (1, *basis)
        self.domain = domain

    def functions(self, V: Array, xp: Any) -> Array:
        """u = G(v), of shape (n_rows, n_functions·n_outputs)."""
        return xp.concat([g(V) if callable(g) else (V if g == 1 else V**g) for g in self.basis], axis=1)

    def fit(self, V: Array, targets: Targets, sample_weight: Array | None) -> Map:
        """argmin_{M, c} Σ s_i ‖y_i − M u_i − c‖².

        What is solved for is the change from M G(v) = v, with a trace of a ridge: predictions on the simplex make the
        functions linearly dependent, and a ridge step from the identity still never raises the error.
        """
        design = Design(V)
        xp, k = design.xp, targets.n_outputs
        width = k * len(self.basis)
        dtype = xp.float64 if width <= WIDE_FEATURES else design.dtype
        moments = Moments.zeros(width, k, like=V)
        for rows, block in self._blocks(design):
            block = xp.astype(block, dtype, copy=False)
            weight = None if sample_weight is None else sample_weight[rows]
            moments.update(self.functions(block, xp), targets.dense(rows, block, xp) - block, weight)
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
        design = Design(V)
        for rows, block in self._blocks(design):
            V[rows, :] = self.apply(block, fitted, design.xp)

    def _blocks(self, design: Design) -> Iterator[tuple[slice, Array]]:
        return design.blocks(design.rows_per_block(design.n_features * len(self.basis)))


def squared_error(V: Array, targets: Targets, sample_weight: Array | None) -> float:
    """(1/2S) Σ s_i ‖y_i − v_i‖²: half the Brier score of probabilities."""
    design = Design(V)
    xp, total, mass = design.xp, 0.0, float(design.n_rows)
    if sample_weight is not None:
        mass = float(xp.sum(sample_weight, dtype=xp.float64))
    for rows, block in design.blocks(design.rows_per_block(2)):
        squares = xp.sum((block - targets.dense(rows, block, xp)) ** 2, axis=1)
        if sample_weight is not None:
            squares = squares * sample_weight[rows]
        total += float(xp.sum(squares, dtype=xp.float64))
    return 0.5 * total / mass

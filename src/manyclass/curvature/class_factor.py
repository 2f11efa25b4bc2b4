"""The curvature between the classes, in a form that costs O(k) whatever the number k of classes."""

from __future__ import annotations

from manyclass.data.rows import Array
from manyclass.model import Problem

FIXED_POINT_STEPS = 50
"""Of a_j = A_jj/(1 − a_j/Σa): O(k) each, and many only where one class holds nearly all rows."""


class ClassFactor:
    """A = diag(a) − aaᵀ/Σa of trace 1, or diag(a) for losses of one column each, and what that makes of intercepts.

    The vector a is the one whose A has the diagonal of the mean of ∇²Φ(z_i); where all rows have one mean p, as at
    the constant model, a = p and A is ∇²Φ = diag(p) − ppᵀ. What a full A would know beyond that of pairs of classes
    was found to save no passes (5 data sets, 3 penalties), so there is no k×k matrix.

    `trace` is Σ_i w_i tr ∇²Φ(z_i) over the rows added.
    """

    _given = ("loss", "xp")

    def __init__(self, problem: Problem):
        self.loss, self.xp = problem.loss, problem.xp
        self.a = problem.rows.zeros((problem.n_outputs,), dtype=problem.xp.float64)
        self.couples = problem.loss.domain.exclusive
        self.trace = 0.0

    def add(self, P: Array, weight: Array) -> None:
        """Take in a block of rows with means P, of shape (n_rows, n_outputs)."""
        v, u = self.loss.hessian(P, self.xp)
        self.a += weight @ v
        if u is not None:
            self.a -= weight @ (u * u)

    def finish(self, a: Array) -> ClassFactor:
        """All rows are in, with this sum of the `a` of their parts.

        Classes that are all but decided keep a floor, which keeps steps along them finite.
        """
        xp, k = self.xp, int(a.shape[0])
        self.trace = float(xp.sum(a))
        diagonal = xp.clip(a / self.trace if self.trace > 0 else a * 0 + 1.0 / k, min=0.1 / k)
        self.a = diagonal
        for _ in range(FIXED_POINT_STEPS if self.couples else 0):
            self.a = diagonal / (1.0 - self.a / xp.sum(self.a))
        return self

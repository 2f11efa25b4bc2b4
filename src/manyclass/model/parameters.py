"""The parameters of a linear model as one array, and sums over those of each of its problems."""

from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.rows import Array, inner, to_numpy


class Parameters:
    """What a `Problem` knows of its parameters; see there."""

    rows: Rows
    loss: Any
    xp: Any
    alpha: float
    n_outputs: int
    fit_intercept: bool
    shift: Array | None
    center: Any
    centred: Any

    inner = staticmethod(inner)

    def pack(self, coef: Array, intercept: Array) -> Array:
        """theta from W and b."""
        if not self.fit_intercept:
            return coef
        xp, W = self.xp, self.xp.astype(coef, self.xp.float64)
        wide = xp.astype(intercept, xp.float64) + self.at(self.center, W)
        if self.shift is not None:
            wide += self.shift @ W
        return xp.concat([coef, xp.astype(wide[None, :], coef.dtype)], axis=0)

    def at(self, point: Array, W: Array) -> Array:
        """The scores of a point, such as `center`."""
        return point @ W

    def coefficients(self, theta: Array) -> tuple[Array, Array]:
        """W and b of the rows as given, from theta."""
        W, b = self.unpack(theta)
        return W, self.unshifted(W, b)

    def unshifted(self, W: Array, b: Array, *, back: bool = False) -> Array:
        """The intercept of the rows as given, from that of the shifted ones; or the other way `back`."""
        if self.shift is None:
            return b
        xp, sign = self.xp, 1.0 if back else -1.0
        return xp.astype(xp.astype(b, xp.float64) + sign * (self.shift @ xp.astype(W, xp.float64)), b.dtype)

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """W and b of `rows`, which may be shifted, from theta."""
        xp = self.xp
        if not self.fit_intercept:
            return theta, self.rows.zeros((self.n_outputs,))
        W, b = theta[:-1, :], theta[-1, :]
        if self.centred:
            b = xp.astype(xp.astype(b, xp.float64) - self.at(self.center, xp.astype(W, xp.float64)), theta.dtype)
        return W, b

    @property
    def n_independent(self) -> int:
        """How many problems this one is the sum of, which share nothing but the rows: one or, for each output, one."""
        return self.n_outputs if self.loss.separable else 1

    def inner_of_each(self, a: Array, b: Array) -> Any:
        """⟨a, b⟩ over the parameters of each of the independent problems: a number, or an array of several."""
        if self.n_independent == 1:
            return self.inner(a, b)
        of_columns = to_numpy(self.xp.sum(a * b, axis=0, dtype=self.xp.float64))
        return of_columns.reshape(self.n_independent, -1).sum(axis=1)

    def spread(self, of_each: np.ndarray, dtype: Any = None) -> Array:
        """A number for each of the independent problems, as one for each output."""
        return self.rows.asarray(np.repeat(of_each, self.n_outputs // len(of_each)), dtype)

    @property
    def alpha_of_each(self) -> Any:
        """The penalty: a number, or an array of those of the independent problems."""
        return self.alpha

    def penalised(self, theta: Array) -> Array:
        """The part of theta that the penalty sees."""
        return theta[:-1, :] if self.fit_intercept else theta

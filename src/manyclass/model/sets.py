"""The convex sets in which predictions live, with what calibration and dual bounds need of them."""

from typing import Any, Protocol

from manyclass.data.rows import Array


class ConvexSet(Protocol):
    """A convex set of predictions.

    It is `exclusive` where its corners are single classes, of which a row has one.
    """

    exclusive: bool = False

    def project(self, V: Array, xp: Any) -> Array:
        """The nearest point of the set to each row of V."""

    def blend(self, mean: Array, wanted: Array, xp: Any) -> tuple[Array, Array]:
        """The least theta in [0, 1] and points q of the set with (1 − theta)·mean + theta·q = wanted, by row.

        Both arguments hold means of points of the set in rows, in float64. Moving every prediction by theta towards q
        gives predictions that match the targets on average, as a dual point of a model with an unpenalised intercept
        must. Where theta is 0, mean is what is wanted.
        """
        theta = self._least(mean, wanted, xp)
        return theta, mean + (wanted - mean) / xp.where(theta > 0, theta, 1.0)[:, None]

    def _least(self, mean: Array, wanted: Array, xp: Any) -> Array:
        """Theta."""


class WholeSpace(ConvexSet):
    """R^k."""

    def project(self, V: Array, xp: Any) -> Array:
        return V

    def _least(self, mean: Array, wanted: Array, xp: Any) -> Array:
        distance, size = (xp.sqrt(xp.sum(rows * rows, axis=1)) for rows in (wanted - mean, mean))
        # theta·‖q‖² is least where the larger of these divides; but means that cancel out are of points of size 1.
        return distance / xp.maximum(xp.maximum(size, distance), xp.ones_like(size))


class Simplex(ConvexSet):
    """Probability vectors."""

    exclusive = True

    def project(self, V: Array, xp: Any) -> Array:
        """max(V − τ, 0) with the threshold τ of each row, by sorting: O(k log k) (Held, Wolfe and Crowder, 1974).

        Of V less its largest, beside which τ keeps its digits, whatever the size of V.
        """
        n_outputs, V = int(V.shape[1]), V - xp.max(V, axis=1, keepdims=True)
        descending = xp.sort(V, axis=1, descending=True, stable=False)
        ranks = xp.arange(1, n_outputs + 1, dtype=V.dtype, device=V.device)[None, :]
        excess = xp.cumulative_sum(descending, axis=1) - 1.0
        support = xp.sum(xp.astype(descending * ranks > excess, xp.int64), axis=1, keepdims=True)
        support = xp.clip(support, 1, n_outputs)
        threshold = xp.take_along_axis(excess, support - 1, axis=1) / xp.astype(support, V.dtype)
        return xp.clip(V - threshold, min=0.0)

    def _least(self, mean: Array, wanted: Array, xp: Any) -> Array:
        return _shortfall(mean, wanted, xp)


class Box(ConvexSet):
    """[0, 1]^k: a probability for each label."""

    def project(self, V: Array, xp: Any) -> Array:
        return xp.clip(V, 0.0, 1.0)

    def _least(self, mean: Array, wanted: Array, xp: Any) -> Array:
        return xp.maximum(_shortfall(mean, wanted, xp), _shortfall(1.0 - mean, 1.0 - wanted, xp))


def _shortfall(mean: Array, wanted: Array, xp: Any) -> Array:
    """The least theta ≥ 0 of each row with wanted − (1 − theta)·mean ≥ 0."""
    excess = xp.max((mean - wanted) / xp.where(mean > 0, mean, xp.inf), axis=1)
    return xp.where(excess > 0, excess, 0.0)

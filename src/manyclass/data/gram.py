"""Sums of Gram matrices."""

from typing import Any

Array = Any


class GramSum:
    """Σ w x xᵀ over blocks of rows: products in the dtype of the rows, sums in float64."""

    def __init__(self, rows: Any):
        self.total = rows.zeros((rows.n_features, rows.n_features), dtype=rows.xp.float64)

    def add(self, block: Any, weight: Array | None = None) -> None:
        """Add the rows of a block, with non-negative weights."""
        self.total += block.gram(weight)

    def result(self) -> Array:
        """The sum so far, of shape (n_features, n_features), in float64; nothing can be added after it."""
        return self.total

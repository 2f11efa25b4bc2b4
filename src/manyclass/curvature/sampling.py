"""Rows drawn to estimate a Hessian, with the weights that keep the estimate unbiased."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manyclass.data.design import GRAM_BLOCK_BYTES, Array
from manyclass.model.objective import Objective


@dataclass(frozen=True)
class RowSample:
    """Rows `index` (None: all, in order) with importance `scale`, whose weighted sums estimate sums over all rows.

    `is_uniform` says that they were drawn without regard to their weight in the Hessian.
    """

    index: np.ndarray | None
    scale: np.ndarray | None

    is_uniform: bool = False

    def n_rows(self, objective: Objective) -> int:
        return objective.design.n_rows if self.index is None else len(self.index)

    def blocks(self, objective: Objective, block_bytes: int = GRAM_BLOCK_BYTES) -> Iterator[tuple[Array, Array]]:
        """Pairs (rows of X, their importance times sample weight)."""
        design, xp = objective.design, objective.xp
        step = design.rows_per_block(objective.n_outputs, block_bytes)
        for start in range(0, self.n_rows(objective), step):
            stop = min(start + step, self.n_rows(objective))
            weight = objective.sample_weight
            if self.index is None:
                block = design.rows(slice(start, stop))
                weight = None if weight is None else weight[start:stop]
            else:
                chosen = self.index[start:stop]
                block = design.take(chosen)
                weight = None if weight is None else xp.take(weight, design.asarray(chosen, dtype=xp.int64), axis=0)
            if self.scale is None:
                scale = xp.ones(stop - start, dtype=design.dtype, device=design.device)
            else:
                scale = design.asarray(self.scale[start:stop])
            yield block, scale if weight is None else scale * weight


def uniform_sample(objective: Objective, n_rows: int, rng: np.random.Generator) -> RowSample:
    """About `n_rows` rows, each with the same probability; all rows where there are not many more."""
    available = objective.design.n_rows
    if available <= 1.25 * n_rows:
        return RowSample(None, None)
    index = np.sort(rng.choice(available, n_rows, replace=False))
    return RowSample(index, np.full(n_rows, available / n_rows), is_uniform=True)


def weighted_sample(row_weight: np.ndarray, n_rows: int, rng: np.random.Generator, tail: float = 0.01) -> RowSample:
    """The rows that carry the Hessian.

    All rows but the lightest, which together hold a share `tail` of the weight, where these are at most 1.5·n_rows;
    otherwise a Poisson sample with probabilities min(1, c·weight) of `n_rows` expected rows. Near the optimum of a
    nearly separable problem a few per cent of the rows hold all of the curvature, so Hessian products get cheap.
    """
    total = float(row_weight.sum())
    if len(row_weight) <= 1.25 * n_rows or not total > 0:
        return RowSample(None, None)
    order = np.argsort(row_weight)[::-1]
    heavy = int(np.searchsorted(np.cumsum(row_weight[order]), (1.0 - tail) * total)) + 1
    if heavy <= 1.5 * n_rows:
        return RowSample(np.sort(order[:heavy]), None)
    probability = np.minimum(1.0, row_weight * (n_rows / total))
    index = np.flatnonzero(rng.random(len(row_weight)) < probability)
    return RowSample(index, 1.0 / probability[index])

"""Rows drawn to estimate a Hessian, with the weights that keep the estimate unbiased."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, Rows, present_rows
from manyclass.model import Problem

CLASS_ROWS = 4096
"""Rows from which what happens between the classes is seen."""
TAIL = 0.01
"""Share of the weight of all rows in their Hessian that is none."""


@dataclass(frozen=True)
class RowSample:
    """Rows `index` (None: all, in order) with importance `scale`, whose weighted sums estimate sums over all rows.

    `is_uniform` says that they were drawn without regard to their weight in the Hessian.
    """

    index: np.ndarray | None
    scale: np.ndarray | None

    is_uniform: bool = False

    def blocks(self, problem: Problem, block_bytes: int = GRAM_BLOCK_BYTES) -> Iterator[tuple[slice, Rows, Array]]:
        """(which of the sample, those rows of X, their importance times sample weight)."""
        rows, xp = problem.rows, problem.xp
        step = rows.rows_per_block(problem.n_outputs, block_bytes)
        for part, block in rows.blocks(step) if self.index is None else rows.blocks_of(self.index, step):
            problem.on_block()
            weight = problem.weight
            if weight is not None:
                index = self.index
                weight = weight[part] if index is None else xp.take(weight, rows.asarray(index[part], xp.int64), axis=0)
            scale = block.weights(None if self.scale is None else rows.asarray(self.scale[part]))
            yield part, block, scale if weight is None else scale * weight


ALL_ROWS = RowSample(None, None)


def uniform_sample(problem: Problem, n_rows: int, rng: np.random.Generator) -> RowSample:
    """About `n_rows` rows of positive weight, each with the same probability; all where there are not many more.

    Of a part of the rows, its share of so many.
    """
    present, n_rows = present_rows(problem.rows.n_rows, problem.weight), math.ceil(n_rows * problem.share)
    if len(present) <= 1.25 * n_rows:
        return ALL_ROWS if len(present) in (0, problem.rows.n_rows) else RowSample(present, None)
    index = np.sort(rng.choice(present, n_rows, replace=False))
    return RowSample(index, np.full(n_rows, len(present) / n_rows), is_uniform=True)


def carrying_sample(part: Problem, row_weight: np.ndarray, n_rows: int, rng: np.random.Generator) -> RowSample:
    """The `weighted_sample` of the rows of a part, its share of `n_rows`."""
    return weighted_sample(row_weight, n_rows * part.share, rng)


def n_sampled(part: Problem, sample: RowSample) -> int:
    return part.rows.n_rows if sample.index is None else len(sample.index)


def heaviest(row_weight: np.ndarray) -> np.ndarray:
    """All rows but the lightest, which together hold a share `TAIL` of the weight; the heaviest first."""
    order = np.argsort(-row_weight, kind="stable")
    cumulated = np.cumsum(row_weight[order], dtype=np.float64)
    return order[: int(np.searchsorted(cumulated, (1.0 - TAIL) * cumulated[-1])) + 1]


def weighted_sample(row_weight: np.ndarray, n_rows: float, rng: np.random.Generator) -> RowSample:
    """The rows that carry the Hessian.

    The `heaviest`, where these are at most 1.5·n_rows; otherwise a Poisson sample with probabilities min(1, c·weight)
    of `n_rows` expected rows. Near the optimum of a nearly separable problem a few per cent of the rows hold all of the
    curvature, so Hessian products get cheap.
    """
    total = float(row_weight.sum())
    if len(row_weight) <= 1.25 * n_rows or not total > 0:
        return ALL_ROWS
    heavy = heaviest(row_weight)
    if len(heavy) <= 1.5 * n_rows:
        return RowSample(np.sort(heavy), None)
    probability = np.minimum(1.0, row_weight * (n_rows / total))
    index = np.flatnonzero(rng.random(len(row_weight)) < probability)
    return RowSample(index, 1.0 / probability[index])

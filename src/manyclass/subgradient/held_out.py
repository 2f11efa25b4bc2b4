"""How good a model is on rows kept out of the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from manyclass.data.design import Design
from manyclass.solvers.subgradient.kernel import Targets, signs
from manyclass.solvers.subgradient.losses import Loss, residual


@dataclass(frozen=True)
class HeldOut:
    """Rows that are only scored.

    Attributes
    ----------
    design : Design
    targets : Targets
    weight : float64 array of shape (n_rows,)
    loss : Loss
        Scores are minus its weighted mean. A share of right rows would be coarse, as few rows are held out; but where
        only ratios of scores matter the loss says nothing, and that share it is.
    """

    design: Design
    targets: Targets
    weight: np.ndarray
    loss: Loss

    def score(self, W: np.ndarray, b: np.ndarray) -> float:
        """Weighted mean over the rows, the higher the better."""
        Z = np.asarray(self.design.matmat(W) + b, dtype=np.float64)
        return float(np.average(self._values(Z), weights=self.weight if self.weight.sum() > 0 else None))

    def _values(self, Z: np.ndarray) -> np.ndarray:
        if not self.loss.scale_free:
            losses = np.empty(len(Z))
            _losses(self.loss.code, self.loss.columns, Z, self.targets, losses)
            return -losses
        if self.loss.columns and (len(self.targets.indicator) or Z.shape[1] == 1):
            sign = np.stack([_row_signs(self.targets, i, Z.shape[1]) for i in range(len(Z))])
            return ((Z > 0) == (sign > 0)).all(axis=1)
        return Z.argmax(axis=1) == self.targets.codes


def _row_signs(targets: Targets, i: int, k: int) -> np.ndarray:
    sign = np.empty(k)
    signs(targets, i, k, sign)
    return sign


@njit(cache=True)
def _losses(code, columns, Z, targets, losses):
    k = Z.shape[1]
    z, g, sign = np.empty(k), np.empty(k), np.empty(k)
    bits = np.empty(k, dtype=np.int64)
    label = 0
    for i in range(len(Z)):
        z[:] = Z[i]
        if columns:
            signs(targets, i, k, sign)
        else:
            label = targets.codes[i]
        losses[i] = residual(code, z, k, label, sign, bits, g)[0]

"""What the rows are to be matched with: class codes, or one column per output."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_namespace, is_torch_namespace

from manyclass.data.rows import Array


class Targets(Protocol):
    """Y, of shape (n_rows, n_outputs), read in blocks of rows; never materialised when it is one-hot."""

    n_outputs: int

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        """Y[rows] as a matrix with the dtype and device of `like`."""

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        """Row-wise y_iᵀ z_i, of shape (n_block_rows,)."""

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        """P −= Y[rows], in place."""

    def take(self, index: np.ndarray) -> Targets:
        """The targets of the rows named by an integer array."""


class ClassTargets:
    """One column per class, filled with two values: one-hot rows, or −1 and 1, given by integer codes.

    Parameters
    ----------
    codes : integer array of shape (n_rows,)
        Class of each row, in 0 .. n_classes − 1, in the namespace and on the device of X.
    n_classes : int
    values : tuple of float
        What stands for every other class, and for that of the row.
    """

    def __init__(self, codes: Array, n_classes: int, values: tuple[float, float] = (0.0, 1.0)):
        self.codes, self.n_outputs, self.values = codes, n_classes, values

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        classes = xp.arange(self.n_outputs, dtype=self.codes.dtype, device=device(like))
        found = xp.astype(self.codes[rows][:, None] == classes[None, :], like.dtype)
        absent, present = self.values
        return found if self.values == (0.0, 1.0) else absent + (present - absent) * found

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        absent, present = self.values
        own = self._own(rows, Z, xp)
        matched = xp.take_along_axis(Z, self.codes[rows][:, None], axis=1)[:, 0] if own is None else Z[own]
        if absent:
            return (present - absent) * matched + absent * xp.sum(Z, axis=1)
        return matched if present == 1.0 else present * matched

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        own = self._own(rows, P, xp)
        if own is None:
            P -= self.dense(rows, P, xp)
            return
        absent, present = self.values
        P[own] -= present - absent
        if absent:
            P -= absent

    def _own(self, rows: slice, like: Array, xp: Any) -> tuple[Array, Array] | None:
        """Where each row has its class, in namespaces that can be asked for, and told, entries by number."""
        if not (is_numpy_namespace(xp) or is_torch_namespace(xp)):
            return None
        codes = self.codes[rows]
        return xp.arange(codes.shape[0], device=device(like)), codes

    def take(self, index: np.ndarray) -> ClassTargets:
        return ClassTargets(take_rows(self.codes, index), self.n_outputs, self.values)


class MatrixTargets:
    """One column per output: an indicator matrix, probabilities, or real responses.

    Parameters
    ----------
    Y : array of shape (n_rows, n_outputs)
        In the namespace and on the device of X.
    """

    def __init__(self, Y: Array):
        self.Y = Y
        self.n_outputs = int(Y.shape[1])

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        return xp.astype(self.Y[rows, :], like.dtype, copy=False)

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        return xp.sum(self.dense(rows, Z, xp) * Z, axis=1)

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        P -= self.dense(rows, P, xp)

    def take(self, index: np.ndarray) -> MatrixTargets:
        return MatrixTargets(take_rows(self.Y, index))


def take_rows(array: Array, index: np.ndarray) -> Array:
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(index, device=device(array)), axis=0)

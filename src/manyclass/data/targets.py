"""What the rows are to be matched with: class codes, or one column per output."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_numpy_namespace, is_torch_namespace

from manyclass.data.rows import Array, Rows, slices, to_numpy

FEW = 1 << 15
"""Numbers up to which a matrix is sooner made and multiplied than one in CSR form."""


class Targets(Protocol):
    """Y, of shape (n_rows, n_outputs), read in blocks of rows; never materialised when it is one-hot."""

    n_outputs: int

    @property
    def exclusive(self) -> bool:
        """Whether outputs are classes, of which a row has one."""

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        """Y[rows] as a matrix with the dtype and device of `like`."""

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        """Row-wise y_iᵀ z_i, of shape (n_block_rows,)."""

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        """P −= Y[rows], in place."""

    def weighted(self, rows: slice, weight: Array | None, like: Array, xp: Any) -> Any:
        """s_i y_i of some rows for `Rows.rmatmat`: as `dense`, or in CSR form where most of it is 0."""

    def totals(self, weight: Array | None, rows: Rows) -> Array:
        """Σ s_i y_i of all rows, in float64."""

    def take(self, index: np.ndarray) -> Targets:
        """The targets of the rows named by an integer array."""


class ClassTargets:
    """One column per class, filled with two values: one-hot rows, or −1 and 1.

    Codes are the class of each row, in 0 .. n_classes − 1, where X lies; `values` stand for every other class, and for
    that of the row.
    """

    exclusive = True

    def __init__(self, codes: Array, n_classes: int, values: tuple[float, float] = (0.0, 1.0)):
        self.codes, self.n_outputs, self.values = codes, n_classes, values

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        codes, (absent, present), to = self.codes[rows], self.values, device(like)
        found = xp.zeros((codes.shape[0], self.n_outputs), dtype=like.dtype, device=to)
        if absent:
            found += absent
        own = self._own(rows, found, xp)
        if own is not None:
            entries, where = own
            entries[where] = present
            return found
        classes = xp.arange(self.n_outputs, dtype=codes.dtype, device=to)
        return found + (present - absent) * xp.astype(codes[:, None] == classes[None, :], like.dtype)

    def weighted(self, rows: slice, weight: Array | None, like: Array, xp: Any) -> Any:
        codes = self.codes[rows]
        is_small = int(codes.shape[0]) * self.n_outputs < FEW
        if is_small or self.values[0] or not is_numpy_namespace(xp):
            return _weighted(self.dense(rows, like, xp), weight)
        each = np.full(len(codes), self.values[1], dtype=like.dtype)
        each = each if weight is None else each * weight
        return sp.csr_array((each, codes, np.arange(len(codes) + 1)), shape=(len(codes), self.n_outputs))

    def totals(self, weight: Array | None, rows: Rows) -> Array:
        xp, absent, present = rows.xp, *self.values
        of_rows = rows.weights(weight)
        codes, of_rows = to_numpy(self.codes), to_numpy(of_rows).astype(np.float64)
        of_classes = np.bincount(codes, of_rows, self.n_outputs)
        return rows.asarray(absent * of_rows.sum() + (present - absent) * of_classes, dtype=xp.float64)

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        absent, present = self.values
        own = self._own(rows, Z, xp)
        matched = xp.take_along_axis(Z, self.codes[rows][:, None], axis=1)[:, 0] if own is None else own[0][own[1]]
        if absent:
            return (present - absent) * matched + absent * xp.sum(Z, axis=1)
        return matched if present == 1.0 else present * matched

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        own = self._own(rows, P, xp)
        if own is None:
            P -= self.dense(rows, P, xp)
            return
        (absent, present), (entries, where) = self.values, own
        entries[where] -= present - absent
        if absent:
            P -= absent

    @cached_property
    def _is_told_by_number(self) -> bool:
        xp = array_namespace(self.codes)
        return is_numpy_namespace(xp) or is_torch_namespace(xp)

    def _own(self, rows: slice, like: Array, xp: Any) -> tuple[Array, Any] | None:
        """Of namespaces that can be asked for, and told, entries by number: the same entries, and where among them each
        row has its class."""
        if not self._is_told_by_number:
            return None
        codes = self.codes[rows]
        if isinstance(like, np.ndarray) and like.flags.c_contiguous:
            return like.reshape(-1), np.arange(0, like.size, self.n_outputs) + codes  # one number finds one sooner
        return like, (xp.arange(codes.shape[0], device=device(like)), codes)

    def take(self, index: np.ndarray) -> ClassTargets:
        return ClassTargets(take_rows(self.codes, index), self.n_outputs, self.values)


class MatrixTargets:
    """One column per output: an indicator matrix, probabilities, or real responses."""

    exclusive = False

    def __init__(self, Y: Array):
        self.Y = Y
        self.n_outputs = int(Y.shape[1])

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        return xp.astype(self.Y[rows, :], like.dtype, copy=False)

    def dot(self, rows: slice, Z: Array, xp: Any) -> Array:
        return xp.sum(self.dense(rows, Z, xp) * Z, axis=1)

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        P -= self.dense(rows, P, xp)

    def weighted(self, rows: slice, weight: Array | None, like: Array, xp: Any) -> Array:
        return _weighted(self.dense(rows, like, xp), weight)

    def totals(self, weight: Array | None, rows: Rows) -> Array:
        total, like = rows.zeros((self.n_outputs,), dtype=rows.xp.float64), rows.zeros((0,))
        for where in slices(rows.n_rows, 1 << 16):
            of_rows = None if weight is None else weight[where]
            total += column_totals(self.weighted(where, of_rows, like, rows.xp), rows.xp)
        return total

    def take(self, index: np.ndarray) -> MatrixTargets:
        return MatrixTargets(take_rows(self.Y, index))


def _weighted(Y: Array, weight: Array | None) -> Array:
    return Y if weight is None else Y * weight[:, None]


def column_totals(Y: Any, xp: Any) -> Array:
    """Float64 sums of what `Targets.weighted` gives."""
    return Y.sum(axis=0, dtype=np.float64) if sp.issparse(Y) else xp.sum(Y, axis=0, dtype=xp.float64)


def take_rows(array: Array, index: np.ndarray) -> Array:
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(index, device=device(array)), axis=0)

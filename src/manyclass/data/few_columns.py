"""Arithmetic on many rows with few columns, where NumPy's loops along the short axis and its BLAS lose their speed.

Other namespaces are left to their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyclass.data.rows import slices
from manyclass.data.threads import multiplies_unpacked

FEW = 32
"""Columns up to which a loop along a row is shorter than what starting it takes."""
MANY = 128
"""Columns from which a product is as fast as its transpose."""
AT_ONCE = 64
"""Rows that are taken for one long row."""
FEWEST_LONG = 2048
"""Rows from which that is sooner added to than each of them."""
UNPACKED = 1e6
"""Multiplications of the largest product that OpenBLAS computes without packing its operands into buffers first, which
takes longer than multiplying them where a side is short: ten columns get a quarter of its speed."""
FEWEST = 16
"""Rows of a piece from which calling BLAS for it costs little beside its product."""
FEWEST_SUMMED = 256
"""Rows of a piece from which its Xᵀ R is sooner computed so, and adding it to a sum costs little beside that."""


def product(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X W."""
    found = np.empty((len(X), W.shape[1]), dtype=X.dtype)
    step = _rows_unpacked(X, W.shape[1])
    step = step if step >= FEWEST and W.strides[1] == W.itemsize else max(len(X), 1)
    for rows in slices(len(X), step):
        np.matmul(X[rows], W, out=found[rows])
    return found


def add_product(X: np.ndarray, R: np.ndarray, out: np.ndarray) -> None:
    """Add Xᵀ R to `out`."""
    if R.shape[1] > MANY:
        out += X.T @ R
        return
    step = _rows_unpacked(X, R.shape[1])
    step, total = step if step >= FEWEST_SUMMED else max(len(X), 1), out.T
    for rows in slices(len(X), step):
        total += R[rows].T @ X[rows]  # a third faster than its transpose, with ten columns


def add_row(Z: Any, row: Any) -> None:
    """Add a row to each, in place."""
    if not _is_narrow(Z) or len(Z) < FEWEST_LONG:
        Z += row
        return
    n, k = Z.shape
    whole = n - n % AT_ONCE
    several = Z[:whole].reshape(-1, AT_ONCE * k)  # no copy
    several += np.tile(np.broadcast_to(row, (k,)), AT_ONCE)
    Z[whole:] += row


def _is_narrow(Z: Any) -> bool:
    return isinstance(Z, np.ndarray) and 1 < Z.shape[1] <= FEW and Z.flags.c_contiguous


def _rows_unpacked(X: np.ndarray, n_outputs: int) -> int:
    """How many rows to multiply at a time; 0 for all."""
    step = int(UNPACKED / max(X.shape[1] * n_outputs, 1))
    if n_outputs < 2 or not 0 < step < len(X) or X.strides[1] != X.itemsize:
        return 0
    return step if multiplies_unpacked() else 0

"""Arithmetic on many rows with few columns, where NumPy's loops along the short axis and its BLAS lose their speed.

Arrays of torch in the memory of the host are computed with as NumPy's, which takes a third of the time; other
namespaces are left to their own.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array

from manyclass.data.rows import Array, slices
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


def product(X: Array, W: Array) -> Array:
    """X W."""
    shape = (int(X.shape[0]), int(W.shape[1]))
    if isinstance(X, np.ndarray):
        return _product(X, W, np.empty(shape, X.dtype))
    held = _on_host(X, W)
    if held is None:
        return X @ W
    found = array_namespace(X).empty(shape, dtype=X.dtype, device=device(X))
    _product(held[0], held[1], found.numpy())
    return found


def add_product(X: Array, R: Array, out: Array) -> None:
    """Add Xᵀ R to `out`."""
    held = _on_host(X, R, out)
    X, R, out = held or (X, R, out)
    if held is None or R.shape[1] > MANY:
        out += X.T @ R
        return
    step = _rows_unpacked(X, R.shape[1])
    step, total = step if step >= FEWEST_SUMMED else max(len(X), 1), out.T
    for rows in slices(len(X), step):
        total += R[rows].T @ X[rows]  # a third faster than its transpose, with ten columns


def _on_host(*arrays: Array) -> list[np.ndarray] | None:
    """The same numbers as NumPy's, which changes those given; None where they lie elsewhere or are kept track of."""
    held = []
    for values in arrays:
        if is_torch_array(values) and values.device.type == "cpu" and not (values.requires_grad or values.is_neg()):
            held.append(values.numpy())
        elif isinstance(values, np.ndarray):
            held.append(values)
        else:
            return None
    return held


def _product(X: np.ndarray, W: np.ndarray, out: np.ndarray) -> np.ndarray:
    step = _rows_unpacked(X, W.shape[1])
    step = step if step >= FEWEST and W.strides[1] == W.itemsize else max(len(X), 1)
    for rows in slices(len(X), step):
        np.matmul(X[rows], W, out=out[rows])
    return out


def add_row(Z: Any, row: Any) -> None:
    """Add a row to each, in place."""
    is_narrow = isinstance(Z, np.ndarray) and 1 < Z.shape[1] <= FEW and Z.flags.c_contiguous
    if not is_narrow or len(Z) < FEWEST_LONG:
        Z += row
        return
    n, k = Z.shape
    whole = n - n % AT_ONCE
    several = Z[:whole].reshape(-1, AT_ONCE * k)  # no copy
    several += np.tile(np.broadcast_to(row, (k,)), AT_ONCE)
    Z[whole:] += row


def _rows_unpacked(X: np.ndarray, n_outputs: int) -> int:
    """How many rows to multiply at a time; 0 for all."""
    step = int(UNPACKED / max(X.shape[1] * n_outputs, 1))
    if n_outputs < 2 or not 0 < step < len(X) or X.strides[1] != X.itemsize:
        return 0
    return step if multiplies_unpacked() else 0

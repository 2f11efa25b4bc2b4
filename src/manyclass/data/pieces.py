"""Work on arrays as their namespace does it fastest: in pieces, and from copies that are there already."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import factorial
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from manyclass.data.rows import Array, Rows, slices
from manyclass.data.threads import factor_threads

CACHE_ELEMENTS = 1 << 17
"""Entries of a piece that one thread works on: its temporaries stay in the second-level cache."""

FEW_ELEMENTS = 1 << 14
"""Entries whose temporaries stay in the nearest caches, and come from memory that is at hand."""

TURN = (6.28125, 2.0 * np.pi - 6.28125, 2.4492935982947064e-16)
"""A turn, as a sum: whole turns of the first are taken off exactly, and the last is what float64 has not of it."""
MOST_TURNS = 1e9
"""That are taken off with a loss of digits no larger than the rounding of the number itself."""
SINE = tuple((-1.0) ** n / factorial(2 * n + 1) for n in range(10, 0, -1))
"""Coefficients of sin z / z − 1 in z², the highest power first: to 1e-17 within a quarter turn."""

MOST_COPIES = 128
"""Copies of arrays that are kept on a device; the oldest go first."""

PIECE = 1 << 16
"""Parameters that are looked at in one go: in float64 they, and what is made of them, stay in the cache."""


_copies: dict[tuple[Any, ...], Array] = {}


def copied(values: np.ndarray, rows: Rows) -> Array:
    """What ``rows.asarray(values)`` gives, made once as long as `values` live, which nobody may change."""
    if rows.is_numpy:
        return rows.asarray(values)
    key = (id(values), rows.xp.__name__, str(rows.device), str(rows.dtype))
    if key not in _copies:
        while len(_copies) >= MOST_COPIES:
            _copies.pop(next(iter(_copies)), None)
        _copies[key] = rows.asarray(values)
        weakref.finalize(values, _copies.pop, key, None)
    return _copies[key]


def pieces(rows: Rows, W: Array) -> Iterator[slice]:
    """Which rows of an array of parameters to look at together: all on a device, where every look has its price."""
    size, n_columns = int(W.shape[0]), max(int(W.shape[1]), 1)
    step = max(PIECE // n_columns, 1) if rows.is_numpy else max(size, 1)
    return slices(size, step)


def in_pieces(work: Callable[[slice], Any], n_rows: int, row_size: int) -> None:
    """Call `work` on slices of rows so short that `row_size` entries of each stay in cache, on all cores."""
    step = max(CACHE_ELEMENTS // max(row_size, 1), 1)
    pieces = list(slices(n_rows, step))
    if len(pieces) > 1:
        list(_threads().map(work, pieces))
    else:
        work(slice(0, n_rows))


def cosine(Z: Array, out: dict[str, Array], xp: Any) -> Array:
    """cos Z, as `elementwise` wants it: of float64 for a third of what NumPy's own takes.

    cos z = sin(π/2 − |z − 2π·n|) for the nearest number n of turns, and the sine by its series.
    """
    if not out or Z.dtype != np.float64 or not Z.flags.c_contiguous:
        return xp.cos(Z, **out)
    flat, (first, *others) = Z.reshape(-1), SINE
    held = np.empty((2, min(FEW_ELEMENTS, len(flat))))
    for part in slices(len(flat), FEW_ELEMENTS):
        z, (square, series) = flat[part], held[:, : len(flat[part])]
        np.multiply(z, 0.5 / np.pi, out=square)
        np.rint(square, out=square)
        if not -MOST_TURNS < square.min() <= square.max() < MOST_TURNS:  # NaN too
            np.cos(z, out=z)
            continue
        for share in TURN:
            np.multiply(square, share, out=series)
            z -= series
        np.abs(z, out=z)
        np.subtract(0.5 * np.pi, z, out=z)
        np.multiply(z, z, out=square)
        np.multiply(square, first, out=series)
        for coefficient in others:
            series += coefficient
            series *= square
        series += 1.0
        z *= series
    return Z


def elementwise(
    function: Callable[[Array, dict[str, Array]], Array], Z: Array, rows: Rows, scale: float = 1.0
) -> Array:
    """scale·function(Z, out), where Z may be overwritten; for NumPy in pieces that stay in cache, on all cores.

    The function is elementwise along rows; `out` holds the keyword by which NumPy's functions write their result to Z,
    and nothing for other namespaces.
    """

    def scaled(Z: Array, out: dict[str, Array]) -> Array:
        Z = function(Z, out)
        if scale != 1.0:
            Z *= scale
        return Z

    if not rows.is_numpy:
        return scaled(Z, {})
    in_pieces(lambda part: scaled(Z[part], {"out": Z[part]}), len(Z), Z.shape[1])
    return Z


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_openmp_effective_n_threads(), thread_name_prefix="manyclass-features")


os.register_at_fork(after_in_child=_threads.cache_clear)  # which has none of the threads


def times_upper_triangular(A: Array, U: Array, rows: Rows) -> Array:
    """A U for an upper triangular U in the dtype of A, which may be overwritten; with NumPy half of a full product."""
    if not rows.is_numpy:
        return A @ U
    (trmm,) = get_blas_funcs(("trmm",), (U, A))
    # Of the transposes: Fortran's order, so that nothing is copied.
    with factor_threads(0.5 * A.size * len(U)):
        return trmm(1.0, U.T, A.T, lower=1, overwrite_b=1).T

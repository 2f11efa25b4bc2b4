"""Functions of numbers and short vectors that compiled loops share."""

import math
from functools import partial, wraps
from typing import Any, cast

import numpy as np
from numba import njit, types
from numba.extending import overload

entry: Any = partial(njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
"""Compiles what Python calls."""
inner: Any = partial(entry, no_cpython_wrapper=True)
"""Compiles what only compiled functions call: a way in from Python takes longer to compile than many of them."""


def by_type(choose: Any) -> Any:
    """A function for compiled functions alone, whose body `choose` gives for the types of its arguments."""

    @wraps(choose)
    def uncompiled(*arguments: Any) -> None:
        raise TypeError(f"Only compiled functions call {choose.__name__}.")

    overload(uncompiled, jit_options=cast(Any, {"error_model": "numpy"}))(choose)
    return uncompiled


@by_type
def number(data, position):
    """data[position] of `RowArrays`, as float32 where that holds it."""
    kind = data.dtype
    if isinstance(kind, types.Record):  # HALF
        return lambda data, position: widened(np.uint32(data[position].half))
    if isinstance(kind, types.Float):
        return lambda data, position: data[position]
    if kind.bitwidth <= 16:
        return lambda data, position: np.float32(data[position])
    return lambda data, position: np.float64(data[position])


@inner
def widened(half):
    """A finite float16 as float32, from its bits: at their places in a float32, whose exponents are 112 higher."""
    sign, magnitude = half & np.uint32(0x8000), half & np.uint32(0x7FFF)
    bits = np.uint32((sign << np.uint32(16)) | (magnitude << np.uint32(13)))
    return bits.view(np.float32) * np.float32(2.0**112)


@inner
def clip(value, low, high):
    return low if value < low else high if value > high else value


@inner
def soft_threshold(value, by):
    """The value, moved towards 0 by so much at most."""
    return math.copysign(max(abs(value) - by, 0.0), value)


@inner
def sigmoid(t):
    """1/(1 + exp(−t)), without overflow."""
    decay = math.exp(-abs(t))
    return 1.0 / (1.0 + decay) if t >= 0.0 else decay / (1.0 + decay)


@inner
def softplus(t):
    """log(1 + exp t), without overflow."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@inner
def largest(z, size):
    """max_j z_j over z[:size]."""
    top = z[0]
    for j in range(1, size):
        top = z[j] if z[j] > top else top
    return top


@inner
def log_sum_exp(z, size):
    """log Σ_j exp z_j over z[:size], without overflow."""
    top, total = largest(z, size), 0.0
    for j in range(size):
        total += math.exp(z[j] - top)
    return top + math.log(total)


@inner(fastmath=False)  # or it has that of who calls it first, which may put (v − top) − τ in another order
def project_simplex(v, size, out):
    """The nearest point of the simplex to v[:size], by dropping entries below the threshold (Michelot, 1986).

    Entries that are less than the largest by 1 are none of its support: beside the others the threshold keeps its
    digits, however large all are.
    """
    top, total, count = largest(v, size), -1.0, 0
    for j in range(size):
        out[j] = 1.0 if v[j] - top > -1.0 else 0.0
        if out[j] > 0.0:
            total += v[j] - top
            count += 1
    while True:
        threshold, kept = total / count, 0
        for j in range(size):
            if out[j] > 0.0 and v[j] - top <= threshold:
                out[j] = 0.0
                total -= v[j] - top
            elif out[j] > 0.0:
                kept += 1
        if kept == count or kept == 0:
            break
        count = kept
    for j in range(size):
        out[j] = max(v[j] - top - threshold, 0.0) if out[j] > 0.0 else 0.0

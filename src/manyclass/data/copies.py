"""Copies of arrays on a device, where blocks of rows ask for the same ones again and again."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from manyclass.data.rows import Array, Rows

MOST = 128
"""Copies that are kept; the oldest go first."""

_copies: dict[tuple[Any, ...], Array] = {}


def copied(values: np.ndarray, rows: Rows) -> Array:
    """What ``rows.asarray(values)`` gives, made once as long as `values` live, which nobody may change."""
    if rows.is_numpy:
        return rows.asarray(values)
    key = (id(values), rows.xp.__name__, str(rows.device), str(rows.dtype))
    if key not in _copies:
        while len(_copies) >= MOST:
            _copies.pop(next(iter(_copies)), None)
        _copies[key] = rows.asarray(values)
        weakref.finalize(values, _copies.pop, key, None)
    return _copies[key]

"""Numbers that no model can use, and the sentence that names one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

_BLOCK = 1 << 20


def unusable_cell(X: Any) -> tuple[int, int] | None:
    """Row and column, from 0, of the first number of an array or CSR array that is missing or infinite."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return None
    step = max(1, _BLOCK // max(1, math.prod(values.shape[1:])))
    for start in range(0, values.shape[0], step):
        is_bad = ~np.isfinite(values[start : start + step])
        if is_bad.any():
            first, *column = (int(index) for index in np.argwhere(is_bad)[0])
            if column:
                return start + first, column[0]
            row = np.searchsorted(X.indptr, start + first, side="right") - 1
            return int(row), int(X.indices[start + first])
    return None


def refusal(name: object, value: Any, row: int, column: int, columns: Sequence[str] | None = None) -> str:
    """The sentence for such a number of the file called `name`; row and column are counted from 0."""
    called = str(column + 1) if columns is None else f"'{columns[column]}'"
    what = "is missing" if np.isnan(value) else "is infinite"
    return (
        f"{name}: the value in row {row + 1}, column {called} {what}: fill such cells in, for instance by "
        "scikit-learn's SimpleImputer, remove the rows, or leave the column out with drop (--drop on the command line)"
    )

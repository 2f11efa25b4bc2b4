"""Numbers that no model can use, and the sentence that names one of them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

_BLOCK = 1 << 20
LARGEST = {4: 1e14, 8: 1e75}
"""By the bytes of a float: squares of squares of larger ones overflow, or drown all other numbers."""
OVERFLOW = "Numbers of X are too large for their dtype: scale its columns (StandardScaler), use float64, raise alpha."


def largest(dtype: Any) -> float:
    """The largest size of a number that can be computed with."""
    return LARGEST.get(dtype.itemsize, float(np.finfo(dtype).max))


def unusable_cell(X: Any) -> tuple[int, int] | None:
    """Row and column, from 0, of the first number of an array or CSR array that is missing, infinite or too large."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return None
    most = largest(values.dtype)
    step = max(1, _BLOCK // max(1, math.prod(values.shape[1:])))
    for start in range(0, values.shape[0], step):
        block = values[start : start + step]
        if -most <= block.min(initial=0) and block.max(initial=0) <= most:
            continue
        first, *column = (int(index) for index in np.argwhere(~(np.abs(block) <= most))[0])
        if column:
            return start + first, column[0]
        row = np.searchsorted(X.indptr, start + first, side="right") - 1
        return int(row), int(X.indices[start + first])
    return None


def refusal(
    name: object, value: Any, row: int, column: int, columns: Sequence[str] | None = None, all_needed: bool = False
) -> str:
    """The sentence for such a number of the file called `name`; row and column are counted from 0.

    Where a model needs all columns, none can be left out.
    """
    called = str(column + 1) if columns is None else f"'{columns[column]}'"
    what, mend = "is missing", "fill such cells in, for instance by scikit-learn's SimpleImputer"
    if np.isinf(value):
        what = "is infinite"
    elif not np.isnan(value):
        what, mend = f"is too large to compute with ({value:g})", "correct such cells or scale the column"
    how = "" if columns is None else " with drop (--drop on the command line)"
    ways = " or remove the rows" if all_needed else f", remove the rows, or leave the column out{how}"
    return f"{name}: the value in row {row + 1}, column {called} {what}: {mend}{ways}"

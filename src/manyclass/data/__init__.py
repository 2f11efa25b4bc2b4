"""How rows are held and summarised, and what they are to be matched with."""

from typing import Any

import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from manyclass.data.chunked import ChunkedRows
from manyclass.data.dense import DenseRows
from manyclass.data.generated import GeneratedRows
from manyclass.data.half import HalfRows
from manyclass.data.moments import Moments
from manyclass.data.opening import open_rows
from manyclass.data.rows import Rows
from manyclass.data.sparse import SparseRows
from manyclass.data.targets import ClassTargets, MatrixTargets, Targets
from manyclass.execution import check_here

KINDS = ((sp.issparse, SparseRows.of), (HalfRows.serves, HalfRows), (is_array_api_obj, DenseRows))
"""Which kind of rows an array becomes: the first whose test holds."""


def as_rows(X: Any) -> Rows:
    """X as `Rows`, uncopied but where a sparse matrix has several entries in one place; `Rows` stay as they are.

    Raises
    ------
    TypeError
        If X is neither, or lies in partitions.
    """
    if isinstance(X, Rows):
        return X
    check_here(X)
    for belongs, made in KINDS:
        if belongs(X):
            return made(X)
    raise TypeError(f"Rows must be an array or a CSR matrix, not {type(X).__name__}; convert them with numpy.asarray.")


__all__ = [
    "ChunkedRows",
    "ClassTargets",
    "DenseRows",
    "GeneratedRows",
    "MatrixTargets",
    "Moments",
    "Rows",
    "SparseRows",
    "Targets",
    "as_rows",
    "open_rows",
]

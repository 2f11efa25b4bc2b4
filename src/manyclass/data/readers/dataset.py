"""What a reader returns, and the rules every reader shares for numbers and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

# The product of two such values is exact in float32, so halving the memory of an image costs no accuracy.
_LARGEST_SMALL_INTEGER = 255
_BLOCK = 1 << 20


class DataFileError(ValueError):
    """A data file that cannot be used as asked; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows read from a file.

    Attributes
    ----------
    X : ndarray, memmap or scipy.sparse.csr_array of shape (n_rows, n_features)
        float32 or float64.
    y : ndarray of shape (n_rows,) or (n_rows, n_labels), or None
        Class labels (integers where every label is a whole number, else text), real numbers (a regression
        target), or a 0/1 indicator matrix for multi-label data. None where the file has no target.
    feature_names : tuple of str or None
        Column names, where the format has them.
    target_name : str or None
        The column `y` came from, where the format names it.
    label_names : tuple of str or None
        Names of the columns of a multi-label `y`.
    zero_based : bool or None
        Whether a LIBSVM file counts its features from zero; None for the other formats.
    full_scale : int or None
        255 where the features are stored as unsigned bytes, as the pixels of images are; else None.
    """

    X: Any
    y: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    label_names: tuple[str, ...] | None = None
    zero_based: bool | None = None
    full_scale: int | None = None


@dataclass(frozen=True)
class Request:
    """What `read` was asked for, in the form the readers use it.

    `targets` is None for the default target, an empty tuple for none at all, one column for class labels and
    several (or `multilabel`) for an indicator matrix. `features` is what a fitted model expects.
    """

    targets: tuple[str | int, ...] | None = None
    multilabel: bool | None = None
    n_label_columns: int | None = None
    features: tuple[str, ...] | int | None = None
    drop: tuple[str | int, ...] = ()
    dtype: Any = None
    header: bool | None = None
    zero_based: bool | None = None

    @property
    def n_features(self) -> int | None:
        if self.features is None or isinstance(self.features, int):
            return self.features
        return len(self.features)


def quoted(names: Sequence[str], limit: int = 6) -> str:
    """The names in quotes, at most `limit` of them, for a message."""
    shown = ", ".join(f"'{name}'" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def holds_text(columns: Sequence[str], example: str = "") -> DataFileError:
    """The error for columns of text where numbers are needed; `example` says which text is where."""
    one = len(columns) == 1
    where = f" ({example})" if example else ""
    return DataFileError(
        f"{'column' if one else 'columns'} {quoted(columns)} {'holds' if one else 'hold'} text{where} where "
        f"numbers are needed: encode {'it' if one else 'them'}, for instance by scikit-learn's OneHotEncoder "
        f"or TfidfVectorizer, or leave {'it' if one else 'them'} out with drop"
    )


def full_scale(values: Any) -> int | None:
    """The value of `Dataset.full_scale` for numbers as they are stored."""
    return 255 if values.dtype == np.uint8 else None


def as_features(values: Any, dtype: Any = None, *, narrow: bool = True) -> Any:
    """Numbers as float32 or float64.

    Parameters
    ----------
    values : ndarray or csr_array
        Numbers of any type, 2-D.
    dtype : {float32, float64} or None
        None keeps float32 and float64, and gives 8-bit integers, booleans and float16 as float32.
    narrow : bool
        For numbers whose stored type says nothing (text, wide integers): float32 where all of them are whole
        and at most 255 in size, float64 otherwise.

    Raises
    ------
    DataFileError
        Where the values are not real numbers.
    """
    kind = values.dtype.kind
    if kind not in "biuf":
        raise DataFileError(
            f"the features are stored as {values.dtype}, not as real numbers: save them as float32 or float64"
        )
    if dtype is not None:
        return values.astype(dtype, copy=False)
    if kind == "b" or values.dtype.itemsize == 1 or values.dtype == np.float16:
        return values.astype(np.float32)
    if (kind in "iu" or narrow) and _holds_small_integers(values):
        return values.astype(np.float32)
    if kind == "f" and values.dtype.itemsize <= 8:
        # Files may be big-endian; arithmetic is not.
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    return values.astype(np.float64)


def _holds_small_integers(values: Any) -> bool:
    flat = values.data if sparse.issparse(values) else values
    step = max(1, _BLOCK // max(1, math.prod(flat.shape[1:])))
    for start in range(0, flat.shape[0], step):
        block = flat[start : start + step]
        if not ((np.abs(block) <= _LARGEST_SMALL_INTEGER) & (np.rint(block) == block)).all():
            return False
    return True


def as_csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> Any:
    """A CSR array with 32-bit indices where they suffice: the indices are most of its memory."""
    width = sparse.get_index_dtype(maxval=max(len(data), *shape))
    return sparse.csr_array((data, indices.astype(width, copy=False), indptr.astype(width, copy=False)), shape=shape)


def as_labels(values: ArrayLike) -> NDArray[Any]:
    """Class labels from numbers or text: integers where all are whole, else floats, else text."""
    labels = np.asarray(values)
    if labels.dtype.kind in "OSU":
        classes, codes = np.unique(labels.astype(str), return_inverse=True)
        return labels_from_codes([str(label) for label in classes], codes)
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (np.rint(labels) == labels).all():
        return labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)


def labels_from_codes(texts: Sequence[str], codes: NDArray[Any]) -> NDArray[Any]:
    """The labels ``texts[codes]``, as numbers where every text is one."""
    stripped = [text.strip() for text in texts]
    try:
        numbers = np.array([float(text) for text in stripped])
    except ValueError:
        return np.array(stripped)[codes]
    # "007" is a name, not the number 7: an answer of 7 could not be looked up again.
    if any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in stripped):
        return np.array(stripped)[codes]
    return as_labels(numbers)[codes]


def as_indicator(values: NDArray[Any], names: Sequence[str] | None) -> NDArray[np.int8]:
    """A 0/1 matrix of shape (n_rows, n_labels).

    Raises
    ------
    DataFileError
        Where a value is neither 0 nor 1.
    """
    wrong = ~((values == 0) | (values == 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        name = f"'{names[column]}'" if names is not None else str(column + 1)
        raise DataFileError(
            f"label column {name} holds {values[row, column]:g} in row {row + 1}: "
            "the columns of several labels must hold 0 or 1"
        )
    return values.astype(np.int8)

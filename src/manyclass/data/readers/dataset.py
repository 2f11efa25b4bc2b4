"""What a reader is asked for and returns, and the rules every reader shares for numbers and labels."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manyclass.data.stores import is_table

# The product of two such values is exact in float32, so halving the memory of an image costs no accuracy.
_LARGEST_SMALL_INTEGER = 255
# Beyond it not every integer is a double.
_LARGEST_INTEGER = 2**53
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan", re.IGNORECASE)
_BLOCK = 1 << 20


class DataFileError(ValueError):
    """A data file that cannot be used as asked; the message says why and what to do."""


class HoldsTextError(DataFileError):
    """Text in columns, by name, where numbers are needed; the example is of the first one."""

    def __init__(self, message: str, columns: Sequence[str] = (), example: str = "") -> None:
        super().__init__(message)
        self.columns, self.example = tuple(columns), example


class NoRowsError(DataFileError):
    """A whole file of no rows: of a folder it is none of those that hold the rows."""


@dataclass(frozen=True)
class Request:
    """The options of `manyclass.data.readers.read`."""

    target: Any = None
    labels: Any = None
    features: Sequence[str] | int | None = None
    drop: Sequence[str | int] = ()
    dtype: Any = None
    header: bool | None = None
    multilabel: bool | None = None
    zero_based: bool | None = None
    text_labels: bool = False
    needs_labels: bool = True
    kinds: Mapping[str, str] | None = None

    @property
    def targets(self) -> tuple[str | int, ...] | None:
        """The columns asked for: none where labels are elsewhere, one for classes, several (or `multilabel`) for 0/1.

        None for the default target.
        """
        if self.target is False or self.labels_path is not None:
            return ()
        if self.target is None or self.target is True:
            return None
        return (self.target,) if isinstance(self.target, str | int) else tuple(self.target)

    @property
    def labels_path(self) -> Path | None:
        return None if self.labels is None or isinstance(self.labels, int) else Path(self.labels)

    @property
    def n_label_columns(self) -> int | None:
        return self.labels if isinstance(self.labels, int) else None

    @property
    def n_features(self) -> int | None:
        return self.features if self.features is None or isinstance(self.features, int) else len(self.features)

    @property
    def feature_names(self) -> Sequence[str] | None:
        return None if isinstance(self.features, int) else self.features


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows read from a file.

    Attributes
    ----------
    X : ndarray, memmap or scipy.sparse.csr_array of shape (n_rows, n_features)
        float32 or float64; read-only where it is the file's own memory. Of `stored` a `Store`, and a table of pyarrow
        where columns of other kinds were asked for and found.
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

    @classmethod
    def stored(cls, values: Any, dtype: Any, y: NDArray[Any] | None = None) -> Self:
        """Numbers as a binary file holds them; images, one per row, are flattened."""
        if not sparse.issparse(values):
            values = values.reshape(len(values), math.prod(values.shape[1:]))
        return cls(as_features(values, dtype, narrow=False), y, full_scale=255 if values.dtype == np.uint8 else None)

    @property
    def kind(self) -> str:
        """What the numbers are stored as."""
        if self.is_table:
            return "table"
        return f"sparse {self.X.dtype.name}" if sparse.issparse(self.X) else self.X.dtype.name

    @property
    def is_table(self) -> bool:
        """Whether rows are those of a table, which `TableEncoder` makes numbers of."""
        return is_table(self.X)

    @property
    def is_writable(self) -> bool:
        """Whether the numbers may be changed in place; False for a file's own memory."""
        return bool(_numbers_of(self.X).flags.writeable)

    def take(self, rows: Any) -> Self:
        """Some of the rows, by a slice, numbers or a mask."""
        X = self.X.take(np.arange(self.X.num_rows)[rows]) if self.is_table else self.X[rows]
        return dataclasses.replace(self, X=X, y=None if self.y is None else self.y[rows])

    def compact(self) -> Self:
        """The same rows as a dense array where that takes less memory: some files are sparse in name only."""
        X = self.X
        if not sparse.issparse(X):
            return self
        stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        is_full = X.shape[0] * X.shape[1] * X.dtype.itemsize <= stored
        return dataclasses.replace(self, X=X.toarray()) if is_full else self


def _numbers_of(X: Any) -> Any:
    return X.data if sparse.issparse(X) else X


def quoted(names: Sequence[str], limit: int = 6) -> str:
    """The names in quotes, at most `limit` of them, for a message."""
    shown = ", ".join(f"'{name}'" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def holds_text(columns: Sequence[str], example: str = "") -> HoldsTextError:
    """The error for columns of text where numbers are needed; `example` says which text is where."""
    nouns, verb, them = ("column", "holds", "it") if len(columns) == 1 else ("columns", "hold", "them")
    return HoldsTextError(
        f"{nouns} {quoted(columns)} {verb} text{example} where numbers are needed: encode {them} in a frame, for "
        f"instance by TableEncoder, or leave {them} out with drop (--drop on the command line)",
        columns,
        example,
    )


def as_features(values: Any, dtype: Any = None, *, narrow: bool = True) -> Any:
    """Numbers of an array or CSR array as float32 or float64; without `dtype` as `fits_float32` says."""
    if values.dtype.kind not in "biuf":
        raise DataFileError(
            f"the features are stored as {values.dtype}, not as real numbers: save them as float32 or float64"
        )
    if dtype is None:
        dtype = np.float32 if fits_float32(values, narrow=narrow) else np.float64
    return values.astype(dtype, copy=False)


def fits_float32(values: Any, *, narrow: bool = True) -> bool:
    """Whether float32 holds the values as well as the file does.

    Floats of up to 32 bits, 8-bit integers and booleans fit as they are, and wider integers where all of them are at
    most 255 in size; with `narrow`, for files whose types say nothing, so do wider floats that are such integers.
    """
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "b" or size == 1 or (kind == "f" and size <= 4):
        return True
    return (kind in "iu" or narrow) and _holds_small_integers(_numbers_of(values))


def _holds_small_integers(values: NDArray[Any]) -> bool:
    largest = max(1, _BLOCK // max(1, math.prod(values.shape[1:])))
    # Most real numbers show in the first rows that they are not whole.
    start, step = 0, min(largest, 64)
    while start < values.shape[0]:
        block = values[start : start + step]
        small = (block >= -_LARGEST_SMALL_INTEGER) & (block <= _LARGEST_SMALL_INTEGER)
        if not (small & (np.rint(block) == block)).all():
            return False
        start, step = start + step, largest
    return True


def as_csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> Any:
    """A CSR array with 32-bit indices where they suffice: the indices are most of its memory."""
    width = sparse.get_index_dtype(maxval=max(len(data), *shape))
    return sparse.csr_array((data, indices.astype(width, copy=False), indptr.astype(width, copy=False)), shape=shape)


def as_labels(values: ArrayLike) -> NDArray[Any]:
    """Class labels from numbers or text: integers where all are whole, else floats, else text."""
    labels = np.asarray(values)
    if labels.dtype.kind in "OSUb":  # true and false are names
        classes, codes = np.unique(labels.astype(str), return_inverse=True)
        return labels_from_codes(classes.tolist(), codes)
    is_whole = labels.dtype.kind in "iu"
    if labels.dtype.kind == "f":
        if np.isnan(labels).any():
            raise DataFileError("its labels hold NaN: fill them in or remove their rows")
        is_whole = bool(((np.abs(labels.astype(np.float64)) <= _LARGEST_INTEGER) & (np.rint(labels) == labels)).all())
    if is_whole and not (labels.dtype.kind == "u" and labels.max(initial=0) > np.iinfo(np.int64).max):
        return labels.astype(np.int64)
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)


def labels_from_array(y: Any) -> NDArray[Any]:
    """Labels (1-D) or an indicator matrix (2-D) from what a binary file holds."""
    if sparse.issparse(y):
        y = y.toarray()
    # Python objects never come out of these files, so text has a fixed width ("U" or "S").
    if y.dtype.kind == "S":
        y = np.strings.decode(y, "utf-8")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or y.dtype.kind not in ("biufU" if y.ndim == 1 else "biuf"):
        raise DataFileError(f"its labels are {y.dtype} of shape {y.shape}: save one number or text per row")
    return as_labels(y) if y.ndim == 1 else as_indicator(y, None)


def labels_from_codes(texts: Sequence[str], codes: NDArray[Any], as_text: bool = False) -> NDArray[Any]:
    """The labels ``texts[codes]``, as numbers where every text is one, unless they are to stay text."""
    stripped = [text.strip() for text in texts]
    # "007" is a name, not the number 7: an answer of 7 could not be looked up again.
    are_names = as_text or any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in stripped)
    are_names = are_names or not all(map(_NUMBER.fullmatch, stripped))  # "1_2" and "inf" are numbers to Python alone
    numbers: NDArray[Any] | None
    try:
        if all(_WHOLE.fullmatch(text) for text in stripped):
            numbers = np.array([int(text) for text in stripped], dtype=np.int64)
        else:
            numbers = np.array([float(text) for text in stripped])
    except (ValueError, OverflowError):  # names of digits that no integer holds are names, too
        numbers = None
    found: NDArray[Any] = (np.array(stripped) if numbers is None or are_names else as_labels(numbers))[codes]
    return found


def as_indicator(values: NDArray[Any], names: Sequence[str] | None, start: int = 0) -> NDArray[np.int8]:
    """A 0/1 matrix of shape (n_rows, n_labels), or an error where it is not; `start` rows came before in the file."""
    wrong = ~((values == 0) | (values == 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        name = f"'{names[column]}'" if names is not None else str(column + 1)
        raise DataFileError(
            f"label column {name} holds {values[row, column]:g} in row {start + row + 1}: "
            "the columns of several labels must hold 0 or 1"
        )
    return values.astype(np.int8)


def reads_as_number(text: str) -> bool:
    """Whether Arrow reads it as one, too: Python alone takes 1_2 and the digits of other scripts."""
    if "_" in text or not text.isascii():
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_number(text: str) -> bool:
    """Whether it reads as one that is finite."""
    return reads_as_number(text) and math.isfinite(float(text))

"""Files larger than memory, a few thousand rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers import make_request, read
from manyclass.data.readers.dataset import DataFileError, Dataset
from manyclass.data.readers.registry import FORMATS, find_format
from manyclass.data.readers.source import Source, translated


@dataclass(frozen=True)
class Survey:
    """What has to be known of a whole file before its first chunk can be used.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy.dtype
        One that holds the features of every chunk.
    classes : ndarray
        The labels that occur, sorted; for several labels a row, their positions.
    label_names : tuple of str or None
        Of several labels a row, the names.
    zero_based : bool or None
        Whether a LIBSVM file counts features from zero.
    first : Dataset
        The first chunk, for its names.
    """

    n_rows: int
    n_features: int
    dtype: Any
    classes: NDArray[Any]
    label_names: tuple[str, ...] | None
    zero_based: bool | None
    first: Dataset


def read_chunks(path: str | os.PathLike[str], n_rows: int, **options: Any) -> Iterator[Dataset]:
    """The rows of a CSV, Parquet, LIBSVM or NumPy file in order, at most `n_rows` at a time.

    Parameters
    ----------
    path : path-like
    n_rows : int
        Rows of a chunk; the last one has those that remain.
    **options
        Those of `manyclass.data.readers.read`. Without ``dtype`` each chunk has the one that suits it. Without
        ``zero_based`` a LIBSVM file's features are numbered as in the file, and each chunk says whether a feature 0
        occurs; without ``features`` its chunks differ in width.

    Yields
    ------
    Dataset

    Raises
    ------
    DataFileError
        Where the file is damaged or its format cannot be read in pieces.
    """
    path = Path(path)
    request, labels_path = make_request(**{name: value for name, value in options.items() if name != "format"})
    with translated(path):
        source = Source(path)
        entry = find_format(source, options.get("format"))
        if entry.is_mapped:
            whole = read(path, **options)
            for start in range(0, whole.X.shape[0], n_rows):
                yield whole.take(slice(start, start + n_rows))
            return
        if entry.read_chunks is None:
            able = ", ".join(known.name for known in FORMATS if known.has_chunks)
            raise DataFileError(f"{entry.name} files cannot be read in chunks: convert it to one of {able}")
        if labels_path is not None:
            raise DataFileError("read in chunks, it must hold its labels itself: add them, or save the rows as .npy")
        yield from entry.read_chunks(source, request, n_rows)


def survey(path: str | os.PathLike[str], n_rows: int, **options: Any) -> Survey:
    """One pass over the file for its size, width and labels; no more than one chunk is held at a time.

    Raises
    ------
    DataFileError
        Where there are no rows or no labels.
    """
    first: Dataset | None = None
    total, width, dtype = 0, 0, np.dtype(np.float32)
    zero_based: bool | None = None
    classes: set[Any] = set()
    names: dict[str, None] = {}
    is_multilabel, n_label_columns = False, 0
    for chunk in read_chunks(path, n_rows, **options):
        if chunk.y is None:
            raise DataFileError(f"{path} has no labels: name their column with target or their file with labels")
        first = chunk if first is None else first
        total += chunk.X.shape[0]
        width = max(width, chunk.X.shape[1])
        dtype = np.result_type(dtype, chunk.X.dtype)
        zero_based = chunk.zero_based if zero_based is None else zero_based or bool(chunk.zero_based)
        is_multilabel = is_multilabel or chunk.y.ndim == 2
        if chunk.y.ndim == 2:
            names |= dict.fromkeys(chunk.label_names or ())
            n_label_columns = max(n_label_columns, chunk.y.shape[1])
        else:
            classes |= set(np.unique(chunk.y).tolist())
    if first is None:
        raise DataFileError(f"{path} holds no rows: give a file with data")
    if zero_based is False:
        width -= 1
    expected = options.get("features")
    if isinstance(expected, int):
        if width > expected:
            raise DataFileError(f"{path} has {width} features where {expected} are expected: expect that many")
        width = expected
    if is_multilabel:
        label_names = tuple(sorted(names, key=_by_number)) or None
        count = n_label_columns if label_names is None else len(label_names)
        return Survey(total, width, dtype, np.arange(count), label_names, zero_based, first)
    as_text = any(isinstance(label, str) for label in classes)
    known = np.array(sorted(str(label) for label in classes) if as_text else sorted(classes))
    return Survey(total, width, dtype, known, None, zero_based, first)


def _by_number(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name

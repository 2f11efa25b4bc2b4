"""What has to be known of a whole file before its first chunk can be used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers import DataFileError, Dataset, read_chunks


@dataclass(frozen=True)
class Survey:
    """A file larger than memory: its size, a dtype that holds all its features, and its labels.

    `classes` are the labels that occur, sorted; for several labels a row their positions, with the names in
    `label_names` if they have any. `first` is the first chunk, for the names of its columns.
    """

    n_rows: int
    n_features: int
    dtype: Any
    classes: NDArray[Any]
    label_names: tuple[str, ...] | None
    zero_based: bool | None
    first: Dataset


def survey(path: str | os.PathLike[str], n_rows: int, **options: Any) -> Survey:
    """One pass over the file in chunks of `n_rows`, of which one is held at a time; options as in `read_chunks`.

    Raises
    ------
    DataFileError
        Where there are no rows or no labels.
    """
    first: Dataset | None = None
    total, width, dtype = 0, 0, np.dtype(np.float32)
    bases: set[bool | None] = set()
    classes: set[Any] = set()
    names: set[str] = set()
    label_widths: set[int] = set()
    for chunk in read_chunks(path, n_rows, **options):
        if chunk.y is None:
            raise DataFileError(f"{path} has no labels: name their column with target or their file with labels")
        first = chunk if first is None else first
        total += chunk.X.shape[0]
        width = max(width, chunk.X.shape[1])
        dtype = np.result_type(dtype, chunk.X.dtype)
        bases.add(chunk.zero_based)
        if chunk.y.ndim == 2:
            names.update(chunk.label_names or ())
            label_widths.add(chunk.y.shape[1])
        else:
            classes.update(np.unique(chunk.y).tolist())
    if first is None:
        raise DataFileError(f"{path} holds no rows: give a file with data")
    zero_based = None if bases == {None} else True in bases
    width -= zero_based is False
    expected = options.get("features")
    if isinstance(expected, int):
        if width > expected:
            raise DataFileError(f"{path} has {width} features where {expected} are expected: expect that many")
        width = expected
    label_names = None
    if label_widths:
        label_names = tuple(sorted(names, key=_by_number)) or None
        known = np.arange(len(names) or max(label_widths))
    elif any(isinstance(label, str) for label in classes):
        known = np.array(sorted(map(str, classes)))
    else:
        known = np.array(sorted(classes))
    return Survey(total, width, dtype, known, label_names, zero_based, first)


def _by_number(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name

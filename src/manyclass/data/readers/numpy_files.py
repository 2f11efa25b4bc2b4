"""NumPy's .npy and .npz, and SciPy's sparse .npz."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_features,
    as_indicator,
    as_labels,
    full_scale,
    quoted,
)
from manyclass.data.readers.source import Source

SUFFIXES = (".npz", ".npy")
_KEYS = (("X", "y"), ("x", "y"), ("data", "target"), ("X_train", "y_train"), ("x_train", "y_train"))


def sniff(head: bytes) -> bool:
    return head.startswith((b"\x93NUMPY", b"PK\x03\x04"))


def read(source: Source, request: Request) -> Dataset:
    """The arrays X and y (or x, y; data, target; X_train, y_train) of an .npz file, a SciPy sparse matrix, or
    the one array of an .npy file. Images, one per row, are flattened.

    An uncompressed .npy file of floats is memory-mapped, not loaded.
    """
    y: Any = None
    arrays = _arrays(source)
    if not isinstance(arrays, dict):
        X = arrays
    else:
        if not arrays:
            raise DataFileError(
                "it is a zip archive without NumPy arrays: unpack it, or save arrays X and y by numpy.savez"
            )
        names = next((keys for keys in _KEYS if keys[0] in arrays), None)
        if names is None:
            raise DataFileError(
                f"it holds the arrays {quoted(list(arrays))}: save the features as X and the labels as y"
            )
        X, y = arrays[names[0]], arrays.get(names[1])
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    elif X.ndim < 2:
        raise DataFileError(f"its features have shape {X.shape}: a matrix with one row per example is needed")
    else:
        X = X.reshape(len(X), math.prod(X.shape[1:]))
    y = None if y is None else _labels(y)
    return Dataset(as_features(X, request.dtype, narrow=False), y, full_scale=full_scale(X))


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    """Labels (1-D) or an indicator matrix (2-D) from an .npy file, or from the y of an .npz file."""
    arrays = _arrays(source)
    if isinstance(arrays, dict):
        if not arrays:
            raise DataFileError("it is a zip archive without NumPy arrays: save the labels by numpy.save")
        arrays = next(arrays[key] for key in ("y", "target", "labels", *arrays) if key in arrays)
    return _labels(arrays), None


def _labels(y: Any) -> NDArray[Any]:
    if sparse.issparse(y):
        y = y.toarray()
    # Python objects never come out of these files, so text has a fixed width ("U" or "S").
    if y.dtype.kind == "S":
        y = y.astype(str)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2:
        return as_indicator(y, None)
    if y.ndim != 1 or y.dtype.kind not in "biufU":
        raise DataFileError(f"its labels are {y.dtype} of shape {y.shape}: save one number or text per row")
    return as_labels(y)


def _arrays(source: Source) -> Any:
    where = source.seekable()
    try:
        loaded = _mapped(where) if isinstance(where, Path) else np.load(where, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            if "indptr" in loaded.files and "format" in loaded.files:
                return sparse.load_npz(where if isinstance(where, Path) else _rewound(where))
            return {key: loaded[key] for key in loaded.files if f"{key}.npy" in loaded.zip.namelist()}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise DataFileError("it holds Python objects, which are never loaded: save plain numeric arrays") from error
        raise DataFileError(f"it is not a whole NumPy file ({error}): save or copy it again") from error


def _mapped(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        # Arrays of no rows cannot be mapped, and what else is wrong np.load says better without mapping.
        return np.load(path, allow_pickle=False)


def _rewound(file: Any) -> Any:
    file.seek(0)
    return file

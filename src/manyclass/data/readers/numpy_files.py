"""NumPy's .npy and .npz, and SciPy's sparse .npz."""

import io
import math
import zipfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyclass.data.readers.dataset import DataFileError, Dataset, Request, labels_from_array, quoted
from manyclass.data.readers.source import Source
from manyclass.data.stores import Pieces

NAME, SUFFIXES, WHAT = "numpy", (".npz", ".npy"), "a whole NumPy file"
_EMPTY_ROWS = 1 << 20
_KEYS = (("X", "y"), ("x", "y"), ("data", "target"), ("X_train", "y_train"), ("x_train", "y_train"))


def sniff(head: bytes) -> bool:
    return head.startswith((b"\x93NUMPY", b"PK\x03\x04"))


def read(source: Source, request: Request) -> Dataset:
    """The arrays X and y (or x, y; data, target; X_train, y_train) of an .npz file, a SciPy sparse matrix, or
    the one array of an .npy file.

    An uncompressed .npy file of floats is memory-mapped, not loaded.
    """
    X, y = _arrays(source, () if request.needs_labels else [keys[1] for keys in _KEYS]), None
    if isinstance(X, dict):
        names = next((keys for keys in _KEYS if keys[0] in X), None)
        if names is None:
            raise DataFileError(f"it holds the arrays {quoted(list(X))}: save the features as X and the labels as y")
        X, y = X[names[0]], X.get(names[1])
    if X.ndim < 2:
        raise DataFileError(f"its features have shape {X.shape}: a matrix with one row per example is needed")
    return Dataset.stored(X, request.dtype, None if y is None else labels_from_array(y))


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    """Labels (1-D) or an indicator matrix (2-D) from an .npy file, or from the y of an .npz file."""
    arrays = _arrays(source)
    if isinstance(arrays, dict):
        arrays = next(arrays[key] for key in ("y", "target", "labels", *arrays) if key in arrays)
    return labels_from_array(arrays), None


def _arrays(source: Source, left: Sequence[str] = ()) -> Any:
    """The array or sparse matrix of a file, or the arrays of an archive by their names, but for those to be left."""
    where = source.seekable()
    try:
        with where.open("rb") if isinstance(where, Path) else nullcontext(where) as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            if not sniff(file.read(8)):
                raise ValueError("it begins as no such file does")
            file.seek(0)
            check_size(file, size)
        loaded = np.load(where, mmap_mode="r" if isinstance(where, Path) else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            check_members(loaded.zip)
            if "format" in loaded.files and "shape" in loaded.files:
                return _sparse(where)
            kept = [key for key in loaded.files if key not in left and f"{key}.npy" in loaded.zip.namelist()]
            arrays = {key: loaded[key] for key in kept}
    except ValueError as error:
        if any(words in str(error) for words in ("allow_pickle", "Object arrays", "Python objects")):
            raise DataFileError("it holds Python objects, which are never loaded: save plain numeric arrays") from error
        raise
    if not arrays:
        raise DataFileError(
            "it is a zip archive without NumPy arrays: unpack it, save X and y by numpy.savez, or a spreadsheet as CSV"
        )
    return arrays


def check_members(archive: zipfile.ZipFile) -> None:
    """`check_size` of all arrays in an archive."""
    for member in archive.infolist():
        with archive.open(member) as stream:
            check_size(stream, member.file_size)


def check_size(stream: Any, size: int) -> None:
    """Refuse an array that announces more numbers than follow, or a longer header, before there is room made for them.

    The stream stands at the array, which `size` bytes may follow, and does so again afterwards; what is no array
    passes.
    """
    start = stream.tell()
    if stream.read(6) == b"\x93NUMPY":
        is_first = stream.read(2) == b"\x01\x00"
        length = int.from_bytes(stream.read(2 if is_first else 4), "little")
        if length > size:
            raise DataFileError("it ends before its header does: copy it again")
        stream.seek(start + 8)
        header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
        if not dtype.hasobject and math.prod(shape) * dtype.itemsize > size:
            raise DataFileError("it announces more numbers than it holds: copy it again")
    stream.seek(start)


def _sparse(where: Any) -> sparse.csr_array:
    if not isinstance(where, Path):
        where.seek(0)
    stored = sparse.load_npz(where)
    # SciPy's own loops trust the indices, those that convert to CSR too.
    if hasattr(stored, "check_format"):
        stored.check_format(full_check=True)
    # Where the last bound is 0 SciPy does not look at the others.
    if hasattr(stored, "indptr") and (stored.indptr[1:] < stored.indptr[:-1]).any():
        raise DataFileError("the bounds of its rows or columns go back: save it again by scipy.sparse.save_npz")
    # All but CSR need not hold anything of a row that they announce.
    if stored.shape[0] > _EMPTY_ROWS + 16 * stored.nnz:
        raise DataFileError(f"it holds {stored.nnz} numbers for {stored.shape[0]} rows: leave the empty rows out")
    matrix = sparse.csr_array(stored)
    matrix.check_format(full_check=True)
    return matrix


def stored(source: Source, request: Request) -> Dataset | None:
    """The rows of an uncompressed .npy file; those of others have to be read as a whole."""
    X = None if not source.is_plain or not source.head.startswith(b"\x93NUMPY") else _arrays(source)
    if X is None or X.ndim < 2 or X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        return None
    pieces = [np.asarray(X).reshape(len(X), math.prod(X.shape[1:]))]
    return Dataset(Pieces(pieces, [getattr(X, "_mmap", None)]))

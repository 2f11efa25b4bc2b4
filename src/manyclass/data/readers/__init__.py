"""Data files as arrays: `read` for every format, `stored` for files larger than memory.

Parsing is left to pyarrow (CSV and Parquet), NumPy, SciPy, scikit-learn and liac-arff, of which only the last is
optional. Files may be compressed by gzip, bzip2 or xz.
"""

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.data.memory import told
from manyclass.data.readers import arff, arrow, idx, libsvm, numpy_files, parquet, safetensors, text
from manyclass.data.readers.dataset import DataFileError, Dataset, NoRowsError, Request
from manyclass.data.readers.folders import files_in
from manyclass.data.readers.idx import companion_labels
from manyclass.data.readers.kinds import kinds_of
from manyclass.data.readers.source import Source, translated
from manyclass.data.readers.stored import Guarded, agreed, joined, surveyed
from manyclass.data.stores import Whole

__all__ = ["FORMATS", "DataFileError", "Dataset", "Request", "companion_labels", "read", "stored"]

# In the order in which content is tried: text comes last, as anything may be text.
_MODULES: tuple[Any, ...] = (numpy_files, parquet, arrow, safetensors, idx, arff, libsvm, text)
FORMATS = {entry.NAME: entry for entry in _MODULES}
"""The formats by the names that `read` takes. Each is a module with

``NAME``, ``SUFFIXES``
    Its name, and the file name endings that settle the format.
``WHAT``
    What messages say that a damaged file is not.
``sniff(head)``
    Whether a file that starts with these bytes may have this format.
``TAKES``
    What it knows of columns by name or place, of "target", "drop" and a number of "labels" at the end; else nothing.
``read(source, request)``
    The `Dataset`.
``read_chunks(source, request, n_rows)``
    Where rows can be had so many at a time.
``stored(source, request)``
    Where rows may stay in the file: the `Dataset` whose X is a `Store`, or None for files to be read as a whole.
``read_labels(source, n_rows)``
    Where a file may hold nothing but labels: those of so many rows, and the names of several or None.
"""

_SUFFIXES = {suffix: entry.NAME for entry in _MODULES for suffix in entry.SUFFIXES}


def read(
    path: str | os.PathLike[str],
    *,
    target: str | int | Sequence[str | int] | bool | None = None,
    labels: str | os.PathLike[str] | int | None = None,
    features: Sequence[str] | int | None = None,
    drop: Sequence[str | int] = (),
    format: str | None = None,
    dtype: Any = None,
    header: bool | None = None,
    multilabel: bool | None = None,
    zero_based: bool | None = None,
    text_labels: bool = False,
    needs_labels: bool = True,
    kinds: Mapping[str, str] | None = None,
) -> Dataset:
    """Read features and labels from a data file.

    Parameters
    ----------
    path : path-like
        A CSV, TSV, Parquet, Arrow, LIBSVM, NPZ, NPY, safetensors, IDX or ARFF file, possibly compressed. The
        format is known from the ending of its name, else from its content.
    target : str, int, sequence of these, False or None
        The column with the class labels, by name or position; several columns of 0 and 1 make `y` an
        indicator matrix. None takes the column called target, label, class or y, else the last one. False:
        every column is a feature. Only for tables; LIBSVM and NPZ files say where their labels are.
    labels : path-like, int or None
        A file with one label for each row (NPY, NPZ, safetensors, IDX, Arrow, Parquet, or text); an XML file in
        which Mulan names the label columns; or a number of columns at the end that are labels.
    features : sequence of str, int or None
        What a fitted model expects: the names of its columns, or their number. A target may then be absent.
    drop : sequence of str or int
        Columns to leave out.
    format : {"numpy", "parquet", "arrow", "safetensors", "idx", "arff", "libsvm", "csv"} or None
    dtype : {float32, float64} or None
        None keeps the floats of binary files, and gives float32 for 8-bit integers and wherever all values
        are whole and at most 255 in size (images, counts, codes), float64 otherwise.
    header : bool or None
        Whether the first row of a text file holds the names of the columns; None looks.
    multilabel : bool or None
        Whether a LIBSVM file has several labels in a row; None looks. For tables, whether a single target
        column is an indicator matrix with one column.
    zero_based : bool or None
        Whether a LIBSVM file counts features from zero; None looks whether feature 0 occurs.
    text_labels : bool
        Whether a table's labels that are text stay so where all of them look like numbers.
    needs_labels : bool
        Whether labels are read. Where they are not, their columns are no features all the same, and may hold anything.
    kinds : mapping of str to {"number", "time", "text"}, or None
        None: features are numbers. Else the rows of tables may hold dates, text and gaps too, and then are a table of
        pyarrow, as they are where kinds of columns are given.

    Returns
    -------
    Dataset
        Values that are missing are NaN in `X`, never in `y`.

    Raises
    ------
    DataFileError
        A ValueError with one sentence on what is wrong with the file and what to do.
    OSError
        Where the file cannot be opened.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from manyclass.data.readers import read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("length,width,kind\\n5.1,3.5,setosa\\n7.0,3.2,versicolor\\n")
    >>> data = read(path, target="kind")
    >>> data.X.shape, data.feature_names, data.y.tolist()
    ((2, 2), ('length', 'width'), ['setosa', 'versicolor'])
    """
    path = Path(path)
    looks = (dtype, header, multilabel, zero_based, text_labels, needs_labels, kinds)
    request = _with_names(Request(target, labels, features, drop, *looks))
    source, entry = _open(path, format)
    with translated(path, entry.WHAT):
        _check_taken(entry, request)
        dataset: Dataset = entry.read(source, request)
        _check_shape(dataset, request)
    if request.labels_path is None:
        return dataset
    return _with_labels_of(request.labels_path, dataset, dataset.X.shape[0], path)


def stored(
    path: str | os.PathLike[str], *, format: str | None = None, most_bytes: float = math.inf, **options: Any
) -> Dataset:
    """The rows of a file, or of all files of a folder, where they lie, and their labels; X is a `Store`.

    A folder holds files of one format, read in the order of their names (numbers in names count as numbers; files
    without rows are passed over), or is what Hugging Face's ``save_to_disk`` has written. Options are those of `read`;
    a file of labels may be a folder too. A file that has to be read as a whole may take so many bytes at most.
    """
    path = Path(path)
    request = _with_names(Request(**options))
    with translated(path):
        wanted: Request | None = request
        while wanted is not None:
            request = wanted
            parts = _stored_files(files_in(path, _SUFFIXES), format, request, most_bytes)
            wanted = agreed(request, parts)
        found = joined(parts)
        found = dataclasses.replace(found, X=Guarded(found.X, partial(translated, path)))
    if request.labels_path is None:
        if found.y is not None and len(found.y) != found.X.n_rows:
            raise DataFileError(f"{path}: it holds {found.X.n_rows} rows and {len(found.y)} labels: give one for each")
        return found
    return _with_labels_of(request.labels_path, found, found.X.n_rows, path)


def _stored_files(paths: Sequence[Path], name: str | None, request: Request, most_bytes: float) -> list[Dataset]:
    """Those that hold rows: what writes a file per partition leaves one without rows for each that is empty."""
    found, error = [], None
    for path in paths:
        try:
            found.append(_stored_file(path, name, request, most_bytes))
        except NoRowsError as no_rows:
            error = no_rows
    if error is not None and not found:
        raise error
    return found


def _stored_file(path: Path, name: str | None, request: Request, most_bytes: float) -> Dataset:
    source, entry = _open(path, name)
    with translated(path, entry.WHAT):
        _check_taken(entry, request)
        found: Dataset | None = entry.stored(source, request) if hasattr(entry, "stored") else None
        if found is None and hasattr(entry, "read_chunks"):

            def chunks(n_rows: int, **more: Any) -> Iterator[Dataset]:
                with translated(path, entry.WHAT):
                    yield from entry.read_chunks(source, dataclasses.replace(request, **more), n_rows)

            return surveyed(chunks, request.n_features)
        if found is not None:
            return found
        size = path.stat().st_size
        if size > most_bytes:
            raise DataFileError(
                f"{path} takes {told(size)} and has to be read as a whole, which may take {told(most_bytes)}: save the "
                "rows as .npy or .parquet, which can be read in pieces, or raise memory_limit."
            )
        dataset: Dataset = entry.read(source, request)
        _check_shape(dataset, request)
        kinds = kinds_of(dataset.X.schema) if dataset.is_table else None
        return dataclasses.replace(dataset, X=Whole(dataset.X, kinds))


def _with_names(request: Request) -> Request:
    """The request with the columns that Mulan's XML file names for its targets, if it names such a file."""
    path = request.labels_path
    if path is not None:
        path.stat()  # a name that is wrong, before rows are refused for want of a label column
    if path is None or path.suffix.lower() != ".xml":
        return request
    with translated(path, "a whole XML file"):
        return dataclasses.replace(request, target=arff.mulan_label_names(path), labels=None, multilabel=True)


def _open(path: Path, name: str | None = None) -> tuple[Source, Any]:
    """The file, and the format called `name`, else the one that the file's ending or its content speaks of."""
    with translated(path):
        source = Source(path)
        if name is None and not source.head:
            raise DataFileError("it is empty")
        known = ", ".join(FORMATS)
        if name is not None:
            if name not in FORMATS:
                raise DataFileError(f"there is no format '{name}': choose one of {known}")
            return source, FORMATS[name]
        for entry in _MODULES:
            if source.suffix in entry.SUFFIXES:
                return source, entry
        for entry in _MODULES:
            if entry.sniff(source.head):
                return source, entry
        raise DataFileError(f"it is in none of the known formats: convert it to one of {known}")


def _check_taken(entry: Any, request: Request) -> None:
    """Refuse what the format could not but leave unheard."""
    takes = getattr(entry, "TAKES", ())
    asked = {
        "target": bool(request.targets) and request.features is None,  # else perhaps of files of another format
        "drop": bool(request.drop),
        "labels": request.n_label_columns is not None,
    }
    unheard = [name for name, is_asked in asked.items() if is_asked and name not in takes]
    if unheard:
        name = "a number of label columns" if unheard[0] == "labels" else unheard[0]
        raise DataFileError(
            f"{name} (--{unheard[0]} on the command line) names columns of tables, and {entry.NAME} files are none: "
            "leave it out, or save the rows as CSV or Parquet"
        )


def _check_shape(dataset: Dataset, request: Request) -> None:
    n_rows, n_features = dataset.X.shape
    if not n_rows or not n_features:
        raise DataFileError(f"it holds {n_rows} rows of {n_features} features: give a file with data")
    if dataset.y is not None and len(dataset.y) != n_rows:
        raise DataFileError(f"it holds {n_rows} rows and {len(dataset.y)} labels: one label per row is needed")
    if request.n_features is not None and n_features != request.n_features:
        raise DataFileError(
            f"it has {n_features} columns and {request.n_features} are expected: "
            "use a file with the columns of the training data"
        )


def _with_labels_of(labels_path: Path, dataset: Dataset, n_rows: int, path: Path) -> Dataset:
    """The rows of a file with labels from another, or from those of a folder."""
    parts = []
    for file in files_in(labels_path, _SUFFIXES):
        source, entry = _open(file)
        with translated(file, entry.WHAT):
            if not hasattr(entry, "read_labels"):
                raise DataFileError(f"labels cannot be read from {entry.NAME} files: save them as text or .npy")
            parts.append(entry.read_labels(source, n_rows))
    y = np.concatenate([labels for labels, _ in parts])
    if len(y) != n_rows:
        raise DataFileError(
            f"{labels_path}: it holds {len(y)} labels and {path} has {n_rows} rows: use the labels of that file"
        )
    return dataclasses.replace(dataset, y=y, label_names=parts[0][1], target_name=None)

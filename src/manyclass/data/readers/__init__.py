"""Data files as arrays: one call, `read`, for every format.

Parsing is left to pyarrow (CSV and Parquet), NumPy, SciPy, scikit-learn and liac-arff, of which only the last is
optional. Files may be compressed by gzip, bzip2 or xz.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyclass.data.readers.arff import mulan_label_names
from manyclass.data.readers.dataset import DataFileError, Dataset, Request
from manyclass.data.readers.idx import companion_labels
from manyclass.data.readers.registry import FORMAT_NAMES, FORMATS, find_format
from manyclass.data.readers.source import Source, translated

__all__ = ["FORMATS", "FORMAT_NAMES", "DataFileError", "Dataset", "companion_labels", "read"]


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
) -> Dataset:
    """Read features and labels from a data file.

    Parameters
    ----------
    path : path-like
        A CSV, TSV, Parquet, LIBSVM, NPZ, NPY, IDX or ARFF file, possibly compressed. The format is known from
        the ending of its name, else from its content.
    target : str, int, sequence of these, False or None
        The column with the class labels, by name or position; several columns of 0 and 1 make `y` an
        indicator matrix. None takes the column called target, label, class or y, else the last one. False:
        every column is a feature. Only for tables; LIBSVM and NPZ files say where their labels are.
    labels : path-like, int or None
        A file with one label for each row (NPY, NPZ, IDX, or text); an XML file in which Mulan names the
        label columns; or a number of columns at the end that are labels.
    features : sequence of str, int or None
        What a fitted model expects: the names of its columns, or their number. A target may then be absent.
    drop : sequence of str or int
        Columns to leave out.
    format : {"numpy", "parquet", "idx", "arff", "libsvm", "csv"} or None
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
    request, labels_path = make_request(
        target=target,
        labels=labels,
        features=features,
        drop=drop,
        dtype=dtype,
        header=header,
        multilabel=multilabel,
        zero_based=zero_based,
    )
    with translated(path):
        source = Source(path)
        dataset = find_format(source, format).read(source, request)
        _check_shape(dataset, request)
    return dataset if labels_path is None else _with_labels(dataset, path, labels_path)


def make_request(
    *,
    target: Any = None,
    labels: str | os.PathLike[str] | int | None = None,
    features: Sequence[str] | int | None = None,
    drop: Sequence[str | int] = (),
    **others: Any,
) -> tuple[Request, Path | None]:
    """The options of `read` as the formats take them, and the file of the labels where they have their own."""
    features = features if features is None or isinstance(features, int) else tuple(features)
    request = Request(targets=_as_targets(target), features=features, drop=tuple(drop), **others)
    if labels is None:
        return request, None
    if isinstance(labels, int):
        return dataclasses.replace(request, n_label_columns=labels), None
    path = Path(labels)
    if path.suffix.lower() != ".xml":
        return dataclasses.replace(request, targets=()), path
    with translated(path):
        return dataclasses.replace(request, targets=mulan_label_names(path), multilabel=True), None


def _as_targets(target: Any) -> tuple[str | int, ...] | None:
    if target is None or target is True:
        return None
    if target is False:
        return ()
    return (target,) if isinstance(target, str | int) else tuple(target)


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


def _with_labels(dataset: Dataset, path: Path, labels_path: Path) -> Dataset:
    n_rows = dataset.X.shape[0]
    with translated(labels_path):
        source = Source(labels_path)
        format_ = find_format(source)
        if format_.read_labels is None:
            raise DataFileError(f"labels cannot be read from {format_.name} files: save them as text or .npy")
        y, label_names = format_.read_labels(source, n_rows)
        if len(y) != n_rows:
            raise DataFileError(f"it holds {len(y)} labels and {path} has {n_rows} rows: use the labels of that file")
    return dataclasses.replace(dataset, y=y, label_names=label_names, target_name=None)

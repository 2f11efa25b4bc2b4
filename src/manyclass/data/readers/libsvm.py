"""LIBSVM (svmlight) text, read by `sklearn.datasets.load_svmlight_file`."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

from manyclass.data.readers.dataset import DataFileError, Dataset, Request, as_csr, as_features, as_labels
from manyclass.data.readers.source import Lines, Source, first_line

NAME, SUFFIXES, WHAT = "libsvm", (".libsvm", ".svm", ".svmlight"), "LIBSVM text"
# Without going back (++): of twenty thousand digits that are no number, every end would be tried with every other.
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
_LABELS = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")
_QUERY = re.compile(r"qid:\d+", re.IGNORECASE)
_FEATURE = re.compile(rf"\d+:(?:{_NUMBER}|[-+]?(?:nan|inf))", re.IGNORECASE)
_PAIR = re.compile(r"\s\d+:\S")


def sniff(head: bytes) -> bool:
    lines = _lines(head)
    return any(_PAIR.search(line) for line in lines) and all(_is_row(line) for line in lines[:20])


def read(source: Source, request: Request) -> Dataset:
    """Rows as CSR; labels separated by commas make the data multi-label, unless `request` says otherwise.

    Features are counted from one unless a feature 0 occurs; `request.zero_based` decides where it is known.
    """
    return _numbered(_as_written(source, request), request)


def read_chunks(source: Source, request: Request, n_rows: int) -> Iterator[Dataset]:
    """So many rows at a time. Unless `request` says where features are counted from, they keep the file's numbers."""
    with source.binary() as file:
        rows = (line for line in file if line.split(b"#", 1)[0].strip())
        while content := b"".join(itertools.islice(rows, n_rows)):
            chunk = _as_written(Lines(source, content), request)
            yield chunk if request.zero_based is None else _numbered(chunk, request)


def _as_written(source: Source, request: Request) -> Dataset:
    """The rows, of which feature j has column j."""
    from sklearn.datasets import load_svmlight_file

    lines = _lines(source.head)
    if not lines:
        raise DataFileError("it is empty")
    # Of several labels a row may have none, and labels that are not needed may be absent.
    multilabel = True if not request.needs_labels else request.multilabel
    if multilabel is None:
        multilabel = any("," in re.split(r"\s", line.lstrip("\ufeff"), maxsplit=1)[0] for line in lines)
    try:
        with source.binary() as file:
            X, y = load_svmlight_file(file, multilabel=multilabel, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise DataFileError(_fault(source, error)) from error
    zero_based = request.zero_based
    if zero_based is None:
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
    X = as_csr(as_features(X.data, request.dtype), X.indices, X.indptr, X.shape)
    if not request.needs_labels:
        return Dataset(X, zero_based=zero_based)
    if not multilabel:
        return Dataset(X, as_labels(y), zero_based=zero_based)
    binarizer = MultiLabelBinarizer()
    indicator = binarizer.fit_transform(y).astype(np.int8)
    names = tuple(str(label) for label in as_labels(binarizer.classes_))
    return Dataset(X, indicator, label_names=names, zero_based=zero_based)


def _numbered(dataset: Dataset, request: Request) -> Dataset:
    """The rows, of which the first feature has column 0, as wide as it was asked for."""
    X, first = dataset.X, 0 if dataset.zero_based else 1
    width = X.shape[1] - first
    n_features = width if request.n_features is None else request.n_features
    if width > n_features:
        raise DataFileError(
            f"it has {width} features where {n_features} are expected: use a file with the features of the "
            f"training data, or read the training data with {width} features"
        )
    if first and X.nnz and not X.indices.min():
        raise DataFileError("it has a feature 0 where the first is 1: number its features as in the training data")
    if n_features < 1:
        raise DataFileError("no row has a feature: check that it is a LIBSVM file ('label index:value …')")
    return replace(dataset, X=as_csr(X.data, X.indices - first, X.indptr, (X.shape[0], n_features)))


def _lines(head: bytes) -> list[str]:
    # The last line of the head may be cut anywhere, unless it is the file's only one.
    lines = head.decode("utf-8", errors="replace").splitlines()
    whole = lines[:-1] if len(lines) > 1 and not head.endswith(b"\n") else lines
    return [line for line in whole if line.strip() and not line.lstrip().startswith("#")]


def _is_row(line: str) -> bool:
    """Whether a line is 'labels qid:number index:number …', of which all may be absent, or a remark."""
    words = line.split("#", 1)[0].split()
    if words and _LABELS.fullmatch(words[0]):
        words = words[1:]
    elif words and not line[0].isspace():
        return False
    if words and _QUERY.fullmatch(words[0]):
        words = words[1:]
    return all(_FEATURE.fullmatch(word) for word in words)


def _fault(source: Source, error: Exception) -> str:
    with source.text() as file:
        for number, line in enumerate(file, start=1):
            label, _, features = line.lstrip("\ufeff").partition(" ")
            if not _LABELS.fullmatch(label) and features and ":" not in label and _is_row(f"0 {features}"):
                return (
                    f"the label '{label[:40]}' of line {number} is text, where LIBSVM files have numbers: put numbers "
                    "in its place, or, to predict, leave labels out"
                )
            if not _is_row(line):
                return f"line {number} ('{line.strip()[:40]}') is not 'label index:number …': correct it"
            indices = [
                float(word.partition(":")[0]) for word in line.partition("#")[0].split() if _FEATURE.fullmatch(word)
            ]
            if any(later <= earlier for earlier, later in itertools.pairwise(indices)):
                return f"the features of line {number} are not in rising order, or one is there twice: sort them"
    return f"it cannot be read as LIBSVM text ({first_line(error)}): correct it"

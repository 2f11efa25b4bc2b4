"""ARFF, dense or sparse, read by liac-arff (the extra `arff`); labels as Mulan and MEKA declare them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyclass.data.readers.columns import Columns, choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_csr,
    as_features,
    as_indicator,
    as_labels,
    holds_text,
    labels_from_codes,
)
from manyclass.data.readers.source import Source

SUFFIXES = (".arff",)
_FALSE_TRUE = {("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t")}
_MEKA = re.compile(r"-C\s+(-?\d+)")


def sniff(head: bytes) -> bool:
    return re.search(rb"^\s*@relation\b", head, re.IGNORECASE | re.MULTILINE) is not None


def read(source: Source, request: Request) -> Dataset:
    """Numeric attributes, and nominal ones whose values are numbers or no/yes, false/true, as features.

    Sparse files stay sparse. The target is the one asked for, else what MEKA's ``-C n`` in the name of the
    relation says (the first n attributes are labels, or the last -n), else the default column.
    """
    document, is_sparse = _load(source)
    kinds = dict(document["attributes"])
    names = [name for name, _ in document["attributes"]]
    rows = document["data"]
    if not rows:
        raise DataFileError("it has a header but no rows")
    meka = _MEKA.search(document["relation"])
    if meka and request.targets is None and request.n_label_columns is None:
        n_labels = int(meka[1])
        targets = names[:n_labels] if n_labels > 0 else names[n_labels:]
        request = dataclasses.replace(request, targets=tuple(targets), multilabel=True)
    columns = choose_columns(names, len(names), request)
    _refuse_text(columns, kinds)
    y: NDArray[Any] | None = None
    if columns.targets and not columns.multilabel:
        j = columns.targets[0]
        y = _class_labels([row.get(j, 0) if is_sparse else row[j] for row in rows], names[j], kinds)
    matrix: Any = _sparse(rows, len(names)) if is_sparse else _dense(rows)
    if columns.multilabel:
        coded = matrix[:, columns.targets]
        coded = coded.toarray() if is_sparse else coded
        labels = [_decoded(coded[:, i], kinds[names[j]]) for i, j in enumerate(columns.targets)]
        y = as_indicator(np.column_stack(labels), columns.label_names)
    features = matrix[:, columns.features]
    feature_kinds = [kinds[names[j]] for j in columns.features]
    if is_sparse:
        features = _decoded_sparse(features, feature_kinds, columns)
    else:
        for i, kind in enumerate(feature_kinds):
            features[:, i] = _decoded(features[:, i], kind)
    X = as_features(features, request.dtype)
    return Dataset(X, y, columns.feature_names, columns.target_name, columns.label_names)


def mulan_label_names(path: Path) -> tuple[str, ...]:
    """Names of the label attributes from the XML file that Mulan keeps beside the ARFF file."""
    try:
        labels = [element for element in ElementTree.parse(path).iter() if element.tag.endswith("label")]
    except ElementTree.ParseError as error:
        raise DataFileError(f"it is not a whole XML file ({error}): copy or download it again") from error
    names = tuple(element.get("name", "") for element in labels)
    if not names or not all(names):
        raise DataFileError("it names no labels: each needs an element <label name=…>")
    return names


def _load(source: Source) -> tuple[dict[str, Any], bool]:
    try:
        import arff
    except ImportError as error:
        raise DataFileError("reading ARFF needs liac-arff: pip install 'manyclass[arff]'") from error
    is_sparse = _is_sparse(source)
    try:
        with source.text() as file:
            # Lists of dictionaries, not COO: the latter forgets empty rows at the end.
            layout = arff.LOD if is_sparse else arff.DENSE
            return arff.load(file, encode_nominal=True, return_type=layout), is_sparse
    except arff.ArffException as error:
        raise DataFileError(
            f"it is not correct ARFF ({str(error).rstrip('.')}): correct it or copy it again"
        ) from error


def _is_sparse(source: Source) -> bool:
    with source.text() as file:
        in_data = False
        for line in file:
            text = line.strip()
            if in_data and text and not text.startswith("%"):
                return text.startswith("{")
            in_data = in_data or text.lower().startswith("@data")
    return False


def _refuse_text(columns: Columns, kinds: dict[str, Any]) -> None:
    assert columns.names is not None
    used = columns.features + (columns.targets if columns.multilabel else [])
    text = [columns.names[j] for j in used if _coding(kinds[columns.names[j]]) is None]
    if text:
        raise holds_text(text)


def _coding(kind: Any) -> NDArray[np.float64] | None:
    """The number each nominal value stands for; an empty array for a numeric attribute, None for text."""
    if isinstance(kind, str):
        return None if kind.upper() == "STRING" else np.empty(0)
    values = [str(value).strip().lower() for value in kind]
    if tuple(sorted(values)) in _FALSE_TRUE:
        return np.argsort(np.argsort(values)).astype(np.float64)
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        return None


def _decoded(codes: NDArray[np.float64], kind: Any) -> NDArray[np.float64]:
    coding = _coding(kind)
    assert coding is not None
    if not len(coding):
        return codes
    known = np.isfinite(codes)
    return np.where(known, coding[np.where(known, codes, 0).astype(np.intp)], np.nan)


def _class_labels(values: list[Any], name: str, kinds: dict[str, Any]) -> NDArray[Any]:
    missing = [row for row, value in enumerate(values, start=1) if value is None]
    if missing:
        raise DataFileError(f"row {missing[0]} has no label (attribute '{name}' is ?): fill it in or remove the row")
    if isinstance(kinds[name], str):
        return as_labels(np.array(values))
    return labels_from_codes([str(value) for value in kinds[name]], np.array(values, dtype=np.intp))


def _dense(rows: list[Any]) -> NDArray[np.float64]:
    # Text can only be in a column that is left out, or in the target, which is read by itself.
    return np.array([[0.0 if isinstance(value, str) else value for value in row] for row in rows], dtype=np.float64)


def _sparse(rows: list[Any], n_columns: int) -> sparse.csr_array:
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.fromiter((j for row in rows for j in row), dtype=np.int64, count=indptr[-1])
    values = [0.0 if isinstance(value, str) else value for row in rows for value in row.values()]
    return as_csr(np.array(values, dtype=np.float64), indices, indptr, (len(rows), n_columns))


def _decoded_sparse(features: sparse.csr_array, kinds: list[Any], columns: Columns) -> sparse.csr_array:
    features = features.tocsc()
    for i, kind in enumerate(kinds):
        coding = _coding(kind)
        if coding is None or (coding == np.arange(len(coding))).all():
            continue
        if coding[0] != 0:
            raise DataFileError(
                f"attribute {columns.label(columns.features[i])} has {kind[0]} as its first value, which "
                "is what cells left out of a sparse file mean: put 0 first, or leave it out with drop"
            )
        where = slice(features.indptr[i], features.indptr[i + 1])
        features.data[where] = _decoded(features.data[where], kind)
    features = features.tocsr()
    features.eliminate_zeros()
    return features

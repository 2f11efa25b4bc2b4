"""ARFF, dense or sparse, read by liac-arff (the extra `arff`); labels as Mulan and MEKA declare them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.columns import choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_csr,
    as_features,
    as_indicator,
    as_labels,
    first_line,
    holds_text,
    labels_from_codes,
    no_label,
    parsing,
)
from manyclass.data.readers.source import Source

SUFFIXES = (".arff",)
_FALSE_TRUE = {("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t")}
_MEKA = re.compile(r"-C\s+(-?\d+)")
_SPARSE = re.compile(r"^\s*@data\b.*\n(?:\s*(?:%.*)?\n)*\s*\{", re.IGNORECASE | re.MULTILINE)


def sniff(head: bytes) -> bool:
    return re.search(rb"^\s*@relation\b", head, re.IGNORECASE | re.MULTILINE) is not None


def read(source: Source, request: Request) -> Dataset:
    """Numeric attributes, and nominal ones whose values are numbers or no/yes, false/true, as features.

    Sparse files stay sparse. The target is the one asked for, else what MEKA's ``-C n`` in the name of the
    relation says (the first n attributes are labels, or the last -n), else the default column.
    """
    with parsing("ARFF"):
        document, is_sparse = _load(source)
        kinds = [kind for _, kind in document["attributes"]]
        rows = document["data"]
        codes: Any = (_sparse if is_sparse else _dense)(rows, len(kinds))
    names = [name for name, _ in document["attributes"]]
    meka = _MEKA.search(document["relation"])
    if meka and request.targets is None and request.n_label_columns is None:
        n_labels = int(meka[1])
        targets = names[:n_labels] if n_labels > 0 else names[n_labels:]
        request = dataclasses.replace(request, targets=tuple(targets), multilabel=True)
    columns = choose_columns(names, len(names), request)
    codings = [_coding(kind) for kind in kinds]
    used = columns.features + (columns.targets if columns.multilabel else [])
    text = [names[j] for j in used if codings[j] is None]
    if text:
        raise holds_text(text)
    y: NDArray[Any] | None = None
    if columns.multilabel:
        labels = codes[:, columns.targets]
        labels = labels.toarray() if is_sparse else labels
        y = as_indicator(_decoded(labels, np.arange(len(columns.targets)), columns.targets, codings), columns.label_names)
    elif columns.targets:
        j = columns.targets[0]
        y = _class_labels([row.get(j, 0) if is_sparse else row[j] for row in rows], names[j], kinds[j])
    X = codes[:, columns.features]

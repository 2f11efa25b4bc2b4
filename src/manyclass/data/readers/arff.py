"""ARFF, dense or sparse, read by liac-arff (the extra `arff`); labels as Mulan and MEKA declare them."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from manyclass.data.readers.dataset import DataFileError, Dataset, NoRowsError, Request, as_csr, as_features
from manyclass.data.readers.source import Source
from manyclass.data.readers.tables import Layout, refuse_text

NAME, SUFFIXES, WHAT = "arff", (".arff",), "correct ARFF"
TAKES = ("target", "drop", "labels")
_FALSE_TRUE = {("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t")}
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,"'][^\s,]*|)"""
# White space is not given back: a line of blanks would take the cube of its length to fail.
_DECLARATION = re.compile(
    rf"""\s*+@attribute\s++(?:"[^"]*"|'[^']*'|[^\s{{}}%,]+)\s++"""
    rf"""(?:[^{{]*+|\{{\s*+{_VALUE}(?:\s*+,\s*+{_VALUE})*\s*+\}})\s*+""",
    re.IGNORECASE,
)
_MEKA = re.compile(r"-C\s+(-?\d+)")


def sniff(head: bytes) -> bool:
    return re.search(rb"^[ \t]*+@relation\b", head, re.IGNORECASE | re.MULTILINE) is not None


def read(source: Source, request: Request) -> Dataset:
    """Numeric attributes, and nominal ones whose values are numbers or no/yes, false/true, as features; of dense files
    text, too, where rows may be a table.

    Sparse files stay sparse. The target is the one asked for, else what MEKA's ``-C n`` in the name of the
    relation says (the first n attributes are labels, or the last -n), else the default column.
    """
    document, is_sparse = _load(source)
    names, kinds = (list(column) for column in zip(*document["attributes"], strict=True))
    meka = _MEKA.search(document["relation"])
    if meka and request.targets is None and request.n_label_columns is None:
        n_labels = int(meka[1])
        targets = names[:n_labels] if n_labels > 0 else names[n_labels:]
        request = dataclasses.replace(request, target=targets, multilabel=True)
    layout = Layout.of(names, request, {})
    meanings = [_meanings(kind, name == layout.label_column) for name, kind in zip(names, kinds, strict=True)]
    schema = pa.schema([(names[j], _type(kinds[j], meanings[j])) for j in range(len(names))])
    if is_sparse or request.kinds is None:
        refuse_text(schema, [names[j] for j in layout.features])

    def value(j: int, cell: Any) -> Any:
        return cell if cell is None or not meanings[j] or isinstance(cell, str) else meanings[j][cell]

    rows = document["data"]
    chosen = layout.targets + ([] if is_sparse else layout.features)
    cells = [[value(j, row.get(j, 0) if is_sparse else row[j]) for row in rows] for j in chosen]
    table = pa.table(cells, schema=pa.schema([schema[j] for j in chosen]))
    if not is_sparse:
        return layout.dataset(table)
    shifted = [j for j in layout.features if meanings[j] and meanings[j][0] != 0]
    if shifted:
        raise DataFileError(
            f"attribute '{names[shifted[0]]}' has {kinds[shifted[0]][0]} as its first value, which "
            "is what cells left out of a sparse file mean: put 0 first, or leave it out with drop (--drop on the "
            "command line)"
        )
    places = {j: i for i, j in enumerate(layout.features)}
    pairs = [[(places[j], value(j, cell)) for j, cell in row.items() if j in places] for row in rows]
    flat = np.array(list(itertools.chain.from_iterable(pairs)), dtype=np.float64).reshape(-1, 2)
    indptr = np.cumsum([0, *map(len, pairs)])
    X = as_csr(as_features(flat[:, 1], request.dtype), flat[:, 0].astype(np.int64), indptr, (len(rows), len(places)))
    X.eliminate_zeros()
    return layout.dataset(table, X=X)


def mulan_label_names(path: Path) -> tuple[str, ...]:
    """Names of the label attributes from the XML file that Mulan keeps beside the ARFF file."""
    labels = [element for element in ElementTree.parse(path).iter() if element.tag.endswith("label")]
    names = tuple(element.get("name", "") for element in labels)
    if not names or not all(names):
        raise DataFileError("it names no labels: each needs an element <label name=…>")
    return names


def _load(source: Source) -> tuple[dict[str, Any], bool]:
    try:
        import arff
    except ImportError as error:
        raise DataFileError("reading ARFF needs liac-arff: pip install 'manyclass[arff]'") from error
    try:
        # Lists of dictionaries, not COO, which forgets empty rows at the end.
        with source.text() as file:
            document, is_sparse = arff.load(_lines(file), encode_nominal=True, return_type=arff.LOD), True
    except arff.BadLayout:
        with source.text() as file:
            document, is_sparse = arff.load(_lines(file), encode_nominal=True), False
    if not document["data"]:
        raise NoRowsError("it has a header but no rows")
    return document, is_sparse


def _lines(file: Iterable[str]) -> Iterator[str]:
    """The lines, without lists of values that are none: liac-arff's pattern for them takes exponential time to fail."""
    for number, line in enumerate(file, start=1):
        if " {" in line and line.lstrip().startswith("@") and not _DECLARATION.fullmatch(line):
            shown = line.strip()[:40]
            raise DataFileError(f"line {number} ('{shown}') does not list values as {{a,'b c',d}}: correct it")
        yield line


def _type(kind: Any, meanings: list[Any]) -> pa.DataType:
    return pa.string() if kind == "STRING" or (meanings and isinstance(meanings[0], str)) else pa.float64()


def _meanings(kind: Any, is_label: bool) -> list[Any]:
    """What the codes of nominal values stand for: numbers if they can be, and for labels text."""
    if isinstance(kind, str):
        return []
    values = [str(value).strip() for value in kind]
    if is_label:
        return values
    lowered = [value.lower() for value in values]
    if tuple(sorted(lowered)) in _FALSE_TRUE:
        return [float(value > min(lowered)) for value in lowered]
    try:
        return [float(value) for value in values]
    except ValueError:
        return values

"""What is fuzzed, and what has to be true of whatever comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError
from manyclass.data.readers import FORMATS, DataFileError, read, read_chunks
from tests.fuzz import seeds
from tests.fuzz.mutations import mutated

_LONGEST_SENTENCE = 1000
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK", b"PAR1")
_OPTIONS: tuple[dict[str, Any], ...] = (
    *({} for _ in range(6)),
    {"target": False},
    {"target": "a"},
    {"labels": 1},
    {"features": 3},
    {"features": ("a", "b")},
    {"drop": ("a",)},
    {"drop": (-1,)},
    {"header": True},
    {"header": False},
    {"dtype": np.float32},
    {"multilabel": True},
    {"multilabel": False},
    {"zero_based": True},
    {"zero_based": False},
)


@dataclass(frozen=True)
class Target:
    """`open` reads a file called `suffix` and checks what it gives; only `refusal` may come out of it."""

    name: str
    suffix: str
    make: Callable[[], list[bytes]]
    open: Callable[[Path, Random], None]
    refusal: type[Exception] = DataFileError

    @cached_property
    def valid(self) -> list[bytes]:
        return self.make()

    def attempt(self, seed: int, number: int, folder: Path) -> bool:
        """Whether one damaged file was read; an error of any other kind than a refusal with a sentence is a finding."""
        rng = Random(f"{seed} {self.name} {number}")
        path = folder / f"fuzzed{self.suffix}"
        path.write_bytes(mutated(self.valid, rng))
        try:
            with np.errstate(all="ignore"):
                self.open(path, rng)
        except self.refusal as error:
            check_refusal(error, path)
            return False
        return True


def check_refusal(refusal: Exception, path: Path) -> None:
    """One sentence; and no file of kilobytes may ask for the gigabytes at which the process that fuzzes is stopped."""
    text = str(refusal)
    assert str(path.parent) in text, f"does not name the file: {text[:200]}"
    assert text.isprintable(), f"is not one line: {text[:200]!r}"
    assert len(text) < _LONGEST_SENTENCE, f"has {len(text)} characters: {text[:200]}"
    assert text[-1] not in " .,:;", f"ends badly: {text[-200:]}"
    error: BaseException | None = refusal
    while error is not None:
        assert not isinstance(error, MemoryError), f"asks for too much memory: {text}"
        error = error.__cause__ or error.__context__


def check_dataset(dataset: Any, path: Path) -> int:
    """The number of rows."""
    X, y = dataset.X, dataset.y
    assert X.ndim == 2 and X.dtype in (np.float32, np.float64), (X.ndim, X.dtype)
    if sparse.issparse(X):
        X.check_format(full_check=True)
    for names, width in (
        (dataset.feature_names, X.shape[1]),
        (dataset.label_names, y.shape[-1] if y is not None else 0),
    ):
        assert names is None or len(names) == width, (names, width)
    if y is not None:
        assert len(y) == X.shape[0], (X.shape, y.shape)
        assert y.dtype.kind in "biufU" and not (y.dtype.kind == "f" and np.isnan(y).any()), y
    content = path.read_bytes()
    if not content.startswith(_COMPRESSED):
        assert X.shape[0] <= len(content), (X.shape, len(content))
    dataset.unusable_cell()
    return X.shape[0]


def _rows(path: Path, rng: Random) -> None:
    """Whole and in chunks; where both can be read they have the same rows."""
    options = rng.choice(_OPTIONS)
    counts, refusals = set(), []
    for chunked in (False, True):
        # A few bytes may be compressed rows by the million, which are no fault; two at a time they would take minutes.
        few = max([2, *(count // 256 for count in counts)])
        try:
            datasets = read_chunks(path, few, **options) if chunked else [read(path, **options)]
            counts.add(sum(check_dataset(dataset, path) for dataset in datasets))
        except DataFileError as error:
            check_refusal(error, path)
            refusals.append(error)
    assert len(counts) <= 1, counts
    if not counts:
        raise refusals[0]


def _labels(path: Path, rng: Random) -> None:
    rows = path.with_name("rows.npy")
    np.save(rows, seeds.X)
    check_dataset(read(rows, labels=path), rows)


def _label_names(path: Path, rng: Random) -> None:
    rows = path.with_name("rows.arff")
    rows.write_text(seeds.SPARSE_ARFF)
    check_dataset(read(rows, labels=path), rows)


def _model(path: Path, rng: Random) -> None:
    model = modelfile.load(path)
    predicted = model.estimator.predict(np.zeros((2, model.schema.n_features)))
    assert predicted.shape == ((2, len(model.schema.labels)) if model.schema.multilabel else (2,))
    assert model.schema.multilabel or set(predicted) <= set(model.schema.classes)


TARGETS = [
    *(Target(name, entry.SUFFIXES[0], lambda name=name: seeds.FILES[name], _rows) for name, entry in FORMATS.items()),
    *(
        Target(f"{name}-labels", entry.SUFFIXES[0], lambda name=name: seeds.LABELS[name], _labels)
        for name, entry in FORMATS.items()
        if hasattr(entry, "read_labels")
    ),
    Target("mulan-xml", ".xml", lambda: [seeds.XML], _label_names),
    Target("model", ".skops", seeds.models, _model, CommandError),
]
"""Readers and loaders; each is one line."""

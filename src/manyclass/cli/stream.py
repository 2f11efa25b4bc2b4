"""Fitting a file that is read in chunks: of what is in memory, nothing grows with its number of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.fit import FitRequest, Fitted, read_test
from manyclass.cli.inputs import DataOptions, check_classes, check_finite, check_labels, reading
from manyclass.cli.modelfile import Schema
from manyclass.cli.output import Progress
from manyclass.cli.scaling import SCALERS
from manyclass.data.readers import Dataset, read_chunks
from manyclass.data.readers.dataset import as_labels
from manyclass.data.readers.stored import by_number
from manyclass.fit import Clock, OutOfTime, Status


@dataclass(frozen=True)
class Survey:
    """What has to be known of a whole file before its first chunk can be used; `dtype` holds the features of all."""

    schema: Schema
    n_rows: int
    dtype: Any
    first: Dataset


def survey(path: Path, chunk_rows: int, **options: Any) -> Survey:
    """One pass over the file for its size, width and labels; no more than one chunk is held at a time."""
    first: Dataset | None = None
    n_rows, width, dtype = 0, 0, np.dtype(np.float32)
    bases: set[bool | None] = set()
    labels: set[Any] = set()
    label_names: set[str] = set()
    label_widths: set[int] = set()
    for chunk in read_chunks(path, chunk_rows, **{**options, "text_labels": True}):
        y: Any = chunk.y
        first = chunk if first is None else first
        if y is None:
            check_labels(path, chunk)
        n_rows += chunk.X.shape[0]
        width = max(width, chunk.X.shape[1])
        dtype = np.result_type(dtype, chunk.X.dtype)
        bases.add(chunk.zero_based)
        if y.ndim == 2:
            label_names.update(chunk.label_names or ())
            label_widths.add(y.shape[1])
        else:
            labels.update(np.unique(y).tolist())
    if first is None:
        raise CommandError(f"{path} holds no rows: give a file with data")
    zero_based = None if bases == {None} else True in bases
    width -= zero_based is False
    expected = options.get("features")
    if isinstance(expected, int):
        if width > expected:
            raise CommandError(f"{path} has {width} features where {expected} are expected: expect that many")
        width = expected
    if label_widths:
        classes = np.arange(len(label_names) or max(label_widths))
    else:
        classes = np.unique(as_labels(list(labels)))
        check_labels(path, dataclasses.replace(first, y=classes))
    schema = dataclasses.replace(
        Schema.of(first),
        n_features=width,
        classes=classes,
        label_names=tuple(sorted(label_names, key=by_number)) or None,
        multilabel=bool(label_widths),
        zero_based=zero_based,
    )
    return Survey(schema, n_rows, dtype, first)


def fit_stream(request: FitRequest, estimator: Any, progress: Progress) -> Fitted:
    """One `partial_fit` per chunk and pass. At most one chunk's number of rows is held out, drawn from all rows.

    The steps are those of one pass over the rows in the order of the file, random only within a chunk. They are
    distributed as on shuffled rows if the file's own order is random, and not otherwise.
    """
    path, chunk_rows = request.train, request.chunk_rows
    assert path is not None and chunk_rows is not None
    if SCALERS[request.scale].needs_all_rows:
        raise UsageError(f"--scale {request.scale} needs all rows at once: scale the file before, or use rows or none")
    clock = Clock(estimator.max_time)
    progress.say("counting rows and labels")
    found = survey(path, chunk_rows, **reading(path, request.data, None))
    schema = found.schema
    if not schema.multilabel:
        check_classes(path, schema.classes, found.n_rows)
    test = read_test(request, schema)
    scaler = SCALERS[request.scale].fitted(found.first)
    n_wanted = int(np.ceil(request.holdout * found.n_rows)) if test is None else 0
    apart = np.zeros(found.n_rows, dtype=bool)
    n_apart = min(n_wanted, chunk_rows, found.n_rows - 1)
    apart[np.random.default_rng(request.seed).choice(found.n_rows, n_apart, replace=False)] = True
    held_out: list[Dataset] = []

    def rows_to_fit() -> Iterator[Dataset]:
        for turn, start, chunk in chunks(path, found, request.data, chunk_rows, request.parameters["max_iter"] or 1):
            out = apart[start : start + chunk.X.shape[0]]
            if turn == 0 and out.any():
                held_out.append(chunk.take(out))
            progress.say(f"pass {turn + 1}, row {start + 1:,} of {found.n_rows:,}")
            yield chunk.take(~out)

    n_rows = found.n_rows - n_apart
    classes = None if schema.multilabel else schema.classes
    kind = _fit_chunks(estimator, scaler, classes, n_rows, rows_to_fit(), clock)
    seconds = {"read": 0.0, "fit": clock.seconds}
    test = held_out[0].joined(held_out[1:]) if held_out else test
    return Fitted.of(scaler, estimator, schema, n_rows, f"{kind}, in chunks of {chunk_rows:,}", test, seconds)


def _fit_chunks(estimator: Any, scaler: Any, classes: Any, n_rows: int, chunks: Iterator[Dataset], clock: Clock) -> str:
    """Take steps until chunks or time are over, or Ctrl-C; the kind of the numbers."""
    n_seen, kind, reason = 0.0, "", None
    try:
        for chunk in chunks:
            kind = chunk.kind
            if chunk.X.shape[0]:
                X = chunk.X if scaler is None else scaler.transform(chunk.X)
                estimator.partial_fit(X, chunk.y, classes)
                n_seen += estimator.n_passes_ * X.shape[0]
                if estimator.status_ is Status.INTERRUPTED:
                    break
                clock.check()
    except (OutOfTime, KeyboardInterrupt) as stop:
        if not n_seen:
            raise KeyboardInterrupt from stop
        reason = Status.MAX_TIME if isinstance(stop, OutOfTime) else Status.INTERRUPTED
    # What partial_fit needs beside the model is not for a file.
    estimator.__dict__.pop("_state", None)
    estimator.status_ = reason or estimator.status_
    estimator.n_passes_ = n_seen / n_rows
    estimator.n_iter_ = int(np.ceil(estimator.n_passes_))
    return kind


def chunks(
    path: Path, found: Survey, data: DataOptions, chunk_rows: int, n_passes: int = 1
) -> Iterator[tuple[int, int, Dataset]]:
    """Number of the pass and of the first row, and the rows."""
    options = reading(path, data, found.schema) | {"dtype": found.dtype}
    for turn in range(n_passes):
        start = 0
        for chunk in read_chunks(path, chunk_rows, **options):
            check_finite(path, chunk, start)
            yield turn, start, found.schema.aligned(path, chunk)
            start += chunk.X.shape[0]

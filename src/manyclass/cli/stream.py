"""Fitting a file that is read in chunks: of what is in memory, nothing grows with its number of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli.errors import UsageError
from manyclass.cli.fit import FitRequest, Fitted, read_test
from manyclass.cli.inputs import check_classes, check_finite, check_labels, reading
from manyclass.cli.modelfile import Model, Schema
from manyclass.cli.output import Progress
from manyclass.cli.scaling import SCALERS
from manyclass.data.readers import Dataset, read_chunks
from manyclass.data.readers.survey import Survey, survey
from manyclass.fit import Clock, OutOfTime, Status


def fit_stream(request: FitRequest, estimator: Any, progress: Progress) -> Fitted:
    """One `partial_fit` per chunk and pass. At most one chunk's number of rows is held out, drawn from all rows.

    The steps are those of one pass over the rows in the order of the file, random only within a chunk. They are
    distributed as on shuffled rows if the file's own order is random, and not otherwise.
    """
    path, chunk_rows = request.train, request.chunk_rows
    assert path is not None and chunk_rows is not None
    if request.scale in ("standard", "maxabs"):
        raise UsageError(f"--scale {request.scale} needs all rows at once: scale the file before, or use rows or none")
    clock = Clock(estimator.max_time)
    progress.say("counting rows and labels")
    found = survey(path, chunk_rows, **reading(path, request.data, None))
    schema = _schema(path, found)
    test = read_test(request, schema)
    scaler = SCALERS[request.scale][1](found.first)
    n_wanted = int(np.ceil(request.holdout * found.n_rows)) if test is None else 0
    apart = np.zeros(found.n_rows, dtype=bool)
    n_apart = min(n_wanted, chunk_rows, found.n_rows - 1)
    apart[np.random.default_rng(request.seed).choice(found.n_rows, n_apart, replace=False)] = True
    held_out: list[Dataset] = []

    def rows_to_fit() -> Iterator[Dataset]:
        for turn, start, chunk in _chunks(path, schema, found, request):
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
    return Fitted(Model.of(scaler, estimator, schema), n_rows, f"{kind}, in chunks of {chunk_rows:,}", test, seconds)


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


def _schema(path: Path, found: Survey) -> Schema:
    y: Any = found.first.y
    if y.ndim == 1:
        check_labels(path, dataclasses.replace(found.first, y=found.classes))
        check_classes(path, found.classes, found.n_rows)
    whole = {name: getattr(found, name) for name in ("n_features", "classes", "label_names", "zero_based")}
    return dataclasses.replace(Schema.of(found.first), **whole)


def _chunks(path: Path, schema: Schema, found: Survey, request: FitRequest) -> Iterator[tuple[int, int, Dataset]]:
    """Number of the pass and of the first row, and the rows."""
    options = reading(path, request.data, schema) | {"dtype": found.dtype}
    assert request.chunk_rows is not None
    for turn in range(request.parameters["max_iter"] or 1):
        start = 0
        for chunk in read_chunks(path, request.chunk_rows, **options):
            check_finite(path, chunk, start)
            yield turn, start, schema.aligned(path, chunk)
            start += chunk.X.shape[0]

"""Fitting a file that is read in chunks: of what is in memory, nothing but the labels grows with its number of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli.errors import UsageError
from manyclass.cli.fit import FitRequest, Fitted, read_test
from manyclass.cli.inputs import check_classes, check_finite, load
from manyclass.cli.modelfile import Schema
from manyclass.cli.output import Progress
from manyclass.cli.scaling import SCALERS
from manyclass.data.readers import Dataset
from manyclass.fit import Clock, OutOfTime, Status


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
    found = load(path, request.data, stays=True)
    check_classes(path, found.y)
    schema, n_all = Schema.of(found), found.X.n_rows
    test = read_test(request, schema)
    scaler = SCALERS[request.scale].fitted(_as_features(found, next(found.X.store.chunks(1))))
    n_wanted = int(np.ceil(request.holdout * n_all)) if test is None else 0
    apart = np.zeros(n_all, dtype=bool)
    n_apart = min(n_wanted, chunk_rows, n_all - 1)
    apart[np.random.default_rng(request.seed).choice(n_all, n_apart, replace=False)] = True
    held_out: list[Dataset] = []

    def rows_to_fit() -> Iterator[Dataset]:
        for turn, start, chunk in chunks(path, found, chunk_rows, request.parameters["max_iter"] or 1):
            out = apart[start : start + chunk.X.shape[0]]
            if turn == 0 and out.any():
                held_out.append(chunk.take(out))
            progress.say(f"pass {turn + 1}, row {start + 1:,} of {n_all:,}")
            yield chunk.take(~out)

    n_rows = n_all - n_apart
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


def chunks(path: Path, found: Dataset, n_rows: int, n_passes: int = 1) -> Iterator[tuple[int, int, Dataset]]:
    """Number of the pass and of the first row, and so many rows of a file that was loaded to stay where it is."""
    for turn in range(n_passes):
        start = 0
        for X in found.X.store.chunks(n_rows):
            chunk = _as_features(found, X, start)
            check_finite(path, chunk, start)
            yield turn, start, chunk
            start += X.shape[0]


def _as_features(found: Dataset, X: Any, start: int = 0) -> Dataset:
    """Rows of the file, of which `start` come before, as a model takes them."""
    assert found.y is not None
    dataset = Dataset.stored(X, found.X.dtype, found.y[start : start + X.shape[0]])
    return dataclasses.replace(dataset, feature_names=found.feature_names)

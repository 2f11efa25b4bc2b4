"""Fitting a file that is read in chunks: of what is in memory, nothing grows with its number of rows."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.inputs import DataOptions, check_finite, check_labels, reading
from manyclass.cli.modelfile import Model
from manyclass.cli.progress import Progress
from manyclass.cli.scaling import fitted_scaler
from manyclass.cli.schema import Schema
from manyclass.data.readers import Dataset
from manyclass.data.readers.chunks import Survey, read_chunks, survey


@dataclass(frozen=True)
class StreamResult:
    """A model, and the rows that were kept out of its stream."""

    model: Model
    n_rows: int
    kind: str
    held_out: Dataset | None
    seconds: float


def fit_stream(
    path: Path,
    options: DataOptions,
    estimator: Any,
    chunk_rows: int,
    *,
    n_passes: int,
    scale: str,
    holdout: float,
    progress: Progress,
) -> StreamResult:
    """One `partial_fit` per chunk and pass. At most one chunk's number of rows is held out, drawn from all rows.

    The steps are those of one pass over the rows in the order of the file, random only within a chunk. They are
    distributed as on shuffled rows if the file's own order is random, and not otherwise.
    """
    if scale in ("standard", "maxabs"):
        raise UsageError(f"--scale {scale} needs all rows at once: scale the file beforehand, or use rows or none")
    started = time.perf_counter()
    progress.say("counting rows and labels")
    found = survey(path, chunk_rows, **reading(path, options, None))
    schema = _schema(path, found)
    given = reading(path, options, schema) | {"dtype": found.dtype}
    n_held_out = min(int(np.ceil(holdout * found.n_rows)), chunk_rows, found.n_rows - 1)
    rng = np.random.default_rng(estimator.random_state)
    apart = np.zeros(found.n_rows, dtype=bool)
    apart[rng.choice(found.n_rows, n_held_out, replace=False)] = True
    scaler = fitted_scaler(scale, found.first)
    kept_back: list[Dataset] = []
    deadline = np.inf if estimator.max_time is None else started + estimator.max_time
    n_seen = 0
    for turn in range(n_passes):
        for start, chunk in _chunks(path, schema, chunk_rows, given):
            assert chunk.y is not None
            out = apart[start : start + len(chunk.y)]
            if turn == 0 and out.any():
                kept_back.append(dataclasses.replace(chunk, X=chunk.X[out], y=chunk.y[out]))
            if out.all():
                continue
            X = chunk.X[~out] if scaler is None else scaler.transform(chunk.X[~out])
            progress.say(f"pass {turn + 1} of {n_passes}, row {start + 1:,} of {found.n_rows:,}")
            estimator.partial_fit(X, chunk.y[~out], None if schema.multilabel else schema.classes)
            n_seen += X.shape[0]
            if time.perf_counter() >= deadline:
                break
        else:
            continue
        break
    fitted = estimator if scaler is None else Pipeline([("scale", scaler), ("classify", estimator)])
    estimator.history_ = [dataclasses.replace(estimator.history_[-1], n_passes=n_seen / (found.n_rows - n_held_out))]
    kind = f"{'sparse ' if sparse.issparse(found.first.X) else ''}{found.dtype.name}, in chunks of {chunk_rows:,}"
    seconds = time.perf_counter() - started
    return StreamResult(Model(fitted, schema), found.n_rows - n_held_out, kind, _together(kept_back), seconds)


def _schema(path: Path, found: Survey) -> Schema:
    if found.first.y is not None and found.first.y.ndim == 1:
        check_labels(path, dataclasses.replace(found.first, y=found.classes))
        if len(found.classes) < 2:
            raise CommandError(
                f"{path}: all {found.n_rows} labels are '{found.classes[0]}' and fitting needs at least two classes: "
                "use more rows, or name another column with --target"
            )
    return Schema(
        n_features=found.n_features,
        classes=found.classes,
        feature_names=found.first.feature_names,
        target_name=found.first.target_name,
        label_names=found.label_names,
        multilabel=found.first.y is not None and found.first.y.ndim == 2,
        zero_based=found.zero_based,
    )


def _chunks(path: Path, schema: Schema, chunk_rows: int, given: dict[str, Any]) -> Iterator[tuple[int, Dataset]]:
    """Number of the first row, and the rows."""
    start = 0
    for chunk in read_chunks(path, chunk_rows, **given):
        check_finite(path, chunk, start)
        yield start, schema.aligned(path, chunk)
        start += chunk.X.shape[0]


def _together(parts: list[Dataset]) -> Dataset | None:
    if not parts:
        return None
    stack = sparse.vstack if sparse.issparse(parts[0].X) else np.concatenate
    X = stack([part.X for part in parts])
    y = np.concatenate([part.y for part in parts if part.y is not None])
    return dataclasses.replace(parts[0], X=sparse.csr_array(X) if sparse.issparse(X) else X, y=y)

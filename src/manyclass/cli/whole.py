"""Fitting a file that is read into memory, or mapped."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from manyclass.cli.errors import CommandError
from manyclass.cli.inputs import check_classes, digits, load
from manyclass.cli.modelfile import Model
from manyclass.cli.progress import Progress
from manyclass.cli.request import FitRequest, Fitted
from manyclass.cli.scaling import SCALERS, transformed
from manyclass.cli.schema import Schema
from manyclass.data.readers import Dataset


def fit_whole(request: FitRequest, estimator: Any, progress: Progress) -> Fitted:
    """Read, hold rows out, scale, fit."""
    started = time.perf_counter()
    train = digits() if request.train is None else load(request.train, request.data)
    check_classes(request.name, train.y)
    schema = Schema.of(train)
    test = read_test(request, schema)
    if test is None and request.holdout > 0:
        train, test = _split(request, train)
        check_classes(request.name, train.y)
        schema = Schema.of(train)
    read = time.perf_counter()
    progress.say("fitting")
    scaler = SCALERS[request.scale][1](train)
    estimator.fit(train.X if scaler is None else transformed(scaler, train), train.y)
    fitted = estimator if scaler is None else Pipeline([("scale", scaler), ("classify", estimator)])
    seconds = {"read": read - started, "fit": time.perf_counter() - read}
    return Fitted(Model(fitted, schema), train.X.shape[0], train.kind, test, seconds)


def read_test(request: FitRequest, schema: Schema) -> Dataset | None:
    """The rows of the test file, if there is one."""
    if request.test is None:
        return None
    # What --labels says of columns, in a number or in XML, holds for both files.
    shared = request.data.labels_are_columns or (request.data.labels or "").lower().endswith(".xml")
    labels = request.test_labels or (request.data.labels if shared else None)
    options = dataclasses.replace(request.data, labels=labels, n_features=None)
    return load(request.test, options, schema=schema)


def _split(request: FitRequest, dataset: Dataset) -> tuple[Dataset, Dataset]:
    y: Any = dataset.y
    n_rows = len(y)
    n_test = int(np.ceil(request.holdout * n_rows))
    if n_test >= n_rows:
        raise CommandError(
            f"{request.name} has {n_rows} rows, of which --holdout {request.holdout:g} leaves none to fit: "
            "use --holdout 0"
        )
    strata = None
    if y.ndim == 1:
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() >= 2 and min(n_test, n_rows - n_test) >= len(counts):
            strata = y
    train, test = train_test_split(np.arange(n_rows), test_size=n_test, random_state=request.seed, stratify=strata)
    # In the order of the file: a memory-mapped matrix is then read from front to back.
    return dataset.take(np.sort(train)), dataset.take(np.sort(test))

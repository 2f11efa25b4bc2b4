"""``manyclass fit``."""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.estimators import FitSettings, build
from manyclass.cli.inputs import DataOptions, check_classes, digits, load
from manyclass.cli.modelfile import Model
from manyclass.cli.output import check_writable, print_facts, print_json
from manyclass.cli.progress import Progress, progress_line
from manyclass.cli.scaling import DESCRIPTIONS, check_scaling, fitted_scaler, transformed
from manyclass.cli.schema import Schema
from manyclass.cli.scores import Scores, described, score
from manyclass.data.readers import Dataset


@dataclass(frozen=True)
class FitRequest:
    """A command line of ``manyclass fit``."""

    train: Path | None
    data: DataOptions
    test: Path | None
    test_labels: str | None
    holdout: float
    scale: str
    settings: FitSettings
    output: Path | None
    as_json: bool
    chunk_rows: int | None = None


@dataclass(frozen=True)
class _Rows:
    """What is fitted and what it is judged on."""

    name: str
    train: Dataset
    test: Dataset | None
    test_name: str


@dataclass(frozen=True)
class _Fitted:
    """A model, the kind and number of the rows it comes from, and what it is judged on."""

    name: str
    model: Model
    n_rows: int
    kind: str
    test: Dataset | None
    test_name: str
    seconds: dict[str, float]


def run(request: FitRequest) -> None:
    """Fit, judge, save and report."""
    _check(request)
    with progress_line("reading") as progress:
        estimator = build(request.settings, progress.callback)
        fitted = (_fit_whole if request.chunk_rows is None else _fit_stream)(request, estimator, progress)
        model = fitted.model
        if request.output is not None:
            progress.say(f"saving {request.output}")
            modelfile.save(model, request.output)
        scores = None
        if fitted.test is not None:
            progress.say("judging")
            scores = score(model, fitted.test.X, _labels(fitted.test))
    report = _report(request, fitted, scores)
    if request.as_json:
        print_json(report)
    else:
        _print(request, fitted, scores, report)


def _fit_whole(request: FitRequest, estimator: Any, progress: Progress) -> _Fitted:
    started = time.perf_counter()
    rows = _read(request)
    read_seconds = time.perf_counter() - started
    check_classes(rows.name, _labels(rows.train))
    progress.say("fitting")
    classifier, fit_seconds = _fit(request, estimator, rows.train, progress)
    seconds = {"read": read_seconds, "fit": fit_seconds}
    model = Model(classifier, Schema.of(rows.train))
    return _Fitted(rows.name, model, rows.train.X.shape[0], kind_of(rows.train.X), rows.test, rows.test_name, seconds)


def _fit_stream(request: FitRequest, estimator: Any, progress: Progress) -> _Fitted:
    from manyclass.cli.stream import fit_stream

    assert request.train is not None and request.chunk_rows is not None
    holdout = 0.0 if request.test is not None else request.holdout
    result = fit_stream(
        request.train,
        request.data,
        estimator,
        request.chunk_rows,
        n_passes=request.settings.max_iter or 1,
        scale=request.scale,
        holdout=holdout,
        progress=progress,
    )
    test, test_name = result.held_out, "held out"
    if request.test is not None:
        test, test_name = _read_test(request, result.model.schema), request.test.name
    return _Fitted(
        request.train.name,
        result.model,
        result.n_rows,
        result.kind,
        test,
        test_name,
        {"read": 0.0, "fit": result.seconds},
    )


def kind_of(X: Any) -> str:
    return X.dtype.name if isinstance(X, np.ndarray) else f"sparse {X.dtype.name}"


def _check(request: FitRequest) -> None:
    if request.train is None and (request.data != DataOptions() or request.test is not None):
        raise UsageError("these options describe data files, but no file to fit was given: name it after 'fit'")
    if request.test is None and request.test_labels is not None:
        raise UsageError("--test-labels belongs to a test file: name it with --test")
    if not 0 <= request.holdout < 1:
        raise UsageError(f"--holdout is a share of the rows from 0 up to 1, not {request.holdout:g}")
    if request.chunk_rows is not None:
        if request.train is None:
            raise UsageError("--chunk-rows reads a file in pieces: name the file after 'fit'")
        if request.settings.solver != "pegasos":
            raise UsageError("--chunk-rows needs a solver that learns from one chunk at a time: add --solver pegasos")
    request.data.check()
    check_scaling(request.scale)
    if request.output is not None:
        check_writable(request.output)


def _read(request: FitRequest) -> _Rows:
    seed = request.settings.seed
    if request.train is None:
        name = "scikit-learn's digits"
        if request.holdout == 0:
            return _Rows(name, digits(), None, "")
        return _Rows(name, *_split(name, digits(), request.holdout, seed), "held out")
    name = request.train.name
    train = load(request.train, request.data)
    if request.test is not None:
        return _Rows(name, train, _read_test(request, Schema.of(train)), request.test.name)
    if request.holdout == 0:
        return _Rows(name, train, None, "")
    return _Rows(name, *_split(name, train, request.holdout, seed), "held out")


def _read_test(request: FitRequest, schema: Schema) -> Dataset:
    assert request.test is not None
    # What --labels says of columns, in a number or in XML, holds for both files.
    shared = request.data.labels_are_columns or (request.data.labels or "").lower().endswith(".xml")
    labels = request.test_labels or (request.data.labels if shared else None)
    options = dataclasses.replace(request.data, labels=labels, n_features=None)
    return load(request.test, options, schema=schema)


def _split(name: str, dataset: Dataset, holdout: float, seed: int | None) -> tuple[Dataset, Dataset]:
    y = _labels(dataset)
    check_classes(name, y)
    n_rows = len(y)
    n_test = int(np.ceil(holdout * n_rows))
    if n_test >= n_rows:
        raise CommandError(
            f"{name} has {n_rows} rows, of which --holdout {holdout:g} leaves none to fit: use --holdout 0"
        )
    strata = None
    if y.ndim == 1:
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() >= 2 and min(n_test, n_rows - n_test) >= len(counts):
            strata = y
    train, test = train_test_split(np.arange(n_rows), test_size=n_test, random_state=seed, stratify=strata)
    # In the order of the file: a memory-mapped matrix is then read from front to back.
    return _take(dataset, np.sort(train)), _take(dataset, np.sort(test))


def _take(dataset: Dataset, rows: NDArray[np.intp]) -> Dataset:
    return dataclasses.replace(dataset, X=dataset.X[rows], y=_labels(dataset)[rows])


def _labels(dataset: Dataset) -> NDArray[Any]:
    assert dataset.y is not None
    return dataset.y


def _fit(request: FitRequest, estimator: Any, train: Dataset, progress: Progress) -> tuple[Any, float]:
    progress.goal(estimator.get_params().get("tol"))
    started = time.perf_counter()
    scaler = fitted_scaler(request.scale, train)
    X = train.X if scaler is None else transformed(scaler, train.X)
    with warnings.catch_warnings():
        # The summary says it, with what to do about it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, train.y)
    fitted = estimator if scaler is None else Pipeline([("scale", scaler), ("classify", estimator)])
    return fitted, time.perf_counter() - started


def _report(request: FitRequest, fitted: _Fitted, scores: Scores | None) -> dict[str, Any]:
    model = fitted.model
    classifier = model.classifier
    last = classifier.history_[-1]
    parameters = classifier.get_params()
    return {
        "command": "fit",
        "train": fitted.name if request.train is None else str(request.train),
        "target": model.schema.target_name,
        "n_rows": fitted.n_rows,
        "n_features": model.schema.n_features,
        "n_classes": len(model.schema.labels),
        "multilabel": model.schema.multilabel,
        "solver": request.settings.solver,
        **_loss_of(classifier),
        "parameters": {name: value for name, value in parameters.items() if name != "callback"},
        "scale": request.scale,
        "n_passes": last.n_passes,
        "objective": last.objective,
        "certificate": classifier.certificate_,
        "status": str(classifier.status_),
        "converged": _has_converged(classifier),
        "evaluated_on": None if scores is None else {"rows": fitted.test_name, "n_rows": scores.n_rows},
        **({} if scores is None else scores.figures),
        "notes": [] if scores is None else scores.notes,
        "model": request.output,
        "seconds": fitted.seconds,
    }


def _loss_of(classifier: Any) -> dict[str, str]:
    link = getattr(classifier, "link_", None)
    if link is not None:
        return {"link": link}
    return {"loss": str(getattr(classifier, "loss", None) or getattr(classifier, "inner", "squared error"))}


def _has_converged(classifier: Any) -> bool:
    tol = classifier.get_params().get("tol")
    return not classifier.status_.is_failure if tol is None else bool(classifier.certificate_ <= tol)


def _print(request: FitRequest, fitted: _Fitted, scores: Scores | None, report: dict[str, Any]) -> None:
    model = fitted.model
    outputs = "labels" if model.schema.multilabel else "classes"
    size = f"{fitted.n_rows:,} rows × {model.schema.n_features:,} columns ({fitted.kind})"
    shape = f"{size}, {len(model.schema.labels):,} {outputs}"
    target = (
        f" in column '{model.schema.target_name}'" if model.schema.target_name and request.train is not None else ""
    )
    parameters = report["parameters"]
    loss = f"{report['link']} link" if "link" in report else report["loss"].replace("_", " ")
    chosen = f"{request.settings.solver}, {loss}, alpha {parameters['alpha']:g}"
    if hasattr(model.estimator, "steps"):
        chosen += f", {DESCRIPTIONS[request.scale]}"
    facts = [("data", f"{fitted.name}: {shape}{target}"), ("model", chosen)]
    if scores is not None:
        shown = scores.figures.keys() if model.schema.multilabel else ("error", "log_loss")
        figures = described({name: scores.figures[name] for name in shown})
        judged = ", ".join(f"{name} {value}" for name, value in figures)
        facts.append(("test", f"{judged} on {scores.n_rows:,} rows ({fitted.test_name})"))
        facts += [("note", note) for note in scores.notes]
    seconds = report["seconds"]
    passes = f"{report['n_passes']:g} passes"
    facts.append(("time", f"{seconds['fit']:.2f} s to fit in {passes}, {seconds['read']:.2f} s to read"))
    goal = f" (tol {parameters['tol']:g})" if "tol" in parameters else ""
    facts.append(("certificate", f"{report['certificate']:.1e}{goal}. {report['status']}"))
    if request.output is None:
        facts.append(("saved", "no; --output FILE.skops keeps the model for 'manyclass predict'"))
    else:
        facts.append(("saved", f"{request.output}; next: manyclass predict {request.output} DATA"))
    print_facts(facts)

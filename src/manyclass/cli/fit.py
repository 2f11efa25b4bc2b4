"""``manyclass fit``."""

import dataclasses
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from manyclass import AutoClassifier
from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError, StoppedError, UsageError
from manyclass.cli.estimators import SEARCHES, build, default_solver, name_of
from manyclass.cli.evaluate import Scores, described, score
from manyclass.cli.inputs import DataOptions, check_classes, digits, encoded, load
from manyclass.cli.modelfile import Model, Schema
from manyclass.cli.output import Progress, check_writable, print_facts, print_json, progress_line
from manyclass.cli.scaling import SCALERS, UNSCALED, transformed
from manyclass.data import as_rows
from manyclass.data.frames import is_mixed
from manyclass.data.labels import of_present
from manyclass.data.memory import as_bytes
from manyclass.data.readers import Dataset
from manyclass.diagnostics.names import counted
from manyclass.diagnostics.names import shown as named
from manyclass.fit import Status
from manyclass.fit.held_out import hold_out

HELD_OUT_SHARE = 8
"""Of a limit on memory, what is one over that of the rows held out."""


@dataclass(frozen=True)
class FitRequest:
    """A command line of ``manyclass fit``; None leaves a parameter of the estimator at its default."""

    train: Path | None
    data: DataOptions
    test: Path | None
    test_labels: str | None
    holdout: float
    scale: str
    memory_limit: str | None
    solver: str | None
    parameters: dict[str, Any]
    output: Path | None
    force: bool
    as_json: bool
    checkpoint: Path | None = None

    def __post_init__(self) -> None:
        if self.train is None and (self.data != DataOptions() or self.test is not None):
            raise UsageError("these options describe data files, but no file to fit was given: name it after 'fit'")
        if self.test is None and self.test_labels is not None:
            raise UsageError("--test-labels belongs to a test file: name it with --test")
        if not 0 <= self.holdout < 1:
            raise UsageError(f"--holdout is a share of the rows from 0 up to 1, not {self.holdout:g}")
        if self.checkpoint is not None and self.solver in SEARCHES:
            raise UsageError("--checkpoint is for one estimator: name another --solver, or leave it out")
        if self.memory_limit is not None and self.train is None:
            raise UsageError("--memory-limit belongs to a file to fit: name the file after 'fit'")
        if self.scale not in SCALERS:
            raise UsageError(f"there is no scaling '{self.scale}': choose one of {', '.join(SCALERS)}")
        if self.output is not None:
            check_writable(self.output, self.force)

    @property
    def chosen(self) -> str:
        """The solver that is named, or what is taken where none is."""
        return self.solver or ("auto" if self.checkpoint is not None else default_solver(self.parameters))

    @property
    def name(self) -> str:
        """What messages call the rows that are fitted to."""
        return "scikit-learn's digits" if self.train is None else self.train.name

    @property
    def test_name(self) -> str:
        """What messages call the rows that the model is judged on."""
        return "held out" if self.test is None else self.test.name

    @property
    def seed(self) -> int:
        """Decides which rows are held out."""
        return self.parameters["random_state"] or 0


@dataclass(frozen=True)
class Fitted:
    """A model, how many rows of which kind it comes from, and what it is to be judged on."""

    model: Model
    n_rows: int
    kind: str
    test: Dataset | None
    seconds: dict[str, float]
    is_scaled: bool
    why: list[str]
    tried: list[dict[str, Any]]


def run(request: FitRequest) -> None:
    with progress_line("reading") as progress:
        fitted = _fit(request, progress)
        model, scores = fitted.model, None
        if request.output is not None:
            progress.say(f"saving {request.output}")
            modelfile.save(model, request.output, request.force)
        if model.classifier.status_ is Status.INTERRUPTED:
            raise StoppedError(
                f"stopped by Ctrl-C after {counted(round(model.classifier.n_passes_, 2), 'pass')} over the rows; the "
                f"model so far was saved to {request.output} and can be used"
            )
        if fitted.test is not None:
            progress.say("judging")
            scores = _judged(request, model, fitted.test)
    report = _report(request, fitted, scores)
    if request.as_json:
        print_json(report)
    else:
        _print(request, fitted, scores, report)


def _fit(request: FitRequest, progress: Progress) -> Fitted:
    estimator = build(request.chosen, request.parameters).set_callbacks(progress)
    with warnings.catch_warnings():
        # The summary says it, with what to do about it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = _fit_rows(request, estimator, progress)
    estimator.set_callbacks()
    fitted_by = fitted.model.classifier
    if fitted_by.status_ is Status.INTERRUPTED and (request.output is None or not fitted_by.n_passes_):
        raise KeyboardInterrupt
    return fitted


def _judged(request: FitRequest, model: Model, test: Dataset) -> Scores:
    try:
        return score(model, model.encoded(test.X), test.y)
    except KeyboardInterrupt:
        if request.output is None:
            raise
        raise StoppedError(
            f"stopped by Ctrl-C while the model was judged; it was saved to {request.output} and can be used"
        ) from None


def _report(request: FitRequest, fitted: Fitted, scores: Scores | None) -> dict[str, Any]:
    classifier, schema = fitted.model.classifier, fitted.model.schema
    return {
        "command": "fit",
        "train": request.train or request.name,
        "target": schema.target_name,
        "n_rows": fitted.n_rows,
        "n_features": schema.n_features,
        "n_classes": len(schema.labels),
        "multilabel": schema.multilabel,
        "solver": name_of(classifier),
        "loss": classifier.loss_,
        "parameters": classifier.get_params(),
        "scale": request.scale,
        "n_iter": classifier.n_iter_,
        "n_passes": classifier.n_passes_,
        "objective": classifier.history_[-1].objective if classifier.history_ else None,
        "alpha": getattr(classifier, "alpha_", getattr(classifier, "alpha", None)),
        "duality_gap": getattr(classifier, "duality_gap_", None),
        "status": str(classifier.status_),
        "converged": classifier.status_ in (Status.CONVERGED, Status.STATIONARY, Status.SETTLED),
        "evaluated_on": None if scores is None else {"rows": request.test_name, "n_rows": scores.n_rows},
        **({} if scores is None else scores.figures),
        "notes": [] if scores is None else scores.notes,
        "why": fitted.why,
        "tried": fitted.tried,
        "model": request.output,
        "seconds": fitted.seconds,
    }


def _print(request: FitRequest, fitted: Fitted, scores: Scores | None, report: dict[str, Any]) -> None:
    schema, parameters = fitted.model.schema, report["parameters"]
    size = f"{counted(fitted.n_rows, 'row')} × {counted(schema.n_features, 'column')} ({fitted.kind})"
    outputs = counted(report["n_classes"], "label" if schema.multilabel else "class")
    target = f" in column '{named(schema.target_name)}'" if schema.target_name and request.train is not None else ""
    chosen = f"{report['solver']}, {report['loss'].replace('_', ' ')} loss, alpha {report['alpha']:g}"
    if fitted.is_scaled:
        chosen += f", {SCALERS[request.scale].told}"
    facts = [("data", f"{request.name}: {size}, {outputs}{target}"), ("model", chosen)]
    facts += [("" if number else "why", sentence) for number, sentence in enumerate(fitted.why)]
    if scores is not None:
        shown = scores.figures.keys() if schema.multilabel else ("error", "log_loss")
        judged = ", ".join(f"{name} {value}" for name, value in described({key: scores.figures[key] for key in shown}))
        facts.append(("test", f"{judged} on {counted(scores.n_rows, 'row')} ({request.test_name})"))
        facts += [("note", note) for note in scores.notes]
    n_iter, n_passes, seconds = round(report["n_iter"], 2), round(report["n_passes"], 2), report["seconds"]
    counts = f"{counted(n_iter, 'iteration')}, {counted(n_passes, 'pass')} over the rows"
    facts.append(("time", f"{seconds['fit']:.2f} s to fit ({counts}), {seconds['read']:.2f} s to read"))
    if report["duality_gap"] is not None:
        tol = f" (tol {parameters['tol']:g})" if "tol" in parameters else ""
        facts.append(("duality gap", f"{report['duality_gap']:.1e}{tol}"))
    facts.append(("status", report["status"]))
    if request.output is None:
        facts.append(("saved", "no; --output FILE.skops keeps the model for 'manyclass predict'"))
    else:
        facts.append(("saved", f"{request.output}; next: manyclass predict {request.output} DATA"))
    print_facts(facts)


def _fit_rows(request: FitRequest, estimator: Any, progress: Progress) -> Fitted:
    """Read, hold rows out, scale, fit; with a limit on memory where the rows lie."""
    started, limit = time.perf_counter(), request.memory_limit
    stays = limit is not None and request.chosen in SEARCHES
    given: dict[str, Any] = {"memory_limit": limit, "stays": stays}
    train = digits() if request.train is None else load(request.train, request.data, **given, may_be_table=True)
    check_classes(request.name, train.y)
    schema, weight = Schema.of(train), None
    test = _read_test(request, schema)
    if test is None and request.holdout > 0 and limit is None:
        index = _held_out(request, train, request.holdout)
        train, test = train.take(np.delete(np.arange(train.X.shape[0]), index)), train.take(index)
        _check_rest(request, train.y)
        schema = Schema.of(train)
    elif test is None and request.holdout > 0:
        test, weight = _put_aside(request, train)
        y: Any = train.y
        _check_rest(request, y[weight > 0])
        schema = Schema.of(dataclasses.replace(train, y=y[weight > 0]))
        train = dataclasses.replace(train, y=of_present(y, weight))
    read = time.perf_counter()
    progress.say("fitting")
    encoder, scaler, X = _front(request, estimator, train, weight)
    given = {"memory_limit": limit, "checkpoint": request.checkpoint}
    estimator.fit(X, train.y, weight, **{name: value for name, value in given.items() if value is not None})
    seconds = {"read": read - started, "fit": time.perf_counter() - read}
    n_rows = train.X.shape[0] if weight is None else int(weight.sum())
    # Where an estimator chooses between several, what it has chosen, and why.
    model = Model.of(encoder, scaler, getattr(estimator, "best_estimator_", estimator), schema)
    kind = train.kind if limit is None else f"{'table' if train.is_table else train.X.dtype.name}, in chunks"
    if model.encoder is not None:
        kind += f", encoded in {counted(model.encoder.n_features_out, 'column')}"
    why, tried = getattr(estimator, "why_", []), getattr(estimator, "leaderboard_", [])
    return Fitted(model, n_rows, kind, test, seconds, scaler is not None, why, tried)


def _front(request: FitRequest, estimator: Any, train: Dataset, weight: np.ndarray | None) -> tuple[Any, Any, Any]:
    """What encodes tables and what scales columns, each None where nothing does, and the rows behind both."""
    encodes = isinstance(estimator, AutoClassifier) and request.scale in UNSCALED
    if encodes and train.is_table and is_mixed(train.X):  # else all gaps are held out
        return None, None, train.X  # as it knows then which columns are numbers
    encoder, train = encoded(train, weight)
    scaler = SCALERS[request.scale].fitted(train, None if weight is None else weight > 0)
    if scaler is None:
        return encoder, None, train.X
    X = transformed(scaler, train) if request.memory_limit is None else train.X.transformed(scaler.transform)
    return encoder, scaler, X


def _read_test(request: FitRequest, schema: Schema) -> Dataset | None:
    """The rows of the test file, if there is one."""
    if request.test is None:
        return None
    # What --labels says of columns, in a number or in XML, holds for both files.
    shared = request.data.labels_are_columns or request.data.labels_are_named
    labels = request.test_labels or (request.data.labels if shared else None)
    options = dataclasses.replace(request.data, labels=labels, n_features=None)
    return load(request.test, options, schema=schema, memory_limit=request.memory_limit)


def _put_aside(request: FitRequest, dataset: Dataset) -> tuple[Dataset, np.ndarray]:
    """Rows that are held out, no more than memory has room for, and weights that are 0 for these."""
    rows, y, n_rows = dataset.X, dataset.y, dataset.X.shape[0]
    assert y is not None
    most = max(1, int(as_bytes(request.memory_limit) / HELD_OUT_SHARE / rows.row_bytes)) / n_rows
    index = _held_out(request, dataset, min(request.holdout, most))
    weight = np.ones(n_rows)
    weight[index] = 0.0
    held = rows.take(index)
    return dataclasses.replace(dataset, X=held if dataset.is_table else held.unwrapped(), y=y[index]), weight


def _check_rest(request: FitRequest, y: Any) -> None:
    """Refuse rows of one class where all others are held out."""
    if y.ndim == 1 and (y == y[0]).all():
        raise CommandError(
            f"{request.name}: --holdout {request.holdout:g} leaves rows of '{y[0]}' alone to fit, which needs at least "
            "two classes: use --holdout 0, or more rows"
        )


def _held_out(request: FitRequest, dataset: Dataset, share: float) -> Any:
    y, n_rows = dataset.y, dataset.X.shape[0]
    if np.ceil(share * n_rows) >= n_rows:
        raise CommandError(
            f"{request.name} has {n_rows} rows, of which --holdout {request.holdout:g} leaves none to fit: "
            "use --holdout 0"
        )
    strata = y if y is not None and y.ndim == 1 else None
    return hold_out(as_rows(np.empty((n_rows, 0))), strata, None, share, np.random.default_rng(request.seed)).index

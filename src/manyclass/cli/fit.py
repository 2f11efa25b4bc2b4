"""``manyclass fit``."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from manyclass.cli import modelfile
from manyclass.cli.errors import StoppedError
from manyclass.cli.estimators import build
from manyclass.cli.output import print_facts, print_json
from manyclass.cli.progress import Progress, progress_line
from manyclass.cli.request import FitRequest, Fitted
from manyclass.cli.scaling import SCALERS
from manyclass.cli.scores import Scores, described, score
from manyclass.cli.whole import fit_whole
from manyclass.fit import Status


def run(request: FitRequest) -> None:
    """Fit, judge, save and report."""
    with progress_line("reading") as progress:
        fitted = _fit(request, progress)
        model, scores = fitted.model, None
        if request.output is not None:
            progress.say(f"saving {request.output}")
            modelfile.save(model, request.output, request.force)
        if model.classifier.status_ is Status.INTERRUPTED:
            raise StoppedError(
                f"stopped by Ctrl-C after {_passes(model.classifier.n_passes_)}; the model so far was saved to "
                f"{request.output} and can be used"
            )
        if fitted.test is not None:
            progress.say("judging")
            scores = score(model, fitted.test.X, fitted.test.y)
    report = _report(request, fitted, scores)
    if request.as_json:
        print_json(report)
    else:
        _print(request, fitted, scores, report)


def _fit(request: FitRequest, progress: Progress) -> Fitted:
    from manyclass.cli.stream import fit_stream

    estimator = build(request.solver, request.parameters).set_callbacks(progress)
    with warnings.catch_warnings():
        # The summary says it, with what to do about it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = (fit_whole if request.chunk_rows is None else fit_stream)(request, estimator, progress)
    estimator.set_callbacks()
    if estimator.status_ is Status.INTERRUPTED and (request.output is None or not estimator.n_passes_):
        raise KeyboardInterrupt
    return fitted


def _passes(count: float) -> str:
    return f"{round(count, 2):,} pass{'es' * (count != 1)} over the rows"


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
        "solver": getattr(classifier, "choice_", {}).get("solver", request.solver),
        "loss": classifier.loss_,
        "parameters": classifier.get_params(),
        "scale": request.scale,
        "n_iter": classifier.n_iter_,
        "n_passes": classifier.n_passes_,
        "objective": classifier.history_[-1].objective if classifier.history_ else None,
        "alpha": getattr(classifier, "alpha_", classifier.alpha),
        "duality_gap": getattr(classifier, "duality_gap_", None),
        "status": str(classifier.status_),
        "converged": classifier.status_ in (Status.CONVERGED, Status.STATIONARY, Status.SETTLED),
        "evaluated_on": None if scores is None else {"rows": request.test_name, "n_rows": scores.n_rows},
        **({} if scores is None else scores.figures),
        "notes": [] if scores is None else scores.notes,
        "model": request.output,
        "seconds": fitted.seconds,
    }


def _print(request: FitRequest, fitted: Fitted, scores: Scores | None, report: dict[str, Any]) -> None:
    schema, parameters = fitted.model.schema, report["parameters"]
    size = f"{fitted.n_rows:,} rows × {schema.n_features:,} columns ({fitted.kind})"
    outputs = f"{report['n_classes']:,} {'labels' if schema.multilabel else 'classes'}"
    target = f" in column '{schema.target_name}'" if schema.target_name and request.train is not None else ""
    chosen = f"{report['solver']}, {report['loss'].replace('_', ' ')} loss, alpha {report['alpha']:g}"
    if fitted.model.is_scaled:
        chosen += f", {SCALERS[request.scale][0]}"
    facts = [("data", f"{request.name}: {size}, {outputs}{target}"), ("model", chosen)]
    if scores is not None:
        shown = scores.figures.keys() if schema.multilabel else ("error", "log_loss")
        judged = ", ".join(f"{name} {value}" for name, value in described({key: scores.figures[key] for key in shown}))
        facts.append(("test", f"{judged} on {scores.n_rows:,} rows ({request.test_name})"))
        facts += [("note", note) for note in scores.notes]
    n_iter, seconds = report["n_iter"], report["seconds"]
    counts = f"{round(n_iter, 2):,} iteration{'s' * (n_iter != 1)}, {_passes(report['n_passes'])}"
    facts.append(("time", f"{seconds['fit']:.2f} s to fit ({counts}), {seconds['read']:.2f} s to read"))
    if report["duality_gap"] is not None:
        facts.append(("duality gap", f"{report['duality_gap']:.1e} (tol {parameters['tol']:g})"))
    facts.append(("status", report["status"]))
    if request.output is None:
        facts.append(("saved", "no; --output FILE.skops keeps the model for 'manyclass predict'"))
    else:
        facts.append(("saved", f"{request.output}; next: manyclass predict {request.output} DATA"))
    print_facts(facts)

"""The commands and their options. Nothing heavy is imported here, so that ``--help`` answers at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from manyclass.cli.estimators import ESTIMATORS

app = typer.Typer(
    name="manyclass",
    help="Linear models for many classes and many rows, without learning rates.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_data = partial(typer.Option, rich_help_panel="Data")
_model = partial(typer.Option, rich_help_panel="Model")
_output = partial(typer.Option, rich_help_panel="Output")

_TARGET = _data(
    metavar="COLUMN",
    help="Column of the labels, by name or position; repeat it for several 0/1 labels. "
    "Default: target, label, class or y, else the last column.",
)
_LABELS = _data(
    metavar="FILE|N",
    help="File with one label per row, Mulan's XML file of label names, or the number of label columns at the end. "
    "MNIST's own files are found by their names.",
)
_DROP = _data(metavar="COLUMN", help="Leave this column out; may be repeated.")
_FORMAT = _data(
    metavar="NAME",
    help="csv (TSV too), parquet, arrow, safetensors, libsvm, numpy, idx or arff; default: by its name and content.",
)
_N_FEATURES = _data(min=1, help="Width of a LIBSVM file that does not reach the last column itself.")
_TEST = _data(metavar="FILE", help="Judge the model on this file.")
_TEST_LABELS = _data(metavar="FILE", help="Labels of that file.")
_HOLDOUT = _data(help="Without a test file: share of the rows held out to judge by; 0 fits on all.")
_SCALE = _data(
    help="standard: columns to unit variance; maxabs: columns to a largest size of 1; rows: rows to length 1; "
    "thermometer: columns to steps, of dense rows; none; auto: images of bytes to 0…1, else none. But for steps it "
    "changes what alpha penalises, not much else.",
)
_STORED = (
    "What may be used beside the model, such as 2GB: rows of a file that is larger stay there and are read in pieces, "
    "the next one while the present one is computed with. A folder of NPY, Parquet, Arrow or safetensors files is a "
    "file, too."
)
_MEMORY_LIMIT = _data(metavar="SIZE", help=_STORED)
_SOLVER = _model(
    help=f"One of {', '.join(ESTIMATORS)}. any tries several estimators with several penalties and takes what held-out "
    "rows speak for. auto takes the one of the next seven that should be fastest for the data; these, and glm-cv, "
    "pegasos, sdca and bound with the same loss and alpha, minimise the same objective. Default: any, or auto where a "
    "parameter or checkpoint of one fit is given.",
)
_LOSS = _model(
    help="softmax, logistic (a label or class at a time), squared (least squares), sparsemax, calibrated, hinge, "
    "squared_hinge, crammer_singer, squared_crammer_singer or perceptron; each solver fits some of them and names "
    "those that fit the others. Default: softmax, or logistic for several labels per row; with "
    "calibrated calibrated, with stagewise squared, or what GLMClassifier has where held-out rows speak for it.",
)


def number_or_word(text: str) -> float | str:
    """What an estimator takes numbers and words for; it says which."""
    try:
        return float(text)
    except ValueError:
        return text


_ALPHA = _model(
    metavar="<float>",
    parser=number_or_word,
    help="Strength of the penalty alpha/2 · ‖W‖². Default: scale, 1e-4 or as many times that as most columns have a "
    "variance above 1; with calibrated and stagewise auto, from the data.",
)
_ANY_ALPHA = _model(help="Strength of the penalty alpha/2 · ‖W‖². Default: auto, by cross-validation (GCV).")
_CLASS_WEIGHT = _model(help="balanced: every class counts the same. Default: every row does.")
_LEAVE_ONE_OUT = _model(
    "--leave-one-out",
    help="With glm-cv: what sets of labels with a given coverage need, which 'evaluate' then reports.",
)
_TOL = _model(
    help="Stop once the duality gap, relative to the zero model, is this small, or what the next iteration is expected "
    "to gain where there is no gap. Default: 1e-3; with calibrated 1e-5. stagewise has none.",
)
_MAX_ITER = _model(
    help="Iterations at most; one takes a pass over the rows, or a few. Default: 500; 1000 with "
    "sdca, 100 with calibrated, 1 with stagewise (how often each feature is used); auto, with pegasos, is 20 "
    "or more where rows are few.",
)
_MAX_TIME = _model(help="Seconds at most; the best model so far is kept. Default: no limit.")
_SEED = _model(help="Decides which rows are held out, and all else random. Default: always the same.")
_CHECKPOINT = _model(
    metavar="FILE",
    help="Store in this file, every few seconds, where the fit has come to. After a crash the same command goes on "
    "from there, and ends with the same model. Yours to delete.",
)
_MODEL_FILE = _output("--output", "-o", "--model", metavar="FILE.skops", help="Save the model here.")
_PREDICTIONS = _output(
    "--output", "-o", "--out", metavar="FILE", help="A .csv, .tsv or .parquet file; default: CSV on stdout."
)
_MOMENTS = _output("--output", "-o", metavar="FILE.moments", help="Save the sums here.")
_MERGED = _output("--output", "-o", metavar="FILE", help="A .skops file for the model, or .moments for the sums.")
_FORCE = _output("--force", "-f", help="Replace the output file if it exists already.")
_PROBA = _output("--proba", help="Probabilities of every label, not the labels.")
_HTML = _output(metavar="FILE", help="Write a page with pictures, in one file that needs no network.")
_JSON = _output("--json", help="Print one JSON object and nothing else on stdout.")
_TRAIN = typer.Argument(
    metavar="TRAIN",
    show_default=False,
    help="CSV, TSV, Parquet, Arrow, safetensors, LIBSVM, NPZ, NPY, IDX or ARFF file, gzipped or not. Tables may hold "
    "categories, texts, dates and gaps. Without a file, scikit-learn's digits.",
)

_MOMENT_FILES = typer.Argument(
    metavar="MOMENTS...", help="Files written by 'manyclass summarize', with features and classes of the same names."
)

Strings = list[str] | None
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by 'manyclass fit'.")]
DataArgument = Annotated[Path, typer.Argument(metavar="DATA", help="A data file like the one fitted on.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from manyclass import __version__

        typer.echo(f"manyclass {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # `main` has taken --debug out of the command line before it comes here; this is its line in the help.
    del debug, version


@app.command()
def fit(
    train: Annotated[Path | None, _TRAIN] = None,
    target: Annotated[Strings, _TARGET] = None,
    labels: Annotated[str | None, _LABELS] = None,
    drop: Annotated[Strings, _DROP] = None,
    format: Annotated[str | None, _FORMAT] = None,
    n_features: Annotated[int | None, _N_FEATURES] = None,
    test: Annotated[Path | None, _TEST] = None,
    test_labels: Annotated[str | None, _TEST_LABELS] = None,
    holdout: Annotated[float, _HOLDOUT] = 0.2,
    scale: Annotated[str, _SCALE] = "auto",
    memory_limit: Annotated[str | None, _MEMORY_LIMIT] = None,
    solver: Annotated[str | None, _SOLVER] = None,
    loss: Annotated[str | None, _LOSS] = None,
    alpha: Annotated[Any, _ALPHA] = None,
    class_weight: Annotated[str | None, _CLASS_WEIGHT] = None,
    leave_one_out: Annotated[bool, _LEAVE_ONE_OUT] = False,
    tol: Annotated[float | None, _TOL] = None,
    max_iter: Annotated[float | None, _MAX_ITER] = None,
    max_time: Annotated[float | None, _MAX_TIME] = None,
    seed: Annotated[int | None, _SEED] = None,
    checkpoint: Annotated[Path | None, _CHECKPOINT] = None,
    output: Annotated[Path | None, _MODEL_FILE] = None,
    force: Annotated[bool, _FORCE] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Fit a model, show how good it is, and save it. Ctrl-C ends a fit early and saves what there is."""
    from manyclass.cli.fit import FitRequest, run
    from manyclass.cli.inputs import DataOptions

    parameters = {
        "loss": loss,
        "alpha": alpha,
        "class_weight": class_weight,
        "leave_one_out": leave_one_out or None,
        "tol": tol,
        "max_iter": int(max_iter) if max_iter and max_iter % 1 == 0 else max_iter,
        "max_time": max_time,
        "random_state": seed,
    }
    data = DataOptions(tuple(target or ()), labels, tuple(drop or ()), format, n_features)
    judged = (test, test_labels, holdout)
    run(FitRequest(train, data, *judged, scale, memory_limit, solver, parameters, output, force, json, checkpoint))


@app.command()
def summarize(
    data: DataArgument,
    output: Annotated[Path, _MOMENTS],
    target: Annotated[Strings, _TARGET] = None,
    labels: Annotated[str | None, _LABELS] = None,
    drop: Annotated[Strings, _DROP] = None,
    format: Annotated[str | None, _FORMAT] = None,
    n_features: Annotated[int | None, _N_FEATURES] = None,
    memory_limit: Annotated[str | None, _MEMORY_LIMIT] = None,
    force: Annotated[bool, _FORCE] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Sum the rows of a file up, as far as least squares needs them: parts of data on several machines, for 'merge'."""
    from manyclass.cli.inputs import DataOptions
    from manyclass.cli.moments import summarize as run

    options = DataOptions(tuple(target or ()), labels, tuple(drop or ()), format, n_features)
    run(data, options, memory_limit, output, force, json)


@app.command()
def merge(
    moments: Annotated[list[Path], _MOMENT_FILES],
    output: Annotated[Path, _MERGED],
    alpha: Annotated[str | None, _ANY_ALPHA] = None,
    force: Annotated[bool, _FORCE] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Join what 'summarize' wrote, and make the least-squares model of all these rows, as if fitted to them at once."""
    from manyclass.cli.moments import merge as run

    run(moments, alpha, output, force, json)


@app.command()
def analyze(
    data: Annotated[Path | None, _TRAIN] = None,
    target: Annotated[Strings, _TARGET] = None,
    labels: Annotated[str | None, _LABELS] = None,
    drop: Annotated[Strings, _DROP] = None,
    format: Annotated[str | None, _FORMAT] = None,
    n_features: Annotated[int | None, _N_FEATURES] = None,
    html: Annotated[Path | None, _HTML] = None,
    force: Annotated[bool, _FORCE] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Say what the data are, how hard they are to fit, what each estimator would cost, and which to begin with."""
    from manyclass.cli.analyze import run
    from manyclass.cli.inputs import DataOptions

    options = DataOptions(tuple(target or ()), labels, tuple(drop or ()), format, n_features)
    run(data, options, html, force, json)


@app.command()
def predict(
    model: ModelArgument,
    data: DataArgument,
    proba: Annotated[bool, _PROBA] = False,
    output: Annotated[Path | None, _PREDICTIONS] = None,
    force: Annotated[bool, _FORCE] = False,
    drop: Annotated[Strings, _DROP] = None,
    format: Annotated[str | None, _FORMAT] = None,
    memory_limit: Annotated[str | None, _MEMORY_LIMIT] = None,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Predict labels or probabilities for the rows of a file."""
    from manyclass.cli.inputs import DataOptions
    from manyclass.cli.predict import run

    options = DataOptions(drop=tuple(drop or ()), format=format)
    run(model, data, options, proba, output, force, json, memory_limit)


@app.command()
def evaluate(
    model: ModelArgument,
    data: DataArgument,
    target: Annotated[Strings, _TARGET] = None,
    labels: Annotated[str | None, _LABELS] = None,
    drop: Annotated[Strings, _DROP] = None,
    format: Annotated[str | None, _FORMAT] = None,
    memory_limit: Annotated[str | None, _MEMORY_LIMIT] = None,
    html: Annotated[Path | None, _HTML] = None,
    force: Annotated[bool, _FORCE] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Report error, log loss and a table per class for the labelled rows of a file."""
    from manyclass.cli.evaluate import run
    from manyclass.cli.inputs import DataOptions

    options = DataOptions(tuple(target or ()), labels, tuple(drop or ()), format)
    run(model, data, options, html, force, json, memory_limit)

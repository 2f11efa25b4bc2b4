"""The commands and their options. Nothing heavy is imported here, so that ``--help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyclass.cli.estimators import BUILDERS, FitSettings

app = typer.Typer(
    name="manyclass",
    help="Linear models for many classes and many rows, without learning rates.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DATA = "Data"
_MODEL = "Model"
_OUTPUT = "Output"

Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        rich_help_panel=_DATA,
        help="Column of the labels, by name or position; repeat it for several 0/1 labels. "
        "Default: target, label, class or y, else the last column.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE|N",
        rich_help_panel=_DATA,
        help="File with one label per row, Mulan's XML file of label names, or the number of label columns "
        "at the end. MNIST's own files are found by their names.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", rich_help_panel=_DATA, help="Leave this column out; may be repeated."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        rich_help_panel=_DATA,
        help="csv (TSV too), parquet, libsvm, numpy, idx or arff; default: by the file's name and content.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", rich_help_panel=_OUTPUT, help="Print one JSON object and nothing else on stdout."),
]
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
    train: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRAIN",
            show_default=False,
            help="CSV, TSV, Parquet, LIBSVM, NPZ, NPY, IDX or ARFF file, gzipped or not. "
            "Without one, scikit-learn's digits.",
        ),
    ] = None,
    target: Target = None,
    labels: Labels = None,
    drop: Drop = None,
    format: Format = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            "--n-features",
            min=1,
            rich_help_panel=_DATA,
            help="Width of a LIBSVM file of which this one does not reach the last column.",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", rich_help_panel=_DATA, help="Judge the model on this file."),
    ] = None,
    test_labels: Annotated[
        str | None,
        typer.Option("--test-labels", metavar="FILE", rich_help_panel=_DATA, help="Labels of that file."),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(
            "--holdout",
            rich_help_panel=_DATA,
            help="Without a test file: share of the rows kept out of the fit to judge it. 0 fits on all.",
        ),
    ] = 0.2,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            rich_help_panel=_DATA,
            help="standard: columns to unit variance; maxabs: columns to a largest size of 1; rows: rows to length 1; "
            "none; auto: images of bytes to 0…1, else none. It changes what alpha penalises, not much else.",
        ),
    ] = "auto",
    solver: Annotated[
        str, typer.Option("--solver", rich_help_panel=_MODEL, help=f"One of {', '.join(BUILDERS)}.")
    ] = "quasi-newton",
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            rich_help_panel=_MODEL,
            help="Of pegasos: log_loss (the default), hinge, squared_hinge or perceptron; of sdca: squared_hinge "
            "(the default), hinge, log_loss or squared.",
        ),
    ] = None,
    chunk_rows: Annotated[
        int | None,
        typer.Option(
            "--chunk-rows",
            min=1,
            rich_help_panel=_DATA,
            help="With pegasos: read a LIBSVM, Parquet or NumPy file so many rows at a time and take steps on each "
            "chunk as it comes, so that files larger than memory can be fitted; the file is read once for its labels "
            "and once per pass (--max-iter, default 1). The model is distributed as on shuffled data only if the "
            "rows of the file are in random order: shuffle sorted files first.",
        ),
    ] = None,
    link: Annotated[
        str,
        typer.Option(
            "--link",
            rich_help_panel=_MODEL,
            help="softmax, identity (least squares), logistic or sparsemax; "
            "auto: softmax, and logistic for several labels per row.",
        ),
    ] = "auto",
    alpha: Annotated[
        float, typer.Option("--alpha", rich_help_panel=_MODEL, help="Strength of the penalty alpha/2 · ‖W‖².")
    ] = 1e-4,
    class_weight: Annotated[
        str | None,
        typer.Option("--class-weight", rich_help_panel=_MODEL, help="balanced: every class counts the same."),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol",
            rich_help_panel=_MODEL,
            help="Stop once the certificate, relative to the zero model, is this small. "
            "Default: 1e-3, with pegasos 1e-2.",
        ),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", rich_help_panel=_MODEL, help="Passes over the data at most.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option("--max-time", rich_help_panel=_MODEL, help="Seconds at most.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option("--seed", rich_help_panel=_MODEL, help="Decides which rows are held out, and all else random."),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            "--model",
            metavar="FILE.skops",
            rich_help_panel=_OUTPUT,
            help="Save the model here.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Fit a model, show how good it is, and save it."""
    from manyclass.cli.fit import FitRequest, run
    from manyclass.cli.inputs import DataOptions

    run(
        FitRequest(
            train=train,
            data=DataOptions(tuple(target or ()), labels, tuple(drop or ()), format, n_features),
            test=test,
            test_labels=test_labels,
            holdout=holdout,
            scale=scale,
            settings=FitSettings(solver, link, loss, alpha, tol, max_iter, max_time, class_weight, seed),
            output=output,
            as_json=json,
            chunk_rows=chunk_rows,
        )
    )


@app.command()
def predict(
    model: ModelArgument,
    data: DataArgument,
    proba: Annotated[
        bool,
        typer.Option("--proba", rich_help_panel=_OUTPUT, help="Probabilities of every label, not the labels."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            "--out",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
            help="A .csv, .tsv or .parquet file; default: CSV on stdout.",
        ),
    ] = None,
    drop: Drop = None,
    format: Format = None,
    json: Json = False,
) -> None:
    """Predict labels or probabilities for the rows of a file."""
    from manyclass.cli.inputs import DataOptions
    from manyclass.cli.predict import run

    run(model, data, DataOptions(drop=tuple(drop or ()), format=format), proba, output, json)


@app.command()
def evaluate(
    model: ModelArgument,
    data: DataArgument,
    target: Target = None,
    labels: Labels = None,
    drop: Drop = None,
    format: Format = None,
    json: Json = False,
) -> None:
    """Report error, log loss and a table per class for the labelled rows of a file."""
    from manyclass.cli.evaluate import run
    from manyclass.cli.inputs import DataOptions

    run(model, data, DataOptions(tuple(target or ()), labels, tuple(drop or ()), format), json)

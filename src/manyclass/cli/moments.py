"""``manyclass summarize`` and ``manyclass merge``: second moments of files, and models from them."""

import time
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli import modelfile
from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.inputs import DataOptions, load
from manyclass.cli.modelfile import Model, Schema
from manyclass.cli.output import check_writable, print_facts, print_json, progress_line, whole_file
from manyclass.data.class_moments import ClassMoments
from manyclass.diagnostics.names import counted

SUFFIX = ".moments"
N_ALPHAS = 33
"""Penalties that generalised cross-validation chooses from: four for each power of ten, as one more costs nothing."""


def summarize(
    path: Path, options: DataOptions, memory_limit: str | None, output: Path, force: bool, as_json: bool
) -> None:
    """Write the moments of the rows of a file."""
    if output.suffix != SUFFIX:
        raise UsageError(f"{output} should end in {SUFFIX}")
    check_writable(output, force)
    started = time.perf_counter()
    with progress_line(f"reading {path.name}"):
        found = load(path, options, memory_limit=memory_limit)
        schema = Schema.of(found)
        names = np.asarray(schema.label_names) if schema.multilabel and schema.label_names else None
        moments = ClassMoments.of(found.X, found.y, classes=names)
        moments.about = {
            "feature_names": None if schema.feature_names is None else list(schema.feature_names),
            "target_name": schema.target_name,
            "has_label_names": names is not None,
            "zero_based": schema.zero_based,
        }
        with whole_file(output, force) as temporary:
            moments.save(temporary)
    _report("summarize", [path], moments, output, time.perf_counter() - started, as_json)


def merge(paths: list[Path], alpha: str | None, output: Path, force: bool, as_json: bool) -> None:
    """Write the moments of all the rows that files are of, or the model that follows from them."""
    if output.suffix not in (SUFFIX, ".skops"):
        raise UsageError(f"{output} should end in .skops, for a model, or in {SUFFIX}")
    if output.suffix == SUFFIX and alpha is not None:
        raise UsageError("--alpha belongs to a model: name a .skops file after --output, or leave it out")
    files = [path.resolve() for path in paths]
    twice = next((path for number, path in enumerate(paths) if files[number] in files[:number]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice, and its rows would count twice: give it once")
    estimator = _estimator(alpha) if output.suffix == ".skops" else None
    check_writable(output, force)
    started, facts = time.perf_counter(), {}
    with progress_line("joining") as progress:
        moments = reduce(_joined, [(path, ClassMoments.load(path)) for path in paths])[1]
        if estimator is None:
            with whole_file(output, force) as temporary:
                moments.save(temporary)
        else:
            if len(moments.classes) < 2 and not moments.multilabel:
                only = moments.classes.tolist()[0]
                raise CommandError(f"all these rows are of the class '{only}': merge moments of others, too")
            progress.say("solving")
            estimator = estimator.merge(moments)
            facts["alpha"] = getattr(estimator, "alpha_", estimator.get_params().get("alpha"))
            estimator.__dict__.pop("_stream")  # which the files hold already
            modelfile.save(Model(estimator, _schema(moments)), output, force)
    _report("merge", paths, moments, output, time.perf_counter() - started, as_json, **facts)


def _estimator(alpha: str | None) -> Any:
    from manyclass import GLMClassifier, GLMClassifierCV

    if alpha in (None, "auto"):
        return GLMClassifierCV(loss="squared", cv="gcv", alphas=N_ALPHAS)
    try:
        number = float(alpha or "")
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"--alpha is a number from 0 up or auto, not '{alpha}'")
    return GLMClassifier(number, loss="squared")


def _joined(one: tuple[Path, ClassMoments], other: tuple[Path, ClassMoments]) -> tuple[Path, ClassMoments]:
    """Features in the order of the first by name, and labels as text where they are in either."""
    (path, mine), (place, more) = one, other
    names, others = mine.about.get("feature_names"), more.about.get("feature_names")
    if (names is None) != (others is None):
        raise CommandError(
            f"of {path} and {place} only one has names for its features: summarise both from files with names, or both "
            "from files without"
        )
    if names is not None and others is not None and names != others:
        lacking = [*(set(names) - set(others)), *(set(others) - set(names))]
        if lacking or len(set(names)) < len(names):
            column = f"the column '{min(lacking)}'" if lacking else "other columns"
            raise CommandError(
                f"of {path} and {place} only one has {column}: summarise the same columns of both, for instance with "
                "--drop"
            )
        more = more.with_columns(np.array([others.index(name) for name in names]))
    if mine.about.get("zero_based") != more.about.get("zero_based"):
        raise CommandError(
            f"{path} and {place} do not both count features from 0, or from 1: save them in one format, with a feature "
            "0 in each"
        )
    if mine.n_features != more.n_features:
        raise CommandError(
            f"{path} has {mine.n_features} features and {place} {more.n_features}: summarise the same columns of both, "
            "of LIBSVM files with --n-features"
        )
    if not mine.multilabel and (mine.classes.dtype.kind == "U") != (more.classes.dtype.kind == "U"):
        mine, more = mine.with_text_labels(), more.with_text_labels()
    joined = mine.merge(more)
    joined.about = {**more.about, **{name: value for name, value in mine.about.items() if value is not None}}
    return path, joined


def _schema(moments: ClassMoments) -> Schema:
    about = moments.about
    names, labels = about.get("feature_names"), tuple(map(str, moments.classes))
    return Schema(
        n_features=moments.n_features,
        classes=np.arange(len(labels)) if moments.multilabel else moments.classes,
        feature_names=None if names is None else tuple(names),
        target_name=about.get("target_name"),
        label_names=labels if moments.multilabel and about.get("has_label_names") else None,
        multilabel=moments.multilabel,
        zero_based=about.get("zero_based"),
    )


def _report(
    command: str, paths: list[Path], moments: ClassMoments, output: Path, seconds: float, as_json: bool, **facts: Any
) -> None:
    report = {
        "command": command,
        "files": paths,
        "n_rows": moments.n,
        "n_features": moments.n_features,
        "n_classes": len(moments.classes),
        "multilabel": moments.multilabel,
        **facts,
        "output": output,
        "seconds": seconds,
    }
    if as_json:
        print_json(report)
        return
    kind = "label" if moments.multilabel else "class"
    size = f"{counted(moments.n, 'row')} × {counted(moments.n_features, 'column')}"
    size += f", {counted(len(moments.classes), kind)}"
    lines = [("data", f"{', '.join(map(str, paths))}: {size}")]
    if facts:
        lines.append(("model", f"least squares, alpha {facts['alpha']:g}"))
    print_facts([*lines, ("time", f"{seconds:.2f} s"), ("saved", str(output))])

"""The rows a command works on: read, and refused with a sentence where no model can use them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli.errors import CommandError, UsageError
from manyclass.cli.modelfile import Schema
from manyclass.data.cells import refusal, unusable_cell
from manyclass.data.opening import opened
from manyclass.data.readers import FORMATS, Dataset, companion_labels, read
from manyclass.data.readers.columns import TARGET_NAMES
from manyclass.data.readers.dataset import quoted
from manyclass.features import TableEncoder


@dataclass(frozen=True)
class DataOptions:
    """The options that say how a data file is to be read; the same for every command."""

    target: tuple[str, ...] = ()
    labels: str | None = None
    drop: tuple[str, ...] = ()
    format: str | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise UsageError(f"there is no format '{self.format}': choose one of {', '.join(FORMATS)}")
        if self.target and self.labels is not None:
            raise UsageError("--target names a column and --labels says where labels are otherwise: give one of them")
        twice = [name for name in self.target if self.target.count(name) > 1 or name in self.drop]
        if twice:
            raise UsageError(f"--target {twice[0]} is given twice, or dropped by --drop: give it once")

    @property
    def labels_are_columns(self) -> bool:
        """Whether ``--labels`` is a number of columns and not the name of a file."""
        return self.labels is not None and self.labels.isdigit() and not Path(self.labels).exists()

    @property
    def labels_are_named(self) -> bool:
        """Whether ``--labels`` is Mulan's XML, which names columns of the data file itself."""
        return self.labels is not None and self.labels.lower().endswith(".xml")


def load(
    path: Path,
    options: DataOptions,
    *,
    schema: Schema | None = None,
    labels_needed: bool = True,
    may_be_incomplete: bool = False,
    memory_limit: str | None = None,
    stays: bool = False,
    may_be_table: bool = False,
) -> Dataset:
    """Read a file for fitting, or as a model that knows `schema` expects it.

    Where it `may_be_table`, X is one of pyarrow if it holds more than numbers; and always where the model knows one.

    With a limit on memory X are `Rows`, which stay in the file where they are many, and where it is said that they do,
    and are checked when they are read; of a table they are a `StoredTable`.
    """
    given = _reading(path, options, schema, labels_needed)
    in_memory = memory_limit is None and not stays
    given["kinds"] = ({} if may_be_table else None) if schema is None else schema.kinds
    dataset = read(path, **given) if in_memory else opened(path, None, memory_limit, keep=stays, **given)
    is_one_label = dataset.y is not None and dataset.y.ndim == 2 and dataset.y.shape[1] == 1
    if is_one_label and not (schema is not None and schema.multilabel):  # which is two classes
        assert dataset.y is not None
        (name,) = dataset.label_names or (None,)
        dataset = replace(dataset, y=dataset.y[:, 0].astype(np.int64), target_name=name, label_names=None)
    if labels_needed:
        check_labels(path, dataset, options.target)
        if schema is None and isinstance(given["labels"], str | Path) and not options.labels_are_named:
            check_no_other_labels(path, dataset, given["labels"])
    if in_memory:
        cell = None if may_be_incomplete or dataset.is_table else unusable_cell(dataset.X)
        if cell is not None:
            all_needed = given["features"] is not None
            raise CommandError(refusal(path, dataset.X[cell], *cell, dataset.feature_names, all_needed))
        dataset = dataset if dataset.is_table else dataset.compact()
    return dataset if schema is None or not labels_needed else schema.aligned(path, dataset)


def _reading(path: Path, options: DataOptions, schema: Schema | None, labels_needed: bool) -> dict[str, Any]:
    """The options of `manyclass.data.readers.read` for a file."""
    labels: str | int | Path | None = options.labels
    if labels is None and labels_needed and not options.target:
        labels = companion_labels(path)
    elif options.labels_are_columns:
        labels = int(options.labels or 0)
    target: tuple[str, ...] | None = options.target or None
    features: tuple[str, ...] | int | None = options.n_features
    if schema is not None:
        features = schema.feature_names or schema.n_features
        if target is None and labels is None:
            names = schema.label_names if schema.multilabel else (schema.target_name,)
            target = tuple(name for name in names or () if name is not None) or None
    return {
        "target": target,
        "labels": labels,
        "features": features,
        "drop": options.drop,
        "format": options.format,
        "multilabel": True if schema is not None and schema.multilabel else None,
        "zero_based": None if schema is None else schema.zero_based,
        "text_labels": schema is not None and schema.classes.dtype.kind == "U",
        "needs_labels": labels_needed,
    }


def encoded(dataset: Dataset, weight: np.ndarray | None = None) -> tuple[TableEncoder | None, Dataset]:
    """What makes numbers of a table, fitted to its rows that count, and these; None where they are numbers already."""
    if not dataset.is_table:
        return None, dataset
    encoder = TableEncoder()
    return encoder, replace(dataset, X=encoder.fit_transform(dataset.X, sample_weight=weight))


def digits() -> Dataset:
    """scikit-learn's 1797 images of handwritten digits, 8×8 pixels with values 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(bunch.data.astype(np.float32), bunch.target, tuple(bunch.feature_names), "digit")


def check_no_other_labels(path: Path, dataset: Dataset, labels: str | Path) -> None:
    """Refuse labels from elsewhere beside a column that would be the labels, too: as a feature it would tell them."""
    own = [name for name in dataset.feature_names or () if name.strip().lower() in TARGET_NAMES]
    if own:
        raise CommandError(
            f"{path} has a column '{own[0]}' beside the labels of {labels}: leave it out with --drop {own[0]}, or take "
            f"it for the labels with --target {own[0]}"
        )


def check_labels(path: Path, dataset: Dataset, target: tuple[str, ...] = ()) -> None:
    y = dataset.y
    has_names = dataset.target_name is not None or bool(dataset.label_names)
    if target and (y is None or not (has_names or all(name.isdigit() for name in target))):
        raise CommandError(f"{path} has no column {quoted(target)} for the labels: correct --target")
    if y is None:
        raise CommandError(f"{path} has no labels: name their column with --target or their file with --labels")
    # Whole numbers have become integers when they were read.
    if y.ndim == 1 and y.dtype.kind == "f":
        example = y[np.rint(y) != y][0] if np.isfinite(y).all() else y[~np.isfinite(y)][0]
        column = f"column '{dataset.target_name}'" if dataset.target_name else "the target"
        raise CommandError(
            f"{path}: {column} holds real numbers such as {example:g}, not classes: name another column with --target"
        )


def check_classes(name: str | Path, y: Any) -> None:
    """Refuse labels from which nothing can be learnt."""
    if y.ndim == 1 and (y == y[0]).all():
        told = "its only label is" if len(y) == 1 else f"all {len(y)} labels are"
        raise CommandError(
            f"{name}: {told} '{y[0]}' and fitting needs at least two classes: use more rows, or name another column "
            "with --target"
        )

"""Models on disk: skops files holding the estimator and what it knows of the rows it was fitted on."""

import dataclasses
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from manyclass.cli.errors import CommandError
from manyclass.cli.output import whole_file
from manyclass.data.frames import kinds_in
from manyclass.data.readers import Dataset
from manyclass.data.readers.dataset import as_labels, quoted
from manyclass.data.readers.kinds import blank_table
from manyclass.data.readers.numpy_files import check_members
from manyclass.data.readers.source import one_line

_VERSION = 1


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns and labels of the training data, as in `Dataset`.

    `n_features` are those of a row as it is in a file; `classes` the labels, sorted, or the positions of several;
    `kinds` what the columns of a table hold, by name.
    """

    n_features: int
    classes: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    label_names: tuple[str, ...] | None = None
    multilabel: bool = False
    zero_based: bool | None = None
    kinds: dict[str, str] | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        y: Any = dataset.y
        return cls(
            n_features=dataset.X.shape[1],
            classes=np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y),
            feature_names=dataset.feature_names,
            target_name=dataset.target_name,
            label_names=dataset.label_names,
            multilabel=y.ndim == 2,
            zero_based=dataset.zero_based,
            kinds=kinds_in(dataset.X) if dataset.is_table else None,
        )

    def blank(self) -> Any:
        """Two rows of nothing: of zeros, or of a table of empty cells."""
        return np.zeros((2, self.n_features)) if self.kinds is None else blank_table(self.kinds, 2)

    @property
    def labels(self) -> list[str]:
        """Names of the classes or labels, in the order of the columns of the scores."""
        return list(self.label_names) if self.label_names is not None else [str(label) for label in self.classes]

    def aligned(self, path: Path, dataset: Dataset) -> Dataset:
        """The dataset with its labels in the order, and of the type, known here; refused where they do not fit."""
        y = dataset.y
        if y is None:
            return dataset
        if (y.ndim == 2) != self.multilabel:
            kinds = ("one label per row", "a 0/1 column per label")
            raise CommandError(
                f"{path} has {kinds[y.ndim == 2]} and the model was fitted on {kinds[self.multilabel]}: "
                "give labels like those of the training data"
            )
        if not self.multilabel:
            # The same labels may all look like numbers in one file and not in another.
            if self.classes.dtype.kind == "U" and y.dtype.kind != "U":
                y = y.astype(str)
            self._check_kind(path, y)
            return dataclasses.replace(dataset, y=y)
        names = dataset.label_names
        if names is None or self.label_names is None:
            if y.shape[1] != len(self.classes):
                raise CommandError(
                    f"{path} has {y.shape[1]} labels and the model was fitted on {len(self.classes)}: "
                    "give labels like those of the training data"
                )
            return dataset
        unknown = [name for name in names if name not in self.label_names]
        if unknown:
            raise CommandError(f"{path} has the label '{unknown[0]}', which the model was not fitted on: leave it out")
        missing = [name for name in self.label_names if name not in names]
        if missing and dataset.zero_based is None:  # rows of LIBSVM name those that they have
            raise CommandError(
                f"{path} has no column for {quoted(missing)}, which the model has labels of: name them all"
            )
        ordered = np.zeros((len(y), len(self.label_names)), dtype=y.dtype)
        ordered[:, [self.label_names.index(name) for name in names]] = y
        return dataclasses.replace(dataset, y=ordered, label_names=self.label_names)

    def _check_kind(self, path: Path, y: NDArray[Any]) -> None:
        """Refuse text where numbers were fitted to, and numbers where text was, unless they are some of its texts."""
        is_text, was_text = (labels.dtype.kind == "U" for labels in (y, self.classes))
        if is_text and was_text:
            is_text = bool(np.isin(y, self.classes).any()) or as_labels(y).dtype.kind == "U"
        if is_text != was_text:
            names = [label for label in np.unique(y) if not is_text or as_labels([label]).dtype.kind == "U"]
            given, fitted = (
                f"text ('{label}')" if of_text else f"numbers ({label})"
                for of_text, label in ((is_text, [*names, y[0]][0]), (was_text, self.classes[0]))
            )
            raise CommandError(
                f"{path} has labels that are {given} and the model was fitted on {fitted}: "
                "give labels like those of the training data"
            )
        if is_text and was_text and not np.isin(y, self.classes).any():
            raise CommandError(
                f"{path} has none of the labels that the model was fitted on, but '{y[0]}'"
                f"{' and others' if (y != y[0]).any() else ''}: give labels like '{self.classes[0]}', or name their "
                "column with --target"
            )


@dataclass(frozen=True)
class Model:
    """A fitted estimator or pipeline, and the rows it expects."""

    estimator: Any
    schema: Schema

    @classmethod
    def of(cls, encoder: Any, scaler: Any, classifier: Any, schema: Schema) -> Self:
        """The classifier, or pipeline of a scaler and it, behind the encoder and the scaler where there are any."""
        steps = [*getattr(classifier, "steps", [("classify", classifier)])]
        for name, step in (("scale", scaler), ("encode", encoder)):
            if step is not None:
                steps = [(name, step), *((f"{one}_{number}", held) for number, (one, held) in enumerate(steps, 1))]
        return cls(Pipeline(steps) if len(steps) > 1 else classifier, schema)

    @property
    def encoder(self) -> Any:
        """What makes numbers of tables, if the model was fitted on one."""
        return self.estimator[0] if self.schema.kinds else None

    @property
    def of_numbers(self) -> Any:
        """The estimator of what the encoder gives."""
        if self.encoder is None:
            return self.estimator
        return self.estimator[1] if len(self.estimator.steps) == 2 else self.estimator[1:]

    def encoded(self, X: Any) -> Any:
        """Numbers of the rows of a file."""
        return X if self.encoder is None else self.encoder.transform(X)

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba")

    @property
    def has_sets(self) -> bool:
        """Whether it was fitted with what prediction sets go by."""
        return hasattr(self.classifier, "predict_set") and hasattr(self.classifier, "loo_score_")

    def predict_set(self, X: Any, coverage: float) -> Any:
        """`GLMClassifierCV.predict_set` of encoded rows."""
        front = getattr(self.of_numbers, "steps", [])[:-1]
        for _, step in front:
            X = step.transform(X)
        return self.classifier.predict_set(X, coverage)

    @property
    def classifier(self) -> Any:
        """The estimator itself, without what is in front of it."""
        return self.estimator[-1] if hasattr(self.estimator, "steps") else self.estimator


def save(model: Model, path: Path, force: bool = False) -> None:
    """Write the model whole or not at all."""
    skops = _skops()
    # What only another fit would begin with, and as large as the scores of all rows.
    model.classifier.__dict__.pop("dual_coef_", None)
    content = {"manyclass_model": _VERSION, "estimator": model.estimator, "schema": vars(model.schema)}
    with whole_file(path, force) as temporary:
        # An open file, as skops adds a suffix to names it does not like.
        with temporary.open("xb") as file:
            skops.dump(content, file)
        foreign = _foreign_types(temporary)
        if foreign:
            raise CommandError(f"the model holds {foreign[0]}, which could not be loaded again: it was not saved")


def load(path: Path) -> Model:
    """Read a model, trusting no type but this package's own."""
    path.open("rb").close()  # to fail as any file does that cannot be opened
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive)
        foreign = _foreign_types(path)
        if foreign:
            raise CommandError(
                f"{path} was not loaded because it asks for {one_line(foreign[0])}, which manyclass does not need: "
                "use a model written by 'manyclass fit'"
            )
        return _model(path, _skops().load(path, trusted=sorted(trusted_types())))
    except CommandError:
        raise
    except Exception as error:
        # A damaged file can fail anywhere between unzipping and the first prediction.
        raise CommandError(
            f"{path} is not a model, or is damaged: fit it again, or copy it again from where it was"
        ) from error


def trusted_types() -> set[str]:
    """Qualified names of the types that a model file may hold beside scikit-learn's and NumPy's."""
    import manyclass
    import manyclass.features
    import manyclass.linear_model

    rooms = (manyclass, manyclass.features, manyclass.linear_model)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    estimators = [kind for kind in public if hasattr(kind, "fit")]
    parts = [part for kind in estimators for part in getattr(kind, "_model_parts", ())]
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in estimators + parts}


def _skops() -> Any:
    """skops.io, without PyTorch: it imports all of scikit-learn, of which one module would take seconds for that."""
    name, modules = "sklearn.externals.array_api_compat.torch", cast(dict[str, Any], sys.modules)
    is_hidden = modules.setdefault(name, None) is None  # as Python marks what cannot be imported
    try:
        import skops.io
    finally:
        if is_hidden:
            del modules[name]
    return skops.io


def _foreign_types(path: Path) -> list[str]:
    return sorted(set(_skops().get_untrusted_types(file=path)) - trusted_types())


def _model(path: Path, content: Any) -> Model:
    if isinstance(content, dict) and "manyclass_model" in content:
        if content["manyclass_model"] != _VERSION:
            raise CommandError(f"{path} was written by a newer manyclass: pip install --upgrade manyclass")
        return _checked(Model(content["estimator"], Schema(**content["schema"])))
    content = getattr(content, "best_estimator_", content)
    if hasattr(content, "predict") and hasattr(content, "n_features_in_") and hasattr(content, "classes_"):
        first = content[0] if hasattr(content, "steps") else content
        names, classes = getattr(content, "feature_names_in_", None), np.asarray(content.classes_)
        kinds = getattr(first, "kinds", None)  # of an encoder, which is given tables
        if kinds is None:
            vars(first).pop("feature_names_in_", None)  # columns are found by name here, and given without
        schema = Schema(
            n_features=content.n_features_in_,
            classes=classes.astype(str) if classes.dtype == object else classes,
            feature_names=None if names is None else tuple(map(str, names)),
            kinds=kinds,
        )
        several = np.ndim(content.predict(schema.blank())) == 2
        return _checked(Model(content, dataclasses.replace(schema, multilabel=several)))
    raise CommandError(f"{path} holds no fitted model: give a file written by 'manyclass fit'")


def _checked(model: Model) -> Model:
    """The model, if it predicts labels that it knows for rows as wide as it says: a damaged one may load and not."""
    schema = model.schema
    names, n_labels = schema.feature_names, len(schema.labels)
    known = getattr(model.estimator, "classes_", schema.classes)
    is_whole = (
        len(known) == n_labels
        and model.estimator.n_features_in_ == schema.n_features
        and len(schema.classes) == n_labels
    )
    if is_whole and (names is None or len(names) == schema.n_features):
        predicted = model.estimator.predict(schema.blank())
        if predicted.shape == ((2, n_labels) if schema.multilabel else (2,)):
            if schema.multilabel or np.isin(predicted, schema.classes).all():
                return model
    raise ValueError("its parts do not fit together")

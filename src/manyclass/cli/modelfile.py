"""Models on disk: skops files holding the estimator and what is needed to read rows for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.cli.errors import CommandError
from manyclass.cli.output import whole_file
from manyclass.cli.schema import Schema

_VERSION = 1


@dataclass(frozen=True)
class Model:
    """A fitted estimator or pipeline, and the rows it expects."""

    estimator: Any
    schema: Schema

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba")

    @property
    def is_scaled(self) -> bool:
        return hasattr(self.estimator, "steps")

    @property
    def classifier(self) -> Any:
        """The estimator itself, without the scaling in front of it."""
        return self.estimator[-1] if self.is_scaled else self.estimator


def save(model: Model, path: Path, force: bool = False) -> None:
    """Write the model whole or not at all."""
    import skops.io

    content = {"manyclass_model": _VERSION, "estimator": model.estimator, "schema": vars(model.schema)}
    with whole_file(path, force) as temporary:
        # An open file, as skops adds a suffix to names it does not like.
        with temporary.open("xb") as file:
            skops.io.dump(content, file)
        foreign = _foreign_types(temporary)
        if foreign:
            raise CommandError(f"the model holds {foreign[0]}, which could not be loaded again: it was not saved")


def load(path: Path) -> Model:
    """Read a model, trusting no type but this package's own.

    Raises
    ------
    CommandError
        Where the file is not a whole model or asks for types from elsewhere.
    """
    import skops.io

    with path.open("rb"):
        pass  # to fail as any file does that cannot be opened
    try:
        foreign = _foreign_types(path)
        content = None if foreign else skops.io.load(path, trusted=sorted(trusted_types()))
    except Exception as error:
        # A damaged file can fail anywhere between unzipping and setting attributes.
        raise CommandError(
            f"{path} is not a model, or is damaged: fit it again, or copy it again from where it was"
        ) from error
    if foreign:
        raise CommandError(
            f"{path} was not loaded because it asks for {foreign[0]}, which manyclass does not need: "
            "use a model written by 'manyclass fit'"
        )
    return _model(path, content)


def trusted_types() -> set[str]:
    """Qualified names of the types that a model file may hold beside scikit-learn's and NumPy's."""
    import manyclass
    import manyclass.features

    public = [getattr(room, name) for room in (manyclass, manyclass.features) for name in room.__all__]
    estimators = [kind for kind in public if hasattr(kind, "fit")]
    parts = [part for kind in estimators for part in getattr(kind, "_model_parts", ())]
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in estimators + parts}


def _foreign_types(path: Path) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(file=path)) - trusted_types())


def _model(path: Path, content: Any) -> Model:
    if isinstance(content, dict) and "manyclass_model" in content:
        if content["manyclass_model"] != _VERSION:
            raise CommandError(f"{path} was written by a newer manyclass: pip install --upgrade manyclass")
        return Model(content["estimator"], Schema(**content["schema"]))
    if hasattr(content, "predict") and hasattr(content, "n_features_in_") and hasattr(content, "classes_"):
        names = getattr(content, "feature_names_in_", None)
        schema = Schema(
            n_features=content.n_features_in_,
            classes=np.asarray(content.classes_),
            feature_names=None if names is None else tuple(map(str, names)),
            multilabel=np.ndim(content.predict(np.zeros((1, content.n_features_in_)))) == 2,
        )
        return Model(content, schema)
    raise CommandError(f"{path} holds no fitted model: give a file written by 'manyclass fit'")

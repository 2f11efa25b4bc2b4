"""What a model knows about the rows it was fitted on, and how rows of other files are made to match."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.cli.errors import CommandError
from manyclass.data.readers import Dataset


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns and labels of the training data.

    Attributes
    ----------
    n_features : int
        Columns of a row as it is in a file.
    classes : ndarray of shape (n_classes,)
        The labels, sorted; for several labels per row, their positions.
    feature_names, label_names : tuple of str or None
    target_name : str or None
        The column of the labels.
    multilabel : bool
    zero_based : bool or None
        Whether the LIBSVM file counts features from zero.
    """

    n_features: int
    classes: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    label_names: tuple[str, ...] | None = None
    multilabel: bool = False
    zero_based: bool | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Schema:
        y: Any = dataset.y
        return cls(
            n_features=dataset.X.shape[1],
            classes=np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y),
            feature_names=dataset.feature_names,
            target_name=dataset.target_name,
            label_names=dataset.label_names,
            multilabel=y.ndim == 2,
            zero_based=dataset.zero_based,
        )

    @property
    def labels(self) -> list[str]:
        """Names of the classes or labels, in the order of the columns of the scores."""
        return list(self.label_names) if self.label_names is not None else [str(label) for label in self.classes]

    def aligned(self, path: Path, dataset: Dataset) -> Dataset:
        """The dataset with its labels in the order, and of the type, known here.

        Raises
        ------
        CommandError
            Where the labels are of another kind, or are not known here.
        """
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
        ordered = np.zeros((len(y), len(self.label_names)), dtype=y.dtype)
        ordered[:, [self.label_names.index(name) for name in names]] = y
        return dataclasses.replace(dataset, y=ordered, label_names=self.label_names)

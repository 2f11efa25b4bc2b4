"""What ``--scale`` puts in front of the classifier: scikit-learn's transformers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from manyclass.data import as_rows
from manyclass.data.readers import Dataset


def transformed(scaler: Any, dataset: Dataset) -> Any:
    """The scaled rows, in place where they may be written to: they are ours, and may fill the memory."""
    scaler.set_params(copy=not dataset.is_writable)
    try:
        return scaler.transform(dataset.X)
    finally:
        scaler.set_params(copy=True)


def _auto(dataset: Dataset) -> Any:
    """Pixels from 0 to 1; every other file as it is."""
    if dataset.full_scale is None:
        return None
    return MaxAbsScaler().fit(np.full((1, dataset.X.shape[1]), dataset.full_scale, dtype=dataset.X.dtype))


SCALERS: dict[str, tuple[str, Callable[[Dataset], Any]]] = {
    "auto": ("pixels from 0 to 1", _auto),
    "none": ("", lambda dataset: None),
    "standard": (
        "columns of unit variance",
        lambda dataset: StandardScaler(with_mean=as_rows(dataset.X).can_be_centred).fit(dataset.X),
    ),
    "maxabs": ("columns of largest size 1", lambda dataset: MaxAbsScaler().fit(dataset.X)),
    "rows": ("rows of length 1", lambda dataset: Normalizer().fit(dataset.X)),
}
"""What the scaled rows are, and a transformer fitted to rows; None where they are to stay as they are."""

"""What ``--scale`` puts in front of the classifier: scikit-learn's transformers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


class Scaling(NamedTuple):
    """What the scaled rows are, and what fits a transformer to rows: to None where they are to stay as they are."""

    told: str
    fitted: Callable[[Dataset], Any]
    needs_all_rows: bool = False


SCALERS: dict[str, Scaling] = {
    "auto": Scaling("pixels from 0 to 1", _auto),
    "none": Scaling("", lambda dataset: None),
    "standard": Scaling(
        "columns of unit variance",
        lambda dataset: StandardScaler(with_mean=as_rows(dataset.X).can_be_centred).fit(dataset.X),
        needs_all_rows=True,
    ),
    "maxabs": Scaling("columns of largest size 1", lambda dataset: MaxAbsScaler().fit(dataset.X), needs_all_rows=True),
    "rows": Scaling("rows of length 1", lambda dataset: Normalizer().fit(dataset.X)),
}

"""What ``--scale`` puts in front of the classifier: scikit-learn's transformers by name."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from manyclass.cli.errors import UsageError
from manyclass.data import as_rows
from manyclass.data.readers import Dataset
from manyclass.features import ThermometerEncoder


def transformed(scaler: Any, dataset: Dataset) -> Any:
    """The scaled rows, in place where they may be written to: they are ours, and may fill the memory."""
    if not hasattr(scaler, "copy"):
        return scaler.transform(dataset.X)
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


def _of_rows(scaler: Any, X: Any, present: np.ndarray | None) -> Any:
    """Fitted to the rows that count, in one piece or as they are read."""
    rows = as_rows(X)
    for part, block in rows.blocks(rows.n_rows):
        held = block if present is None else block.take(np.flatnonzero(present[part]))
        if held.n_rows:
            scaler.partial_fit(held.unwrapped())
    return scaler


def _steps(X: Any, present: np.ndarray | None) -> ThermometerEncoder:
    if not as_rows(X).can_be_centred:
        raise UsageError("--scale thermometer is for dense rows, and these are sparse: use maxabs, rows or none")
    return ThermometerEncoder().fit(X, sample_weight=None if present is None else 1.0 * present)


class Scaling(NamedTuple):
    """What the scaled rows are, and what fits a transformer to rows: to None where they are to stay as they are.

    `fitted` is given a dataset, whose rows may lie in a file, and a mask of the rows that count.
    """

    told: str
    fitted: Callable[[Dataset, np.ndarray | None], Any]


SCALERS: dict[str, Scaling] = {
    "auto": Scaling("pixels from 0 to 1", lambda dataset, present: _auto(dataset)),
    "none": Scaling("", lambda dataset, present: None),
    "standard": Scaling(
        "columns of unit variance",
        lambda dataset, present: _of_rows(
            StandardScaler(with_mean=as_rows(dataset.X).can_be_centred), dataset.X, present
        ),
    ),
    "maxabs": Scaling(
        "columns of largest size 1", lambda dataset, present: _of_rows(MaxAbsScaler(), dataset.X, present)
    ),
    "thermometer": Scaling("columns in steps", lambda dataset, present: _steps(dataset.X, present)),
    "rows": Scaling("rows of length 1", lambda dataset, present: Normalizer().fit(np.zeros((1, dataset.X.shape[1])))),
}
UNSCALED = ("auto", "none")
"""Those that leave a table as it is encoded."""

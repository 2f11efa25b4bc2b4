"""What ``--scale`` puts in front of the classifier: scikit-learn's transformers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyclass.cli.errors import UsageError

if TYPE_CHECKING:
    from manyclass.data.readers import Dataset


def fitted_scaler(name: str, dataset: Dataset) -> Any:
    """A transformer fitted to the rows, or None where they are to stay as they are."""
    return SCALERS[name](dataset)


def check_scaling(name: str) -> None:
    if name not in SCALERS:
        raise UsageError(f"there is no scaling '{name}': choose one of {', '.join(SCALERS)}")


def transformed(scaler: Any, X: Any) -> Any:
    """``scaler.transform(X)``, in place where X may be written to: it is ours, and may fill the memory."""
    scaler.set_params(copy=bool(getattr(X, "flags", None) and not X.flags.writeable))
    try:
        return scaler.transform(X)
    finally:
        scaler.set_params(copy=True)


def _auto(dataset: Dataset) -> Any:
    """Pixels from 0 to 1; every other file as it is."""
    import numpy as np
    from sklearn.preprocessing import MaxAbsScaler

    if dataset.full_scale is None:
        return None
    return MaxAbsScaler().fit(np.full((1, dataset.X.shape[1]), dataset.full_scale, dtype=dataset.X.dtype))


def _none(dataset: Dataset) -> Any:
    return None


def _standard(dataset: Dataset) -> Any:
    from scipy import sparse
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not sparse.issparse(dataset.X)).fit(dataset.X)


def _maxabs(dataset: Dataset) -> Any:
    from sklearn.preprocessing import MaxAbsScaler

    return MaxAbsScaler().fit(dataset.X)


def _rows(dataset: Dataset) -> Any:
    from sklearn.preprocessing import Normalizer

    return Normalizer().fit(dataset.X)


DESCRIPTIONS = {
    "auto": "pixels from 0 to 1",
    "standard": "columns of unit variance",
    "maxabs": "columns of largest size 1",
    "rows": "rows of length 1",
}
SCALERS: dict[str, Callable[[Dataset], Any]] = {
    "auto": _auto,
    "none": _none,
    "standard": _standard,
    "maxabs": _maxabs,
    "rows": _rows,
}

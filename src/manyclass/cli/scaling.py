"""What ``--scale`` puts in front of the classifier: scikit-learn's transformers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyclass.cli.errors import UsageError


def _standard(is_sparse: bool) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not is_sparse)


def _maxabs(is_sparse: bool) -> Any:
    from sklearn.preprocessing import MaxAbsScaler

    return MaxAbsScaler()


def _rows(is_sparse: bool) -> Any:
    from sklearn.preprocessing import Normalizer

    return Normalizer()


SCALERS: dict[str, Callable[[bool], Any] | None] = {
    "none": None,
    "standard": _standard,
    "maxabs": _maxabs,
    "rows": _rows,
}


def check_scaling(name: str) -> None:
    if name not in SCALERS:
        raise UsageError(f"there is no scaling '{name}': choose one of {', '.join(SCALERS)}")


def build_scaler(name: str, is_sparse: bool) -> Any:
    """An unfitted transformer, or None."""
    builder = SCALERS[name]
    return None if builder is None else builder(is_sparse)

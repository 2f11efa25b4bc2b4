"""The identity of a fit: the estimator, its parameters, and the rows, as plain values."""

import hashlib
import re
from collections.abc import Mapping
from reprlib import recursive_repr
from types import CellType, CodeType, MethodType
from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.rows import Array, to_numpy

SAMPLED_ROWS = 256
"""Rows whose values are compared."""


def fingerprint(
    kind: str, parameters: Mapping[str, Any], rows: Rows, encoded: Any, weight: Array | None
) -> dict[str, Any]:
    """Equal for equal fits, in any process: all parameters and labels, and a sample of the rows.

    Rows are compared by their projections onto one direction, as numbers rather than bytes: the last digits of products
    differ between machines.
    """
    index = np.unique(np.linspace(0, rows.n_rows - 1, SAMPLED_ROWS).astype(np.int64))
    direction = np.random.default_rng(0).standard_normal((rows.n_features, 1))
    along = to_numpy(rows.take(index).matmat(rows.asarray(direction)))[:, 0]
    classes = getattr(encoded, "classes", None)
    return {
        "estimator": kind,
        **{f"parameter {name}": _described(value) for name, value in sorted(parameters.items())},
        "shape of X": f"{rows.n_rows} × {rows.n_features}",
        "dtype of X": str(rows.dtype),
        "sample of the rows of X": [float(value) for value in along],
        "set of classes": "" if classes is None else _digest(to_numpy(classes)),
        "y": _digest(to_numpy(encoded.guide)),
        "set of sample weights": "" if weight is None else _digest(to_numpy(weight)),
    }


def _described(value: Any) -> str:
    """A parameter as text that is the same in any process."""
    if hasattr(value, "get_params"):
        return f"{type(value).__name__}({_described(value.get_params(deep=False))})"
    if isinstance(value, Mapping):
        return str({str(name): _described(item) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_described, value))}]"
    if isinstance(value, set | frozenset):  # in an order that is another in every process
        return f"{{{', '.join(sorted(map(_described, value)))}}}"
    if isinstance(value, np.random.RandomState):
        return _described(value.get_state(legacy=False))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.shape}: {_digest(to_numpy(value))}"
    return _described_callable(value) if callable(value) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@recursive_repr("itself")
def _described_callable(value: Any) -> str:
    """A function by its name, and a nameless one by its code; an object by its attributes."""
    if isinstance(value, MethodType):
        owner = value.__self__
        state = owner if isinstance(owner, type) else getattr(owner, "__dict__", owner)
        return f"{_described_callable(value.__func__)} of {_described(state)}"
    name = getattr(value, "__qualname__", None)
    if name is None:  # a scorer, or a partial
        call = [getattr(value, part) for part in ("func", "args", "keywords") if hasattr(value, part)]
        state = getattr(value, "__dict__", None)
        text = repr(value) if state is None else f"{_described(state)}{_described(call)}"
        return f"{type(value).__module__}.{type(value).__qualname__}({text})"
    code = getattr(value, "__code__", None)
    if "<" in name and code is not None:  # <lambda>, <locals>
        # A cell is empty until its variable is assigned.
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        values = [value.__defaults__, value.__kwdefaults__, *cells]
        name += hashlib.sha256(f"{_described_code(code)}{_described(values)}".encode()).hexdigest()
    return f"{getattr(value, '__module__', '')}.{name}"


def _described_code(code: CodeType) -> str:
    """The code of a function, and of those within."""
    consts = [_described_code(item) if isinstance(item, CodeType) else _described(item) for item in code.co_consts]
    return f"{code.co_code!r}{code.co_names!r}{_described(consts)}"


def _digest(array: np.ndarray) -> str:
    array = array if array.dtype != object else array.astype(str)
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

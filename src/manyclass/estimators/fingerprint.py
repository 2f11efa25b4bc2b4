"""What tells one fit from another: the estimator, its parameters, and the rows, as plain values."""

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
"""Rows whose numbers are looked at."""


def fingerprint(
    kind: str, parameters: Mapping[str, Any], rows: Rows, encoded: Any, weight: Array | None
) -> dict[str, Any]:
    """Equal for equal fits, in any process; parameters and labels in full, and a sample of the rows.

    Rows are looked at along one direction, in a few numbers rather than bytes: the last digits of products differ
    between machines.
    """
    index = np.unique(np.linspace(0, rows.n_rows - 1, SAMPLED_ROWS).astype(np.int64))
    direction = np.random.default_rng(0).standard_normal((rows.n_features, 1))
    along = to_numpy(rows.take(index).matmat(rows.asarray(direction)))[:, 0]
    classes = getattr(encoded, "classes", None)
    return {
        "estimator": kind,
        **{f"parameter {name}": _told(value) for name, value in sorted(parameters.items())},
        "shape of X": f"{rows.n_rows} × {rows.n_features}",
        "dtype of X": str(rows.dtype),
        "sample of the rows of X": [float(value) for value in along],
        "set of classes": "" if classes is None else _digest(to_numpy(classes)),
        "y": _digest(to_numpy(encoded.guide)),
        "set of sample weights": "" if weight is None else _digest(to_numpy(weight)),
    }


def _told(value: Any) -> str:
    """A parameter in words that are the same in any process."""
    if hasattr(value, "get_params"):
        return f"{type(value).__name__}({_told(value.get_params(deep=False))})"
    if isinstance(value, Mapping):
        return str({str(name): _told(held) for name, held in value.items()})
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    if isinstance(value, set | frozenset):  # in an order that is another in every process
        return f"{{{', '.join(sorted(map(_told, value)))}}}"
    if isinstance(value, np.random.RandomState):
        return _told(value.get_state(legacy=False))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.shape}: {_digest(to_numpy(value))}"
    return _told_callable(value) if callable(value) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@recursive_repr("itself")
def _told_callable(value: Any) -> str:
    """A function by its name, and where that is no name of its own by what it does; an object by what it holds."""
    if isinstance(value, MethodType):
        owner = value.__self__
        held = owner if isinstance(owner, type) else getattr(owner, "__dict__", owner)
        return f"{_told_callable(value.__func__)} of {_told(held)}"
    name = getattr(value, "__qualname__", None)
    if name is None:  # a scorer, or a partial
        called = [getattr(value, part) for part in ("func", "args", "keywords") if hasattr(value, part)]
        held = getattr(value, "__dict__", None)
        told = repr(value) if held is None else f"{_told(held)}{_told(called)}"
        return f"{type(value).__module__}.{type(value).__qualname__}({told})"
    code = getattr(value, "__code__", None)
    if "<" in name and code is not None:  # <lambda>, <locals>
        # A cell is empty until what it is named for is defined.
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        held = [value.__defaults__, value.__kwdefaults__, *cells]
        name += hashlib.sha256(f"{_told_code(code)}{_told(held)}".encode()).hexdigest()
    return f"{getattr(value, '__module__', '')}.{name}"


def _told_code(code: CodeType) -> str:
    """What is done, by the functions within, too."""
    consts = [_told_code(one) if isinstance(one, CodeType) else _told(one) for one in code.co_consts]
    return f"{code.co_code!r}{code.co_names!r}{_told(consts)}"


def _digest(array: np.ndarray) -> str:
    held = array if array.dtype != object else array.astype(str)
    return hashlib.sha256(np.ascontiguousarray(held).tobytes()).hexdigest()

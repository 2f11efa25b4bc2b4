"""What a fit knows, as JSON and arrays and back: plain values and objects of this package, and never code."""

from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from manyclass.data.rows import to_numpy


class Encoder:
    """Makes a tree that JSON can hold, and a list of NumPy arrays that it refers to by number.

    An object of this package is written as the attributes of its instance but for those that its class names in
    ``_given``, which whoever goes on from it has anyway (the problem, the rows, the clock). What is met twice is
    written once, and is one thing again when it is read. What must not be stored, code above all, is refused.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []  # or the number of an object could be given to another

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float):
            return int(value) if isinstance(value, int) else float(value)
        if isinstance(value, dict):
            return {"dict": [[self(key), self(held)] for key, held in value.items()]}
        if isinstance(value, list | deque):
            return [self(held) for held in value]
        if isinstance(value, tuple):
            kind = {"kind": _name(type(value))} if _is_ours(type(value)) else {}
            return {"tuple": [self(held) for held in value], **kind}
        number = self._met.get(id(value))
        if number is not None:
            return {"again": number}
        self._met[id(value)] = len(self._met)
        self._alive.append(value)
        if isinstance(value, np.random.Generator):
            return {"random": value.bit_generator.state}
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return self._array(value)
        if _is_ours(type(value)) and hasattr(value, "__dict__"):
            given = getattr(value, "_given", ())
            held = [[name, self(part)] for name, part in vars(value).items() if name not in given]
            return {"object": held, "kind": _name(type(value))}
        raise ValueError(
            f"A checkpoint cannot hold {type(value).__module__}.{type(value).__qualname__}; fit without checkpoint=, "
            "or with parts of this package alone."
        )

    def _array(self, value: Any) -> Any:
        host = to_numpy(value)
        if host.dtype == object:
            return {"strings": host.tolist()}
        self.arrays.append(host)
        on_host = type(value).__module__ == "numpy"
        return {"array": len(self.arrays) - 1, "where": "host" if on_host else "rows", "scalar": np.isscalar(value)}


class Decoder:
    """What an `Encoder` was given, from what it made of it.

    `asarray` puts an array that was not NumPy's where the rows are.
    """

    def __init__(self, arrays: list[np.ndarray], asarray: Callable[[np.ndarray], Any]):
        self._arrays, self._asarray = arrays, asarray
        self._met: list[Any] = []

    def __call__(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self(held) for held in node]
        if not isinstance(node, dict):
            return node
        if "dict" in node:
            return {self(key): self(held) for key, held in node["dict"]}
        if "tuple" in node:
            values = [self(held) for held in node["tuple"]]
            if "kind" not in node:
                return tuple(values)
            kind = _kind(node["kind"])
            if not issubclass(kind, tuple):  # whose constructor might do anything
                raise ValueError(f"{node['kind']} is no tuple.")
            return kind(*values)
        if "again" in node:
            return self._met[node["again"]]
        place = len(self._met)
        self._met.append(None)
        self._met[place] = made = self._made(node, place)
        return made

    def _made(self, node: dict[str, Any], place: int) -> Any:
        if "random" in node:
            rng = np.random.default_rng(0)
            rng.bit_generator.state = node["random"]
            return rng
        if "strings" in node:
            return np.array(node["strings"], dtype=object)
        if "array" in node:
            array = self._arrays[node["array"]]
            if node["scalar"]:
                return array[()]
            return array if node["where"] == "host" else self._asarray(array)
        self._met[place] = made = object.__new__(_kind(node["kind"]))
        vars(made).update((name, self(held)) for name, held in node["object"])
        return made


def restore(target: Any, source: Any) -> None:
    """Give an object that was set up anew all that `source`, read from a checkpoint, knows beside what is given."""
    for name, value in vars(source).items():
        held = vars(target).get(name)
        if isinstance(value, np.random.Generator) and isinstance(held, np.random.Generator):
            held.bit_generator.state = value.bit_generator.state  # which others draw from too
        elif type(held) is type(value) and _is_ours(type(value)) and hasattr(value, "__dict__"):
            restore(held, value)
        else:
            vars(target)[name] = value


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("manyclass.")


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _kind(name: str) -> Any:
    """The class of this package that has a name; modules that do something when they are imported have none."""
    module, _, qualname = name.partition(":")
    parts = module.split(".")
    if parts[0] != "manyclass" or any(part.startswith("_") for part in parts[1:]):
        raise ValueError(f"{name} is no class of manyclass.")
    found = getattr(import_module(module), qualname, None)
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"{name} is no class of manyclass.")
    return found

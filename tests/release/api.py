"""The public names, and what can be given to them."""

import importlib
import inspect
from pathlib import Path

SNAPSHOT = Path(__file__).parent / "api.txt"
MODULES = (
    "manyclass",
    "manyclass.diagnostics",
    "manyclass.export",
    "manyclass.features",
    "manyclass.linear_model",
)


def lines():
    for module in map(importlib.import_module, MODULES):
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            yield f"{module.__name__}.{name}{signature(thing)}"
            if not inspect.isclass(thing):
                continue
            for member in sorted(dir(thing)):
                found = inspect.getattr_static(thing, member)
                if member.startswith("_") or member.endswith("_request") or not getattr(found, "__doc__", None):
                    continue
                if callable(getattr(thing, member)) and is_ours(thing, member):
                    yield f"{module.__name__}.{name}.{member}{signature(getattr(thing, member))}"


def is_ours(kind, member):
    return next(base for base in kind.__mro__ if member in vars(base)).__module__.startswith("manyclass")


def signature(thing):
    """Names and defaults, without the types, which are no promise."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = [one.replace(annotation=one.empty) for one in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=found.empty))

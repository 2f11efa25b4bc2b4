"""The modules of scikit-learn's tests, executed once more with our classes under the names of theirs."""

import importlib.util
import inspect
import sys
from contextlib import contextmanager

from sklearn import linear_model

from manyclass import linear_model as ours


@contextmanager
def in_place_of_theirs():
    """What is imported here finds our classes in scikit-learn; what is already imported keeps theirs."""
    homes = [linear_model, linear_model._logistic, linear_model._ridge]
    found = [(home, name, getattr(home, name)) for home in homes for name in ours.__all__ if hasattr(home, name)]
    for home, name, _ in found:
        setattr(home, name, getattr(ours, name))
    try:
        yield
    finally:
        for home, name, theirs in found:
            setattr(home, name, theirs)


def tests_of(module, about=""):
    """The names of a test module of scikit-learn, of its tests those that name what they are about.

    Parameters
    ----------
    module : str
    about : str
        What the source of a test must name.
    """
    spec = importlib.util.find_spec(module)
    borrowed = importlib.util.module_from_spec(spec)
    borrowed.__name__ = borrowed.__spec__.name = module.replace("sklearn", "borrowed", 1)
    sys.modules[borrowed.__name__] = borrowed
    with in_place_of_theirs():
        spec.loader.exec_module(borrowed)
    return {
        name: value
        for name, value in vars(borrowed).items()
        if name.startswith("test_") and about in inspect.getsource(value) + repr(getattr(value, "pytestmark", ""))
    }

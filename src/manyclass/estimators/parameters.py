"""Parameters that several estimators share: their constraints, their defaults, and what they say in docstrings."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from textwrap import indent
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from manyclass.data import Rows
from manyclass.data.rows import present_rows
from manyclass.data.threads import multiplications

F = TypeVar("F", bound=Callable[..., Any])


def all_or_nothing(method: F) -> F:
    """Restores the estimator if the method raises, unless it is a warning turned into an error, which comes last."""

    @wraps(method)
    def whole(self: Any, *arguments: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *arguments, **options)
        except BaseException as error:
            if not isinstance(error, Warning):
                vars(self).clear()
                vars(self).update(before)
            raise

    return cast(F, whole)


checks_parameters: Callable[[F], F] = _fit_context(prefer_skip_nested_validation=True)
available: Callable[[Callable[[Any], bool]], Callable[[F], F]] = available_if
"""scikit-learn's decorators, with types that keep the type of the method."""

CLASS_WEIGHT: dict[str, list[Any]] = {"class_weight": [dict, list, StrOptions({"balanced"}), None]}

CHOSEN_ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]}

SCALE = "scale"
"""The value of ``alpha`` that asks for a penalty in the unit of the columns."""
SCALED_ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="left"), StrOptions({SCALE})]}
POSITIVE_ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({SCALE})]}


def is_scaled(estimator: Any) -> bool:
    """Whether its penalty follows from the unit of the columns."""
    return getattr(estimator, "alpha", None) == SCALE


RUN: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left")],
    "fit_intercept": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}
"""Constraints of the parameters that mean the same in every estimator."""


@dataclass(eq=False, repr=False, kw_only=True)
class Timed:
    """Parameters of every fit."""

    fit_intercept: bool = True
    max_time: float | None = None
    random_state: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class HoldsOut(Timed):
    """Parameters of fits that can hold rows out to decide when to stop."""

    early_stopping: Any = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5


@dataclass(eq=False, repr=False, kw_only=True)
class Balanced:
    """Parameters of classifiers."""

    class_weight: Any = None


VISIT, EPOCH = 300, 100_000
"""The overhead of a visit of a row, and of an epoch, in multiplications."""


def epochs(
    max_iter: float | str, rows: Rows, weight: Any, n_outputs: int, least: int, most_multiplications: float
) -> float:
    """`max_iter`; "auto" is `least`, or, for few rows, as many epochs as `most_multiplications` allow."""
    if max_iter != "auto":
        return float(max_iter)
    n_visited = rows.n_rows if weight is None else len(present_rows(rows.n_rows, weight))
    epoch = (multiplications(rows, n_outputs) / rows.n_rows + VISIT) * n_visited + EPOCH
    return max(least, int(most_multiplications / epoch))


def seed_of(random_state: Any) -> int:
    """A seed from scikit-learn's random_state; None means a fixed one, so that results repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def generator(random_state: Any) -> np.random.Generator:
    """A generator from scikit-learn's random_state; see `seed_of`."""
    return np.random.default_rng(seed_of(random_state))


_SHARED_PARAMETERS = {
    "fit_intercept": """bool, default=True
    Whether there is an intercept, which is never penalised.""",
    "class_weight": """dict, list of dict, "balanced" or None, default=None
    Multiplies the sample weights, as in scikit-learn; for several labels, a list with a dict for each.""",
    "max_time": """float, default=None
    Limit in seconds, set-up included; the best model so far is kept.""",
    "early_stopping": """bool, default=False
    Hold rows out, stop when their mean loss no longer falls, and keep the model with the smallest.""",
    "validation_fraction": """float, default=0.1
    Share of the rows held out.""",
    "n_iter_no_change": """int, default=5
    Stop after so many iterations without a smaller loss of the held-out rows.""",
    "warm_start": """bool, default=False
    Start from the present model if it fits the data.""",
    "random_state": """int, RandomState or None, default=None
    Seeds all that is random; None means a fixed seed, so that results repeat.""",
}
_SHARED_ATTRIBUTES = {
    "classes_": """array of shape (n_classes,)
    Of classifiers: the labels, sorted; for multi-label targets the column numbers.""",
    "loss_": """str
    The loss in use.""",
    "alpha_": """float
    The penalty in use.""",
    "multilabel_": """bool
    Of classifiers: whether y was an indicator matrix.""",
    "status_": """Status
    Why the fit ended; ``str(status_)`` says what to do.""",
    "history_": """list of Record
    One record per iteration: n_iter, n_passes, seconds, objective, duality_gap, validation_score, details.""",
    "n_iter_": """int
    Iterations: what ``max_iter`` limits.""",
    "n_passes_": """float
    Passes over the rows.""",
    "n_features_in_": """int""",
    "feature_names_in_": """ndarray of shape (n_features,)""",
}


def complete_docstring(doc: str, estimator: type) -> str:
    """Complete a docstring with the parameters and attributes that mean the same in every estimator.

    A line ``<shared>`` in the list of parameters stands for those that the docstring does not explain itself; one in
    the list of attributes stands for those of every fit.
    """
    explained = set(re.findall(r"^    (\w+) : ", doc, flags=re.MULTILINE))
    own = {name: text for name, text in _SHARED_PARAMETERS.items() if hasattr(estimator, name)}
    for shared in (own, _SHARED_ATTRIBUTES):
        entries = (f"{name} : {text}" for name, text in shared.items() if name not in explained)
        doc = doc.replace("    <shared>\n", indent("\n".join(entries), "    ") + "\n", 1)
    return doc

"""Parameters that several estimators share: what they may be, and what random_state means."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

CLASS_WEIGHT: dict[str, list[Any]] = {"class_weight": [dict, StrOptions({"balanced"}), None]}

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
"""Constraints of what means the same in every estimator."""


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

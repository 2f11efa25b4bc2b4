"""scikit-learn's estimator checks, each where it can turn out otherwise."""

import re

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

OF_NUMBERS = re.compile(
    "check_.*(equivalence|invariance|idempotent|consistency|one_label|fit2d_1|dtypes|sparse_array"
    "|classifiers_classes|classifiers_train|output_format|n_iter|transformer_general)"
)
"""Checks whose outcome can depend on the method; what else is checked is the business of the base class."""
WEIGHT_CHECKS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
ELSEWHERE = re.compile("check_estimator_sparse_matrix")
"""A matrix is read as its array (tests/data/test_rows.py)."""


def checks(estimator, failures, exact=None, which=None, elsewhere=ELSEWHERE):
    """One parameter set for each check of an estimator; `exact` are options for the checks of weights."""
    for case in estimator_checks_generator(estimator, expected_failed_checks=failures, mark="xfail"):
        values, marks = (case.values, case.marks) if hasattr(case, "values") else (case, ())
        name = values[1].func.__name__
        if (which is None or which.match(name)) and not elsewhere.match(name):
            given = clone(estimator).set_params(**exact) if exact and name in WEIGHT_CHECKS else values[0]
            yield pytest.param(given, values[1], marks=marks)

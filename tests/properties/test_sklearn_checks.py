"""scikit-learn's own estimator checks: all of them for every estimator, those of numbers for every way it goes."""

import re

import pytest
from sklearn.utils.estimator_checks import _get_check_estimator_ids

import manyclass
from manyclass import (
    BoundMajorizationClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    GLMClassifierCV,
    PegasosClassifier,
    SDCAClassifier,
    SDCARegressor,
    StagewiseClassifier,
    StagewiseRegressor,
)
from tests.checks import ELSEWHERE, OF_NUMBERS, WEIGHT_CHECKS, checks

SMALL = {"n_components": 40, "block_size": 20}

NO_SUMS = {"check_fit_score_takes_y": "partial_fit after fit is refused, as fit keeps no sums to add to"}
# A weight scales the gradient of its row's draw and a repeated row is drawn more often: the same in expectation (see
# test_pegasos.py), not on one path.
STOCHASTIC = dict.fromkeys(
    WEIGHT_CHECKS, "a weighted row takes other steps than a repeated one; the two agree in expectation only"
)
OTHER_ORDER = dict.fromkeys(
    WEIGHT_CHECKS,
    "weights and repetitions are two orders of coordinates that agree to tol, where the check asks for seven digits; "
    "they are compared to tol in test_sdca_optimum.py::test_weights_are_repetitions",
)

# The weight checks compare two fits to seven digits; only sums of squares can be judged so finely by a dual gap.
EXACT_DUAL = {"tol": 1e-20, "max_iter": 100_000}
EXACT_BOUND = {"tol": 1e-22}
# Which method is estimated to be the fastest depends on the number of rows held, and models agree to tol only.
ONE_METHOD = {"solver": "newton"}

WHOLE = [
    # estimator, checks that fail and why, options for the weight checks
    (GLMClassifier(), {}, ONE_METHOD),
    (GLMClassifierCV(loss="squared", alphas=4), {}, {}),
    (CalibratedLeastSquaresClassifier(max_iter=5), NO_SUMS, {}),
    (StagewiseClassifier(**SMALL, alpha=1e-4), {}, {}),
    (StagewiseRegressor(**SMALL, alpha=1e-4), {}, {}),
    (PegasosClassifier(max_iter=50), STOCHASTIC, {}),
    (SDCAClassifier(), OTHER_ORDER, {}),
    (SDCARegressor(), {}, EXACT_DUAL),
    (BoundMajorizationClassifier(alpha=0.3), {}, EXACT_BOUND),
]
# What else can be chosen has its properties in `registry` and in tests/estimators.
OTHER_WAYS = [
    (GLMClassifier(loss="logistic", curvature="diagonal"), {}, ONE_METHOD),
    (StagewiseClassifier(**SMALL, alpha=1e-1, loss="calibrated"), {}, {}),
    (
        PegasosClassifier(loss="perceptron", max_iter=10.5, early_stopping=True, validation_fraction=0.3),
        STOCHASTIC,
        {},
    ),
    (BoundMajorizationClassifier(method="stochastic", alpha=0.3), {}, EXACT_BOUND),
]


COMPILED = (PegasosClassifier, SDCAClassifier, SDCARegressor)
# Their loops are compiled anew for each kind of number: see tests/data/test_rows.py and test_kinds_of_numbers.py.
ELSEWHERE_TOO = re.compile(f"{ELSEWHERE.pattern}|check_estimators_dtypes")


def cases(instances, which=None):
    for estimator, failures, exact in instances:
        elsewhere = ELSEWHERE_TOO if isinstance(estimator, COMPILED) else ELSEWHERE
        yield from checks(estimator, failures, exact, which, elsewhere)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [*cases(WHOLE), *cases(OTHER_WAYS, OF_NUMBERS)],
    ids=_get_check_estimator_ids,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked_in_full():
    checked = {type(estimator).__name__ for estimator, *_ in WHOLE}
    # AutoClassifier has its checks in tests/estimators, with fewer candidates than it has.
    assert checked == set(manyclass.__all__) - {"ClassMoments", "Moments", "analyze", "AutoClassifier"}

"""What every estimator says of how its fit ended."""

import warnings

import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import manyclass
from manyclass.solvers import Record, Status
from tests.problems import ESTIMATORS

X, y = load_iris(return_X_y=True)
LONG = {"tol": 1e-2, "max_iter": 1000}
SHORT = {"max_iter": 1, "tol": 0.0, "max_time": 1e-9}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("limits", [LONG, SHORT], ids=["long", "short"])
def test_a_warning_comes_if_and_only_if_the_status_is_a_failure(name, limits):
    model = getattr(manyclass, name)(**ESTIMATORS[name])
    model.set_params(**{option: value for option, value in limits.items() if option in model.get_params()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert isinstance(model.status_, Status)
    assert len(told) == model.status_.is_failure
    if told:
        assert str(model.status_) in str(told[0].message)
        assert told[0].filename == __file__  # the line that called fit
    assert all(isinstance(record, Record) for record in model.history_)
    assert model.certificate_ == model.history_[-1].certificate
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_status_advises_only_what_the_estimator_has(name):
    model = getattr(manyclass, name)(**ESTIMATORS[name])
    model.set_params(**{option: value for option, value in SHORT.items() if option in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        advice = str(model.fit(X, y).status_)
    for option in ("warm_start", "max_iter", "max_time", "max_steps"):
        assert option not in advice or option in model.get_params()


def test_every_public_estimator_is_among_them():
    assert set(ESTIMATORS) == set(manyclass.__all__) - {"Moments"}

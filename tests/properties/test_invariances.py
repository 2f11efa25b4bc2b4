"""What must not matter: origin and unit of a column, order of rows, names of classes, how a weight is written."""

import numpy as np
import pytest

import manyclass
from manyclass.curvature import CURVATURES
from manyclass.fit import Status
from tests.covering import in_turn
from tests.oracles.objective import objective
from tests.properties import registry
from tests.properties.registry import LAYOUTS, LINEAR, MODELS, data, is_regressor, make, plain

POINT = 0.015
"""Difference of two scores on 2000 rows that is no difference: a standard error is 0.01."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*compile:RuntimeWarning"),
]
CLASSIFIERS = [model for model in MODELS if not is_regressor(model)]


def every_model(names, *levels, models=tuple(MODELS), start=0):
    """Every model with one combination of the levels."""
    return pytest.mark.parametrize(("model", *names.split()), in_turn(models, *levels, start=start), ids=str)


def assert_same(model, changed, X, y, reference):
    """The same score, and, where a duality gap bounds the distance from the minimum, the same objective."""
    fitted, score = reference
    assert changed.score(X, y) == pytest.approx(score, abs=POINT)
    if hasattr(fitted, "duality_gap_") and hasattr(changed, "duality_gap_"):
        gap = fitted.duality_gap_ + changed.duality_gap_
        objectives = [min(r.objective for r in found.history_) for found in (fitted, changed)]
        assert objectives[0] == pytest.approx(objectives[1], abs=gap * at_zero(fitted, model) + 1e-5)


def at_zero(fitted, model):
    """F of the zero model on the training rows of the registry."""
    X, y, *_ = data(model)
    epsilon = fitted.get_params().get("epsilon")
    return objective(fitted.loss_, X, y, 0.0, 0 * np.atleast_2d(fitted.coef_), 0.0, epsilon=epsilon)


def test_every_public_estimator_is_among_them():
    names = {model.split()[0] for model in MODELS}
    assert names == set(manyclass.__all__) - {"ClassMoments", "Moments", "analyze", "AutoClassifier", "GLMClassifierCV"}


@every_model("layout", ["float64", "float32"])
def test_columns_may_lie_a_thousand_standard_deviations_from_the_origin(model, layout):
    X, y, X_test, y_test = data(model)
    fitted, score = plain(model, layout)
    offset = 1e3 * np.resize([1, -1, 1, 0], X.shape[1])
    held = LAYOUTS[layout]
    moved = make(model).fit(held(X + offset), y)
    assert moved.score(held(X_test + offset), y_test) == pytest.approx(score, abs=POINT)
    assert moved.n_iter_ <= 1.5 * fitted.n_iter_ + 1


@every_model("origin", [5.5e6, 1.6e7])
def test_whole_numbers_that_differ_are_no_rounding_however_far_from_the_origin(model, origin):
    X, y, X_test, y_test = (np.round(10 * part) if part.ndim == 2 else part for part in data(model))
    moved = [part + origin - origin % 2 for part in (X, X_test)]
    model = make(model).set_params(alpha=0.1)
    score = model.fit(X, y).score(X_test, y_test)
    narrow = [part.astype(np.float32) for part in moved]
    assert all(np.abs(held - part).max() <= 1 for held, part in zip(narrow, moved, strict=True))
    assert model.fit(narrow[0], y).score(narrow[1], y_test) > score - 3 * POINT


@every_model("layout scale", LAYOUTS, [1e-4, 1e4])
def test_the_unit_of_the_columns_is_that_of_the_penalty(model, layout, scale):
    X, y, X_test, y_test = data(model)
    held = LAYOUTS[layout]
    alpha = make(model).alpha * (scale**2 if model in LINEAR else 1.0)
    scaled = make(model, alpha=alpha).fit(held(scale * X), y)
    reference = plain(model, layout)
    assert_same(model, scaled, held(scale * X_test), y_test, reference)
    assert scaled.n_iter_ <= 1.5 * reference[0].n_iter_ + 1


@pytest.mark.parametrize("model", ["GLMClassifier", "GLMClassifier squared", "GLMClassifier sparsemax"])
def test_without_a_penalty_each_column_has_a_unit_of_its_own(model):
    X, y, X_test, _ = data(model)
    units = np.logspace(-3, 3, X.shape[1])
    one, other = (make(model, alpha=0.0, tol=1e-6).fit(X * unit, y) for unit in (1.0, units))
    np.testing.assert_allclose(other.decision_function(X_test * units), one.decision_function(X_test), atol=0.05)


@every_model("layout", LAYOUTS, start=0)
def test_rows_may_come_in_any_order(model, layout):
    X, y, X_test, y_test = data(model)
    held, order = LAYOUTS[layout], np.random.default_rng(1).permutation(len(y))
    permuted = make(model).fit(held(X[order]), y[order])
    assert_same(model, permuted, held(X_test), y_test, plain(model, layout))


@every_model("names", [["apple", "pear", "quince"], [-70, -2, 4000], [0.0, 1.0, 2.0]], models=CLASSIFIERS)
def test_the_names_of_the_classes_do_not_matter(model, names):
    X, y, X_test, _ = data(model)
    fitted, _ = plain(model, "float64")
    names = np.array(names)
    renamed = make(model).fit(X, names[y])
    np.testing.assert_array_equal(renamed.classes_, names)
    np.testing.assert_array_equal(renamed.predict(X_test), names[fitted.predict(X_test)])


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_the_order_of_the_classes_does_not_matter(model):
    X, y, X_test, y_test = data(model)
    turned = make(model).fit(X, registry.K - 1 - y)
    assert_same(model, turned, X_test, registry.K - 1 - y_test, plain(model, "float64"))


@every_model("layout", LAYOUTS, start=1)
def test_a_weight_is_a_number_of_repetitions(model, layout):
    X, y, X_test, y_test = data(model)
    held, times = LAYOUTS[layout], np.random.default_rng(2).integers(0, 3, len(y))
    repeated = make(model).fit(held(np.repeat(X, times, axis=0)), np.repeat(y, times))
    weighted = make(model).fit(held(X), y, sample_weight=times)
    reference = repeated, repeated.score(held(X_test), y_test)
    assert_same(model, weighted, held(X_test), y_test, reference)


HOLDS_ROWS_OUT = [
    model for model in CLASSIFIERS if model in manyclass.__all__ and hasattr(make(model), "early_stopping")
]


@pytest.mark.parametrize(
    ("model", "early_stopping"),
    [(model, held) for held in (False, True) for model in (CLASSIFIERS, HOLDS_ROWS_OUT)[held]],
)
def test_a_class_of_two_rows_harms_no_other(model, early_stopping):
    X, y, X_test, y_test = data(model)
    options = {"early_stopping": True} if early_stopping else {}
    others = np.flatnonzero(y < 2)[:1000]
    X, y = X[others].copy(), y[others].copy()
    alone = make(model, **options).fit(X, y)
    y[-2:] = 2
    fitted = make(model, **options).fit(X, y)
    seen = y_test < 2
    expected = alone.score(X_test[seen], y_test[seen])
    assert fitted.score(X_test[seen], y_test[seen]) >= expected - 2 * POINT
    assert np.isfinite(fitted.decision_function(X_test)).all()


@every_model("layout", LAYOUTS, start=2)
def test_columns_that_say_nothing_do_no_harm(model, layout):
    X, y, X_test, y_test = data(model)
    held = LAYOUTS[layout]

    def more(A):
        return np.c_[A, A[:, :2], np.full(len(A), 5.0), np.zeros(len(A))]

    fitted = make(model).fit(held(more(X)), y)
    # Columns given twice are penalised half as much, and weigh more in a distance.
    slack = 3 * POINT if model.startswith("Stagewise") else POINT
    assert fitted.score(held(more(X_test)), y_test) == pytest.approx(plain(model, layout)[1], abs=slack)


@every_model("constant", [1e12, 1764305400123456789.0], start=1)
def test_a_constant_column_does_no_harm_however_large(model, constant):
    """As the time of a batch, in milliseconds or nanoseconds, whose mean is not what every row holds after rounding."""
    X, y, X_test, y_test = data(model)

    def score(value):
        more, more_test = (np.c_[A, np.full(len(A), value)] for A in (X, X_test))
        return make(model).fit(more, y).score(more_test, y_test)

    assert score(constant) == pytest.approx(score(0.0), abs=POINT)


@every_model("constant", [1e6 / 3, 1e15 / 3], models=CLASSIFIERS)
def test_columns_that_all_are_constant_tell_what_an_intercept_does(model, constant):
    _, y, *_ = data(model)
    one, other = (make(model).fit(np.full((len(y), 2), value), y) for value in (0.0, constant))
    held = np.full((1, 2), constant)
    np.testing.assert_allclose(other.decision_function(held), one.decision_function(0.0 * held), atol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("curvature", ["auto", *CURVATURES])
def test_without_a_penalty_constant_columns_are_left_alone(curvature, layout):
    """Means of 7, 0.1 and 1/3 leave rounding of different size, which a factor would take for curvature."""
    X, y, X_test, _ = data("GLMClassifier")
    held = LAYOUTS[layout]

    def more(A):
        return held(np.c_[A, A[:, :1], np.full((len(A), 3), [7.0, 0.1, 1 / 3]), np.zeros(len(A))])

    own = {} if curvature == "auto" else {"curvature": curvature}
    options = {"alpha": 0.0, "tol": 1e-8 if layout == "float64" else 1e-5, "max_iter": 1000} | own
    reference = make("GLMClassifier", **options).fit(held(X), y)
    fitted = make("GLMClassifier", **options).fit(more(X), y)
    np.testing.assert_allclose(fitted.predict_proba(more(X_test)), reference.predict_proba(held(X_test)), atol=0.02)
    assert np.abs(fitted.coef_).max() < 3.0 * np.abs(reference.coef_).max()
    assert fitted.n_iter_ <= 1.5 * reference.n_iter_ + 3


@pytest.mark.parametrize("curvature", ["auto", "kronecker", "jacobi", "hessian", "sampled-hessian"])
def test_float32_columns_of_any_size_get_their_certificate_at_a_small_penalty(curvature):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 20))
    y = np.argmax(X @ rng.standard_normal((20, 4)) + 2.0 * rng.gumbel(size=(3000, 4)), axis=1)
    units = 10.0 ** rng.uniform(-3, 3, 20)
    fitted = manyclass.GLMClassifier(1e-6, curvature=curvature, max_iter=200).fit((X * units).astype(np.float32), y)
    assert fitted.status_ is Status.CONVERGED


@pytest.mark.parametrize("offset", [400, 40_000])
@every_model("layout", ["csr"], models=CLASSIFIERS)
def test_a_sparse_column_in_float32_may_lie_far_from_the_origin(model, layout, offset):
    """A year beside words, say: what every row holds is shifted."""
    X, y, X_test, y_test = data(model)
    held, offset = LAYOUTS[layout], offset * (np.arange(X.shape[1]) == 0)
    moved = make(model).fit(held(X + offset), y)
    score = plain(model, layout)[1]
    assert moved.score(held(X_test + offset), y_test) == pytest.approx(score, abs=POINT)


IN_WIDE_SUMS = [model for model in CLASSIFIERS if model.startswith(("GLM", "SDCA", "Calibrated"))]


@every_model("offset", [1000, 40_000], models=IN_WIDE_SUMS)
def test_so_it_may_where_a_row_without_weight_lacks_it(model, offset):
    """It is not shifted then, but sums of its squares are in float64, and it does not seem to be constant."""
    X, y, X_test, y_test = data(model)
    held, offset = LAYOUTS["csr"], offset * (np.arange(X.shape[1]) == 0)
    far = X + offset
    far[0, 0] = 0.0
    moved = make(model).fit(held(far), y, np.where(np.arange(len(y)) == 0, 0.0, 1.0))
    assert moved.score(held(X_test + offset), y_test) == pytest.approx(plain(model, "csr")[1], abs=POINT)

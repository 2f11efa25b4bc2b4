"""Rows of weight 0 are as rows that are not there."""

import numpy as np
import pytest
import scipy.sparse as sp

import manyclass
from manyclass import CalibratedLeastSquaresClassifier, ClassMoments, GLMClassifier, Moments, SDCAClassifier
from manyclass.features import RandomFourierFeatures, RandomPolynomials
from tests.properties.registry import MODELS, make


@pytest.mark.parametrize("model", [name for name in MODELS if "Regressor" not in name])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_they_do_not_decide_where_the_origin_is(model, kind, rng):
    """As the first and the last rows of a file, which are looked at first."""
    X = (rng.standard_normal((2600, 5)) + 3.0).astype(np.float32)
    y, weight = (X[:, 0] + X[:, 1] > 6.0).astype(int), np.zeros(2600)
    weight[1100:1500] = 1.0
    X[weight == 0] += np.float32(1e8)
    fitted = make(model).fit(kind(X), y, sample_weight=weight)
    assert fitted.score(kind(X[1100:1500]), y[1100:1500]) > 0.85


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_they_take_no_epochs_of_dual_ascent(loss, rng):
    X = rng.standard_normal((10_000, 40))
    y = (X @ rng.standard_normal(40) + 3.0 * rng.standard_normal(10_000) > 0).astype(int)
    some = np.sort(rng.permutation(10_000)[:300])
    weight = np.zeros(10_000)
    weight[some] = 1.0
    model = SDCAClassifier(loss, alpha=1e-3, tol=1e-4, max_iter=1000, random_state=0)
    alone = model.fit(X[some], y[some]).n_iter_
    assert model.fit(X, y, sample_weight=weight).n_iter_ <= 1.2 * alone + 2


def test_curvature_is_sampled_among_the_others(rng):
    X = rng.standard_normal((30_000, 12))
    y = (X @ rng.standard_normal((12, 5)) + rng.gumbel(size=(30_000, 5))).argmax(axis=1)
    some = np.sort(rng.permutation(30_000)[:300])
    weight = np.zeros(30_000)
    weight[some] = 1.0
    model = GLMClassifier(1e-3, solver="quasi-newton", curvature="kronecker", tol=1e-6, random_state=0)
    alone = model.fit(X[some], y[some]).n_iter_
    assert model.fit(X, y, sample_weight=weight).n_iter_ <= 1.2 * alone + 2


@pytest.mark.parametrize("model", ["CalibratedLeastSquaresClassifier", "StagewiseRegressor"])
def test_of_many_words_few_rows_may_have_weight(model, rng):
    X = sp.random_array((4500, 6000), density=2e-3, format="csr", rng=rng)
    weight = np.zeros(4500)
    weight[:400] = 1.0
    fitted = getattr(manyclass, model)().fit(X, rng.integers(0, 2, 4500), sample_weight=weight)
    assert fitted.alpha_ > 0


def test_columns_of_one_number_are_constant_whatever_the_weights(rng):
    generator = RandomPolynomials(random_state=0).fit(np.full((500, 3), 3.3), sample_weight=rng.random(500))
    assert generator.gamma_ == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e6, 1e12, 1e20])
def test_a_response_of_no_weight_costs_moments_no_digits(dtype, size, rng):
    X = rng.standard_normal((500, 3)).astype(dtype)
    Y, weight = X.astype(np.float64) @ np.array([[1.0], [2.0], [3.0]]), np.ones(500)
    Y[0], weight[0] = size, 0.0
    coef, _ = Moments.zeros(3, 1).partial_fit(X, Y, weight).solve(0.0)
    np.testing.assert_allclose(coef[:, 0], [1.0, 2.0, 3.0], rtol=1e-5)


def test_responses_far_from_the_origin_cost_moments_of_float32_no_digits(rng):
    X = rng.standard_normal((500, 3)).astype(np.float32)
    Y = 1e8 + X.astype(np.float64) @ np.array([[1.0], [2.0], [3.0]])
    coef, _ = Moments.zeros(3, 1).partial_fit(X, Y).solve(0.0)
    np.testing.assert_allclose(coef[:, 0], [1.0, 2.0, 3.0], rtol=1e-5)


def test_they_take_no_places_among_the_rows_that_are_kept(rng):
    X, y = rng.standard_normal((800, 4)), rng.integers(0, 3, 800)
    X[y == 1] += 1.0
    weight = np.where(np.arange(800) % 4 == 0, 1.0, 0.0)
    some, all_rows = (CalibratedLeastSquaresClassifier(kept_rows=300) for _ in range(2))
    for part in (slice(0, 400), slice(400, 800)):
        told = part.start + np.flatnonzero(weight[part])
        some.partial_fit(X[told], y[told], classes=np.arange(3))
        all_rows.partial_fit(X[part], y[part], sample_weight=weight[part], classes=np.arange(3))
    np.testing.assert_allclose(all_rows.predict_proba(X), some.predict_proba(X), atol=1e-10)


def test_no_rows_at_all_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="y holds no labels"):
        ClassMoments.of(np.zeros((0, 2)), [])


def test_sparse_responses_are_those_of_their_array(rng):
    X, Y = rng.standard_normal((30, 2)), (rng.random((30, 3)) > 0.7).astype(float)
    dense, sparse = (Moments.zeros(2, 3).partial_fit(X, given).solve(0.1)[0] for given in (Y, sp.csr_array(Y)))
    np.testing.assert_array_equal(dense, sparse)


@pytest.mark.parametrize("seed", [0, 4])
def test_they_do_not_doubt_a_calibration(seed):
    """Whether a steep link gains is the question of the rows that count."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    model = SDCAClassifier("hinge", alpha=1e4, calibrate="sigmoid")
    alone = model.fit(X, y).predict_proba(X)
    beside = model.fit(np.r_[X, X[:1]], np.r_[y, y[:1]], np.r_[np.ones(300), 0.0]).predict_proba(X)
    np.testing.assert_allclose(beside, alone, atol=1e-6)


def test_they_are_no_copies_of_others(rng):
    X = rng.standard_normal((200, 4))
    X = np.r_[X, X, X, rng.standard_normal((300, 4))]
    y, weight = (X[:, 0] > 0).astype(int), np.r_[np.ones(900), np.zeros(200)]
    model = manyclass.StagewiseClassifier(RandomFourierFeatures(), n_components=512, block_size=256, random_state=0)
    alone = model.fit(X, y).alpha_
    beside = model.fit(np.r_[X, X[:200]], np.r_[y, 1 - y[:200]], weight).alpha_
    assert beside == pytest.approx(alone)


def test_they_do_not_decide_how_penalties_are_compared(rng):
    """Few rows are cross-validated, and of many some are held out."""
    X, weight = rng.standard_normal((10_500, 4)), np.zeros(10_500)
    y = (X[:, 0] + rng.standard_normal(10_500) > 0).astype(int)
    weight[:300] = 1.0
    model = CalibratedLeastSquaresClassifier(random_state=0)
    alone = model.fit(X[:300], y[:300]).predict_proba(X)
    np.testing.assert_allclose(model.fit(X, y, weight).predict_proba(X), alone, atol=1e-8)

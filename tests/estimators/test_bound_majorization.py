"""What users see of bound majorization: optima, awkward data, refusals."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from manyclass import BoundMajorizationClassifier, GLMClassifier
from manyclass.data import as_rows
from manyclass.fit import Clock, Status
from tests.covering import every_pair, in_turn
from tests.problems import rows

VARIANTS = {
    "batch": {"method": "batch", "max_iter": 1000},
    "batch, paper": {"method": "batch", "step": "paper", "max_iter": 1000},
    "paper": {"method": "stochastic", "step": "paper", "max_iter": 12},
    "refreshed": {"method": "stochastic", "step": "refreshed", "max_iter": 200},
    "rank": {"rank": 3, "step": 5.0, "max_iter": 12},
    "rank, refreshed": {"rank": 3, "step": "refreshed", "max_iter": 12},
}
BATCH = ["batch", "batch, paper"]
EXACT = [*BATCH, "refreshed"]


def fitted(variant, X, y, sample_weight=None, **options):
    model = BoundMajorizationClassifier(**{"alpha": 0.02, "tol": 1e-6, **VARIANTS[variant], **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("options", "load"),
    in_turn([{}, {"fit_intercept": False}, {"early_stopping": True}], [load_iris, load_breast_cancer]),
)
def test_batch_is_majorization_by_the_partition_bound(load, options):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    common = {"alpha": 0.02, "tol": 1e-6, "max_iter": 100, **options}
    glm = GLMClassifier(solver="majorize", curvature="partition-bound", **common).fit(X, y)
    ours = BoundMajorizationClassifier("batch", **common).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, glm.coef_)
    np.testing.assert_array_equal(ours.intercept_, glm.intercept_)
    assert (ours.status_, ours.n_iter_, ours.n_passes_) == (glm.status_, glm.n_iter_, glm.n_passes_)


def test_two_columns_at_twice_the_penalty_are_our_one():
    """The paper's J for two classes has a column for each, so its λ is 2·alpha·S there and alpha·S for more classes."""
    X, y = load_breast_cancer(return_X_y=True)
    X, alpha = StandardScaler().fit_transform(X[:, :4]), 0.05

    def minus_j(flat):
        Z = X @ flat.reshape(4, 2)
        return np.sum(np.logaddexp(*Z.T) - Z[np.arange(len(y)), y]) + alpha * len(y) * flat @ flat

    two = minimize(minus_j, np.zeros(8), method="BFGS", options={"gtol": 1e-6}).x.reshape(4, 2)
    one = fitted("batch", X, y, alpha=alpha, fit_intercept=False, tol=1e-10).coef_[0]
    np.testing.assert_allclose(two[:, 1] - two[:, 0], one, atol=1e-4)


@pytest.mark.parametrize(
    ("variant", "load", "fit_intercept"), every_pair(EXACT, [load_iris, load_breast_cancer], [False, True])
)
def test_reaches_the_optimum_of_glm_classifier(variant, load, fit_intercept):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"alpha": 0.02, "fit_intercept": fit_intercept}
    glm = GLMClassifier(tol=1e-13, max_iter=1000, **options).fit(X, y)
    ours = fitted(variant, X, y, tol=1e-13, **{**options, "max_iter": 1000})
    np.testing.assert_allclose(ours.coef_, glm.coef_, atol=1e-5)
    # A softmax leaves the sum of the intercepts free.
    shift = (ours.intercept_ - glm.intercept_).mean() if len(glm.intercept_) > 1 else 0.0
    np.testing.assert_allclose(ours.intercept_ - shift, glm.intercept_, atol=1e-5)
    assert ours.history_[-1].objective == pytest.approx(glm.history_[-1].objective, abs=1e-10)


@pytest.mark.parametrize(("variant", "sparse"), every_pair(EXACT, [False, True]))
def test_more_features_than_rows_cost_no_more_than_rows(variant, sparse, rng):
    """All 9 000 parameters together would take a matrix of 0.6 GB; those of 30 rows have one of 0.1 MB."""
    X, y = rng.standard_normal((30, 3000)) + 2.0, np.arange(30) % 3
    X = sp.csr_array(np.where(rng.random(X.shape) < 0.1, X, 0.0)) if sparse else X
    X = X / np.sqrt(X.shape[1])
    glm = GLMClassifier(alpha=0.02, tol=1e-12, max_iter=1000).fit(X, y)
    tracemalloc.start()
    ours = fitted(variant, X, y, max_iter=100)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert ours.duality_gap_ <= 1e-6
    np.testing.assert_allclose(ours.coef_, glm.coef_, atol=0.01 * np.abs(glm.coef_).max())
    if variant in BATCH:  # the statistics of the stochastic one start empty
        assert ours.set_params(warm_start=True).fit(X, y).history_[0].duality_gap <= 1e-5


@pytest.mark.parametrize("variant", BATCH)
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
def test_batch_never_rises_on_rows_of_many_scales(variant, alpha):
    X, y, weight = rows()
    values = np.array([r.objective for r in fitted(variant, 10 * X, y, weight, alpha=alpha, max_iter=80).history_])
    assert (np.diff(values) <= 1e-12 * values[0]).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_learns_digits(variant):
    X, y = load_digits(return_X_y=True)
    model = fitted(variant, X[:500, 8:40] / 16, y[:500], alpha=1e-3, max_iter=6, tol=0)
    assert model.score(X[1000:, 8:40] / 16, y[1000:]) > (0.55 if "rank" in variant else 0.75)


@pytest.mark.parametrize("variant", VARIANTS)
def test_duality_gap_bounds_the_distance_from_the_optimum(variant, iris):
    X, y = iris
    best = GLMClassifier(alpha=0.02, tol=1e-12, max_iter=1000).fit(X, y).history_[-1].objective
    for record in fitted(variant, X, y).history_:
        assert -1e-9 <= record.objective - best <= record.duality_gap * np.log(3) * (1 + 1e-9) + 1e-12


# -- awkward data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "alpha"), in_turn(VARIANTS, [0.0, 0.02]))
def test_constant_and_duplicated_columns(variant, alpha, iris):
    X, y = iris
    X = np.c_[X, X[:, :1], np.full(len(X), 7.0), np.zeros(len(X))]
    model = fitted(variant, X, y, alpha=alpha)
    assert np.isfinite(model.coef_).all() and model.score(X, y) > 0.8
    assert np.abs(model.coef_[:, -1]).max() < 1e-12


@pytest.mark.parametrize("variant", EXACT)
def test_duplicated_columns_share_one_coefficient(variant, iris):
    X, y = iris
    coef = fitted(variant, np.c_[X, X[:, :1]], y, tol=1e-10, max_iter=1000).coef_
    np.testing.assert_allclose(coef[:, 0], coef[:, -1], atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_row_a_class(variant):
    model = fitted(variant, 3 * np.eye(4), ["a", "b", "c", "d"])
    assert list(model.predict(np.eye(4))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("variant", "k"), in_turn(VARIANTS, [2, 3]))
def test_more_features_than_rows(variant, k, rng):
    X, y = rng.standard_normal((12, 60)), np.arange(12) % k
    assert fitted(variant, X, y).score(X, y) > 0.9


@pytest.mark.parametrize(("variant", "index_dtype"), in_turn(VARIANTS, [np.int32, np.int64]))
def test_sparse_rows_of_either_index_width_mean_the_same(variant, index_dtype, rng):
    X, y, _ = rows()
    X *= rng.random(X.shape) < 0.5
    X[3] = 0.0
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(index_dtype), S.indptr.astype(index_dtype)
    dense, sparse = fitted(variant, X, y, tol=0, max_iter=3), fitted(variant, S, y, tol=0, max_iter=3)
    # Only the batch method centres dense and sparse rows differently, and that changes no limit.
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-7 * np.abs(dense.coef_).max())
    np.testing.assert_allclose(sparse.predict_proba(S), dense.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize(("variant", "scale"), [*((v, 1e8) for v in VARIANTS), *((v, 1e-8) for v in EXACT)])
def test_huge_and_tiny_numbers(variant, scale, iris):
    """Scores beyond exp's range, and rows far below alpha."""
    X, y = iris
    model = fitted(variant, scale * X, y, alpha=1e-4, max_iter=min(100, VARIANTS[variant]["max_iter"]))
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict_proba(scale * X)).all()
    assert all(np.isfinite(r.objective) for r in model.history_)
    if scale > 1:
        assert model.score(scale * X, y) > 0.75


@pytest.mark.parametrize("variant", VARIANTS)
def test_float32_rows_give_a_float32_model_near_the_float64_one(variant, iris):
    X, y = iris
    narrow, wide = fitted(variant, X.astype(np.float32), y), fitted(variant, X, y)
    assert narrow.coef_.dtype == narrow.predict_proba(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=2e-2 * np.abs(wide.coef_).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights(variant, iris):
    """A row of weight zero is not there; the scale of all weights means nothing."""
    X, y = iris
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    strange = X.copy()
    strange[weight == 0] += 50.0
    options = {"tol": 1e-11, "max_iter": 1000} if variant in BATCH else {"tol": 0, "max_iter": 3}
    one, other = (fitted(variant, X, y, scale * weight, **options).coef_ for scale in (1.0, 1e3))
    np.testing.assert_allclose(one, other, atol=1e-4 if variant in BATCH else 1e-9)
    np.testing.assert_allclose(fitted(variant, strange, y, weight, **options).coef_, one, atol=1e-4)


@pytest.mark.parametrize("variant", EXACT)
def test_weights_are_repetitions_at_the_optimum(variant, iris):
    X, y = iris
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = fitted(variant, X, y, times, tol=1e-12, max_iter=1000)
    repeated = fitted(variant, np.repeat(X, times, axis=0), np.repeat(y, times), tol=1e-12, max_iter=1000)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_model_other_seed_other_order(variant, iris):
    X, y = iris
    one, same, other = (fitted(variant, X, y, max_iter=2, tol=0, random_state=s).coef_ for s in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert variant in BATCH or np.abs(one - other).max() > 1e-8


def test_labels_unseen_in_training_are_simply_wrong(iris):
    X, y = iris
    model = fitted("batch", X, y)
    assert model.score(X, np.where(y == 1, 9, y)) == pytest.approx(
        np.mean(model.predict(X)[y != 1] == y[y != 1]) * 2 / 3
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_indicator_matrix(variant, iris):
    X, y = iris
    Y = np.c_[y == 0, y != 1, X[:, 0] > 0].astype(int)
    model = fitted(variant, X, Y)
    assert model.predict(X).shape == Y.shape and (model.predict(X) == Y).mean() > 0.8
    assert model.multilabel_


# -- refusals and options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X, np.zeros(len(y))), "class"),
        (lambda X, y: (np.where(X > 1, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X > 1, np.inf, X), y), "infinity"),
        (lambda X, y: (X[:-1], y), "inconsistent"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (X[:, 0], y), "2D array"),
    ],
)
def test_bad_rows_are_refused(spoil, message, iris):
    with pytest.raises(ValueError, match=message):
        fitted("paper", *spoil(*iris))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method"),
        ({"rank": 0}, "rank"),
        ({"method": "batch", "rank": 2}, "rank belongs to method='stochastic'"),
        ({"method": "batch", "step": 2.0}, "step belongs to method='stochastic'"),
        ({"step": 0.0}, "step"),
        ({"step": "fast"}, "step"),
        ({"alpha": -1.0}, "alpha"),
    ],
)
def test_bad_parameters_are_refused(options, message, iris):
    with pytest.raises(ValueError, match=message):
        BoundMajorizationClassifier(**options).fit(*iris)


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_bad_weights_are_refused(weight, iris):
    X, y = iris
    with pytest.raises(ValueError, match="weight"):
        fitted("paper", X, y, np.where(np.arange(len(y)) == 5, weight, 1.0))


@pytest.mark.parametrize("variant", ["batch, paper", "paper", "refreshed"])
def test_too_many_parameters_for_a_full_curvature_say_what_would_work(variant):
    X, y = sp.eye_array(5000, format="csr"), np.arange(5000) % 3
    with pytest.raises(ValueError, match=r"as it comes.*rank=1 to 20"):
        fitted(variant, X, y)


def test_too_many_parameters_for_a_full_curvature_have_one_of_low_rank_or_of_the_columns():
    X, y = sp.eye_array(3000, format="csr"), np.arange(3000) % 3
    assert fitted("rank", X, y, max_iter=2).score(X, y) > 0.5
    assert BoundMajorizationClassifier().fit(X, y).score(X, y) == 1.0


# -- as it comes --------------------------------------------------------------------------------------------------


def test_as_it_comes_it_is_the_batch_method_and_says_in_which_metric(iris):
    default, batch = BoundMajorizationClassifier().fit(*iris), BoundMajorizationClassifier("batch").fit(*iris)
    np.testing.assert_array_equal(default.coef_, batch.coef_)
    assert default.choice_["solver"] == "majorize" and default.choice_["estimates"]
    assert not hasattr(BoundMajorizationClassifier("stochastic", max_iter=200).fit(*iris), "choice_")


@pytest.mark.parametrize("asks", [{"rank": 2}, {"step": "paper"}, {"step": 3.0}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_only_the_stochastic_method_has_asks_for_it(asks, iris):
    asked, named = (BoundMajorizationClassifier(method, max_iter=3, **asks) for method in ("auto", "stochastic"))
    np.testing.assert_array_equal(asked.fit(*iris).coef_, named.fit(*iris).coef_)


@pytest.mark.parametrize("kind", ["many classes", "wide sparse", "labels"])
def test_no_number_of_parameters_is_too_many(kind, rng):
    """A matrix of all parameters would take 16 GB, 5 TB and 4 GB; one of all rows of the second 1 GB."""
    n = 600
    if kind == "many classes":
        y = np.arange(n // 2) % 150
        X = rng.standard_normal((150, 300))[y] + 0.3 * rng.standard_normal((len(y), 300))
    elif kind == "wide sparse":
        y, X = np.arange(n) % 20, sp.random_array((n, 39_000), density=1e-3, rng=rng, format="csr")
        X = sp.csr_array(X + sp.csr_array((np.ones(n), (np.arange(n), y)), shape=X.shape))
    else:
        X = rng.standard_normal((n // 2, 150))
        y = (X @ rng.standard_normal((150, 150)) > 0).astype(int)
    tracemalloc.start()
    model = BoundMajorizationClassifier(max_time=60).fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 400e6
    tracemalloc.stop()
    assert model.duality_gap_ <= 1e-3
    best = GLMClassifier(tol=1e-4).fit(X, y).history_[-1].objective
    assert model.history_[-1].objective - best <= 1e-3 * (np.log(len(model.classes_)) if y.ndim == 1 else 150)


def test_early_stopping_keeps_the_best_model(iris):
    X, y = iris
    model = fitted("paper", X, y, early_stopping=True, validation_fraction=0.3, max_iter=60, tol=0, alpha=0.0)
    assert model.status_ is Status.EARLY_STOPPED
    assert len(model.history_) == model.n_iter_ < 60
    best = int(np.argmax([record.validation_score for record in model.history_]))
    shorter = {"early_stopping": True, "validation_fraction": 0.3, "tol": 0, "alpha": 0.0, "max_iter": best + 1}
    np.testing.assert_array_equal(fitted("paper", X, y, **shorter).coef_, model.coef_)


@pytest.mark.parametrize("variant", EXACT)
def test_warm_start_begins_where_the_last_fit_ended(variant, iris):
    X, y = iris
    model = fitted(variant, X, y, tol=1e-9, max_iter=1000, warm_start=True)
    passes, best = model.n_iter_, model.history_[-1].objective
    model.fit(X, y)
    assert model.n_iter_ < passes
    assert model.history_[-1].objective == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("method", ["batch", "stochastic"])
def test_stops_for_time_and_warns(method, iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = BoundMajorizationClassifier(method, max_time=1e-9, tol=0).fit(X, y)
    assert model.status_ is Status.MAX_TIME and np.isfinite(model.coef_).all()


@pytest.mark.parametrize("variant", ["paper", "rank"])
def test_rows_far_from_the_origin(variant):
    """600 float32 rows with mean 1000 and variance 1: as tests/properties has it of the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20))
    y = np.argmax(X[:, :4] + 0.5 * rng.standard_normal((600, 4)), axis=1)
    options = {"tol": 1e-3, "alpha": 1e-3}
    near = fitted(variant, X.astype(np.float32), y, **options)
    far = fitted(variant, (X + 1000.0).astype(np.float32), y, **options)
    assert far.n_iter_ <= 1.5 * near.n_iter_
    difference = far.score((X + 1000.0).astype(np.float32), y) - near.score(X.astype(np.float32), y)
    assert abs(difference) < 0.01


@pytest.mark.parametrize("variant", VARIANTS)
def test_small_fits_take_one_thread(variant):
    """Sharing products as small as those of digits costs more than it saves, far more where a core is busy."""
    X, y = load_digits(return_X_y=True)
    model = BoundMajorizationClassifier(**VARIANTS[variant])
    rows = as_rows(X)
    task = model._task(rows, model._encode(rows, y), None, Clock())
    assert model._n_threads(task.problem) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_origin_of_the_rows_costs_no_steps(variant, dtype):
    X, y = load_iris(return_X_y=True)
    near, far = (fitted(variant, (X - X.mean(axis=0) + offset).astype(dtype), y, tol=1e-3) for offset in (0, 128))
    assert abs(near.n_iter_ - far.n_iter_) <= 1
    np.testing.assert_allclose(far.history_[-1].objective, near.history_[-1].objective, rtol=1e-2)


def test_rows_that_there_is_no_room_to_rotate_are_refused_before_it_is_taken(monkeypatch, rng):
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 1e6)
    model = BoundMajorizationClassifier(step="paper", method="batch")
    with pytest.raises(MemoryError, match=r"rotating the rows .* use step='refreshed'"):
        model.fit(rng.standard_normal((400, 500)), np.arange(400) % 3)

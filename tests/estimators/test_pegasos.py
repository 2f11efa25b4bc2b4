"""PegasosClassifier as its users meet it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from manyclass import GLMClassifier, PegasosClassifier
from manyclass.data import as_rows
from manyclass.estimators.vocabulary import LOSSES_OF
from manyclass.fit import Status
from manyclass.subgradient import Schedule
from tests.covering import in_turn
from tests.oracles import pegasos as oracle

PAPER = {"schedule": "paper", "fit_intercept": False, "tol": 0}
LOSSES = LOSSES_OF["PegasosClassifier"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_classifies_digits(digits, loss):
    X, y = digits
    model = PegasosClassifier(1e-3, loss=loss).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.88
    assert model.coef_.shape == (10, 64) and model.intercept_.shape == (10,)
    assert not hasattr(model, "duality_gap_")


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_columns_of_any_size_take_no_more_epochs(rows, loss, sparse):
    """Steps of one length for all columns are right for the longest alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 10))
    y = np.argmax(X @ rng.standard_normal((10, 3)) + rng.gumbel(size=(2000, 3)), axis=1)
    X *= np.logspace(-3, 3, 10)
    least = GLMClassifier(loss=loss, alpha=1e-7, tol=1e-6).fit(X, y)
    held = sp.csr_array(X) if sparse else X
    own = PegasosClassifier(1e-7, loss=loss, tol=0, max_iter=10).fit(held, y)
    common = PegasosClassifier(1e-7, loss=loss, tol=0, max_iter=10, schedule=Schedule(offset=own.step_offset_))
    assert own.score(held, y) > least.score(X, y) - 0.03
    assert common.fit(held, y).score(held, y) < least.score(X, y) - 0.1


def test_a_number_larger_than_any_seen_before_does_not_throw_the_model_away():
    """The first rows of a stream say little about a column that is mostly zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4)) * [1e-3, 1.0, 1.0, 1e3]
    y = (X @ [1e3, 1.0, 1.0, 1e-3] > 0).astype(int)
    X[3000::50, 3] = 1e9
    model = PegasosClassifier(1e-6, max_iter=3)
    for start in range(0, 4000, 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000], classes=[0, 1])
    usual = np.flatnonzero(X[:, 3] < 1e9)
    assert np.abs(model.coef_[0, 3] * 1e9) < 100
    assert model.score(X[usual], y[usual]) > 0.75


def test_softmax_and_svm_reach_the_optima_of_converged_solvers(rows):
    """The objectives are those the docstring names, in other libraries' units."""
    X, y = rows
    codes = np.searchsorted(["a", "b", "c"], y)
    options = {"alpha": 0.1, "max_iter": 1000, "tol": 0, "fit_intercept": False}
    ours = PegasosClassifier(**options).fit(X, y)
    theirs = LogisticRegression(C=1 / (0.1 * 80), fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=3e-3)
    for loss in ("hinge", "squared_hinge"):
        peer = LinearSVC(C=1 / (0.1 * 80), loss=loss, fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)
        values = [
            oracle.objective(loss, X, codes, 0.1, model.coef_.T)
            for model in (PegasosClassifier(loss=loss, **options).fit(X, y), peer)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_the_softmax_objective_is_that_of_the_other_estimators(rows):
    from manyclass import GLMClassifier

    X, y = rows
    codes = np.searchsorted(["a", "b", "c"], y)
    models = (
        PegasosClassifier(0.1, max_iter=1000, tol=0).fit(X, y),
        GLMClassifier(0.1, tol=1e-8).fit(X, y),
    )
    values = [oracle.objective("softmax", X, codes, 0.1, m.coef_.T, m.intercept_) for m in models]
    assert values[1] - 1e-6 <= values[0] == pytest.approx(values[1], rel=1e-3)


def test_the_papers_variant_is_algorithm_1(rows):
    """T steps of r rows, with "paper" and no intercept: Algorithm 3 on the same draws."""
    from manyclass.subgradient.draws import draw, make_draws

    X, y = rows
    codes = np.searchsorted(["a", "b", "c"], y)
    two_rows = Schedule(offset=0.0, average=False, replace=True, batch_size=2)
    model = PegasosClassifier(
        0.1, loss="crammer_singer", max_iter=25 * 2 / 80, random_state=4, **PAPER | {"schedule": two_rows}
    ).fit(X, y)
    draws = make_draws(80, 4, replace=True)
    batches = [[draw(draws, 2 * t + a) for a in range(2)] for t in range(25)]
    np.testing.assert_allclose(
        model.coef_.T, oracle.algorithm_1("crammer_singer", X, codes, 3, 0.1, batches)[-1], rtol=1e-9, atol=1e-10
    )
    assert model.t_ == 25 and model.status_ is Status.FINISHED
    assert model.n_iter_ == model.n_passes_ == 25 * 2 / 80


def test_whole_epochs_are_whole_numbers(rows):
    X, y = rows
    model = PegasosClassifier(0.1, max_iter=3.0, tol=0).fit(X, y)
    assert isinstance(model.n_iter_, int) and model.n_iter_ == 3 and model.t_ == 240
    assert [record.details["steps"] for record in model.history_] == [80, 160, 240]


def test_a_schedule_says_each_choice_by_itself(rows):
    X, y = rows
    named, spelt = (
        PegasosClassifier(0.1, schedule=schedule, tol=0).fit(X, y)
        for schedule in ("paper", Schedule(0.0, average=False, replace=True))
    )
    np.testing.assert_array_equal(named.coef_, spelt.coef_)
    twin = clone(PegasosClassifier(schedule=Schedule(offset=5.0)))
    assert twin.schedule == Schedule(offset=5.0)
    assert twin.fit(X, y).step_offset_ == 5.0


def test_it_stops_where_the_estimate_of_the_gap_is_small_enough(digits):
    X, y = digits
    model = PegasosClassifier(1e-2, tol=0.05, max_iter=100).fit(X, y)
    gaps = [record.details["estimated_gap"] for record in model.history_]
    assert model.status_ is Status.SETTLED
    assert gaps[-1] <= 0.05 < min(gaps[:-1])


def test_without_an_estimate_there_is_nothing_to_stop_at(rows):
    X, y = rows
    model = PegasosClassifier(loss="perceptron", tol=1e3, max_iter=4).fit(X, y)
    assert model.status_ is Status.FINISHED and model.n_iter_ == 4


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "average"), in_turn(LOSSES, [True, False]))
def test_dense_sparse_and_wide_indices_agree(digits, loss, average):
    X, y = (part[:300] for part in digits)
    options = {"loss": loss, "schedule": Schedule(average=average), "max_iter": 3, "tol": 0}
    narrow = sp.csr_array(X)
    wide = sp.csr_array((narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)), X.shape)
    dense, *others = [PegasosClassifier(1e-2, **options).fit(rows, y) for rows in (X, narrow, wide)]
    for other in others:
        np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("loss", "dtype"), in_turn(LOSSES, [np.float32, np.float64]))
def test_an_offset_of_the_columns_changes_nothing(loss, dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 20)).astype(dtype)
    y = np.argmax(X @ rng.standard_normal((20, 4)) + rng.standard_normal((2000, 4)), axis=1)
    moved = X + dtype(1000)
    plain, far = (PegasosClassifier(loss=loss, max_iter=200).fit(rows, y) for rows in (X, moved))
    assert far.score(moved, y) > plain.score(X, y) - 0.01
    assert far.n_iter_ <= 1.5 * plain.n_iter_


@pytest.mark.parametrize("average", [True, False])
def test_single_precision_stays_and_agrees(digits, average):
    X, y = (part[:500] for part in digits)
    single, double = (
        PegasosClassifier(1e-2, schedule=Schedule(average=average), tol=0).fit(X.astype(t), y)
        for t in (np.float32, float)
    )
    assert single.coef_.dtype == np.float32 and double.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-3 * np.abs(double.coef_).max())


def test_memory_maps_are_read_where_they_are(digits, tmp_path):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(as_rows(mapped).arrays().data, mapped)
    first, second = (PegasosClassifier(max_iter=2).fit(rows, y).coef_ for rows in (X, mapped))
    np.testing.assert_array_equal(first, second)


def test_a_seed_decides_everything(digits):
    X, y = digits
    first, second, other = (PegasosClassifier(max_iter=2, random_state=s).fit(X, y).coef_ for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_weights_are_repetition_in_expectation(rows):
    X, y = rows
    weight = np.tile([1, 2, 0, 3], 20)
    repeated = np.repeat(np.arange(80), weight)

    def mean(X, y, weight):
        fits = [
            PegasosClassifier(0.1, max_iter=240 / len(y), tol=0, schedule=Schedule(replace=True), random_state=s)
            .fit(X, y, weight)
            .coef_
            for s in range(60)
        ]
        return np.mean(fits, axis=0), np.std(fits, axis=0) / np.sqrt(60)

    (first, first_error), (second, second_error) = mean(X, y, weight), mean(X[repeated], y[repeated], None)
    assert (np.abs(first - second) < 5 * np.hypot(first_error, second_error)).all()


def test_only_ratios_of_weights_matter(rows):
    X, y = rows
    weight = np.linspace(0.5, 2, 80)
    first, second = (PegasosClassifier(0.1).fit(X, y, c * weight).coef_ for c in (1.0, 1000.0))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_rows_of_weight_zero_are_as_good_as_absent(rows):
    X, y = rows
    spoiled = np.vstack([X, 100 * np.ones((20, 6))])
    labels = np.concatenate([y, np.repeat("a", 20)])
    weight = np.concatenate([np.ones(80), np.zeros(20)])
    first, second = PegasosClassifier(0.1).fit(spoiled, labels, weight), PegasosClassifier(0.1).fit(X, y)
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-12)


# -- early stopping ----------------------------------------------------------------------------------------------------


def test_early_stopping_keeps_the_best_model(digits):
    X, y = digits
    model = PegasosClassifier(1e-6, early_stopping=True, n_iter_no_change=2, max_iter=200, tol=0.5).fit(
        X[:900], y[:900]
    )
    assert model.status_ is Status.EARLY_STOPPED
    scores = [record.validation_score for record in model.history_]
    assert len(scores) - 1 - int(np.argmax(scores)) == 2


@pytest.mark.parametrize("loss", ["softmax", "crammer_singer", "squared_crammer_singer", "perceptron"])
def test_held_out_rows_count_by_their_weights(loss):
    """Where one class has nearly all the weight, the model kept is the one that serves it."""
    X, y = make_blobs(200, centers=3, cluster_std=20, random_state=0)
    X = X / 20
    plain, weighted = (
        PegasosClassifier(loss=loss, early_stopping=True, class_weight=w, max_iter=100, tol=0).fit(X, y)
        for w in (None, {0: 1000, 1: 1e-3, 2: 1e-3})
    )
    assert np.mean(weighted.predict(X) == 0) > max(0.85, np.mean(plain.predict(X) == 0))


@pytest.mark.parametrize("loss", ["softmax", "perceptron"])
def test_held_out_scores_are_weighted_means(rows, loss):
    """Of the loss written out, or of the mistakes where only ratios matter, on the rows that are left out."""
    from manyclass.fit.held_out import hold_out

    X, y = rows
    weight = np.linspace(0.1, 3, 80)
    model = PegasosClassifier(0.1, loss=loss, early_stopping=True, max_iter=1, tol=0).fit(X, y, weight)
    codes = np.searchsorted(["a", "b", "c"], y)
    out = hold_out(as_rows(X), codes, weight, 0.1, np.random.default_rng(0)).index
    Z = model.decision_function(X[out])
    if loss == "softmax":
        losses = [oracle.loss(loss, z, c) for z, c in zip(Z, codes[out], strict=True)]
    else:
        losses = Z.argmax(axis=1) != codes[out]
    assert model.history_[-1].validation_score == pytest.approx(-np.average(losses, weights=weight[out]))


def test_few_rows_of_many_classes_can_be_held_out_without_one_of_each():
    X, y = np.eye(20), np.arange(20) // 2
    model = PegasosClassifier(0.1, early_stopping=True, max_iter=3).fit(X, y)
    assert len(model.classes_) == 10 and np.isfinite(model.history_[-1].validation_score)


# -- what ends a fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_limit_on_time_leaves_a_usable_model(digits, early_stopping):
    X, y = digits
    model = PegasosClassifier(max_iter=10**9, tol=0, max_time=0.3, early_stopping=early_stopping)
    model.set_params(n_iter_no_change=10**9).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.score(X, y) > 0.8


def test_control_c_leaves_a_usable_model(digits, monkeypatch):
    from manyclass.subgradient.pegasos import Pegasos

    X, y = digits
    whole = Pegasos.advance

    def interrupted(self, n_draws):
        if self.state.t >= 2 * len(y):
            whole(self, n_draws // 2)
            raise KeyboardInterrupt
        whole(self, n_draws)

    monkeypatch.setattr(Pegasos, "advance", interrupted)
    model = PegasosClassifier(tol=0).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert 2 < model.n_iter_ < 3 and model.t_ == 2 * len(y) + len(y) // 2
    assert model.score(X, y) > 0.8


# -- what cannot be fitted ---------------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_a_remedy(rows):
    X, y = rows
    spoiled = X.copy()
    spoiled[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        PegasosClassifier().fit(spoiled, y)
    with pytest.raises(ValueError, match="NaN"):
        PegasosClassifier().fit(sp.csr_array(spoiled), y)
    with pytest.raises(ValueError, match="one class"):
        PegasosClassifier().fit(X, np.repeat("a", 80))
    with pytest.raises(ValueError, match="alpha"):
        PegasosClassifier(alpha=0).fit(X, y)
    with pytest.raises(ValueError, match="zero"):
        PegasosClassifier().fit(X, y, np.zeros(80))
    with pytest.raises(ValueError, match="egative"):
        PegasosClassifier().fit(X, y, -np.ones(80))


@pytest.mark.parametrize("loss", LOSSES)
def test_huge_values_give_a_model_or_a_sentence(rows, loss):
    X, y = rows
    for size in (1e6, 1e15, 1e30):
        for dtype in (np.float32, np.float64):
            model = PegasosClassifier(loss=loss, max_iter=2, tol=0)
            try:
                model.fit((X * size).astype(dtype), y)
            except ValueError as error:
                assert "scale its columns" in str(error)
            else:
                assert np.isfinite(model.coef_).all()


def test_the_papers_first_step_does_not_overflow(rows):
    X, y = rows
    model = PegasosClassifier(1e-12, max_iter=3 / 80, **PAPER).fit(X.astype(np.float32), y)
    assert np.isfinite(model.coef_).all()


def test_probabilities_come_with_the_losses_that_model_them(rows):
    X, y = rows
    model = PegasosClassifier(loss="hinge").fit(X, y)
    assert not hasattr(model, "predict_proba")
    P = PegasosClassifier().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_rows_that_are_made_when_they_are_read_are_refused(rows):
    from manyclass.data import GeneratedRows, as_rows
    from manyclass.features import RandomFourierFeatures

    X, y = rows
    with pytest.raises(TypeError, match="GLMClassifier"):
        PegasosClassifier().fit(GeneratedRows(as_rows(X), RandomFourierFeatures(4).fit(X)), y)


def test_compilation_is_told_apart(rows):
    X, y = rows
    model = PegasosClassifier().fit(X, y)
    assert 0 <= model.compile_seconds_ <= model.history_[0].seconds


def test_rows_longer_than_most_do_not_throw_the_model_beyond_zero():
    rng, codes = np.random.default_rng(0), np.arange(300) % 6
    X = (rng.normal(size=(300, 1)) + 3 * rng.normal(size=(6, 1))[codes]) * (rng.random((300, 1)) < 0.6)
    options = {"loss": "squared_hinge", "fit_intercept": False, "random_state": 0}
    model = PegasosClassifier(1e-2, max_iter=20, **options).fit(X, codes)
    signs = np.where(codes[:, None] == np.arange(6), 1.0, -1.0)
    objective = np.mean(np.sum(np.maximum(0.0, 1.0 - signs * (X @ model.coef_.T)) ** 2, axis=1))
    assert objective + 5e-3 * np.sum(model.coef_**2) < 6.0  # of the zero model


def test_no_estimate_of_the_gap_outlives_the_rows_that_it_is_of():
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16
    model = PegasosClassifier(alpha=1e-2, tol=0.05, warm_start=True, random_state=0).fit(X, y[:600])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, 9 - y[:600])
    assert model.status_ is not Status.SETTLED
    assert model.score(X, 9 - y[:600]) > 0.9

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, StagewiseClassifier
from manyclass.choice.representations import Representation
from manyclass.estimators.learned_link import LearnedLink
from manyclass.features import FeatureSubset
from manyclass.fit import Status
from manyclass.stagewise import Trials, judges
from tests.problems import texts


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.4, random_state=0, stratify=y)


def test_better_than_least_squares_and_calibrated(digits):
    from sklearn.linear_model import RidgeClassifier
    from sklearn.metrics import log_loss

    X, X_test, y, y_test = digits
    model = CalibratedLeastSquaresClassifier(1e-4, max_iter=15).fit(X, y)
    assert model.score(X_test, y_test) > RidgeClassifier(1e-4 * len(X)).fit(X, y).score(X_test, y_test)
    P = model.predict_proba(X_test)
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert (P >= 0).all()
    assert log_loss(y_test, np.clip(P, 1e-3, None) / np.clip(P, 1e-3, None).sum(axis=1, keepdims=True)) < 0.5
    assert_array_equal(model.predict(X_test), model.classes_[model.decision_function(X_test).argmax(axis=1)])


@pytest.mark.parametrize("n_labels", [1, 3])
def test_coefficients_of_an_uncalibrated_model_give_its_scores(n_labels, rng):
    X = rng.standard_normal((200, 5))
    Y = X @ rng.standard_normal((5, n_labels)) + 3.0 * rng.standard_normal((200, n_labels)) > 0
    model = CalibratedLeastSquaresClassifier(max_iter=1).fit(X, Y.astype(int) if n_labels > 1 else Y[:, 0])
    assert model.models_[0].stages[0].calibration is None
    scores = (X @ model.coef_.T + model.intercept_).squeeze()
    assert_allclose(scores, model.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"early_stopping": True}, {"early_stopping": False, "alpha": 1e-2}])
@pytest.mark.parametrize("n_labels", [0, 1, 4])  # many classes, two, and several labels a row
def test_no_label_is_without_probability_and_none_is_above_one_that_was_below(options, n_labels, rng):
    X = rng.standard_normal((600, 6))
    Z = X @ rng.standard_normal((6, n_labels or 20)) + 0.7 * rng.standard_normal((600, n_labels or 20))
    y = Z.argmax(axis=1) if not n_labels else (Z[:, 0] > 1 if n_labels == 1 else (Z > 0).astype(int))
    model = CalibratedLeastSquaresClassifier(**options).fit(X[:300], y[:300])
    P, scores = model.predict_proba(X[300:]), model.decision_function(X[300:])
    assert (P > 0).all()
    if n_labels > 1:
        assert (P < 1).all()
        assert_array_equal(P > 0.5, model.predict(X[300:]))
        return
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[300:]))
    own = P if n_labels == 0 else P[:, 1:]
    falling = np.argsort(-scores.reshape(300, -1), axis=1)
    assert (np.diff(np.take_along_axis(own, falling, axis=1), axis=1) <= 1e-12).all()


@pytest.mark.parametrize(("n_rows", "n_classes"), [(1500, 40), (12_000, 10)])  # cross-validated, and held out
def test_classes_that_are_hard_to_tell_have_less_log_loss_than_their_shares(n_rows, n_classes, rng):
    X = rng.standard_normal((2 * n_rows, 10))
    Z = X @ rng.standard_normal((10, n_classes)) / 10**0.5 + 0.5 * rng.gumbel(size=(2 * n_rows, n_classes))
    y = (Z - np.log1p(np.arange(n_classes))).argmax(axis=1)
    y = np.where(y < n_classes // 2, y, y % 3)
    P = CalibratedLeastSquaresClassifier().fit(X[:n_rows], y[:n_rows]).predict_proba(X[n_rows:])
    shares = np.bincount(y[:n_rows]) / n_rows
    own = np.arange(n_rows), y[n_rows:]
    assert -np.log(P[own]).mean() < -np.log(shares[y[n_rows:]]).mean()


def test_early_stopping_keeps_the_steps_up_to_the_best(digits):
    X, _, y, _ = digits
    model = CalibratedLeastSquaresClassifier(early_stopping=True, max_iter=60).fit(X, y)
    scores = [record.validation_score for record in model.history_]
    assert np.argmax(scores) + 1 == len(model.models_[0].stages)
    assert model.n_iter_ == len(model.history_)
    assert model.status_ in (Status.EARLY_STOPPED, Status.SETTLED, Status.MAX_ITER)


def test_few_rows_are_cross_validated_and_many_held_out(digits):
    X, _, y, _ = digits
    model = CalibratedLeastSquaresClassifier(max_iter=8).fit(X, y)
    scores = [record.validation_score for record in model.history_]
    assert np.argmax(scores) + 1 == len(model.models_[0].stages)
    whole = CalibratedLeastSquaresClassifier(model.alpha_, early_stopping=False, max_iter=8).fit(X, y)
    assert_allclose([r.objective for r in whole.history_], [r.objective for r in model.history_][:8], rtol=1e-6)
    many = CalibratedLeastSquaresClassifier(max_iter=2, tol=0).fit(np.tile(X, (10, 1)), np.tile(y, 10))
    assert np.isfinite(many.history_[0].validation_score)


@pytest.mark.parametrize("many", [False, True])
def test_a_larger_penalty_is_taken_where_rows_that_are_not_fitted_to_say_so(many):
    """Noise in many columns: the first least squares want less of a penalty than those that follow."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"early_stopping": True, "random_state": 0} if many else {}
    tried = CalibratedLeastSquaresClassifier(**options).fit(X, y)
    first = CalibratedLeastSquaresClassifier(early_stopping=False, max_iter=1).fit(X, y).alpha_
    assert tried.alpha_ / first > 5.0
    if not many:  # all rows are fitted to, and the first penalty is the same
        assert np.log10(tried.alpha_ / first) == pytest.approx(round(np.log10(tried.alpha_ / first)))
        before = CalibratedLeastSquaresClassifier(first).fit(X, y)
        assert max(r.validation_score for r in tried.history_) > max(r.validation_score for r in before.history_)


@pytest.mark.parametrize(
    ("load", "n_splits"),  # more of them where the two are as good as each other
    [(load_iris, (2, 1)), (load_wine, (12, 1)), (load_breast_cancer, (1, 1)), (load_digits, (1, 1))],
)
def test_default_is_never_clearly_worse_than_ridge(load, n_splits):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for size, n in zip((0.2, 0.7), n_splits, strict=True):
        worse = []
        for seed in range(n):
            X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=size, random_state=seed, stratify=y)
            ridge = RidgeClassifierCV(np.logspace(-3, 3, 13)).fit(X_train, y_train).score(X_test, y_test)
            worse.append(ridge - CalibratedLeastSquaresClassifier().fit(X_train, y_train).score(X_test, y_test))
        assert np.mean(worse) < 0.02


@pytest.mark.parametrize("kind", [CalibratedLeastSquaresClassifier, StagewiseClassifier])
def test_of_many_classes_that_are_hard_to_tell_the_penalty_leaves_what_can_be_told(kind):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3600, 20))
    y = (X @ rng.standard_normal((20, 60)) + 3.0 * rng.gumbel(size=(3600, 60))).argmax(axis=1)
    ridge = RidgeClassifierCV().fit(X[:600], y[:600]).score(X[600:], y[600:])
    model = kind(random_state=0).fit(X[:600], y[:600])
    assert ridge > 5 / 60
    assert model.score(X[600:], y[600:]) > 0.8 * ridge


def test_alpha_depends_on_neither_the_order_of_rows_nor_names_nor_copies(digits):
    X, _, y, _ = digits
    X, y = X[:200], y[:200]
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    renamed = np.array(list("jihgfedcba"))[y[order]]
    other = CalibratedLeastSquaresClassifier().fit(X[order], renamed)
    assert other.alpha_ == pytest.approx(model.alpha_)
    assert len(other.models_[0].stages) == len(model.models_[0].stages)
    twice = CalibratedLeastSquaresClassifier().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    weighted = CalibratedLeastSquaresClassifier().fit(X, y, np.full(len(y), 2.0))
    assert weighted.alpha_ == pytest.approx(twice.alpha_)
    assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-6)


def test_what_stands_for_wide_rows_does_not_change_the_model(digits, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 300), density=0.1, rng=rng, format="csr")
    y = np.asarray((X @ rng.standard_normal((300, 3))).argmax(axis=1))
    monkeypatch.setattr("manyclass.stagewise.equations.ACCURACY", 1e-8)
    scores = {}
    for name in ("moments", "row-space", "products"):
        only = lambda problem, name=name, **_: (Representation(name, 0.0, 0.0),)  # noqa: E731
        monkeypatch.setattr("manyclass.estimators.calibrated.represent", only)
        model = CalibratedLeastSquaresClassifier().fit(X, y)
        assert model.choice_["representation"] == name
        scores[name] = model.decision_function(X)
    assert_allclose(scores["row-space"], scores["moments"], atol=1e-5)
    assert_allclose(scores["products"], scores["moments"], atol=1e-4)


def test_very_wide_rows_need_no_matrix_of_their_width():
    X = sp.random_array((60, 40_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    model = CalibratedLeastSquaresClassifier().fit(X, np.arange(60) % 3)
    assert model.choice_["representation"] != "moments"


def test_two_classes_are_one_column(digits):
    X, X_test, y, y_test = digits
    model = CalibratedLeastSquaresClassifier(1e-3, max_iter=10).fit(X, y > 4)
    assert model.decision_function(X_test).shape == (len(X_test),)
    P = model.predict_proba(X_test)
    doubt = model.models_[0].doubt
    nearest = np.clip(model.decision_function(X_test) + 0.5, 0, 1)
    assert_allclose(P[:, 1], (1 - doubt) * nearest + doubt / 2, atol=1e-12)
    assert_allclose(P.sum(axis=1), 1)
    assert model.score(X_test, y_test > 4) > 0.85


@pytest.mark.parametrize("max_iter", [1, 5])
def test_it_is_stagewise_regression_over_one_block_of_all_columns(digits, max_iter):
    X, X_test, y, _ = digits
    one = CalibratedLeastSquaresClassifier(1e-3, max_iter=max_iter, tol=0, early_stopping=False).fit(X, y)
    options = {"loss": "calibrated", "n_components": None, "block_size": 64, "max_iter": max_iter}
    two = StagewiseClassifier(FeatureSubset(), alpha=1e-3, **options).fit(X, y)
    assert_allclose(two.predict_proba(X_test), one.predict_proba(X_test), atol=1e-6)
    assert_allclose([r.objective for r in two.history_], [r.objective for r in one.history_], rtol=1e-9)


def test_no_time_gives_the_shares_of_the_classes(digits):
    X, _, y, _ = digits
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = CalibratedLeastSquaresClassifier(max_time=1e-9).fit(X, y)
    assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-12)


def test_multilabel():
    X, Y = make_multilabel_classification(400, 20, n_classes=6, random_state=0)
    model = CalibratedLeastSquaresClassifier().fit(X[:300], Y[:300])
    P = model.predict_proba(X[300:])
    assert P.shape == (100, 6)
    assert ((P >= 0) & (P <= 1)).all()
    predicted = model.predict(X[300:])
    assert_array_equal(predicted, model.decision_function(X[300:]) > 0)
    constant = np.maximum(Y[:300].mean(axis=0), 1 - Y[:300].mean(axis=0)).mean()
    assert (predicted == Y[300:]).mean() > constant + 0.02


def test_labels_of_any_kind_and_order_of_rows(digits):
    X, X_test, y, _ = digits
    names = np.array([f"digit {i}" for i in range(10)], dtype=object)
    model = CalibratedLeastSquaresClassifier(1e-4).fit(X, y)
    named = CalibratedLeastSquaresClassifier(1e-4).fit(X[::-1], names[y[::-1]])
    assert_array_equal(named.predict(X_test), names[model.predict(X_test)])


def test_float32_stays_float32_and_agrees(digits):
    X, X_test, y, _ = digits
    wide = CalibratedLeastSquaresClassifier(1e-3, max_iter=5).fit(X, y)
    narrow = CalibratedLeastSquaresClassifier(1e-3, max_iter=5).fit(X.astype(np.float32), y)
    P = narrow.predict_proba(X_test.astype(np.float32))
    assert P.dtype == np.float32
    assert_allclose(P, wide.predict_proba(X_test), atol=2e-3)


def test_edge_cases():
    X = np.array([[0.0], [1.0]])
    assert CalibratedLeastSquaresClassifier().fit(X, ["a", "b"]).predict(X).tolist() == ["a", "b"]
    huge = np.random.default_rng(0).standard_normal((50, 3)) * 1e60
    assert np.isfinite(CalibratedLeastSquaresClassifier().fit(huge, np.arange(50) % 2).predict_proba(huge)).all()
    wide = sp.random_array((20, 60), density=0.2, rng=np.random.default_rng(0), format="csr", dtype=np.float64)
    assert CalibratedLeastSquaresClassifier(0.0).fit(wide, np.arange(20) % 2).score(wide, np.arange(20) % 2) > 0.9


def test_saved_and_loaded_model_predicts_the_same_bits(digits, tmp_path):
    import pickle

    X, X_test, y, _ = digits
    model = CalibratedLeastSquaresClassifier().fit(X[:300], y[:300])
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))


@pytest.mark.parametrize(("n_classes", "far"), [(2, 1e6), (3, 1e4), (150, 1e6)])
def test_one_row_far_from_all_others_is_no_matter(far, n_classes, rng):
    """It is left out of one part, where cubes of its predictions must not stand for a centre."""
    X = rng.standard_normal((600, 8))
    y = (X @ rng.standard_normal((8, n_classes))).argmax(axis=1) if n_classes > 2 else (X[:, 0] > 0).astype(int)
    X[0] = far
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    assert model.alpha_ > 0 and np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > (0.8 if n_classes <= 3 else 0.05)


def test_sparse_columns_that_are_all_far_from_the_origin_do_not_seem_constant(rng):
    X = rng.standard_normal((600, 5))
    y = (X[:, 0] > 0).astype(int)
    far = sp.csr_array((X + 1000.0) * (np.arange(600) > 0)[:, None]).astype(np.float32)
    far.eliminate_zeros()  # or a row of weight 0 would hold the columns, too
    model = CalibratedLeastSquaresClassifier(early_stopping=False).fit(far, y, np.where(np.arange(600) > 0, 1.0, 0.0))
    assert model.score(far[1:], y[1:]) > 0.9


@pytest.mark.parametrize("kind", ["classes", "two classes", "labels"])
def test_where_nothing_is_calibrated_a_link_has_the_temperature_of_rows_left_out(kind, rng):
    n_classes, d, signal = {"classes": (5, 1000, 0.15), "two classes": (2, 1000, 0.08), "labels": (6, 1000, 0.2)}[kind]
    codes = rng.integers(n_classes, size=400)
    y = np.eye(6, dtype=int)[codes] | (np.arange(6) == 5) * (codes == 0)[:, None] if kind == "labels" else codes
    X = signal * rng.standard_normal((n_classes, d))[codes] + rng.standard_normal((400, d))
    model = CalibratedLeastSquaresClassifier(max_iter=1).fit(X[:100], y[:100])
    assert [stage.calibration for stage in model.models_[0].stages] == [None]
    scores = model.decision_function(X[100:])

    def log_loss(P):
        P, found = np.clip(P, 1e-15, 1.0), y[100:]
        if kind == "labels":
            return -np.log(np.where(found, P, np.maximum(1.0 - P, 1e-15))).sum(axis=1).mean()
        return -np.log(P[np.arange(300), found]).mean()

    def linked(temperature):
        z = scores / temperature
        if kind == "classes":
            return softmax(z, axis=1)
        return expit(z) if kind == "labels" else np.stack([expit(-z), expit(z)], axis=1)

    assert_allclose(model.predict_proba(X[100:]), linked(model.temperature_), rtol=1e-9)
    best = min(log_loss(linked(model.temperature_ * factor)) for factor in np.geomspace(0.1, 10.0, 41))
    assert log_loss(linked(model.temperature_)) < 1.1 * best
    vars(model)["_learned"] = None
    assert log_loss(model.predict_proba(X[100:])) > 1.1 * best  # projected


def test_of_a_projection_that_is_better_and_of_a_class_without_rows_there_is_no_temperature(rng):
    X = rng.standard_normal((600, 4))
    y = np.argmax(X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(600, 3)), axis=1)
    assert not hasattr(CalibratedLeastSquaresClassifier().fit(X, y), "temperature_")
    y = rng.integers(5, size=60)
    X = 0.2 * rng.standard_normal((5, 300))[y] + rng.standard_normal((60, 300))
    model = CalibratedLeastSquaresClassifier().fit(X, y, (y != 3).astype(float))
    assert model.models_[0].stages[0].calibration is None and not hasattr(model, "temperature_")
    assert_allclose(model.predict_proba(X)[:, 3], model.models_[0].doubt / 5)


def test_the_doubt_in_least_squares_is_that_of_rows_left_out(rng):
    X, y = rng.standard_normal((60, 100)), rng.integers(4, size=60)
    model = CalibratedLeastSquaresClassifier(1e-6).fit(X, y)
    assert model.models_[0].stages[0].calibration is None
    vars(model)["_learned"] = None, 0.0  # as of the rows that are fitted
    assert model.predict_proba(X).min() == pytest.approx(model.models_[0].doubt / 4)
    assert model.models_[0].doubt > 0.1


def test_words_that_few_rows_know_are_heard(rng):
    """A sample of a thousand rows says that no word tells anything, and would have next to all of them left out."""
    X, y = texts(rng, 8000, 10, 20_000, 8, 0.15)
    model, other = CalibratedLeastSquaresClassifier(random_state=0), GLMClassifier()
    assert model.fit(X[:5000], y[:5000]).choice_["representation"] == "products"
    assert model.score(X[5000:], y[5000:]) > other.fit(X[:5000], y[:5000]).score(X[5000:], y[5000:]) - 0.03


def test_scores_that_are_calibrated_have_a_link_where_rows_left_out_ask_for_it(rng):
    """Of a few rows of each of many classes that are far apart, where a projection shares out what is certain."""
    means, y = rng.standard_normal((40, 64)), np.repeat(np.arange(40), 15)
    X, new = (means[y] + rng.standard_normal((len(y), 64)) for _ in range(2))
    X, new = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, new))
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    assert model.models_[0].stages[-1].calibration is not None
    linked = model.predict_proba(new)
    assert_allclose(linked, softmax(model.decision_function(new) / model.temperature_, axis=1), rtol=1e-9)
    del vars(model)["_learned"]
    projected = model.predict_proba(new)
    rows, told = np.arange(len(y)), np.eye(40)[y]
    assert np.log(linked[rows, y]).mean() > 0.7 * np.log(projected[rows, y]).mean()
    assert ((linked - told) ** 2).sum() < 0.7 * ((projected - told) ** 2).sum()


def test_of_rows_left_out_some_are_enough_for_a_temperature_though_they_lack_classes(rng, monkeypatch):
    monkeypatch.setattr(judges, "KEPT_SCORES", 1)
    monkeypatch.setattr(judges, "LEAST_ROWS", 40)  # of each fold
    seen, found = [], LearnedLink._link_of
    monkeypatch.setattr(LearnedLink, "_link_of", lambda *told: seen.append(told[1]) or found(*told))
    n_classes, d = 120, 800
    y = np.repeat(np.arange(n_classes), 5)
    X = 0.3 * rng.standard_normal((n_classes, d))[y] + rng.standard_normal((len(y), d))
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    assert [stage.calibration for stage in model.models_[0].stages] == [None]
    assert 0.0 < model.temperature_ < 1.0
    (left_out,) = seen
    assert len(left_out.scores) == 200 and np.all(left_out.weight > 0) and not left_out.labels.any(axis=0).all()
    assert left_out.labels.any(axis=0).sum() > 80  # and not the same 40 in every fold


@pytest.mark.parametrize("early_stopping", ["auto", True])
def test_ctrl_c_while_penalties_are_compared_leaves_least_squares(rng, monkeypatch, early_stopping):
    X = rng.standard_normal((3000, 10))
    y = (X @ rng.standard_normal((10, 4))).argmax(axis=1)
    step, calls = Trials.step, []

    def interrupted(trials, runs, alpha):
        calls.append(alpha)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return step(trials, runs, alpha)

    monkeypatch.setattr(Trials, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="nterrupted"):
        model = CalibratedLeastSquaresClassifier(early_stopping=early_stopping).fit(X, y)
    assert model.status_ is Status.INTERRUPTED and len(model.history_) == 1
    assert model.score(X, y) > 0.8 and model.alpha_ > 0

"""Rows in pieces: the model of all at once, in any order, with classes that come late, and without what went."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from manyclass import CalibratedLeastSquaresClassifier, ClassMoments, GLMClassifier, GLMClassifierCV
from manyclass.cli.modelfile import trusted_types
from tests.covering import every_pair

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, D = 300, 8
MODELS = {
    "glm": GLMClassifier(1e-2, loss="squared", tol=1e-13, max_iter=20),
    "cv": GLMClassifierCV(loss="squared", cv="gcv", alphas=np.logspace(-3, 1, 9)),
    "per output": GLMClassifierCV(loss="squared", cv="gcv", alpha_per_output=True, alphas=np.logspace(-3, 1, 9)),
    "calibrated": CalibratedLeastSquaresClassifier(1e-2, max_iter=8),
    "alpha by the data": CalibratedLeastSquaresClassifier(max_iter=3),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def data(n_classes=4, dtype=np.float64, offset=0.0, multilabel=False):
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((N, D))
    Z = X @ rng.standard_normal((D, n_classes)) + 0.5 * rng.standard_normal((N, n_classes))
    y = (Z > 0).astype(int) if multilabel else np.array(list("abcdefgh"))[Z.argmax(axis=1)]
    return (X + offset).astype(dtype), y, rng.uniform(0.2, 2.0, N)


def in_pieces(model, X, y, weight=None, n_pieces=6, order=None):
    """By class, so that all but the first come late."""
    model = clone(model)
    order = np.lexsort(np.atleast_2d(y.T)) if order is None else order
    for part in np.array_split(order, n_pieces):
        model.partial_fit(X[part], y[part], sample_weight=None if weight is None else weight[part])
    return model


def scores(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


def assert_same(one, other, X, tolerance):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(scores(one, X), scores(other, X), rtol=tolerance, atol=tolerance)


KINDS = [
    # kind of rows, dtype, offset, tolerance
    (np.asarray, np.float64, 0.0, 1e-8),
    (np.asarray, np.float64, 1000.0, 1e-7),
    (np.asarray, np.float32, 0.0, 2e-4),
    (np.asarray, np.float32, 1000.0, 5e-3),
    (sp.csr_array, np.float64, 0.0, 1e-8),
]


@pytest.mark.parametrize(
    ("name", "n_classes", "rows"), every_pair(["glm", "cv", "calibrated"], [2, 4, "several"], KINDS), ids=str
)
def test_pieces_make_the_fit_on_all_rows(name, n_classes, rows):
    kind, dtype, offset, tolerance = rows
    several = n_classes == "several"
    X, y, s = data(3 if several else n_classes, dtype, offset, several)
    X, s = kind(X), None if n_classes == 4 else s
    assert_same(in_pieces(MODELS[name], X, y, s), clone(MODELS[name]).fit(X, y, s), X, tolerance)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_fit_by_second_moments_is_the_minimum_at_any_tolerance(kind, alpha, fit_intercept, rng):
    X, y = kind(rng.standard_normal((N, D))), rng.integers(0, 3, N)  # nothing to learn: any start is near in objective
    model = GLMClassifier(alpha, loss="squared", fit_intercept=fit_intercept, curvature="second-moment", tol=0.5)
    streamed = clone(model).partial_fit(X, y)
    assert_same(clone(model).fit(X, y), streamed, X, 1e-10)
    warm = clone(model).set_params(warm_start=True, alpha=alpha + 0.1).fit(X, y)
    assert_same(warm.set_params(alpha=alpha).fit(X, y), streamed, X, 1e-10)


@pytest.mark.parametrize("name", ["glm", "per output", "calibrated", "alpha by the data"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_order_of_pieces_matters(name, fit_intercept):
    X, y, s = data()
    model = clone(MODELS[name]).set_params(fit_intercept=fit_intercept)
    whole = clone(model).fit(X, y, s)
    for order in (np.arange(N), np.argsort(y)[::-1]):
        assert_same(in_pieces(model, X, y, s, 5, order), whole, X, 1e-7)


@every_model
def test_what_is_forgotten_was_never_there(model):
    X, y, s = data()
    first, extra = slice(0, 200), slice(200, N)
    seen = in_pieces(model, X[first], y[first], s[first])
    coming = clone(seen).partial_fit(X[first], y[first], sample_weight=s[first])
    scores(coming.partial_fit(X[extra], np.repeat("new", N - 200), sample_weight=s[extra]), X)
    assert "new" in coming.classes_
    coming.forget(X[extra], np.repeat("new", N - 200), s[extra])
    assert_same(coming, seen, X, 1e-7)
    coming.partial_fit(X[extra], y[extra], sample_weight=s[extra]).forget(X[first], y[first], s[first])
    assert_same(coming, in_pieces(model, X[extra], y[extra], s[extra]), X, 1e-7)


@every_model
def test_merging_is_associative_and_commutative(model):
    X, y, s = data()
    a, b, c = (clone(model).partial_fit(X[i::3], y[i::3], sample_weight=s[i::3]) for i in range(3))
    whole = clone(model).fit(X, y, s)
    for joined in (
        a.merge(b).merge(c),
        a.merge(b.merge(c)),
        c.merge(b).merge(a),
        clone(model).merge(a).merge(c.merge(b)),
    ):
        assert_same(joined, whole, X, 1e-7)
    assert_same(a, clone(model).fit(X[::3], y[::3], s[::3]), X, 1e-7)


@every_model
@pytest.mark.parametrize("store", ["pickle", "skops"])
def test_a_model_from_a_file_goes_on(model, store):
    X, y, _ = data()
    half = clone(model).partial_fit(X[:150], y[:150])
    if store == "pickle":
        again = pickle.loads(pickle.dumps(half))
    else:
        again = skops.io.loads(skops.io.dumps(half), trusted=sorted(trusted_types()))
    assert "status_" in vars(again)
    assert_same(again.partial_fit(X[150:], y[150:]), clone(model).fit(X, y), X, 1e-7)
    assert_same(again.forget(X[150:], y[150:]), half, X, 1e-7)


@every_model
def test_refusals_leave_the_model_as_it_was(model):
    X, y, s = data()
    fresh, seen, spoiled = clone(model), clone(model).partial_fit(X, y, sample_weight=s), X.copy()
    spoiled[0, 0] = np.nan
    before = scores(seen, X)
    for act, sentence in (
        (lambda m: m.partial_fit(X[:, :5], y), "5 features"),
        (lambda m: m.partial_fit(spoiled, y), "NaN"),
        (lambda m: m.partial_fit(X, y[:9]), "inconsistent"),
        (lambda m: m.partial_fit(X, np.arange(N) % 3), "numbers in both, or text"),
        (lambda m: m.partial_fit(X, (X[:, :4] > 0).astype(int)), "one kind of y"),
        (lambda m: m.partial_fit(X, None), "requires y"),
        (lambda m: m.partial_fit(X, y, sample_weight=-s), "egative"),
        (lambda m: m.forget(X[:1], ["z"], s[:1]), "z"),
        (lambda m: m.forget(X, y, 2 * s), "as they were added"),
        (lambda m: m.forget(np.r_[X, X], np.r_[y, y], np.r_[s, s]), "as they were added"),
        (lambda m: m.forget(1e5 * X[:3], y[:3], s[:3]), "as they were added"),
        (lambda m: m.merge(clone(model).partial_fit(X[:, :5], y)), "same columns"),
        (lambda m: m.merge(clone(model).fit(X, y)), "partial_fit was called on"),
    ):
        with pytest.raises(ValueError, match=sentence):
            act(seen)
        np.testing.assert_array_equal(scores(seen, X), before)
    with pytest.raises(ValueError, match="NaN"):
        fresh.partial_fit(spoiled, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    with pytest.raises(ValueError, match="no rows to forget"):
        fresh.forget(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@every_model
def test_a_model_needs_two_classes_when_it_is_asked_for(model):
    X, y, _ = data()
    stream = clone(model).partial_fit(X[y == "a"], y[y == "a"])
    with pytest.raises(ValueError, match="at least two classes"):
        stream.predict(X)
    with pytest.raises(ValueError, match="at least two classes"):
        pickle.loads(pickle.dumps(stream)).predict(X)
    assert_same(stream.partial_fit(X[y != "a"], y[y != "a"]), clone(model).fit(X, y), X, 1e-7)
    with pytest.raises(ValueError, match="no rows left"):
        stream.forget(X, y).predict(X)


@every_model
def test_a_fit_and_a_stream_are_not_mixed(model):
    X, y, _ = data()
    fitted = clone(model).partial_fit(-X, y).fit(X, y)
    assert_same(fitted, clone(model).fit(X, y), X, 0.0)
    with pytest.raises(ValueError, match="begin with partial_fit"):
        fitted.partial_fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        clone(model).set_params(class_weight="balanced").partial_fit(X, y)
    weighted = clone(model).set_params(class_weight=dict(zip("abcd", (1, 2, 3, 4), strict=True)))
    assert_same(in_pieces(weighted, X, y), clone(weighted).fit(X, y), X, 1e-7)


def test_announced_classes_are_there_from_the_start():
    X, y, _ = data(3)
    model = GLMClassifier(1e-2, loss="squared").partial_fit(X[:50], y[:50], classes=list("abcz"))
    assert list(model.classes_) == ["a", "b", "c", "z"]
    np.testing.assert_allclose(model.intercept_[3], -1.0)
    np.testing.assert_allclose(model.coef_[3], 0.0, atol=1e-14)
    calibrated = CalibratedLeastSquaresClassifier(1e-2).partial_fit(X[:50], y[:50], classes=list("abcz"))
    assert calibrated.predict_proba(X)[:, 3].max() < 0.25 * calibrated.models_[0].doubt + 1e-6


def test_only_losses_that_sums_determine_have_streams():
    X, y, _ = data()
    for model, sentence in (
        (GLMClassifier(), "loss='squared'"),
        (GLMClassifierCV(loss="squared"), "cv='gcv'"),
        (GLMClassifierCV(loss="squared", cv="gcv", leave_one_out=True), "without left-out scores"),
    ):
        for name in ("partial_fit", "forget", "merge"):
            assert not hasattr(model, name)
        with pytest.raises(AttributeError) as caught:
            model.partial_fit(X, y)
        assert sentence in str(caught.value.__cause__)


def test_moments_make_models():
    X, y, s = data()
    moments = ClassMoments.of(X[:100], y[:100], s[:100]).merge(ClassMoments.of(X[100:], y[100:], s[100:]))
    for name in ("glm", "cv"):
        assert_same(clone(MODELS[name]).merge(moments), clone(MODELS[name]).fit(X, y, s), X, 1e-7)
    with pytest.raises(ValueError, match="The link is fitted to rows"):
        clone(MODELS["calibrated"]).merge(moments)


def test_torch_rows():
    torch = pytest.importorskip("torch")
    X, y, s = data()
    codes = np.unique(y, return_inverse=True)[1]
    for name in ("glm", "calibrated"):
        stream = clone(MODELS[name])
        for part in np.array_split(np.argsort(codes), 4):
            stream.partial_fit(torch.as_tensor(X[part]), torch.as_tensor(codes[part]), sample_weight=s[part])
        found = scores(stream.forget(torch.as_tensor(X[:20]), torch.as_tensor(codes[:20]), s[:20]), torch.as_tensor(X))
        np.testing.assert_allclose(
            found.numpy(force=True), scores(clone(MODELS[name]).fit(X[20:], codes[20:], s[20:]), X), atol=1e-7
        )


# -- the rows that calibrated least squares keeps ----------------------------------------------------------------------


def test_the_sample_depends_on_what_rows_hold_alone():
    X, y, s = data()
    model = CalibratedLeastSquaresClassifier(1e-2, kept_rows=100, max_iter=3)
    one, other = in_pieces(model, X, y, s), in_pieces(model, X, y, s, 11, np.arange(N)[::-1])
    third = in_pieces(model, X[:120], y[:120], s[:120]).merge(in_pieces(model, sp.csr_array(X[120:]), y[120:], s[120:]))
    for stream in (one, other, third):
        assert len(stream._kept.keys) == 100
        np.testing.assert_array_equal(np.sort(stream._kept.keys), np.sort(one._kept.keys))
        assert_same(stream, one, X, 1e-6)
    gone = np.arange(0, N, 2)
    left = one.forget(X[gone], y[gone], s[gone])
    assert 25 < len(left._kept.keys) < 75


def test_a_sample_is_uniform():
    from manyclass.data import as_rows
    from manyclass.data.kept_rows import KeptRows

    X = np.c_[np.arange(20_000.0), np.zeros((20_000, 3))]
    kept = KeptRows.of(as_rows(X), np.zeros(20_000, int), None)
    sample = kept.merge(kept.taken(np.arange(0)), 2000)
    counts = np.histogram(sample.X[:, 0], bins=20, range=(0, 20_000))[0]
    assert counts.sum() == 2000
    assert ((counts - 100) ** 2 / 90).sum() < 45  # χ² with 19 degrees of freedom: p = 0.001


def test_beyond_the_sample_least_squares_is_that_of_all_rows():
    """The first stage, and with it every stage where nothing is calibrated."""
    X, y, s = data()
    sampled = in_pieces(
        CalibratedLeastSquaresClassifier(1e-2, kept_rows=150, max_iter=1, early_stopping=False), X, y, s
    )
    stage = sampled.models_[0].stages[0]
    exact = GLMClassifier(1e-2, loss="squared", tol=1e-13).fit(X, y, s)  # on −1 and 1
    np.testing.assert_allclose(2 * stage.coef, exact.coef_.T, atol=1e-8)
    np.testing.assert_allclose(2 * stage.intercept - 1, exact.intercept_, atol=1e-8)
    gcv = in_pieces(CalibratedLeastSquaresClassifier(kept_rows=150, max_iter=1, early_stopping=False), X, y, s)
    assert gcv.alpha_ == pytest.approx(
        in_pieces(CalibratedLeastSquaresClassifier(max_iter=1), X, y, s).alpha_, rel=1e-6
    )


@pytest.mark.parametrize("kind", [GLMClassifier, CalibratedLeastSquaresClassifier])
def test_weights_of_classes_hold_where_a_piece_lacks_one(kind):
    X, y = load_iris(return_X_y=True)
    options = {"loss": "squared"} if kind is GLMClassifier else {"early_stopping": False, "alpha": 1e-2}
    pieces, whole = (kind(class_weight={0: 3.0, 2: 0.5}, **options) for _ in range(2))
    for part in (slice(0, 100), slice(100, 150)):
        pieces.partial_fit(X[part], y[part])
    np.testing.assert_allclose(pieces.decision_function(X), whole.fit(X, y).decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kind", [GLMClassifier, CalibratedLeastSquaresClassifier])
def test_a_piece_may_weigh_nothing(kind):
    X, y = load_iris(return_X_y=True)
    s = np.where(y == 0, 0.0, 1.0)
    options = {"loss": "squared"} if kind is GLMClassifier else {"early_stopping": False, "alpha": 1e-2}
    pieces, whole = (kind(**options) for _ in range(2))
    for part in (slice(0, 50), slice(50, 150)):
        pieces.partial_fit(X[part], y[part], sample_weight=s[part])
    np.testing.assert_allclose(pieces.decision_function(X), whole.fit(X, y, s).decision_function(X), atol=1e-6)


def test_a_stream_of_columns_that_do_not_vary_has_the_penalty_of_a_fit():
    X, y = np.full((600, 1), 3.7), np.arange(600) % 3
    stream = GLMClassifierCV(loss="squared", cv="gcv").partial_fit(X, y)
    assert stream.alpha_ == GLMClassifierCV(loss="squared", cv="gcv").fit(X, y).alpha_
    np.testing.assert_allclose(stream.coef_, 0.0, atol=1e-9)


@every_model
def test_threads_that_ask_first_get_the_same_model(model, monkeypatch):
    """As where a server answers several requests after new rows have come."""
    X, y, _ = data()
    expected = scores(in_pieces(model, X, y), X)
    stream, together = in_pieces(model, X, y), Barrier(4)
    solve = type(model)._solve

    def slowly(self, clock):
        time.sleep(0.05)
        solve(self, clock)

    def ask(_):
        together.wait()
        return scores(stream, X)

    monkeypatch.setattr(type(model), "_solve", slowly)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(ask, range(4)):
            np.testing.assert_array_equal(found, expected)

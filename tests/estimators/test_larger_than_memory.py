"""Every estimator fits a file as it would fit the array, and keeps to its limit on memory."""

import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone, is_regressor
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import manyclass
from manyclass import (
    AutoClassifier,
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
from manyclass.data import open_rows

N, D, K = 1200, 8, 3
SCALES = np.logspace(-2, 2, D, dtype=np.float32)
ESTIMATORS = [
    found
    for name in manyclass.__all__
    if inspect.isclass(found := getattr(manyclass, name)) and hasattr(found, "predict")
]
FAST = {"max_iter": 3, "n_components": 16, "block_size": 8, "max_time": 5.0}
EXACT = {
    "glm": GLMClassifier(tol=1e-6),
    "newton-cg": GLMClassifier(solver="newton-cg", tol=1e-6),
    "early stopping": GLMClassifier(early_stopping=True, tol=1e-6),
    "calibrated": CalibratedLeastSquaresClassifier(max_iter=10),
    "stagewise": StagewiseClassifier(n_components=32, block_size=16),
    "stagewise softmax": StagewiseClassifier(loss="softmax", n_components=32, block_size=16),
    "cv squared": GLMClassifierCV(loss="squared"),
    "cv": GLMClassifierCV(alphas=3),
    "bound": BoundMajorizationClassifier(alpha=1e-2),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    X = rng.standard_normal((N, D)) + rng.standard_normal((K, D))[y]
    return X.astype(np.float32), y


@pytest.fixture
def rows(data, tmp_path):
    """The same rows in a file, in chunks of a few kilobytes."""
    np.save(tmp_path / "X.npy", data[0])
    found, _ = open_rows(tmp_path / "X.npy", False, memory_limit="60KB", keep=True)
    return found


def small(kind):
    skipped = () if kind is manyclass.AutoClassifier else ("max_time",)  # a slow machine must not change the model
    given = {name: FAST[name] for name in kind().get_params() if name in FAST and name not in skipped}
    return kind(**given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_takes_a_path(kind, data, tmp_path):
    X, y = data[0][:300], data[1][:300]
    values = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), D)
    pq.write_table(pa.table({"kind": y, "embedding": values}), tmp_path / "X.parquet")
    model = small(kind).fit(tmp_path / "X.parquet", "kind")
    expected = small(kind).fit(X, y)
    assert model.n_features_in_ == D
    found = model.predict(tmp_path / "X.parquet")
    if is_regressor(model):
        np.testing.assert_allclose(found, expected.predict(X), rtol=1e-3, atol=1e-3)
    else:
        assert np.mean(found == expected.predict(X)) > 0.99
    assert model.score(tmp_path / "X.parquet", "kind") == pytest.approx(expected.score(X, y), abs=0.01)


@pytest.mark.parametrize("name", EXACT)
def test_chunks_give_the_model_of_the_array(name, data, rows):
    X, y = data
    model = EXACT[name]
    expected = model.fit(X, y).decision_function(X)
    found = model.fit(rows, y).decision_function(rows)
    # Which iterate is the last one to be better may hang on the last digits.
    share = 1e-2 if name == "early stopping" else 2e-3
    np.testing.assert_allclose(found, expected, atol=share * abs(expected).max())
    if share < 1e-2 and hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(X), atol=1e-5)


@pytest.fixture
def uneven(data, tmp_path):
    """Columns of different size in a file of which an eighth of 60 kB holds 234 rows."""
    X, y = data[0] * SCALES, data[1]
    np.save(tmp_path / "X.npy", X)
    return X, y, tmp_path / "X.npy"


@pytest.fixture(scope="module")
def score_of_linear(data):
    """Of what is right for these rows, by all of them: classes of one covariance are divided by planes."""
    X = StandardScaler().fit_transform(data[0] * SCALES)
    return GLMClassifierCV().fit(X, data[1]).score(X, data[1])


def test_models_are_compared_on_some_rows_of_a_file_and_the_choice_is_fitted_to_all(uneven, score_of_linear):
    X, y, path = uneven
    model = AutoClassifier(random_state=0).fit(path, y, memory_limit="60KB")
    judged, taken = max(one["n_rows"] for one in model.leaderboard_), model.best_estimator_
    assert judged < 234
    assert isinstance(taken, Pipeline)  # columns are scaled as they are read
    assert np.mean(model.predict(path) == model.predict(X)) == 1.0
    np.testing.assert_allclose(model.predict_proba(path), model.predict_proba(X), atol=1e-6)
    again, scaled = clone(taken[-1]).set_params(warm_start=True), taken[0].transform(X)
    for alpha in [*model.best_path_, taken[-1].alpha]:
        again.set_params(alpha=alpha).fit(scaled, y)
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(scaled), atol=1e-3)
    assert model.score(path, y) > score_of_linear - 0.02


def test_rows_of_weight_0_have_no_part_in_it_and_a_class_of_them_is_none(uneven, score_of_linear):
    X, y, path = uneven
    wrong = np.arange(N) % 2 == 0
    named = np.where(np.arange(N) == 8, 9, np.where(wrong, 0, y))
    model = AutoClassifier(random_state=0).fit(path, named, np.where(wrong, 0.0, 1.0), memory_limit="60KB")
    assert model.score(X, y) > score_of_linear - 0.03
    taken = model.best_estimator_
    assert list(getattr(taken, "steps", [("", taken)])[-1][1].classes_) == list(model.classes_) == [0, 1, 2]


def test_a_choice_that_does_not_fit_into_memory_is_fitted_to_some_rows(uneven, monkeypatch):
    X, y, path = uneven
    for kind in (GLMClassifier, CalibratedLeastSquaresClassifier):
        monkeypatch.setattr(kind, "_memory", lambda self, problem: {"each row": 100.0 * problem.rows.n_rows})
    monkeypatch.setattr("manyclass.estimators.automatic.candidates.WIDEST", 0)
    model = AutoClassifier(random_state=0).fit(path, y, memory_limit="60KB")
    assert "It is fitted to 234 rows: This fit would take 120 kB for each row" in model.why_[-1]
    assert model.score(X, y) > 0.7


def test_stagewise_regression_of_chunks(data, rows):
    X, y = data
    model = StagewiseRegressor(n_components=32, block_size=16)
    np.testing.assert_allclose(model.fit(rows, y).predict(rows), model.fit(X, y).predict(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "softmax", "crammer_singer", "squared"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dual_ascent_on_chunks_closes_the_same_gap(data, rows, loss, fit_intercept):
    model = SDCAClassifier(loss, alpha=1e-2, tol=1e-5, fit_intercept=fit_intercept)
    expected = model.fit(*data)
    epochs, coef = expected.n_iter_, expected.coef_
    model.fit(rows, data[1])
    assert model.duality_gap_ <= 1e-5 and model.n_iter_ < 4 * epochs + 20
    # Strong convexity: each is within (2 · 1e-5 F(0)/alpha)^½ = 0.045 of the minimum.
    assert np.linalg.norm(model.coef_ - coef) < 0.09


def test_dual_ascent_on_chunks_of_two_classes_and_of_responses(data, rows):
    X, y = data
    for model, target in (
        (SDCAClassifier("hinge", alpha=1e-1, tol=1e-6), y > 0),
        (SDCARegressor(tol=1e-6), X[:, 0] + y),
    ):
        expected = model.fit(X, target).coef_
        np.testing.assert_allclose(model.fit(rows, target).coef_, expected, atol=5e-3)


@pytest.mark.parametrize("options", [{}, {"schedule": "paper"}, {"early_stopping": True}, {"max_iter": 2.5}])
def test_stochastic_steps_on_chunks_come_as_near(data, rows, options):
    X, y = data
    # Most rows are wrong and weigh nothing, and hardly any of the last class are in the first chunk.
    weight = np.where((np.random.default_rng(1).random(N) < 0.4) & ((y < K - 1) | (np.arange(N) > 100)), 1.0, 0.0)
    labels = np.where(weight > 0, y, (y + 1) % K)
    model = PegasosClassifier(alpha=1e-2, tol=0, **({"max_iter": 40} | options))
    expected = model.fit(X, labels, weight).score(X, y)
    steps, epochs = model.t_, model.n_iter_
    model.fit(rows, labels, weight)
    assert model.score(X, y) > expected - 0.03
    if not options.get("early_stopping"):
        assert (model.t_, model.n_iter_) == (steps, epochs)


def test_sorted_rows_that_can_be_read_anywhere_are_mixed(data, tmp_path):
    X, y = data
    order = np.argsort(y, kind="stable")
    np.save(tmp_path / "X.npy", X[order])
    sorted_rows, _ = open_rows(tmp_path / "X.npy", False, memory_limit="60KB", keep=True)
    model = PegasosClassifier(alpha=1e-2, max_iter=5)
    assert model.fit(sorted_rows, y[order]).score(X, y) > model.fit(X, y).score(X, y) - 0.02


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_half_precision_is_converted_chunk_by_chunk(data, tmp_path, dtype):
    X, y = data[0].astype(dtype), data[1]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    model = GLMClassifier(tol=1e-6)
    expected = model.fit(X, y).coef_
    found = model.fit(tmp_path / "X.npy", tmp_path / "y.npy", memory_limit="60KB")
    np.testing.assert_allclose(found.coef_, expected, atol=1e-2)
    assert found.score(str(tmp_path / "X.npy"), str(tmp_path / "y.npy")) == found.score(X, y)


def test_sparse_text(data, tmp_path):
    X, y = np.where(data[0] > 0.5, data[0], 0), data[1]
    dump_svmlight_file(X, y, str(tmp_path / "X.svm"), zero_based=False)
    model = GLMClassifier(tol=1e-6)
    expected = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(tmp_path / "X.svm", memory_limit="60KB").coef_, expected, atol=1e-2)


def test_columns_are_found_by_their_names(data, tmp_path):
    X, y = data
    named = {f"x{j}": X[:, j] for j in range(D)}
    pq.write_table(pa.table({"kind": y, **named}), tmp_path / "train.parquet")
    pq.write_table(pa.table({"number": y, **dict(reversed(named.items()))}), tmp_path / "new.parquet")
    model = GLMClassifier().fit(tmp_path / "train.parquet", "kind")
    np.testing.assert_array_equal(model.predict(tmp_path / "new.parquet"), model.predict(pa.table(named)))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (GLMClassifier(), "beside X, more than 60% of the memory limit of 100 kB"),
        (CalibratedLeastSquaresClassifier(), "for the predictions of all rows, more than memory_limit='100KB'"),
        (StagewiseClassifier(), "41.9 MB for the second moments of a block, .* lower block_size"),
        (StagewiseClassifier(n_components=64), "use GLMClassifier or PegasosClassifier, whose memory does not grow"),
        (SDCAClassifier(), "for dual variables, .*more than memory_limit"),
        (PegasosClassifier(), "for the steps so far, more than memory_limit"),
        (AutoClassifier(), r"room for 6 of 100 rows \(200 kB\) in 50 classes, .* raise memory_limit"),
    ],
)
def test_what_cannot_fit_is_refused(model, sentence, tmp_path, rng):
    wide = isinstance(model, GLMClassifier | PegasosClassifier | AutoClassifier)
    X = rng.standard_normal((100, 500) if wide else (1000, 5)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(MemoryError, match=sentence):
        model.fit(tmp_path / "X.npy", np.arange(len(X)) % 50, memory_limit="100KB")


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_files_of_nothing_are_refused(shape, tmp_path):
    np.save(tmp_path / "X.npy", np.empty(shape))
    with pytest.raises(ValueError, match="X is empty, of shape"):
        GLMClassifier().fit(tmp_path / "X.npy", np.arange(shape[0]) % 2)


def test_labels_are_needed(data, tmp_path):
    np.save(tmp_path / "X.npy", data[0])
    with pytest.raises(ValueError, match="holds no labels; pass them as y"):
        GLMClassifier().fit(tmp_path / "X.npy")
    with pytest.raises(ValueError, match="X has 1200 rows but y has 1199"):
        GLMClassifier().fit(tmp_path / "X.npy", data[1][1:])


MEASURED = """
    import os, sys, warnings
    import numpy as np
    from benchmarks.memory import peak_bytes, reset_peak
    import psutil
    from manyclass import *
    warnings.simplefilter("ignore")
    models = {
        "glm": GLMClassifier(max_iter=2),
        "calibrated": CalibratedLeastSquaresClassifier(max_iter=2),
        "stagewise": StagewiseClassifier(n_components=1024, block_size=512),
        "pegasos": PegasosClassifier(max_iter=1),
        "sdca": SDCAClassifier(alpha=1e-2, max_iter=1),
        "auto": AutoClassifier(max_time=3),
    }

    def grown(name, limit, path, y):
        model, few = models[name], np.load(path, mmap_mode="r")[:3000]
        if name in ("pegasos", "sdca"):  # what is compiled for rows of files takes memory of its own, once
            np.save(path.replace("X.npy", f"{name}.npy"), few)
            model.fit(path.replace("X.npy", f"{name}.npy"), y[:3000], memory_limit="4MB")
        else:
            model.fit(few[:100].astype(np.float32), y[:100])
        reset_peak()
        before = psutil.Process().memory_info().rss
        model.fit(path, y, memory_limit=limit)
        return peak_bytes() - before

    path, y, *asked = sys.argv[1], np.load(sys.argv[2]), *sys.argv[3:]
    for name, limit in (one.split("=") for one in asked):
        child = os.fork()  # what one fit leaves behind is not there for the next
        if not child:
            print(name, grown(name, int(limit), path, y), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{name} failed")
"""
LIMITS = {
    "glm": 45_000_000,
    "calibrated": 45_000_000,
    "stagewise": 45_000_000,
    "pegasos": 60_000_000,
    "sdca": 70_000_000,
    "auto": 90_000_000,
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """31 MB of rows, and twice as much once they are numbers to compute with: 92 MB and more were nothing limited."""
    folder, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    n, d = 30_000, 512
    y = rng.integers(0, 5, n)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float16, (n, d))
    centers = rng.standard_normal((5, d)).astype(np.float32)
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        X[part] = centers[y[part]] + 3 * rng.standard_normal((10_000, d), dtype=np.float32)
    X.flush()
    np.save(folder / "y.npy", y)
    yield folder
    (folder / "X.npy").unlink()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of resident memory is read from /proc")
def test_resident_memory_keeps_to_the_limit(large):
    command = [sys.executable, "-c", textwrap.dedent(MEASURED), str(large / "X.npy"), str(large / "y.npy")]
    asked = [f"{name}={limit}" for name, limit in LIMITS.items()]
    run = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    grown = {name: int(n_bytes) for name, n_bytes in map(str.split, run.stdout.splitlines())}
    assert grown.keys() == LIMITS.keys()
    assert {name: n_bytes for name, n_bytes in grown.items() if n_bytes >= LIMITS[name]} == {}


def test_a_limit_may_be_infinite_and_numbers_wider_than_any_that_are_computed_with(data, tmp_path):
    X, y = data[0][:300], data[1][:300]
    np.save(tmp_path / "X.npy", X.astype(np.longdouble))
    wide = GLMClassifier().fit(tmp_path / "X.npy", y, memory_limit=float("inf"))
    np.testing.assert_allclose(wide.coef_, GLMClassifier().fit(X.astype(np.float64), y).coef_, rtol=1e-5)

"""Collections of Dask go into fit and predict; `test_seam` asks for everything that does not need a cluster."""

import os
import signal
import time
import warnings
from threading import Timer

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from manyclass import (
    CalibratedLeastSquaresClassifier,
    ClassMoments,
    GLMClassifier,
    Moments,
    PegasosClassifier,
    StagewiseClassifier,
    StagewiseRegressor,
)
from manyclass.linear_model import LogisticRegressionCV, RidgeClassifierCV
from tests.execution.parts import assert_same
from tests.properties.test_run import Watcher, interrupt

da = pytest.importorskip("dask.array", reason="needs manyclass[dask]")
N, D, K = 240, 5, 3
STAGES = {
    "calibrated": CalibratedLeastSquaresClassifier(early_stopping=False, max_iter=3),
    "stagewise": StagewiseClassifier(n_components=12, block_size=4, max_iter=2, alpha=1e-3, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 100.0
    return X, np.argmax(X[:, :K] + rng.gumbel(size=(N, K)), axis=1), rng.uniform(size=N)


def model(**options):
    return GLMClassifier(**({"alpha": 0.1, "tol": 1e-10} | options))


def test_arrays_are_fitted_to_where_they_are_and_predicted_when_asked(client, data):
    X, y, weight = data
    one = model().fit(X, y, weight)
    blocks = da.from_array(X, chunks=(100, 2))  # columns in several chunks are brought together
    found = model().fit(blocks, da.from_array(y, chunks=90), weight)
    assert_same(found, one, X)
    lazy = found.predict(blocks), found.predict_proba(blocks), found.decision_function(blocks)
    assert all(isinstance(each, da.Array) for each in lazy)
    assert lazy[0].chunks == ((100, 100, 40),) and lazy[1].shape == (N, K)
    np.testing.assert_array_equal(lazy[0].compute(), found.predict(X))
    np.testing.assert_allclose(lazy[1].compute(), found.predict_proba(X))
    assert found.score(blocks, y) == found.score(X, y)


def test_bytes_of_a_pass_do_not_depend_on_the_rows(client, data):
    X, y, _ = data
    moved = []
    for repeats in (1, 8):
        rows = da.from_array(np.tile(X, (repeats, 1)), chunks=(N * repeats // 2, D))
        labels = da.from_array(np.tile(y, repeats), chunks=N * repeats // 2)
        history = model(solver="accelerated", max_iter=3, tol=0.0).fit(rows, labels).history_
        moved.append([record["bytes"] for record in history])
    assert moved[0] == moved[1]
    per_pass = np.diff(moved[0])
    assert (per_pass == per_pass[0]).all() and per_pass[0] == 2 * 8 * (2 * D * K + 2 * K)  # two workers, both ways


def received(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def made_late(number):
    """Rows of 800 kB that take a time to be made, and some more than others."""
    time.sleep(0.02 * (1 + 4 * (number % 2)))
    return np.random.default_rng(number).standard_normal((2_000, 50))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parts_of_any_length_in_any_order_on_the_workers(client, data):
    """Rows that are asked for by number, as those that features are drawn from, are found where they lie."""
    from dask import delayed
    from distributed import wait

    X, y, _ = data
    X, workers = X - 100.0, sorted(client.scheduler_info()["workers"])
    cuts = np.split(np.arange(N), [20, 150, 160])
    pairs = [
        tuple(client.persist(delayed(values[part]), workers=[workers[i % 2]]) for values in (X, y))
        for i, part in enumerate(cuts)
    ]
    wait(pairs)
    found = clone(STAGES["stagewise"]).fit(pairs)
    np.testing.assert_allclose(found.decision_function(X), clone(STAGES["stagewise"]).fit(X, y).decision_function(X))


def test_delayed_partitions_of_sparse_rows(client, data):
    from dask import delayed

    X, y, _ = data
    X = sp.csr_array(X * (X > 100))
    one = model().fit(X, y)
    pairs = [(delayed(X[part]), delayed(y[part])) for part in (slice(0, 50), slice(50, 50), slice(50, N))]
    assert_same(model().fit(pairs), one, X)
    X_parts, y_parts = map(list, zip(*pairs, strict=True))
    found = model().fit(X_parts, y_parts)
    assert_same(found, one, X)
    np.testing.assert_array_equal(found.predict(X_parts).compute(), one.predict(X))


def test_frames_keep_the_names_of_their_columns(client, data):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y, _ = data
    held = pd.DataFrame(X, columns=list("abcde")).assign(label=np.array(["x", "y", "z"])[y])
    frame = frames.from_pandas(held, npartitions=3)
    found = model().fit(frame[list("abcde")], frame["label"])
    assert_same(found, model().fit(held[list("abcde")], held["label"]), held[list("abcde")])
    assert list(found.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(found.predict(frame[list("abcde")]).compute(), found.predict(held[list("abcde")]))


def test_moments_of_partitions(client, data):
    X, y, weight = data
    Y = np.eye(K)[y]
    blocks, responses = da.from_array(X, chunks=(100, D)), da.from_array(Y, chunks=(100, K))
    found = Moments.zeros(D, K).partial_fit(X, Y).partial_fit(blocks, responses, weight)
    one = Moments.zeros(D, K).partial_fit(X, Y).partial_fit(X, Y, weight)
    np.testing.assert_allclose(found.covariance, one.covariance, atol=1e-9)
    np.testing.assert_allclose(found.solve(0.1)[0], one.solve(0.1)[0], rtol=1e-8)
    found.forget(blocks, responses, weight)
    np.testing.assert_allclose(found.covariance, Moments.zeros(D, K).partial_fit(X, Y).covariance, atol=1e-9)
    with pytest.raises(ValueError, match="do not fit"):
        Moments.zeros(D, K + 1).partial_fit(blocks, responses)


def test_time_that_is_over_and_callbacks_that_have_seen_enough(client, data):
    X, y, _ = data
    blocks, labels = da.from_array(X, chunks=(120, D)), da.from_array(y, chunks=120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model(max_time=1e-6).fit(blocks, labels)
    assert found.status_.name == "MAX_TIME" and found.predict(X).shape == (N,)

    stopped = model(tol=0.0).set_callbacks(Watcher(at=2)).fit(blocks, labels)
    assert stopped.status_.name == "STOPPED_BY_CALLBACK" and len(stopped.history_) == 2
    with pytest.warns(ConvergenceWarning):
        broken = model(tol=0.0).set_callbacks(Watcher(at=2, action=interrupt)).fit(blocks, labels)
    assert broken.status_.name == "INTERRUPTED" and broken.predict(X).shape == (N,)


def test_what_is_not_possible_is_refused_with_what_is(client, data):
    X, y, _ = data
    blocks, labels = da.from_array(X, chunks=(120, D)), da.from_array(y, chunks=120)
    with pytest.raises(TypeError, match="use GLMClassifier"):
        PegasosClassifier().fit(blocks, labels)
    with pytest.raises(ValueError, match=r"NaN.\sGLMClassifier"):
        model().fit(da.where(blocks > 101, np.nan, blocks), labels)
    for estimator in (LogisticRegressionCV(), RidgeClassifierCV(), StagewiseRegressor()):
        with pytest.raises(TypeError, match="rows that lie in partitions"):
            estimator.fit(blocks, labels)
    for add in (ClassMoments.of, model(loss="squared").partial_fit):
        with pytest.raises(TypeError, match="one partition after the other"):
            add(blocks, labels)
    with pytest.raises(ValueError, match="partitions"):
        model().fit(blocks[blocks[:, 0] > 100], da.from_array(y, chunks=240))
    with pytest.raises(ValueError, match="unknown length"):
        model().fit(blocks[blocks[:, 0] > 100], y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", STAGES)
def test_stages_of_what_stays_with_the_rows(client, data, name):
    X, y, weight = data
    X = X - 100.0
    one = clone(STAGES[name]).fit(X, y, weight)
    blocks = da.from_array(X, chunks=(100, D))
    found = clone(STAGES[name]).fit(blocks, da.from_array(y, chunks=100), weight)
    np.testing.assert_allclose(found.predict_proba(blocks).compute(), one.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(found.decision_function(X), one.decision_function(X), atol=1e-6)
    rows, labels = da.from_array(np.tile(X, (8, 1)), chunks=(N * 4, D)), da.from_array(np.tile(y, 8), chunks=N * 4)
    many = clone(STAGES[name]).fit(rows, labels)
    moved = [np.diff([record["bytes"] for record in model.history_]) for model in (found, many)]
    np.testing.assert_array_equal(*moved)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "late", "apart"),
    [("accelerated", True, True), ("accelerated", False, False), *((name, True, True) for name in STAGES)],
)
def test_no_rows_travel(client, name, late, apart):
    """Neither for want of work on another worker, nor as their labels are there; nor does what is predicted of them.

    Parts of the rows are 800 kB, of the predictions 48 kB, and all labels 24 kB. `late`: rows that are still to be made
    when the fit begins; `apart`: labels cut elsewhere, which Dask brings to other workers first.
    """
    from dask import delayed, persist
    from distributed import wait

    blocks = [da.from_delayed(delayed(made_late)(number), (2_000, 50), float) for number in range(12)]
    y = np.random.default_rng(0).integers(K, size=24_000, dtype=np.int8)
    X, y = da.concatenate(blocks), da.from_array(y, chunks=1_400 if apart else 2_000)
    if not late:
        X, y = persist(X, y)
        wait([X, y])
    before = client.run(received)
    found = clone(STAGES[name]) if name in STAGES else model(solver=name, max_iter=3, tol=0.0)
    found.fit(X, y)
    travelled = sum(client.run(received).values()) - sum(before.values())
    assert travelled < 150_000


@pytest.fixture(scope="module")
def processes():
    """Two workers that may be killed: another takes the place of one that was."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "after"), [("accelerated", 0.05), ("stagewise", 0.0)])
def test_a_worker_that_is_killed_changes_nothing(processes, data, name, after):
    """Two processes of which one is killed between two passes, or later; what it held is made again by the other."""
    processes.wait_for_workers(2)
    X, y, _ = data
    X = X - 100.0
    fitted = STAGES[name] if name in STAGES else model(solver=name, max_iter=20)
    one = clone(fitted).fit(X, y)
    killed = []

    def kill():
        killed.extend(processes.run(os.getpid).values())
        Timer(after, os.kill, (killed[0], signal.SIGKILL)).start() if after else os.kill(killed[0], signal.SIGKILL)

    with processes.as_current():
        rows, labels = (da.from_array(values, chunks=(60, *values.shape[1:])) for values in (X, y))
        found = clone(fitted).set_callbacks(Watcher(at=2, action=kill)).fit(rows, labels)
    assert killed and found.status_ is one.status_
    np.testing.assert_allclose(found.predict_proba(X), one.predict_proba(X), atol=1e-8)
    objectives = [[record.objective for record in fitted.history_] for fitted in (found, one)]
    np.testing.assert_allclose(*objectives, rtol=1e-9)

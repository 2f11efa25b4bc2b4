"""Where columns act neither in proportion nor as distances do."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from manyclass import AutoClassifier
from manyclass.data import GeneratedRows, as_rows
from manyclass.estimators.automatic import candidates as listed_candidates
from manyclass.estimators.automatic import rounds, scalings
from manyclass.estimators.automatic.candidates import PENALTIES, WIDEST, candidates
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scalings import AS_GIVEN, STEPS, scaled_rows
from manyclass.features import ThermometerEncoder


def jumps(n, seed=0):
    """Columns with heavy tails, each of which says something in some of its bands."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(sigma=2.0, size=(n, 8))
    bands = np.floor(2.0 * np.log(X)).astype(int)
    score = np.sum(np.where(bands % 3 == 0, 1.5, -0.75) * (np.arange(8) < 5), axis=1)
    return X, np.where(score + 0.3 * rng.standard_normal(n) > 0, "high", "low")


@pytest.fixture
def small(monkeypatch):
    """The penalties that are tried of steps, kernels (none of which leads here) of few features, and two folds."""
    monkeypatch.setattr(listed_candidates, "PENALTIES", listed_candidates.OF_STEPS)
    monkeypatch.setattr(listed_candidates, "BANDWIDTHS", (1.0,))
    monkeypatch.setattr(listed_candidates, "MOST_FEATURES", 256)
    monkeypatch.setattr(rounds, "FOLDS", 2)


def test_columns_are_cut_where_that_serves(small):
    (X, y), (X_test, y_test) = jumps(1500), jumps(2000, seed=1)
    model = AutoClassifier(random_state=0).fit(X, y)
    encoder, classifier = (step for _, step in model.best_estimator_.steps)
    assert isinstance(encoder, ThermometerEncoder)
    assert model.leaderboard_[0]["scaling"] == STEPS
    assert any(STEPS in line for line in model.why_)
    others = [row["accuracy"] for row in model.leaderboard_ if row["scaling"] != STEPS]
    assert model.score(X_test, y_test) > max(others) + 0.05
    # The rows are cut block by block where the model predicts them, and all at once in the pipeline.
    np.testing.assert_allclose(model.predict_proba(X_test), model.best_estimator_.predict_proba(X_test), atol=1e-6)
    assert classifier.n_features_in_ == encoder.n_features_out


def test_rows_of_a_file_are_cut_as_they_are_read(small, tmp_path):
    X, y = jumps(4000)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    model = AutoClassifier(max_time=20, random_state=0).fit(str(tmp_path / "X.npy"), y, memory_limit="300KB")
    assert isinstance(model.best_estimator_, Pipeline)
    assert isinstance(model.best_estimator_[0], ThermometerEncoder)
    X_test, y_test = jumps(2000, seed=1)
    assert model.score(X_test, y_test) > 0.8


@pytest.mark.parametrize(
    ("X", "has_steps"),
    [
        (np.random.default_rng(0).standard_normal((100, 3)), True),
        (np.random.default_rng(0).integers(0, 2, (100, 3)).astype(float), False),
        (np.random.default_rng(0).integers(0, 3, (100, 3)).astype(float), True),
        (sp.random_array((100, 3), density=0.5, rng=0, format="csr"), True),
        (sp.random_array((100, 60), density=0.03, rng=0, format="csr"), False),
        (np.random.default_rng(0).standard_normal((20, WIDEST // 15)), False),
        (np.ones((20, 3)), False),
    ],
)
def test_which_rows_have_steps(X, has_steps):
    assert (STEPS in scaled_rows(as_rows(X), WIDEST)) == has_steps


def test_sparse_rows_of_a_table_are_taken_as_such(small):
    """They had linear models of the columns only, as text has."""
    (X, y), (X_test, y_test) = jumps(1500), jumps(2000, seed=1)
    X, X_test = (sp.csr_array(np.where(one < 0.4, 0.0, one)) for one in (X, X_test))
    model = AutoClassifier(random_state=0).fit(X, y)
    assert {"GLMClassifier", "StagewiseClassifier"} == {row["estimator"] for row in model.leaderboard_}
    assert model.leaderboard_[0]["scaling"] == STEPS
    assert model.score(X_test, y_test) == model.score(X_test.toarray(), y_test) > 0.65
    listed, _ = candidates(as_rows(sp.random_array((100, 60), density=0.03, rng=0, format="csr")), 0)
    assert all(one.is_linear for one in listed)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_steps_are_made_where_they_are_taken_and_in_each_pass_where_they_do_not_fit(monkeypatch, is_sparse):
    X = np.random.default_rng(0).standard_normal((1000, 4))
    X = sp.csr_array(X) if is_sparse else X
    encoder, scaled = scaled_rows(as_rows(X), WIDEST)[STEPS]
    index = np.array([3, 1, 999])
    np.testing.assert_array_equal(scalings.taken(scaled, index), encoder.transform(X)[index])
    np.testing.assert_array_equal(scalings.taken(scaled), encoder.transform(X))
    assert scalings.taken(scaled).dtype == np.uint8
    monkeypatch.setattr(scalings, "room_for", lambda limit: 1000.0)
    assert isinstance(scalings.taken(scaled), GeneratedRows)


def test_steps_that_are_made_in_each_pass_are_learned_from(small, monkeypatch):
    monkeypatch.setattr(scalings, "room_for", lambda limit: 1000.0)
    X, y = jumps(1500)
    model = AutoClassifier(random_state=0, max_time=20).fit(X, y)
    assert isinstance(model.best_estimator_[0], ThermometerEncoder)
    assert model.score(X, y) > 0.8


def search_and_entries():
    X, y = jumps(400)
    listed, found = candidates(as_rows(X), 0)
    scaled = {name: rows for name, (_, rows) in found.items()}
    search = Search("accuracy", Labelled(scaled, y), np.unique(y), time.perf_counter() + 60.0)
    return search, [Entry(one, 1.0, 400) for one in listed]


@pytest.mark.parametrize("leading", [AS_GIVEN, STEPS])
def test_other_penalties_and_kernels_of_ranks_are_tried_where_a_linear_model_of_steps_leads(leading):
    search, entries = search_and_entries()
    best = next(one for one in entries if one.candidate.is_linear and one.candidate.scaling == leading)
    best.scores = {0: type("Judged", (), {"accuracy": 0.9, "log_loss": 0.3})()}
    left = [one.candidate for one in entries if not search.ranking.leads_elsewhere(one.candidate, [best])]
    of_steps = [one for one in left if one.scaling == STEPS]
    assert any(not one.is_linear for one in of_steps) == (leading == STEPS)
    n_penalties = len({one.alpha for one in of_steps if one.is_linear})
    assert (n_penalties >= len(PENALTIES)) == (leading == STEPS)
    assert n_penalties >= 2
    assert any(not one.is_linear and one.scaling == AS_GIVEN for one in left)


def test_linear_models_come_before_kernels(monkeypatch):
    """Which of these are tried is told by those."""
    search, entries = search_and_entries()
    for one in entries:
        one.expected = 2.0 if one.candidate.is_linear else 1.0
    order = []
    monkeypatch.setattr(search, "_round", lambda alive, *rest, **options: order.extend(alive) or [])
    index = np.arange(400)
    search.run(entries, [{0: (index[:300], index[300:])}])
    is_linear = [one.candidate.is_linear for one in order]
    assert is_linear == sorted(is_linear, reverse=True)
    assert not all(is_linear)

"""What fits are expected to take, before any and after the last."""

import time

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.choice.costs import Cost, costs
from manyclass.data import as_rows
from manyclass.data.labels import encode
from manyclass.estimators.auto import _expected
from manyclass.estimators.automatic import candidates
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.feature_kinds import LANDMARKS, LEARNED_WAVES, WAVES
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scalings import AS_GIVEN


def test_few_rows_are_not_expected_to_take_less_than_the_fewest_features_do():
    X = np.random.default_rng(0).standard_normal((40, 3))
    listed, _ = candidates.candidates(as_rows(X), 0)
    estimates = (Cost("StagewiseClassifier", "squared", "", float(candidates.MOST_FEATURES), 0.0, True),)
    times = LANDMARKS.block_size // WAVES.block_size
    seconds = {(one.kind, second) for one, second in _expected(listed, estimates, as_rows(X))}
    least = candidates.FEWEST_FEATURES
    assert seconds == {(WAVES, least), (LEARNED_WAVES, least), (LANDMARKS, times * least)}


def test_lines_are_tried_before_kernels_of_few_wide_rows():
    """The time had gone into kernels alone: a table of genes got more than twice the errors."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4000)) + 2.0 * (np.arange(4000) % 40 == y[:, None])
    expected = list(
        _expected(candidates.candidates(as_rows(X), 0)[0], costs(as_rows(X), encode(y, "A test")), as_rows(X))
    )
    lines = max(seconds for one, seconds in expected if one.is_linear)
    assert lines < min(seconds for one, seconds in expected if not one.is_linear)


def test_what_a_fit_to_few_rows_takes_beside_its_work_does_not_grow_with_them():
    listed, _ = candidates.candidates(as_rows(np.random.default_rng(0).standard_normal((400, 4))), 0, are_all=False)
    entry = Entry(listed[-1], 100.0, 100_000, of_all=(100.0, 100_000))
    assert entry.seconds_for(50_000) == pytest.approx(50.0)
    entry.expected, entry.n_rows = 2.0, 1000  # where work alone would take 0.1
    assert 100.0 < entry.seconds_for(100_000) < 102.0
    assert entry.rows_in(entry.seconds_for(70_000)) == pytest.approx(70_000, rel=1e-3)
    entry.expected = 0.001
    assert entry.seconds_for(100_000) < 10.0


def test_the_time_that_taking_rows_needs_is_that_of_the_fit(monkeypatch):
    """Of a million rows the steps took two seconds beyond max_time."""

    def slowly(scaled, index=None):
        time.sleep(0.3)
        return scaled

    monkeypatch.setattr("manyclass.estimators.automatic.sampled_rows.taken", slowly)
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    model = Labelled({AS_GIVEN: X}, y).fit(GLMClassifier(max_time=5.0), AS_GIVEN)
    assert 0.0 < model.max_time <= 4.7


def test_all_rows_are_taken_once_for_the_fits_of_a_path(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "manyclass.estimators.automatic.sampled_rows.taken", lambda scaled, index=None: asked.append(index) or scaled
    )
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    rows = Labelled({AS_GIVEN: X, "other": 2.0 * X}, y)
    coefs = [rows.fit(GLMClassifier(), scaling).coef_ for scaling in (AS_GIVEN, AS_GIVEN, "other", AS_GIVEN)]
    assert asked == [None] * 3
    np.testing.assert_array_equal(coefs[0], coefs[3])
    assert not np.allclose(coefs[0], coefs[2])


@pytest.mark.parametrize(
    ("n_passes", "told"), [(3, "all rows from where 100 had led"), (0, "100 rows: there was no time")]
)
def test_a_fit_without_time_for_a_pass_is_not_said_to_be_one_to_all_rows(monkeypatch, n_passes, told):
    X, y = np.random.default_rng(0).standard_normal((400, 2)), np.arange(400) % 2
    search = Search("accuracy", Labelled({AS_GIVEN: X}, y), np.arange(2), time.perf_counter() + 60.0)
    model = GLMClassifier(warm_start=True).fit(X[:100], y[:100])
    entry = Entry(candidates.Candidate(model, AS_GIVEN, "path"), 1.0, 100, model=model, n_passes=100.0)
    entry.scores = {0: None}
    model.n_passes_ = n_passes
    monkeypatch.setattr(Search, "_from_fewer_rows", lambda *_: model)
    assert search._fitted_to_all(entry, 2.0, 400) is model
    assert told in search.why[-1]

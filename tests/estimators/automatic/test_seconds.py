"""What fits are expected to take, before any and after the last."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import GLMClassifier
from manyclass.choice.costs import Cost, costs
from manyclass.data import ChunkedRows, as_rows
from manyclass.data.labels import encode
from manyclass.estimators.auto import _expected
from manyclass.estimators.automatic import candidates, scalings
from manyclass.estimators.automatic.candidates import WIDEST
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.feature_kinds import LANDMARKS, LEARNED_WAVES, WAVES
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled, sample
from manyclass.estimators.automatic.scalings import AS_GIVEN, STEPS, held_bytes, scaled_rows


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


def test_reading_is_among_the_seconds_of_a_fit_to_all_rows(rng):
    """A path of penalties was begun where one pass over the rows of a file took as long as was left."""
    X, n = rng.standard_normal((1000, 4)), 1000

    def slowly(block):
        time.sleep(1e-4 * len(block))
        return 2.0 * block

    given = ChunkedRows(lambda: iter([X]), n)
    all_rows = Labelled({AS_GIVEN: given, "slow": given.transformed(slowly), "array": X}, np.arange(n) % 2)
    once, in_pass = all_rows.seconds_to_read("slow")
    assert n * in_pass > 0.09 and 0.0 < n * once < 0.09
    assert n * all_rows.seconds_to_read("array")[1] < 0.09
    listed, _ = candidates.candidates(as_rows(X), 0, are_all=False)
    entry = Entry(listed[0], 1.0, n, n_passes=20.0)
    assert entry.seconds_for(n) == 1.0
    entry.reading = once, in_pass
    assert entry.seconds_for(n) == pytest.approx(1.0 + n * (once + 20.0 * in_pass))
    assert entry.passes_in(entry.seconds_for(n), n) == pytest.approx(20.0)


def test_steps_beside_sparse_columns_count_in_a_sample(rng):
    """They took ten times what the rows do, and three times the limit on memory."""
    X = sp.hstack([rng.standard_normal((5000, 4)), sp.random_array((5000, 400), density=0.01, rng=rng)], "csr")
    rows, numbers = as_rows(X), range(4)
    (_, steps) = scaled_rows(rows, WIDEST, numbers)[STEPS]
    assert as_rows(steps).row_bytes < 1.2 * held_bytes(rows, numbers) < 2.0 * as_rows(steps).row_bytes
    assert held_bytes(rows, ()) == rows.row_bytes
    some, index = sample(rows, np.arange(5000) % 2, None, rng, held_bytes(rows, numbers))
    assert some.n_rows == len(index) == 5000
    rows.most_bytes = 4 * 1000.0 * held_bytes(rows, numbers)
    assert len(sample(rows, np.arange(5000) % 2, None, rng, held_bytes(rows, numbers))[1]) == 1000


def test_steps_that_do_not_fit_are_made_as_they_are_read(rng, monkeypatch):
    X = sp.hstack([rng.standard_normal((500, 4)), sp.random_array((500, 400), density=0.01, rng=rng)], "csr")
    held = as_rows(scaled_rows(as_rows(X), WIDEST, range(4))[STEPS][1])
    monkeypatch.setattr(scalings, "SHARE", 0.0)
    made = as_rows(scaled_rows(as_rows(X), WIDEST, range(4))[STEPS][1])
    assert isinstance(made, ChunkedRows) and not isinstance(held, ChunkedRows)
    np.testing.assert_array_equal(made.take(np.arange(7, 90)).dense(), held.dense()[7:90])

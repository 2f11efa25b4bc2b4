"""Dates and times of tables as days and as parts of cycles."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier
from manyclass.features import TableEncoder, ThermometerEncoder


def test_times():
    times = {
        "day": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 3), None],
        "at": [datetime.time(6), None, datetime.time(18)],
        "took": [datetime.timedelta(hours=1), datetime.timedelta(hours=3), datetime.timedelta(hours=2)],
    }
    encoder = TableEncoder().fit(pa.table(times))
    day, at, took = encoder.columns_
    assert_allclose([day.days.mean, day.days.deviation], [19724, 1])
    assert_allclose([at.days.mean, at.days.deviation], [0.5, 0.25])
    assert_allclose(took.mean, 2 / 24)
    assert [day.days.may_lack, at.days.may_lack, took.may_lack] == [True, True, False]
    assert [day.cycles, at.cycles] == [(), ("day",)]  # three days are no week


@pytest.mark.parametrize(
    ("n_days", "step", "cycles"),
    [
        (3, "1h", ("day",)),
        (10, "1h", ("day", "week")),
        (400, "1D", ("week", "year")),
        (400, "7h", ("day", "week", "year")),
    ],
)
def test_cycles_that_rows_have_gone_through_count(n_days, step, cycles):
    times = pd.DataFrame({"at": pd.date_range("2024-03-01", periods=int(pd.Timedelta(n_days, "D") / step), freq=step)})
    encoder = TableEncoder().fit(times)
    assert encoder.columns_[0].cycles == cycles
    later = encoder.transform(times + pd.Timedelta(7, "D"))
    names = encoder.get_feature_names_out().tolist()
    for cycle in ("day", "week"):
        if cycle in cycles:
            for one in ("part", "cosine", "sine"):
                place = names.index(f"at_{one}_of_{cycle}")
                assert_allclose(later[:, place], encoder.transform(times)[:, place], atol=1e-9)
    assert not np.isnan(encoder.transform(pd.DataFrame({"at": [pd.NaT]}))).any()


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"])
def test_dates_that_are_written_as_text_are_dates(rng, written):
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), unit="D")
    text = pd.DataFrame({"at": at.strftime(written).where(np.arange(400) % 9 > 0, None)})
    times = pd.DataFrame({"at": at.where(np.arange(400) % 9 > 0, pd.NaT)})
    expected = TableEncoder().fit(times).transform(times)
    encoder = TableEncoder().fit(text)
    assert_allclose(encoder.transform(text), expected, atol=1e-9)
    assert_allclose(encoder.transform(times), expected, atol=1e-9)
    assert_allclose(encoder.transform(text[:9]), expected[:9], atol=1e-9)
    with pytest.raises(ValueError, match="Column 'at' of X cannot be encoded: it holds text"):
        encoder.transform(pd.DataFrame({"at": ["2024-01-01", "soon"]}))


def test_weekends_and_hours_are_learned(rng):
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300 * 24, 4000), unit="h")
    X, y = pd.DataFrame({"at": at}), np.asarray((at.day_of_week >= 5) | (at.hour < 6))
    model = make_pipeline(TableEncoder(), ThermometerEncoder(), GLMClassifier(alpha=1e-5))
    assert model.fit(X[:3000], y[:3000]).score(X[3000:], y[3000:]) > 0.99

"""Tables of numbers, dates, categories and texts as numbers."""

import decimal
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import _get_check_estimator_ids

from manyclass import GLMClassifier
from manyclass.data.frames import is_mixed
from manyclass.estimators.automatic.scalings import numbers_of
from manyclass.features import TableEncoder, table, table_columns
from tests.checks import checks


@pytest.mark.parametrize(("estimator", "check"), [*checks(TableEncoder(), {})], ids=_get_check_estimator_ids)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def frame(rng):
    n = 200
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "rooms": rng.integers(1, 6, n),
            "city": rng.choice(["Rome", "Oslo", "Bern", None], n),
            "owner": rng.choice([True, False], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), unit="D"),
        }
    )


def test_numbers_and_categories_are_those_of_scikit_learn(frame):
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    names = encoder.get_feature_names_out().tolist()
    age = frame[["age"]].to_numpy()
    is_known = ~np.isnan(age[:, 0])
    assert_allclose(X[is_known, names.index("age")], StandardScaler().fit_transform(age)[is_known, 0], atol=1e-12)
    assert_array_equal(X[:, names.index("missingindicator_age")], np.isnan(age[:, 0]))
    cities = OneHotEncoder(sparse_output=False).fit_transform(frame[["city"]].fillna("missing"))
    places = [names.index(f"city_{name}") for name in ("Bern", "Oslo", "Rome", "missing")]
    assert_array_equal(X[:, places], cities)
    for name in ("rooms", "owner", "since"):
        held = frame[[name]].astype("int64").to_numpy().astype(float)
        assert_allclose(X[:, names.index(name)], StandardScaler().fit_transform(held)[:, 0], atol=1e-9)
    cycles = [f"since_{one}_of_{cycle}" for cycle in ("week", "year") for one in ("part", "cosine", "sine")]
    assert names[-6:] == cycles and len(names) == 15


@pytest.mark.parametrize(
    "text",
    ["http://site{topic}.com/page/{row}", "你好，我的{topic}卡在哪里{row}号", "{topic}.{row}@post.org"],
    ids=["addresses", "Chinese", "mail"],
)
def test_words_need_no_space_between_them(rng, text):
    topics = rng.integers(0, 4, 300)
    frame = pd.DataFrame({"text": [text.format(topic="东南西北"[topic], row=row) for row, topic in enumerate(topics)]})
    X = TableEncoder().fit_transform(frame)
    assert GLMClassifier(alpha=1e-3).fit(X[:200], topics[:200]).score(X[200:], topics[200:]) == 1.0


def test_names_of_several_words_are_categories_too(rng):
    owners = rng.integers(0, 200, 3000)
    frame = pd.DataFrame({"name": [f"owner {owner // 14} of {owner % 14}" for owner in owners]})
    y = rng.integers(0, 2, 200)[owners]  # by pairs of words that are no neighbours
    encoder = TableEncoder()
    X = encoder.fit_transform(frame)
    assert GLMClassifier(alpha=1e-3).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) == 1.0
    names = encoder.get_feature_names_out().tolist()
    assert X.shape[1] == len(names) and {"name_owner 7 of 3", "name_owner 7", "name_of"} <= set(names)


def test_columns_of_nothing_but_gaps(frame):
    """Of NaN, which polars and pyarrow do not take for missing, as of None; and later in place of what was there."""
    expected = TableEncoder().fit_transform(frame)
    for nothing in (None, np.nan):
        holed = pl.from_pandas(frame).with_columns(gone=pl.lit(nothing, pl.Float64))
        assert_allclose(TableEncoder().fit_transform(holed), expected, atol=1e-9)
        later = pl.from_pandas(frame).with_columns(since=pl.lit(nothing), age=pl.lit(nothing))
        assert TableEncoder().fit(frame).transform(later).shape == expected.shape


def test_texts_are_those_of_scikit_learn():
    texts = pd.Series([f"where is my card number {j % 7} of {j % 19}" for j in range(120)])
    encoder = TableEncoder().fit(texts.to_frame("question"))
    found = encoder.transform(texts.to_frame("question"))
    options = {"min_df": 2, "sublinear_tf": True}
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", **options).fit(texts)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), **options).fit(texts)
    expected = sp.hstack([words.transform(texts), characters.transform(texts)]).toarray()
    assert found.dtype == np.float32
    assert_allclose(found if isinstance(found, np.ndarray) else found.toarray(), expected, atol=1e-6)
    names = encoder.get_feature_names_out()
    assert names[0] == f"question_{words.get_feature_names_out()[0]}"
    assert names[-1] == f"question_characters_{characters.get_feature_names_out()[-1]}"
    assert len(set(names)) == len(names) == expected.shape[1]


def test_many_long_texts_are_taken_apart_less(monkeypatch):
    texts = pd.DataFrame({"text": [f"where is my card number {j % 7} of {j % 11}" for j in range(120)]})
    widths = []
    for limits in ({}, {"MOST_FOR_TRIPLES": 100}, {"MOST_FOR_TRIPLES": 100, "MOST_FOR_PAIRS": 100}):
        for name, limit in limits.items():
            monkeypatch.setattr(table_columns, name, limit)
        encoder = TableEncoder().fit(texts)
        widths.append(encoder.transform(texts).shape[1])
        assert len(encoder.get_feature_names_out()) == widths[-1]
    assert widths[0] > widths[1] > widths[2] > 10


@pytest.mark.parametrize(
    "as_kind",
    [
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.astype({"city": "category"}),
        lambda frame: frame.to_numpy(dtype=object),
        lambda frame: frame.to_numpy(dtype=object).tolist(),
    ],
    ids=["polars", "pyarrow", "nullable", "category", "objects", "lists"],
)
def test_kinds_of_tables_hold_the_same(frame, as_kind):
    expected = TableEncoder().fit_transform(frame)
    kind = as_kind(frame)
    assert is_mixed(kind)
    assert_allclose(TableEncoder().fit_transform(kind), expected, atol=1e-9)


def test_rows_may_come_in_pieces(frame, monkeypatch):
    encoder = TableEncoder().fit(frame)
    whole = encoder.transform(frame)
    monkeypatch.setattr(table, "BLOCK_ROWS", 7)
    assert_array_equal(encoder.transform(frame), whole)
    encoder.sparse_output_ = True
    assert_array_equal(encoder.transform(frame).toarray(), whole)
    encoder.sparse_output_ = False
    parts = [encoder.transform(frame[first : first + 1]) for first in range(20)]
    assert_array_equal(np.concatenate(parts), whole[:20])


def test_what_is_new_later_is_told_as_far_as_it_can_be(frame):
    frame["city"] = frame["city"].where(np.arange(len(frame)) > 0, "Lima")  # occurs once
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    later = frame[:3].assign(city=["Paris", None, "Oslo"], rooms=[np.nan, 1, 2], owner=pd.array([None, True, False]))
    X = encoder.transform(later)
    assert "city_Lima" not in names
    assert X[0, names.index("city_infrequent")] == 1
    assert X[1, names.index("city_missing")] == 1
    assert X[2, names.index("city_Oslo")] == 1
    assert abs(X[0, names.index("rooms")]) < 0.5 and abs(X[0, names.index("owner")]) < 0.5  # near the mean


def test_categories_are_the_same_however_they_are_held():
    X = pd.DataFrame({"zip": [*["10", "20", "30"] * 5, None]})
    encoder = TableEncoder().fit(X)
    expected = encoder.transform(X)
    for other in (pd.array([*[10, 20, 30] * 5, None], dtype="Int64"), [*[10.0, 20.0, 30.0] * 5, np.nan], [" 10"] * 16):
        found = encoder.transform(pd.DataFrame({"zip": other}))
        assert_array_equal(found, expected if len(set(map(str, other))) > 1 else expected[[0] * 16])


@pytest.mark.parametrize(
    "cells",
    [
        [2.0, "a", 1, True],
        [1.0, "a", 2.5, pd.NA],
        [pd.Timestamp(2020, 1, 1), "never", None],
        [decimal.Decimal("1.50"), "a", np.nan],
        pd.cut([1, 2, 3], 3),
        pd.Categorical([1e6, 1e20, 2.5]),
        pd.Categorical(pd.period_range("2020", periods=3, freq="Y")),
        pd.Categorical(pd.date_range("2020", periods=3, freq="D")),
    ],
    ids=["types", "gap", "times", "decimals", "intervals", "floats", "periods", "dates"],
)
def test_a_cell_reads_the_same_whatever_is_in_the_others(cells):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=getattr(cells, "dtype", object))})
    encoder = TableEncoder().fit(pd.concat([frame] * 9))
    whole = encoder.transform(frame)
    assert_array_equal(whole.sum(axis=1), 1)
    assert len(np.unique(whole, axis=0)) == len(frame)
    for row in range(len(frame)):
        assert_array_equal(encoder.transform(frame[row : row + 1]), whole[row : row + 1])
        alone = pd.DataFrame({"a": pd.Series([frame["a"][row]])})
        if alone["a"].dtype.name.startswith(("interval", "period")):
            with pytest.raises(ValueError, match="neither numbers, dates nor text"):
                encoder.transform(alone)
        else:
            assert_array_equal(encoder.transform(alone), whole[row : row + 1])


def test_dates_as_categories_are_the_same_in_every_unit():
    days = pd.DataFrame({"a": pd.Categorical(pd.date_range("2020", periods=4, freq="D"))})
    encoder = TableEncoder().fit(pd.concat([days] * 9))
    other = days.assign(a=pd.Categorical(days["a"].astype("datetime64[ns]")))
    assert_array_equal(encoder.transform(other), np.eye(4))


def test_many_categories_are_sparse_and_few_are_dense(rng):
    few, many = (pd.DataFrame({"a": rng.integers(0, k, 4000).astype(str)}) for k in (5, 500))
    assert isinstance(TableEncoder().fit_transform(few), np.ndarray)
    encoder = TableEncoder().fit(many)
    X = encoder.transform(many)
    assert sp.issparse(X)
    assert encoder.sparse_output_
    assert_array_equal(X.sum(axis=1), 1)
    assert TableEncoder(max_categories=9).fit_transform(many).shape[1] == 10  # and the others


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_many_categories_make_frames_where_these_are_asked_for(rng, output):
    X = pd.DataFrame({"a": rng.integers(0, 500, 4000).astype(str)})
    encoder = TableEncoder().set_output(transform=output).fit(X)
    assert encoder.sparse_output_
    found = encoder.transform(X)
    assert list(found.columns) == encoder.get_feature_names_out().tolist()
    assert_array_equal(found.to_numpy(), TableEncoder().fit_transform(X).toarray())


def test_weights_count_as_copies_and_rows_of_none_are_absent(frame, rng):
    weight = rng.integers(0, 3, len(frame))
    weighted = TableEncoder().fit(frame, sample_weight=weight)
    repeated = frame.loc[np.repeat(frame.index, weight)]
    assert_allclose(weighted.transform(frame), TableEncoder().fit(repeated).transform(frame), atol=1e-9)


def test_weights_may_sum_to_one(frame):
    expected = TableEncoder().fit(frame)
    weighted = TableEncoder().fit(frame, sample_weight=np.full(len(frame), 1 / len(frame)))
    assert weighted.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert_allclose(weighted.transform(frame), expected.transform(frame), atol=1e-9)


def test_one_long_text_takes_no_more_memory_than_it_has():
    texts = pd.DataFrame({"page": [*(f"page{j % 2000}" for j in range(4000)), "x" * 100_000]})
    tracemalloc.start()
    TableEncoder().fit(texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_numbers_of_any_size(rng):
    X = np.column_stack([rng.standard_normal(50) * size for size in (1e-200, 1.0, 1e200)] + [np.full(50, 1e9)])
    X[3, 1] = np.nan
    found = TableEncoder().fit_transform(X)
    assert_allclose(found[:, [0, 1, 3]].std(axis=0), 1.0, rtol=0.02)
    assert_array_equal(found[:, 4], 0.0)
    later = TableEncoder().fit(X).transform(np.where(np.arange(4) == 3, 1e9 + 3.0, X[:1]))
    assert later[0, 4] == 3.0  # a constant has no unit of its own


def test_names_are_told_apart():
    frame = pd.DataFrame([["missing", "c", 1], [None, "c", 2]] * 5, columns=["a", "a_b", "a_missing"])
    frame.insert(0, "a", "b_c", allow_duplicates=True)
    names = TableEncoder().fit(frame).get_feature_names_out().tolist()
    assert names == ["a_b_c", "a_missing", "a_missing_2", "a_b_c_2", "a_missing_3"]
    assert TableEncoder().set_output(transform="polars").fit_transform(frame).columns == names


def test_text_may_be_held_as_views(frame):
    table = pa.Table.from_pandas(frame[["city"]])
    views = table.cast(pa.schema([("city", pa.string_view())]))
    weight = np.arange(len(frame)) % 2
    expected = TableEncoder().fit_transform(table, None, weight)
    assert is_mixed(views)
    assert_array_equal(TableEncoder().fit_transform(views, None, weight), expected)
    assert_array_equal(TableEncoder().fit_transform(views.to_batches()[0], None, weight), expected)


def test_numbers_and_times_are_known_among_the_columns(frame):
    encoder = TableEncoder().fit(frame.assign(since=frame["since"].where(np.arange(len(frame)) > 3)))
    names = encoder.get_feature_names_out()[numbers_of(encoder)].tolist()
    cycles = [f"since_{one}_of_{cycle}" for cycle in ("week", "year") for one in ("part", "cosine", "sine")]
    assert names == ["age", "rooms", "owner", "since", *cycles]


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (lambda frame: frame.assign(age="old"), r"Column 'age' of X cannot be encoded: it holds text \('old'\)"),
        (lambda frame: frame.assign(age=frame["since"]), "it held numbers when it was fitted, and holds dates"),
        (lambda frame: frame.assign(since=frame["rooms"]), "it held dates when it was fitted, and holds numbers"),
        (lambda frame: frame.assign(since="19700"), "it held dates when it was fitted, and holds numbers"),
        (lambda frame: frame.assign(age=np.inf), "Column 'age' of X cannot be encoded: it holds infinity"),
        (lambda frame: frame.rename(columns={"age": "years"}), "column 'age' was, where now 'years' is"),
        (lambda frame: frame.drop(columns="age"), "X has 4 features, but TableEncoder is expecting 5"),
    ],
)
def test_columns_that_differ_are_refused(frame, later, message):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=message):
        encoder.transform(later(frame))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [None, None]}), "No column of X says anything"),
        (pa.table({"a": [[1, 2], [3, 4]]}), "neither numbers, dates nor text"),
        (pa.table({"a": pa.array([b"1", b"2"]).dictionary_encode()}), "neither numbers, dates nor text"),
        (pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "neither numbers, dates nor text"),
        (pa.table({"a": [b"1", b"2"]}), "neither numbers, dates nor text"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "it holds infinity"),
    ],
)
def test_columns_of_nothing_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(X)


@pytest.mark.parametrize("X", [pd.Series(["a", "b"]), pl.Series(["a", "b"]), np.array(["a", "b"]), ["a", "b"]])
def test_one_column_is_no_table(X):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        TableEncoder().fit(X)


def test_no_rows_are_encoded(frame):
    frame["text"] = [f"one of {row} words" for row in range(len(frame))]
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(frame[:0]).shape == (0, encoder.n_features_out)


def test_a_pipeline_learns_from_what_no_number_says(frame):
    y = frame["city"].isin(["Oslo"]) | frame["age"].isna()
    model = make_pipeline(TableEncoder(), GLMClassifier(alpha=1e-3)).fit(frame[:100], y[:100])
    assert model.score(frame[100:], y[100:]) > 0.99


def test_only_what_numbers_do_not_say_makes_a_table():
    for X in (
        np.eye(3),
        [[1, 2], [3, 4]],
        pd.DataFrame({"a": [1.0, 2.0]}),
        [["1"], ["2"]],
        sp.eye_array(3),
        "file.csv",
    ):
        assert not is_mixed(X)
    digits = pd.DataFrame({"zip": ["007", "12", "90"]})
    for X in ([[1.0, np.nan]], [[1, None]], [["a"], ["2"]], pd.DataFrame({"a": pd.Categorical([1, 2])}), digits):
        assert is_mixed(X)

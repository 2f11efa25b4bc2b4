"""Tables that stay in their files: what is read in pieces is what is read as a whole."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier
from manyclass.data import open_rows
from manyclass.data.frames import texts
from manyclass.data.readers import DataFileError, Request, read
from manyclass.data.readers.tables import Layout
from manyclass.data.rows import Rows
from manyclass.data.stored_table import StoredTable
from manyclass.features import TableEncoder
from tests.covering import in_turn

N_ROWS, LIMIT = 6000, "400kB"


def days(rng):
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, N_ROWS), unit="D")


COLUMNS = {
    "text": lambda rng: rng.choice(["Rome", "Oslo"], N_ROWS),
    "text far below": lambda rng: [*map(str, rng.integers(9, size=N_ROWS - 900)), *["x", "y", "z"] * 300],
    "dates": lambda rng: days(rng).strftime("%Y-%m-%d"),
    "dates far below": lambda rng: [""] * (N_ROWS // 2) + [*days(rng)[N_ROWS // 2 :].strftime("%Y-%m-%dT%H:%M")],
    "dates with a zone": lambda rng: [None] * (N_ROWS // 2) + [*days(rng).tz_localize("UTC")[N_ROWS // 2 :].map(str)],
    "dates and a word": lambda rng: [*days(rng).strftime("%Y-%m-%d")[:-1], "soon"],
    "gaps": lambda rng: np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.standard_normal(N_ROWS)),
    "whole numbers and text": lambda rng: [*map(str, rng.integers(3, size=N_ROWS // 2)), *["x"] * (N_ROWS // 2)],
}
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=700),
    "arrow": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
    "ipc": lambda frame, path: frame.to_feather(path, compression="zstd"),
}


def table(rng, *names):
    frame = pd.DataFrame({"a": rng.standard_normal(N_ROWS), **{name: COLUMNS[name](rng) for name in names}})
    return frame.assign(label=np.where(frame["a"] > 0, "yes", "no"))


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    def write(frame, name="rows"):
        path = tmp_path / f"{name}.{request.param}"
        WRITERS[request.param](frame, path)
        return path

    return write


@pytest.mark.parametrize("name", COLUMNS)
def test_the_encoder_makes_the_same_of_pieces(rng, write, name):
    """If it learns from all rows, as where few of them are a sample."""
    path = write(table(rng, name))
    stored, y = open_rows(path, "label", keep=True, kinds={})
    whole = read(path, target="label", kinds={})
    assert isinstance(stored, StoredTable) and stored.shape == (N_ROWS, 2)
    np.testing.assert_array_equal(y, whole.y)
    rows = TableEncoder().fit_transform(stored)
    expected = TableEncoder().fit_transform(whole.X)
    assert isinstance(rows, Rows)
    found = rows.unwrapped()
    assert sp.issparse(found) == sp.issparse(expected) and found.shape == expected.shape
    if sp.issparse(expected):  # of words there are hundreds of columns
        assert abs(found - expected).max() < 1e-7 * abs(expected).max()
    else:
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("name", "write"), in_turn(COLUMNS, WRITERS), indirect=["write"])
def test_a_model_is_fitted_and_predicts_in_pieces(rng, write, name):
    frame = table(rng, name)
    path = write(frame)
    stored, y = open_rows(path, "label", LIMIT, keep=True, kinds={})
    model = make_pipeline(TableEncoder(), GLMClassifier()).fit(stored, y)
    assert model.score(stored, y) > 0.98
    whole = read(path, target="label", kinds=model[0].kinds).X
    np.testing.assert_allclose(model.predict_proba(path), model.predict_proba(whole), rtol=1e-5)
    index = np.array([5, 3999, 3, 5])
    expected = texts(whole.take(index)[name])
    assert [expected[0][code] for code in expected[1]] == [
        values[code] for values, codes in [texts(stored.take(index)[name])] for code in codes
    ]


def test_rows_of_numbers_are_no_table(rng, write):
    assert isinstance(open_rows(write(table(rng)), "label", keep=True, kinds={})[0], Rows)


def test_files_of_a_folder_agree_on_kinds(rng, tmp_path):
    """One has numbers where another has text, gaps where another has none, and dates where another has text."""
    halves = [table(rng)[: N_ROWS // 2] for _ in range(2)]
    halves[0] = halves[0].assign(b=1, c=1.0, d=pd.Timestamp("2020-01-01"))
    halves[1] = halves[1].assign(b="1", c=np.nan, d="2020-01-01")
    for suffix in ("csv", "parquet"):
        (tmp_path / suffix).mkdir()
        for number, half in enumerate(halves):
            WRITERS[suffix](half, tmp_path / suffix / f"{number}.{suffix}")
        stored, _ = open_rows(tmp_path / suffix, "label", LIMIT, keep=True, kinds={})
        is_csv = suffix == "csv"
        assert stored.kinds == {"a": "number", "b": "number" if is_csv else "text", "c": "number"} | {
            "d": "time" if is_csv else "text"
        }
        ends = stored.take(np.array([0, N_ROWS - 1]))
        assert len(set(map(str, ends["b"].to_pylist()))) == 1 and ends["c"].null_count == 1
        assert TableEncoder().fit_transform(stored).n_rows == N_ROWS


def test_few_texts_among_numbers_are_mistakes(rng, tmp_path):
    frame = table(rng)
    frame["b"] = rng.integers(9, size=N_ROWS).astype(object)
    frame.loc[4000:4002, "b"] = "x"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(DataFileError, match=r"'b' holds text \('x' in line 4002\) in 3 and numbers in 5997 cells"):
        open_rows(tmp_path / "rows.csv", "label", kinds={})


def test_infinity_is_refused_with_its_column(rng, tmp_path):
    frame = table(rng, "text")
    frame.loc[5000, "a"] = np.inf
    frame.to_parquet(tmp_path / "rows.parquet")
    stored, y = open_rows(tmp_path / "rows.parquet", "label", LIMIT, keep=True, kinds={})
    with pytest.raises(ValueError, match="Column 'a' of X cannot be encoded: it holds infinity"):
        make_pipeline(TableEncoder(), GLMClassifier()).fit(stored, y)


def test_a_sample_has_no_rows_of_weight_0(rng, tmp_path):
    frame = table(rng)
    frame["b"] = np.where(np.arange(N_ROWS) % 2, "in", "out")
    frame.to_parquet(tmp_path / "rows.parquet")
    for limit in ("400kB", "1GB"):
        stored, _ = open_rows(tmp_path / "rows.parquet", "label", limit, keep=True, kinds={})
        encoder = TableEncoder().fit(stored, sample_weight=np.arange(N_ROWS) % 2)
        assert encoder.get_feature_names_out().tolist() == ["a", "b_in"]
        sample, index = stored.sample()
        assert sample.equals(stored.take(index)) and (len(index) < N_ROWS) == (limit == "400kB")
        assert len(np.unique(index)) == len(index)
        assert sample.nbytes < 2 * 400e3 / 64 or limit == "1GB"


def test_a_path_does_not_tell_features_from_labels(tmp_path):
    with pytest.raises(ValueError, match="open_rows"):
        TableEncoder().fit(tmp_path / "rows.csv")


def test_other_models_refuse_text_in_files(rng, tmp_path):
    table(rng, "text").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(DataFileError, match="holds text"):
        GLMClassifier().fit(tmp_path / "rows.csv", "label")


def test_a_table_of_pyarrow_is_one_in_memory(rng):
    frame = table(rng, "text")
    stored, _ = open_rows(pa.Table.from_pandas(frame), "label", kinds={})
    assert isinstance(stored, StoredTable) and stored.kinds == {"a": "number", "text": "text"}


def test_names_and_texts_are_told_apart_by_all_rows(rng, tmp_path):
    """A sample has more different names than its root, and fewer texts than the root of all rows."""
    frame = table(rng).assign(
        name=[f"city {number}" for number in rng.integers(0, 60, N_ROWS)],
        text=[f"visit {number} of {number % 7}" for number in range(N_ROWS)],
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    stored, _ = open_rows(tmp_path / "rows.parquet", "label", "2MB", keep=True, kinds={})
    n_sampled = len(stored.sample()[1])
    assert 60 > n_sampled**0.5 and N_ROWS**0.5 > 60
    whole, pieces = (TableEncoder().fit(X) for X in (frame.drop(columns="label"), stored))
    kinds = [type(column).__name__ for column in whole.columns_]
    assert kinds == [type(column).__name__ for column in pieces.columns_] == ["Numbers", "Categories", "Words"]
    few, _ = open_rows(tmp_path / "rows.parquet", "label", "100kB", keep=True, kinds={})
    assert len(few.sample()[1]) < N_ROWS**0.5
    assert type(TableEncoder().fit(few).columns_[2]).__name__ == "Words"


def test_categories_without_a_name_are_damage():
    """Of a damaged Parquet file, which pyarrow reads as it is."""
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False)
    layout = Layout.of(["city"], Request(target=False, kinds={}), {})
    with pytest.raises(pa.ArrowException, match="out of bounds"):
        layout.dataset(pa.table({"city": wrong}))


@pytest.mark.parametrize("name", ["dates", "dates far below", "text"])
def test_rows_that_are_encoded_are_kept(rng, write, name):
    stored, _ = open_rows(write(table(rng, name)), "label", LIMIT, keep=True, kinds={})
    encoder = TableEncoder()
    rows = encoder.fit_transform(stored)
    assert type(encoder.columns_[1]).__name__ == ("Categories" if name == "text" else "Times")
    for has_been_kept in (False, False, True, True):
        assert rows.store.has_random_access == has_been_kept
        assert sum(block.n_rows for _, block in rows.blocks(500)) == N_ROWS

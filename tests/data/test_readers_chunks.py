"""Files in chunks: together they are the file, whatever the size of a chunk."""

import bz2
import gzip
import lzma
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manyclass.data.readers import DataFileError, read, stored
from tests.data.in_chunks import in_chunks

N_ROWS = 1000


def assert_chunks_are_the_file(path, n_rows, **options):
    whole = read(path, dtype=np.float64, **options)
    chunks = list(in_chunks(path, n_rows, dtype=np.float64, **options))
    assert [len(chunk.X) for chunk in chunks[:-1]] == [n_rows] * (len(chunks) - 1)
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), whole.X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), whole.y)
    for chunk in chunks:
        assert (chunk.feature_names, chunk.target_name, chunk.label_names) == (
            whole.feature_names,
            whole.target_name,
            whole.label_names,
        )


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(5)}
    words = np.array(["a", "b b", "c, d", 'say "e"', "two\nlines"])[rng.integers(5, size=N_ROWS)]
    return pa.table(columns | {"kind": words, "red": rng.integers(2, size=N_ROWS), "blue": [0, 1] * (N_ROWS // 2)})


@pytest.fixture
def write(tmp_path, table):
    def write(name, compress=bytes):
        import pyarrow.csv

        buffer = pa.BufferOutputStream()
        if name.startswith("rows.csv"):
            pyarrow.csv.write_csv(table, buffer)
        else:
            pq.write_table(table, buffer, row_group_size=77)
        (tmp_path / name).write_bytes(compress(buffer.getvalue().to_pybytes()))
        return tmp_path / name

    return write


@pytest.mark.parametrize("n_rows", [1, 64, 77, 999, 1000, 5000])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_chunks_are_the_file(write, name, n_rows):
    path = write(name)
    assert_chunks_are_the_file(path, n_rows, target="kind", drop=["red", "blue"])
    assert_chunks_are_the_file(path, n_rows, target=["blue", "red"], drop=["kind"])


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_compressed_chunks_are_the_file(write, name, compress):
    assert_chunks_are_the_file(write(name, compress), 300, target="kind")


def test_csv_larger_than_a_block_of_the_parser(tmp_path):
    """Rows and chunks that straddle the blocks in which the text is parsed."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 9, (30_000, 90)) + 0.5
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, np.arange(len(X)) % 3]), fmt="%.1f", delimiter=",")
    assert path.stat().st_size > 8 << 20
    assert_chunks_are_the_file(path, 7000)
    np.testing.assert_array_equal(read(path).X, X)


def test_a_row_longer_than_a_block_of_the_parser(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [[f"{i + j % 7:03000}" for j in range(2000)] for i in range(2)]
    path.write_text("\n".join(",".join([*row, "x"]) for row in rows))
    np.testing.assert_array_equal(read(path).X, np.arange(2)[:, None] + np.arange(2000) % 7)


def test_header_and_delimiter_hold_for_every_chunk(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\xef\xbb\xbf\r\n"first;\r\nname";kind\r\n1;x\r\n\r\n2;y\r\n3;x\r\n')
    chunks = list(in_chunks(path, 2))
    assert [chunk.X.ravel().tolist() for chunk in chunks] == [[1, 2], [3]]
    assert chunks[1].feature_names == ("first;\r\nname",)


def test_truth_values_hold_for_every_chunk(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,label\n" + "true,,x\n" * 3 + "false,true,y\n" * 3)
    assert_chunks_are_the_file(path, 2)
    np.testing.assert_array_equal(read(path).X[2:4], [[1, np.nan], [0, 1]])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,label\n1,x\n2,x\nz,y\n", r"column 'a' holds text \('z' in line 4\)"),
        ("a,label\n1,x\n2,x\n3\n", "line 4 has 1 cells where the first line has 2"),
        ("a,label\n1,x\n2,x\n3,\n", "row 3 has no label"),
        ("a,label\n", "header but no rows"),
    ],
)
def test_faults_name_the_row_of_the_file(tmp_path, text, sentence):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(DataFileError, match=sentence):
        list(in_chunks(path, 2))


def test_indicator_faults_name_the_row_of_the_file(tmp_path):
    pq.write_table(pa.table({"a": [1, 2, 3], "red": [0, 1, 2]}), tmp_path / "rows.parquet")
    with pytest.raises(DataFileError, match="label column 'red' holds 2 in row 3"):
        list(in_chunks(tmp_path / "rows.parquet", 2, labels=1))


@pytest.fixture
def small_chunks(monkeypatch):
    """Of 64 rows, while a file is surveyed."""
    monkeypatch.setattr(sys.modules["manyclass.data.readers.stored"], "SURVEYED_BYTES", 1)


@pytest.mark.parametrize(
    ("first", "last", "options", "sentence"),
    [
        ("1,0,b", "2,1,", {}, "row 71 has no label"),
        ("1,0,1", "2,3,0", {"labels": 2}, "'u' holds 3 in row 71"),
    ],
)
def test_faults_after_the_first_chunk_name_the_row_of_the_file(tmp_path, small_chunks, first, last, options, sentence):
    path = tmp_path / "rows.csv"
    path.write_text("a,u,v\n" + f"{first}\n" * 70 + f"{last}\n")
    for load in (stored, read):
        with pytest.raises(DataFileError, match=sentence):
            load(path, **options)


def test_labels_are_text_where_those_of_any_chunk_are(tmp_path, small_chunks):
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n" + "1,1.0\n" * 70 + "2,b\n" * 30)
    np.testing.assert_array_equal(stored(path).y, ["1.0"] * 70 + ["b"] * 30)
    np.testing.assert_array_equal(read(path).y, stored(path).y)

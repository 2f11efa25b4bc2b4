"""What is asked of a file is heard or refused, and what comes through a pipe is read whole."""

import bz2
import gzip
import json
import os
import struct
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from manyclass.data.readers import DataFileError, read, stored

X, Y = np.arange(12.0).reshape(4, 3) / 7, np.array([0, 2, 1, 2])
LINES = "".join(f"{label} 1:{row[0]} 3:{row[2]}\n" for label, row in zip(Y, X, strict=True))


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    np.save(tmp_path / "rows.npy", X)
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_matrix(X))
    (tmp_path / "rows.svm").write_text(LINES)
    return tmp_path


@pytest.mark.parametrize("how", [read, stored])
@pytest.mark.parametrize("asked", [{"target": "a"}, {"drop": (1,)}, {"labels": 1}], ids=str)
@pytest.mark.parametrize("name", ["rows.npz", "rows.npy", "sparse.npz", "rows.svm"])
def test_files_that_are_no_tables_refuse_to_be_asked_for_columns(files, name, asked, how):
    (option,) = asked
    with pytest.raises(DataFileError, match=rf"{name}: .*--{option} on the command line.* files are none"):
        how(files / name, **asked)


def through_a_pipe(path, content):
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("how", [read, stored])
def test_a_pipe_is_read_whole(tmp_path, packed, how):
    rows = "".join(f"{number % 3} 1:{number} 2:1\n" for number in range(20000))  # of several heads
    found = how(through_a_pipe(tmp_path / "rows.svm", packed(rows.encode())))
    assert found.X.shape[0] == 20000 if how is read else found.X.n_rows == 20000
    table = "a,b,label\n" + "".join(f"{number},1,{'xyz'[number % 3]}\n" for number in range(20000))
    found = how(through_a_pipe(tmp_path / "rows.csv", packed(table.encode())))
    assert len(found.y) == 20000 and found.feature_names == ("a", "b")


def test_arrays_and_labels_come_through_pipes(files):
    for name in ("rows.npz", "rows.npy"):
        pipe = through_a_pipe(files / f"pipe_{name}", (files / name).read_bytes())
        np.testing.assert_array_equal(read(pipe, labels=through_a_pipe(files / f"y_{name}.txt", b"0\n2\n1\n2\n")).y, Y)


def test_truth_is_the_same_label_in_every_format(tmp_path):
    truth = np.array([True, False, True])
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "label": truth}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,label\n1,True\n2,False\n3,True\n")
    np.savez(tmp_path / "t.npz", X=X[:3], y=truth)
    found = [read(tmp_path / name).y.tolist() for name in ("t.parquet", "t.csv", "t.npz")]
    assert found == [["True", "False", "True"]] * 3


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("how", [read, stored])
def test_a_time_is_the_same_label_in_every_format(tmp_path, unit, how):
    times = np.array(["2020-01-01", "2020-01-02T12:00:00", "2020-01-01"], f"M8[{unit}]")
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "label": times}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,label\n1,2020-01-01\n2,2020-01-02 12:00:00\n3,2020-01-01\n")
    found = [how(tmp_path / name).y.tolist() for name in ("t.parquet", "t.csv")]
    assert found == [["2020-01-01", "2020-01-02 12:00:00", "2020-01-01"]] * 2


def test_lists_are_no_labels(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0], "label": [[1, 0], [0, 1]]}), tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="column 'label' holds lists"):
        read(tmp_path / "t.parquet")


def without_labels(folder, name):
    """A file of X whose labels are missing, in part or all of them, or are none."""
    path, columns = folder / name, dict(zip("abc", X.T, strict=True))
    if path.suffix == ".npz":
        np.savez(path, X=X, y=np.array([None, "x", None, 1], dtype=object))
    elif path.suffix == ".svm":
        rows = zip(["", "nan", "1", ""], X, strict=True)
        path.write_text("".join(f"{label} 1:{a} 2:{b} 3:{c}\n" for label, (a, b, c) in rows))
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table({**columns, "y": [None, "x", "", None]}), path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, (table := pa.table({**columns, "y": [None, "x", "", None]})).schema) as file:
            file.write_table(table)
    elif path.suffix == ".safetensors":
        header = {"X": ("F64", [4, 3], [0, 96]), "y": ("F64", [4], [96, 128])}
        text = json.dumps({k: dict(zip(("dtype", "shape", "data_offsets"), v, strict=True)) for k, v in header.items()})
        numbers = X.astype("<f8").tobytes() + np.full(4, np.nan).tobytes()
        path.write_bytes(struct.pack("<Q", len(text)) + text.encode() + numbers)
    else:
        rows = [[*map(str, row), label] for row, label in zip(X, ["?", "1", "?", "2"], strict=True)]
        empty = path.suffix == ".csv"
        head = "a,b,c,y\n" if empty else "@relation r\n" + "".join(f"@attribute {n} real\n" for n in "abcy") + "@data\n"
        path.write_text(head + "".join(",".join(row).replace("?", "" if empty else "?") + "\n" for row in rows))
    return path


@pytest.mark.parametrize("how", [read, stored])
@pytest.mark.parametrize("given", [{}, {"features": ("a", "b", "c"), "target": ("y",)}, {"features": 3}], ids=str)
@pytest.mark.parametrize("name", ["t.npz", "t.svm", "t.parquet", "t.arrow", "t.safetensors", "t.csv", "t.arff"])
def test_labels_that_are_not_needed_may_be_missing(tmp_path, name, given, how):
    if name == "t.arff":
        pytest.importorskip("arff")
    found = how(without_labels(tmp_path, name), needs_labels=False, **given)
    values = np.vstack([np.asarray(getattr(one, "toarray", lambda one=one: one)()) for one in chunks(found.X)])
    assert found.y is None
    np.testing.assert_allclose(values, X)


def chunks(values):
    return values.chunks(2) if hasattr(values, "chunks") else [values]

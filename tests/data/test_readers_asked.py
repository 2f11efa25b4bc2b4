"""What is asked of a file is heard or refused, and what comes through a pipe is read whole."""

import bz2
import gzip
import os
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


def test_lists_are_no_labels(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0], "label": [[1, 0], [0, 1]]}), tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="column 'label' holds lists"):
        read(tmp_path / "t.parquet")

"""Damage that was once misread; `tests/fuzz` looks for more."""

import gzip
import json
from contextlib import nullcontext
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from manyclass.data.readers import DataFileError, read, stored
from manyclass.data.readers.stored import Guarded
from manyclass.data.stores import Repeated
from tests.data.in_chunks import in_chunks
from tests.fuzz.seeds import ARFF, FILES, N_ROWS, TABLE, X, arrow, parquet, saved

NPY, NPZ = saved(np.save, X), saved(np.savez, X=X, y=np.arange(4))


def encrypted(archive):
    """The archive with the flags of strong encryption on its first member."""
    content = bytearray(archive)
    content[content.index(b"PK\x01\x02") + 8] |= 0x41
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "X.npy",
            NPY.replace(b"'fortran_order': False", b"'fortran_order': (alse"),
            "not a whole NumPy file",
        ),
        ("X.npy", b"\x93NUMPY\x02\x00" + b"\xff" * 4 + NPY[10:], "it ends before its header does"),
        ("X.npz", encrypted(NPZ), "not a whole NumPy file"),
        ("rows.arff", ARFF.replace("note string", "note st%ring").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("no, c", "no%d %s, c").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("@attribute length numeric", "@attribute").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("{no, yes}", "{" + 40 * "no, " + "yes").encode(), r"line 3 \('@attribute wild"),
        ("rows.arff", ARFF.replace("{no, yes}", "{" + 40 * "no," + "New York}").encode(), r"line 3 \('@attribute wild"),
        ("rows.arff", ARFF.encode("utf-16"), "not UTF-8"),
        ("rows.libsvm", b"1 1:2\n" + b" " * 20_000 + b"x\n", r"line 2 \('x'\)"),
        ("rows.libsvm", b"1 1:2\n" + b"1" * 20_000 + b"x\n", r"line 2 \('1111"),
        ("rows", b"\n" * 65_000 + b"x", "none of the known formats|not .* CSV|rows"),
        ("rows.csv", b'a,label\n1,"' + b"x" * 200_000, "check its quotes|no label|rows"),
    ],
)
def test_known_damage(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=sentence) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reads", [lambda store: list(store.chunks(2)), lambda store: store.take(np.arange(N_ROWS))])
def test_damage_that_is_met_when_rows_are_read_is_told_of_their_file(tmp_path, reads):
    labels = [0, 1, 0, 1]
    lists = pa.table({"b": X[:, 0], "e": [[1.0], [2.0], [3.0, 4.0], [5.0]], "label": labels})
    path = tmp_path / "rows.arrow"
    path.write_bytes(arrow(lists, pa.ipc.new_file))
    found = stored(path)
    with pytest.raises(DataFileError, match=f"^{path}: the lists of column 'e' are not all of length 1"):
        reads(found.X)
    path = tmp_path / "rows.parquet"
    content = parquet(pa.table({"a": np.arange(4.0), "label": labels}), compression="none", use_dictionary=False)
    values = content.index(np.arange(4.0).tobytes())
    path.write_bytes(content[: values - 3] + b"\xff" * 3 + content[values:])
    found = stored(path)
    with pytest.raises(DataFileError, match=f"^{path} is damaged|^{path} is not readable"):
        reads(found.X)


def test_rows_that_a_file_announces_are_there():
    announced = Guarded(Repeated(lambda size: [np.ones((2, 3))], 4), nullcontext)
    with pytest.raises(DataFileError, match="it announces 4 rows and holds 2"):
        list(announced.chunks(2))


@pytest.mark.parametrize(
    ("name", "write"), [("rows.arrow", lambda table: arrow(table, pa.ipc.new_file)), ("rows.parquet", parquet)]
)
def test_text_is_refused_before_rows_are_read(tmp_path, name, write):
    path = tmp_path / name
    path.write_bytes(write(TABLE))
    with pytest.raises(DataFileError, match="column 'label' holds text"):
        stored(path, target=False)


def test_a_compressed_file_need_not_be_mapped(tmp_path):
    path = tmp_path / "rows.arrow.gz"
    path.write_bytes(gzip.compress(FILES["arrow"][0]))
    found = stored(path)
    np.testing.assert_array_equal(found.X.read(0, N_ROWS), read(path).X)


def test_rows_of_libsvm_are_as_wide_as_was_asked_for(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n2 2:2\n")
    assert [chunk.shape for chunk in stored(path, features=5).X.chunks(2)] == [(2, 5)]
    with pytest.raises(DataFileError, match="it has 2 features where 1 are expected"):
        stored(path, features=1)


@pytest.mark.parametrize("listed", [[], ["other.arrow"], ["a\0.arrow"], ["a" * 999], [""]])
def test_the_files_that_a_folder_lists_are_there(tmp_path, listed):
    (tmp_path / "rows.arrow").write_bytes(FILES["arrow"][0])
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in listed]}))
    with pytest.raises(DataFileError, match=r"its state\.json lists"):
        stored(tmp_path)


def test_the_last_row_of_a_chunk_counts_without_a_line_end(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n2 1:2\n# remark\n1 1:3")
    assert [chunk.X.shape[0] for chunk in in_chunks(path, 2)] == [2, 1]


def test_a_faulty_line_has_its_number_in_any_chunk(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n2 1:2\n# remark\n1 1:x\n")
    with pytest.raises(DataFileError, match=r"line 4 \('1 1:x'\)"):
        list(in_chunks(path, 2))


@pytest.mark.parametrize("attempt", [read, lambda path, **options: list(in_chunks(path, 2, **options))])
def test_a_feature_before_the_first_is_refused(tmp_path, attempt):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 0:1 2:3\n")
    with pytest.raises(DataFileError, match="it has a feature 0 where the first is 1"):
        attempt(path, zero_based=False)


def test_rows_that_nothing_is_stored_of_take_no_memory(tmp_path):
    path = tmp_path / "X.npz"
    sparse.save_npz(path, sparse.coo_array(([1.0], ([0], [0])), shape=(10**12, 3)))
    with pytest.raises(DataFileError, match="1 numbers for 1000000000000 rows"):
        read(path)


def test_members_of_archives_hold_the_numbers_they_announce(tmp_path):
    path = tmp_path / "X.npz"
    with ZipFile(path, "w") as archive:
        archive.writestr("X.npy", NPY.replace(b"(4, ", b"(4000000000000, ").replace(b" " * 12, b"", 1))
    with pytest.raises(DataFileError, match="announces more numbers than it holds"):
        read(path)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_bounds_of_sparse_rows_never_go_back(tmp_path, kind):
    """SciPy looks at bounds where the last is not 0, and its loops end Python with what these lead to."""
    path, matrix = tmp_path / "X.npz", sparse.coo_array(np.eye(4)).asformat(kind)
    matrix.indptr[1:] = [1 << 24, 0, 0, 0]
    sparse.save_npz(path, matrix)
    with pytest.raises(DataFileError, match="bounds of its rows or columns go back"):
        read(path)


@pytest.mark.parametrize("content", ["1\nnan\n2\n2\n", "nan\n1\n1\n1\n"])
def test_labels_are_never_nan(tmp_path, content):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.txt").write_text(content)
    with pytest.raises(DataFileError, match="its labels hold NaN"):
        read(tmp_path / "X.npy", labels=tmp_path / "y.txt")


def test_a_message_is_one_line_that_can_be_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\x1b[31m" + "a" * 5000 + ",label\ntall,1\n")
    with pytest.raises(DataFileError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700 + len(str(path))


def test_labels_have_as_many_names_as_columns(tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.txt").write_text("a,b,c\n" + "0,1\n" * 4)
    with pytest.raises(DataFileError, match="names 3 labels and the others hold 2"):
        read(tmp_path / "X.npy", labels=tmp_path / "y.txt")

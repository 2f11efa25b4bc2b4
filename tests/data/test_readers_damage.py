"""Damage that was once misread; `tests/fuzz` looks for more."""

from zipfile import ZipFile

import numpy as np
import pytest
from scipy import sparse

from manyclass.data.readers import DataFileError, read, read_chunks
from tests.fuzz.seeds import ARFF, X, saved

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
        ("X.npz", encrypted(NPZ), "not a whole NumPy file"),
        ("rows.arff", ARFF.replace("note string", "note st%ring").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("no, c", "no%d %s, c").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("@attribute length numeric", "@attribute").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("{no, yes}", "{" + 40 * "no, " + "yes").encode(), r"line 3 \('@attribute wild"),
        ("rows.arff", ARFF.replace("{no, yes}", "{" + 40 * "no," + "New York}").encode(), r"line 3 \('@attribute wild"),
        ("rows.arff", ARFF.encode("utf-16"), "not UTF-8"),
        ("rows.csv", b'a,label\n1,"' + b"x" * 200_000, "check its quotes|no label|rows"),
    ],
)
def test_known_damage(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=sentence) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_the_last_row_of_a_chunk_counts_without_a_line_end(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n2 1:2\n# remark\n1 1:3")
    assert [chunk.X.shape[0] for chunk in read_chunks(path, 2)] == [2, 1]


def test_a_faulty_line_has_its_number_in_any_chunk(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n2 1:2\n# remark\n1 1:x\n")
    with pytest.raises(DataFileError, match=r"line 4 \('1 1:x'\)"):
        list(read_chunks(path, 2))


@pytest.mark.parametrize("attempt", [read, lambda path, **options: list(read_chunks(path, 2, **options))])
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

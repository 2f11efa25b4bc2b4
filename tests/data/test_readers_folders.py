"""Files of a folder are parts of one table: what one of them does not show, another may."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from manyclass.data.readers import DataFileError, read, stored


def folder(path, *texts, suffix):
    for number, text in enumerate(texts):
        (path / f"{number}.{suffix}").write_text(text)
    return path


def held(found):
    chunks = [chunk.toarray() if sp.issparse(chunk) else chunk for chunk in found.X.chunks(2)]
    return np.vstack(chunks)


def test_labels_of_several_columns_belong_to_their_names_in_each_file(tmp_path):
    found = stored(folder(tmp_path, "1,2 1:1 2:1\n1 1:2\n", "2,3 1:3\n3 2:4\n2 1:1\n", suffix="svm"))
    assert found.label_names == ("1", "2", "3")
    assert found.y.tolist() == [[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 1, 0]]


def test_a_file_of_single_labels_beside_one_of_several(tmp_path):
    found = stored(folder(tmp_path, "1 1:1\n2 1:2\n", "2,3 1:3\n", suffix="svm"))
    assert found.y.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize("options", [{}, {"features": 5}])
def test_features_are_counted_alike_in_all_files(tmp_path, options):
    """From 0 if one of them has a feature 0, and as many as the widest has."""
    found = stored(folder(tmp_path, "1 0:5 1:10\n0 1:11\n", "1 1:10 4:20\n0 1:11\n", suffix="svm"), **options)
    assert held(found).tolist() == [[5, 10, 0, 0, 0], [0, 11, 0, 0, 0], [0, 10, 0, 0, 20], [0, 11, 0, 0, 0]]


def test_columns_of_labels_may_be_in_any_order(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "r": [1, 0], "g": [0, 1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [3.0], "g": [1], "r": [0]}), tmp_path / "2.parquet")
    found = stored(tmp_path, labels=2)
    by_name = dict(zip(found.label_names, found.y.T.tolist(), strict=True))
    assert by_name == {"r": [1, 0, 0], "g": [0, 1, 1]}
    pq.write_table(pa.table({"a": [3.0], "g": [1], "b": [0]}), tmp_path / "3.parquet")
    with pytest.raises(DataFileError, match="differ in their labels"):
        stored(tmp_path, labels=2)


def test_labels_are_text_in_all_files_where_they_are_in_one(tmp_path):
    found = stored(folder(tmp_path, "f,y\n1,1.0\n2,b\n", "f,y\n3,1.0\n4,2.0\n", suffix="csv"))
    assert found.y.tolist() == ["1.0", "b", "1.0", "2.0"]


def test_what_is_a_number_to_python_alone_is_a_name(tmp_path):
    assert stored(folder(tmp_path, "f,y\n1,1_1\n2,12\n3,11\n", suffix="csv")).y.tolist() == ["1_1", "12", "11"]
    assert stored(folder(tmp_path, "f,y\n1,inf\n2,12\n3,Infinity\n", suffix="csv")).y.tolist() == [
        "inf",
        "12",
        "Infinity",
    ]


def test_files_of_one_label_a_row_and_of_several_are_refused_where_none_can_be_read_as_the_other(tmp_path):
    np.savez(tmp_path / "0.npz", X=np.ones((2, 3)), y=np.array([0, 1]))
    np.savez(tmp_path / "1.npz", X=np.ones((2, 3)), y=np.array([[0, 1], [1, 0]]))
    with pytest.raises(DataFileError, match="one label a row and some several"):
        stored(tmp_path)


def test_a_number_beyond_the_columns_is_none_of_them(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,0\n3,4,1\n")
    assert read(tmp_path / "t.csv", target="5", features=3).y is None
    assert read(tmp_path / "t.csv", target="2", features=2).y.tolist() == [0, 1]


def test_files_without_rows_are_passed_over(tmp_path):
    """Spark, Dask and the like write a file for each partition, whether it has rows or not."""
    table = pa.table({"f": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]})
    for number, part in enumerate((table[:0], table[:2], table[:0], table[2:])):
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    found = stored(tmp_path)
    assert held(found).tolist() == [[1], [2], [3]] and found.y.tolist() == ["a", "b", "a"]
    for number in (1, 3):
        (tmp_path / f"part-{number}.parquet").unlink()
    with pytest.raises(DataFileError, match=r"part-2\.parquet: it has no rows"):
        stored(tmp_path)


def test_texts_that_hold_only_a_header_are_passed_over(tmp_path):
    found = stored(folder(tmp_path, "f,y\n1,a\n", "f,y\n", "f,y\n2,b\n", suffix="csv"))
    assert held(found).tolist() == [[1], [2]] and found.y.tolist() == ["a", "b"]


def test_what_differs_in_the_columns_of_files_is_named(tmp_path):
    texts = folder(tmp_path, "a,b,y\n1,2,x\n", "b,a,y\n3,4,x\n", suffix="csv")
    with pytest.raises(DataFileError, match="the same names in another order"):
        stored(texts)
    with pytest.raises(DataFileError, match=r"columns \('b', 'c' not in all of them\)"):
        stored(folder(tmp_path, "a,b,y\n1,2,x\n", "a,c,y\n3,4,x\n", suffix="csv"))

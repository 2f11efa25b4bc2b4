"""CSV and TSV: what is read equals what was written, and every fault gets a sentence naming its place."""

import gzip
import lzma
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from manyclass.data.readers import DataFileError, read


@pytest.fixture
def write(tmp_path):
    def write(text, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def csv_text(X, y, names, delimiter=","):
    rows = [delimiter.join([*(repr(float(v)) for v in row), str(label)]) for row, label in zip(X, y, strict=True)]
    return "\n".join([delimiter.join(names), *rows]) + "\n"


@settings(max_examples=30, deadline=None)
@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(allow_nan=False)),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    data=st.data(),
)
def test_text_round_trip_is_exact(tmp_path_factory, X, delimiter, data):
    y = data.draw(st.lists(st.sampled_from(["a", "b b", "é"]), min_size=len(X), max_size=len(X)))
    names = [f"f{j}" for j in range(X.shape[1])] + ["target"]
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_text(csv_text(X, y, names, delimiter), encoding="utf-8")
    dataset = read(path)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.y.tolist() == y
    assert dataset.feature_names == tuple(names[:-1])


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.csv", "rows.data"])
def test_compression_is_known_by_content(write, compress, name):
    dataset = read(write(compress(b"a,b,label\n1,2,x\n3,4,y\n"), name))
    assert dataset.X.tolist() == [[1, 2], [3, 4]]
    assert dataset.y.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "target", "names"),
    [
        ("a,target,b\n1,0,2\n3,1,4\n", "target", ("a", "b")),
        ("Class,a,b\n0,1,2\n1,3,4\n", "Class", ("a", "b")),
        ("a,b,kind\n1,2,0\n3,4,1\n", "kind", ("a", "b")),
        ("class,b,label\n1,2,0\n3,4,1\n", "label", ("class", "b")),  # the first of target, label, class and y
        ("Y,Target,b\n1,0,2\n3,1,4\n", "Target", ("Y", "b")),
        ("Label,label,b\n0,1,2\n1,3,4\n", "Label", ("label", "b")),
        ('\ufeff"a","b","kind"\r\n"1","2","0"\r\n\r\n"3","4","1"\r\n', "kind", ("a", "b")),
        ("0,1,label\n1,2,0\n3,4,1\n", "label", ("0", "1")),
        ("2019,2020,outcome\n1,2,0\n3,4,1\n", "outcome", ("2019", "2020")),
        ("2019,rate,2020,kind\n1,,2,x\n3,4,5,y\n", "kind", ("2019", "rate", "2020")),
        ("2019,is_new,2020,kind\n1,true,2,x\n3,false,5,y\n", "kind", ("2019", "is_new", "2020")),
        ("0,1,2\n1,2,0\n3,4,1\n", None, None),  # which may be three rows
        ("1,NA,2,x\n3,4,2,x\n", None, None),
        ("1,2,-\n3,4,2\n", None, None),  # a cell without a letter is no name
        ("1,2,x\n3,4,7\n3,4,x\n", None, None),  # labels may be of both kinds
        ("1,2,x\n3,4,x\n", None, None),
    ],
)
def test_header_and_default_target(write, text, target, names):
    dataset = read(write(text))
    assert (dataset.target_name, dataset.feature_names) == (target, names)
    if names is not None and len(names) == 2:
        assert dataset.X.tolist() == [[1, 2], [3, 4]]
        assert dataset.y.tolist() == [0, 1]


@pytest.mark.parametrize("first", ["K,5.1,3.5,0", "K,5,3,3", "5.1,unknown,1.4,0"])
def test_a_row_with_one_text_above_numbers_is_no_header_unless_its_numbers_can_be_names(write, first):
    rows = [first, "1,4.9,3.0,1", "2,4.7,3.2,0", "3,4.6,3.1,1"]
    with pytest.raises(DataFileError, match="in line 1"):
        read(write("\n".join(rows) + "\n"), labels=3)
    assert read(write("2019,2020,outcome\n1,2,0\n3,4,1\n")).feature_names == ("2019", "2020")


def test_header_can_be_said(write):
    assert read(write("1,2,3\n4,5,6\n"), header=True).feature_names == ("1", "2")
    assert read(write("1,x\n2,y\n"), header=False).y.tolist() == ["x", "y"]


@pytest.mark.parametrize("target", ["b", 1, -2, "1"])
def test_target_by_name_or_position(write, target):
    dataset = read(write("a,b,c\n1,x,3\n4,y,6\n"), target=target)
    assert dataset.y.tolist() == ["x", "y"]
    assert dataset.X.tolist() == [[1, 3], [4, 6]]


def test_several_targets_make_an_indicator_matrix(write):
    path = write("a,red,b,blue\n1,1,3,0\n4,0,6,1\n")
    dataset = read(path, target=["blue", "red"])
    assert dataset.y.tolist() == [[0, 1], [1, 0]]
    assert dataset.label_names == ("blue", "red")
    np.testing.assert_array_equal(dataset.X, [[1, 3], [4, 6]])
    assert read(path, labels=1, multilabel=True).y.tolist() == [[0], [1]]
    with pytest.raises(DataFileError, match="label column 'a' holds 4 in row 2"):
        read(path, target=["red", "a"])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "2.0", " 3"], [1, 2, 3]),
        (["0.5", "1", "2"], [0.5, 1.0, 2.0]),
        (["-1", "+1", "1"], [-1, 1, 1]),
        (["1e300", "2"], [1e300, 2.0]),
        (["007", "7", "8"], ["007", "7", "8"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["x,1", "y", "x,1"], ["x,1", "y", "x,1"]),
    ],
)
def test_labels_are_numbers_only_where_all_are(write, labels, expected):
    rows = "".join(f'{i},"{label}"\n' for i, label in enumerate(labels))
    assert read(write("a,label\n" + rows)).y.tolist() == expected


def test_missing_cells_become_nan(write):
    dataset = read(write("a,b,label\n1,,x\nNA,2.5,y\n3,?,x\nnan,4,y\n"))
    np.testing.assert_array_equal(dataset.X, [[1, np.nan], [np.nan, 2.5], [3, np.nan], [np.nan, 4]])
    assert dataset.y.tolist() == ["x", "y", "x", "y"]


@pytest.mark.parametrize("cell", ["", " ", "   ", "NA", " NA", "N/A", '""', "Null", "NONE", " ?", "NaN"])
def test_ways_to_write_a_missing_cell(write, cell):
    np.testing.assert_array_equal(read(write(f"a,b,label\n1,{cell},x\n2, 3 ,y\n")).X, [[1, np.nan], [2, 3]])


def test_truth_values_are_features_of_0_and_1_as_in_parquet(write, tmp_path):
    table = pa.table({"a": [True, False, None], "b": [0.5, 1.5, 2.5], "label": [True, True, False]})
    pq.write_table(table, tmp_path / "rows.parquet")
    text, stored = read(write("a,b,label\nTrue,0.5,true\n false,1.5,true\nNA,2.5,false\n")), tmp_path / "rows.parquet"
    np.testing.assert_array_equal(text.X, read(stored).X)
    assert text.X.dtype == read(stored).X.dtype
    assert text.y.tolist() == ["true", "true", "false"]
    assert read(write("a,b\n1,TRUE\n2,False\n"), labels=1, multilabel=True).y.tolist() == [[1], [0]]
    assert read(write("1.5,true,x\n2.5,false,y\n")).X.tolist() == [[1.5, 1], [2.5, 0]]  # without a header


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ("0,255", np.float32),
        ("-3,7.0", np.float32),
        ("0,256", np.float64),
        ("0.5,1", np.float64),
        ("inf,1", np.float64),
    ],
)
def test_small_whole_numbers_are_float32(write, values, dtype):
    path = write(f"a,b,label\n{values},x\n")
    assert read(path).X.dtype == dtype
    assert read(path, dtype=np.float64).X.dtype == np.float64
    assert read(path).X.flags.c_contiguous


class TestFeaturesOfAModel:
    """The columns a model was fitted on are found by name wherever they are, with or without a target."""

    @pytest.mark.parametrize("text", ["b,a\n2,1\n", "a,extra,b\n1,text,2\n", "label,b,a\nx,2,1\n"])
    def test_by_name(self, write, text):
        dataset = read(write(text), features=("a", "b"))
        assert dataset.X.tolist() == [[1, 2]]
        assert (dataset.y is not None) == ("label" in text)

    def test_named_target_is_optional(self, write):
        assert read(write("a,b\n1,2\n"), features=("a", "b"), target="kind").y is None
        assert read(write("kind,a,b\nx,1,2\n"), features=("a", "b"), target="kind").y.tolist() == ["x"]

    def test_by_number(self, write):
        assert read(write("1,2\n3,4\n"), features=2).y is None
        assert read(write("1,2,0\n3,4,1\n"), features=2).y.tolist() == [0, 1]
        with pytest.raises(DataFileError, match="4 columns where 2 features"):
            read(write("1,2,3,0\n"), features=2)

    @pytest.mark.parametrize("text", ["2019,2020\n1,2\n", "2020,2019\n2,1\n", "2020,7,2019\n2,0,1\n"])
    def test_names_that_are_numbers(self, write, text):
        assert read(write(text), features=("2019", "2020")).X.tolist() == [[1, 2]]

    def test_headerless_file_for_a_model_with_names(self, write):
        assert read(write("1,2\n3,4\n"), features=("a", "b")).X.tolist() == [[1, 2], [3, 4]]

    def test_missing_column(self, write):
        with pytest.raises(DataFileError, match="fitted on 'b', which this file lacks"):
            read(write("a,c\n1,2\n"), features=("a", "b"))


def test_labels_in_another_file(write):
    path = write("a,b\n1,2\n3,4\n")
    for text in ["x\ny\n", "kind\nx\ny\n"]:
        dataset = read(path, labels=write(text, "labels.txt"))
        assert dataset.y.tolist() == ["x", "y"]
        assert dataset.X.shape == (2, 2)
    dataset = read(path, labels=write("red,blue\n0,1\n1,1\n", "labels.csv"))
    assert dataset.y.tolist() == [[0, 1], [1, 1]]
    assert dataset.label_names == ("red", "blue")
    with pytest.raises(DataFileError, match=r"labels\.txt: it holds 4 labels and .* has 2 rows"):
        read(path, labels=write("x\ny\nx\ny\n", "labels.txt"))
    with pytest.raises(DataFileError, match="some rows hold 2 labels and row 1 does not: give each row one, in quotes"):
        read(path, labels=write("x\ny,z\n", "labels.txt"))


def test_drop(write):
    path = write("id,a,kind\nr1,1,x\nr2,2,y\n")
    dataset = read(path, drop=["id"])
    assert dataset.feature_names == ("a",)
    assert dataset.X.tolist() == [[1], [2]]
    with pytest.raises(DataFileError, match="'kind' would be its labels and is left out: name their column"):
        read(path, drop=["kind"])
    with pytest.raises(DataFileError, match="column '3' would be its labels and is left out"):
        read(write("1,2,x\n3,4,y\n", "bare.csv"), drop=[-1])
    for options in ({"target": "id"}, {"features": ("a",)}, {"target": False, "drop": ["id", "kind"]}):
        assert read(path, **{"drop": ["kind"], **options}).X.tolist() == [[1], [2]]
    labelled = write("label,a,y\n1,2,3\n4,5,6\n", "labelled.csv")
    assert read(write("a,1,0\n1,0,3\n", "last.csv"), drop=[2], labels=1, header=True).label_names == ("1",)
    assert read(labelled, drop=["y"]).y.tolist() == [1, 4]
    with pytest.raises(DataFileError, match="column 'label' would be its labels"):
        read(labelled, drop=["label"])


def test_a_last_column_that_only_separators_make_may_be_left_out(write):
    dataset = read(write("a,b,label,\n1,2,x,\n3,4,y,\n"), drop=[""])
    assert dataset.feature_names == ("a", "b") and dataset.y.tolist() == ["x", "y"]


def test_an_index_may_be_left_out_given_a_name_or_asked_for(write):
    for header in (",a,label", "id,a,label"):
        path = write(header + "\n0,1,x\n1,4,y\n")
        assert read(path, drop=[header.split(",")[0]]).X.shape == (2, 1)
    assert read(path).X.shape == (2, 2)
    assert read(write(",a,label\n0,1,x\n1,4,y\n"), features=["", "a"]).X.shape == (2, 2)  # of an older model


def test_a_dash_is_a_missing_number_and_a_label(write):
    dataset = read(write("a,b,label\n1,-,x\n -,2,-\n3,-4,x\n"))
    np.testing.assert_array_equal(dataset.X, [[1, np.nan], [np.nan, 2], [3, -4]])
    assert dataset.y.tolist() == ["x", "-", "x"]


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("", {}, "is empty"),
        ("\n\n", {}, "is empty"),
        ("a,b,label\n", {}, "header but no rows"),
        ("a,b,label\n1,2\n", {}, "line 2 has 2 cells where the first line has 3"),
        ("a,b,label\n1,2,x\n1,2,x,y\n", {}, "line 3 has 4 cells"),
        ("age,job,label\n1,clerk,x\n2,cook,y\n", {}, r"column 'job' holds text \('clerk' in line 2\)"),
        ("a,b,c,label\n1,u,v,x\n", {}, "columns 'b', 'c' hold text"),
        ("a;b;label\n1,5;2;x\n", {}, r"column 'a' holds decimal commas \('1,5' in line 2\): .*decimal=','"),
        ('a,b,label\n"-1,5",",25e3",x\n', {}, r"columns 'a', 'b' hold decimal commas \('-1,5' in line 2\)"),
        ('a,b,label\n"1,000.50",2,x\n', {}, r"column 'a' holds commas between thousands \('1,000.50' in line 2\)"),
        ('a,b,label\n1,2,x\n"1,000,000",12%,x\n', {}, r"column 'a' holds commas between thousands"),
        ("a,b,label\n12%,2,x\n", {}, r"column 'a' holds signs of per cent \('12%' in line 2\)"),
        ("a,b,label\n12%,u,x\n", {}, r"column 'b' holds text \('u' in line 2\)"),
        ("a,b,label,\n1,2,x,\n3,4,y,\n", {}, "last column has no name and no values, as where lines end with ','"),
        ("a,b,c,\n1,2,x,\n3,4,y,\n", {}, "last column has no name and no values, as where lines end with ','"),
        (
            ",a,label\n0,1,x\n1,4,y\n",
            {},
            r"the index that pandas writes: leave .*--drop ''",
        ),
        ('"","a","label"\n"71",1,x\n"7",4,y\n', {}, "first column has no name and another whole number in each row"),
        ('a,b,label\n1,2,x\n"1,5","u",x\n', {}, r"column 'b' holds text \('u' in line 3\)"),
        ("a,label\ntrue,x\nmaybe,x\n", {}, r"column 'a' holds text \('true' in line 2\)"),
        ("a,label\n1,x\ntrue,x\n", {}, r"column 'a' holds text \('true' in line 3\)"),
        ("a,label\ntrue,x\n" + 99 * "true,x\n" + "often,x\n", {}, r"column 'a' holds text \('often' in line 102\)"),
        ("a,b,label\n1,2,\n3,4,x\n", {}, "row 1 has no label"),
        ("a,b,label\n1,2,x\n", {"target": "lable"}, "no column 'lable': did you mean 'label'"),
        ("a,b,label\n1,2,x\n", {"target": "zzz"}, "no column 'zzz': the columns are 'a', 'b', 'label'"),
        ("a,b,label\n1,2,x\n", {"target": 7}, "no column '7'"),
        ("a,b,label\n1,2,x\n", {"drop": ["a,b"]}, "no column 'a,b': give each of 'a', 'b' by itself"),
        ("1,2,3\n", {"target": "kind"}, "the columns have no names"),
        ("a,b,label\n1,2,x\n", {"drop": ["c"]}, "no column 'c'"),
        ("a,a,label\n1,2,x\n", {}, "two columns are called 'a'"),
        ("a\n1\n", {}, "no feature columns"),
        ("a,b,label\n1,2,x\n", {"labels": 3}, "last 3 cannot be its labels"),
        (b"a,b,label\n1,2,\xff\n", {}, "not UTF-8"),
        (b"\x01\x00\x02\x03", {}, "in none of the known formats"),
        (gzip.compress(b"a,b,label\n" + b"1,2,x\n" * 5000, mtime=0)[:-20], {}, "ends too early"),
        (gzip.compress(b"a,b,label\n1,2,x\n", mtime=0)[:-8] + b"\0" * 8, {}, "damaged"),
    ],
)
def test_faults(write, text, arguments, sentence):
    name = "rows.bin" if isinstance(text, bytes) and text[:1] == b"\x01" else "rows.csv"
    path = write(text, name)
    with pytest.raises(DataFileError, match=sentence) as caught:
        read(path, **arguments)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_file_system_errors_pass_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


def test_unknown_format_is_refused(write):
    with pytest.raises(ValueError, match="no format 'xls': choose one of"):
        read(write("a,b\n1,2\n"), format="xls")


def test_columns_that_are_counted_have_a_header(write):
    dataset = read(write("0,1,2,3,4\n5,6,7,8,1\n6,5,4,3,0\n"))
    assert dataset.target_name == "4" and dataset.X.shape == (2, 4) and dataset.y.tolist() == [1, 0]


def test_labels_that_are_long_numbers_keep_every_digit(write):
    labels = [2**53 + 1, 2**53, 12345678901234568]
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    assert read(write("a,label\n" + rows)).y.tolist() == labels
    names = [str(2**64 + 1), str(2**64), "1"]
    rows = "".join(f"{i},{name}\n" for i, name in enumerate(names))
    assert read(write("a,label\n" + rows)).y.tolist() == names


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_of_files_need_not_be_text(write):
    assert read(write("a,label\n1,p\n2,q\n", name=os.fsdecode(b"rows\xff.csv"))).y.tolist() == ["p", "q"]

"""LIBSVM and ARFF."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from manyclass.data.readers import DataFileError, read


@pytest.fixture
def write(tmp_path):
    def write(text, name="rows"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


class TestLIBSVM:
    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 10_000), zero_based=st.booleans(), compress=st.booleans())
    def test_round_trip(self, tmp_path_factory, seed, zero_based, compress):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)))
        X = sparse.random_array(shape, density=0.5, format="lil", rng=rng)
        X[0, 0] = X[0, -1] = 1.5
        y = rng.integers(-1, 3, shape[0])
        path = tmp_path_factory.mktemp("svm") / "rows"
        dump_svmlight_file(X.tocsr(), y, str(path), zero_based=zero_based)
        if compress:
            path.write_bytes(gzip.compress(path.read_bytes()))
        dataset = read(path)
        assert dataset.X.format == "csr"
        assert dataset.zero_based == zero_based
        np.testing.assert_allclose(dataset.X.toarray(), X.toarray())
        np.testing.assert_array_equal(dataset.y, y)
        assert dataset.y.dtype == np.int64

    def test_width_of_a_model(self, write):
        path = write("1 1:0.5 3:2\n2 2:1\n")
        assert read(path).X.shape == (2, 3)
        assert read(path, features=5).X.shape == (2, 5)
        with pytest.raises(DataFileError, match="3 features where 2 are expected"):
            read(path, features=2)

    def test_base_of_a_model_wins_over_looking(self, write):
        path = write("1 1:0.5 3:2\n2 2:1\n")
        assert read(path, features=4, zero_based=True).X.toarray().tolist() == [[0, 0.5, 0, 2], [0, 0, 1, 0]]
        assert read(path, features=4).X.toarray().tolist() == [[0.5, 0, 2, 0], [0, 1, 0, 0]]

    def test_empty_rows_comments_and_queries(self, write):
        dataset = read(write("# made by hand\n-1 \n+1 qid:3 2:4 # remark\n-1\n"), format="libsvm")
        assert dataset.X.toarray().tolist() == [[0, 0], [0, 4], [0, 0]]
        assert dataset.y.tolist() == [-1, 1, -1]

    def test_multilabel(self, write):
        dataset = read(write("3,10 1:1\n 2:1\n10 1:1 2:1\n"))
        assert dataset.y.tolist() == [[1, 1], [0, 0], [0, 1]]
        assert dataset.label_names == ("3", "10")
        assert read(write("3 1:1\n10 2:1\n"), multilabel=True).y.tolist() == [[1, 0], [0, 1]]

    def test_real_labels_stay_real(self, write):
        assert read(write("0.5 1:1\n2 1:2\n")).y.tolist() == [0.5, 2.0]

    def test_indices_are_32_bit_where_that_suffices(self, write):
        X = read(write("1 1:1 3:300\n2 2:0.5\n")).X
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert X.dtype == np.float64
        assert read(write("1 1:1 3:30\n2 2:5\n")).X.dtype == np.float32

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("1 1:2\ncat 1:3\n", "the label 'cat' of line 2 is text, where LIBSVM files have numbers"),
            ("1 1:2\ncat 1:x\n", r"line 2 \('cat 1:x'\) is not 'label index:number …'"),
            ("1 1:2\n1 2:x\n", "line 2"),
            ("1 2:2 1:1\n", "features of line 1 are not in rising order"),
            ("0 1:1\n1 1:1 1:2\n", "line 2 are not in rising order, or one is there twice"),
            ("1 99999999999999999999:1\n", "cannot be read as LIBSVM"),
            ("", "is empty"),
            ("1\n2\n", "no row has a feature"),
            (gzip.compress(b"1 1:2 2:3\n" * 9000, mtime=0)[:-9], "ends too early"),
        ],
    )
    def test_faults(self, write, text, sentence):
        with pytest.raises(DataFileError, match=sentence) as caught:
            read(write(text, "rows.svm"))
        assert "\n" not in str(caught.value)


DENSE = """% made by hand
@relation flowers
@attribute 'petal length' numeric
@attribute wild {no, yes}
@attribute code {2, 1}
@attribute note string
@attribute class {setosa, virginica}
@data
1.5, yes, 2, 'a b', virginica
?, no, 1, c, setosa
"""
SPARSE = """@relation words
@attribute w0 {0,1}
@attribute w1 numeric
@attribute red {0,1}
@attribute blue {1,0}
@data
{0 1, 2 1}
{1 2.5, 3 0}
{}
"""
MULAN = (
    '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
    '<label name="{}"/><label name="{}"/></labels>'
)


class TestARFF:
    @pytest.fixture(autouse=True)
    def _arff(self):
        pytest.importorskip("arff")

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    @pytest.mark.parametrize("name", ["rows.arff", "rows"])
    def test_dense(self, write, compress, name):
        dataset = read(write(compress(DENSE.encode()), name), drop=["note"])
        assert dataset.feature_names == ("petal length", "wild", "code")
        np.testing.assert_array_equal(dataset.X, [[1.5, 1, 2], [np.nan, 0, 1]])
        assert dataset.y.tolist() == ["virginica", "setosa"]
        assert dataset.target_name == "class"

    def test_text_target(self, write):
        dataset = read(write(DENSE), target="note", drop=["class"])
        assert dataset.y.tolist() == ["a b", "c"]

    @pytest.mark.parametrize("order", [("red", "blue"), ("blue", "red")])
    def test_sparse_stays_sparse_and_labels_come_from_xml(self, write, order):
        labels = write(MULAN.format(*order), "labels.xml")
        dataset = read(write(SPARSE), labels=labels)
        assert sparse.issparse(dataset.X)
        assert dataset.X.toarray().tolist() == [[1, 0], [0, 2.5], [0, 0]]
        assert dataset.label_names == order
        # Left out of a sparse row means the first value, which is 1 for blue.
        expected = {"red": [1, 0, 0], "blue": [1, 0, 1]}
        assert dataset.y.T.tolist() == [expected[name] for name in order]

    def test_labels_by_number(self, write):
        dataset = read(write(SPARSE), labels=2)
        assert dataset.label_names == ("red", "blue")
        assert dataset.feature_names == ("w0", "w1")

    @pytest.mark.parametrize(("count", "labels"), [(1, ("w0",)), (-2, ("red", "blue"))])
    def test_meka_says_where_the_labels_are(self, write, count, labels):
        text = SPARSE.replace("@relation words", f"@relation 'words: -C {count}'").replace("{1,0}", "{0,1}")
        dataset = read(write(text))
        assert dataset.label_names == labels
        assert dataset.y.shape == (3, len(labels))
        assert read(write(text), labels=1).label_names == ("blue",)  # what is asked for comes first

    def test_single_label_of_a_sparse_file(self, write):
        dataset = read(write(SPARSE.replace("{1,0}", "{plain,odd}").replace("3 0", "3 odd")))
        assert dataset.y.tolist() == ["plain", "odd", "plain"]
        assert dataset.X.shape == (3, 3)

    def test_features_of_a_model(self, write):
        dataset = read(write(SPARSE), features=("w1", "w0"))
        assert dataset.X.toarray().tolist() == [[0, 1], [2.5, 0], [0, 0]]

    @pytest.mark.parametrize(
        ("text", "arguments", "sentence"),
        [
            (DENSE, {}, "column 'note' holds text"),
            (SPARSE, {"target": "red"}, "'blue' has 1 as its first value"),
            (DENSE, {"target": "colour", "drop": ["note"]}, "no column 'colour'"),
            (DENSE.replace("no, 1, c", "no, 1"), {}, "not correct ARFF"),
            (DENSE.replace("no, 1", "maybe, 1"), {}, "not correct ARFF"),
            (DENSE.replace("c, setosa", "c, ?"), {"drop": ["note"]}, "row 2 has no label"),
            (DENSE.split("@data")[0] + "@data\n", {}, "no rows"),
            (SPARSE, {"labels": 4}, "last 4 cannot be its labels"),
        ],
    )
    def test_faults(self, write, text, arguments, sentence):
        with pytest.raises(DataFileError, match=sentence) as caught:
            read(write(text, "rows.arff"), **arguments)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("xml", "sentence"),
        [
            ("<labels>", "not a whole XML file"),
            ("<labels/>", "names no labels"),
            (MULAN.format("red", "x"), "'x'"),
        ],
    )
    def test_faulty_label_files(self, write, xml, sentence):
        with pytest.raises(DataFileError, match=sentence):
            read(write(SPARSE), labels=write(xml, "labels.xml"))


def test_arff_without_liac_arff_says_what_to_install(write, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "arff", None)
    with pytest.raises(DataFileError, match=r"pip install 'manyclass\[arff\]'"):
        read(write(DENSE))

"""NPY, NPZ, IDX and Parquet."""

import gzip
import io
import struct

import numpy as np
import pyarrow.parquet
import pytest
from scipy import sparse

from manyclass.data.readers import DataFileError, companion_labels, read

X = np.arange(12.0).reshape(4, 3) / 7
Y = np.array([0, 2, 1, 2])


def saved(save, *args, **kwargs):
    buffer = io.BytesIO()
    save(buffer, *args, **kwargs)
    return buffer.getvalue()


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


class TestNumPy:
    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    @pytest.mark.parametrize("name", ["rows.npz", "rows.bin"])
    @pytest.mark.parametrize("keys", [("X", "y"), ("data", "target"), ("x_train", "y_train")])
    def test_npz(self, write, compress, name, keys):
        dataset = read(write(name, compress(saved(np.savez, **dict(zip(keys, (X, Y), strict=True))))))
        np.testing.assert_array_equal(dataset.X, X)
        np.testing.assert_array_equal(dataset.y, Y)
        assert dataset.y.dtype == np.int64

    @pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
    def test_floats_keep_their_width(self, write, dtype):
        path = write("X.npy", saved(np.save, X.astype(dtype)))
        dataset = read(path)
        assert dataset.X.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(dataset.X, X.astype(dtype))
        assert dataset.y is None

    @pytest.mark.parametrize(
        ("dtype", "expected"),
        [(np.uint8, np.float32), (bool, np.float32), (np.float16, np.float32), (np.int64, np.float32)],
    )
    def test_small_numbers_are_float32(self, write, dtype, expected):
        assert read(write("X.npy", saved(np.save, np.ones((2, 3), dtype)))).X.dtype == expected
        wide = np.full((2, 3), 1000)
        assert read(write("X.npy", saved(np.save, wide))).X.dtype == np.float64

    def test_plain_npy_is_mapped_and_compressed_is_not(self, write):
        content = saved(np.save, X)
        assert isinstance(read(write("X.npy", content)).X, np.memmap)
        np.testing.assert_array_equal(read(write("X.npy.gz", gzip.compress(content))).X, X)

    def test_images_are_flattened(self, write):
        images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        assert read(write("X.npy", saved(np.save, images))).X.tolist() == images.reshape(2, -1).tolist()

    def test_labels(self, write):
        features = write("X.npy", saved(np.save, X))
        text = np.array(["a", "b", "a", "c"])
        for labels, expected in [
            (Y, Y),
            (text, text),
            (text.astype("S"), text),
            (Y[:, None], Y),
            (Y == 2, (Y == 2).astype(str)),
        ]:
            dataset = read(features, labels=write("y.npy", saved(np.save, labels)))
            assert dataset.y.tolist() == expected.tolist()
        indicator = np.eye(4, 3, dtype=bool)
        assert (
            read(features, labels=write("y.npz", saved(np.savez, y=indicator))).y.tolist()
            == indicator.astype(int).tolist()
        )

    @pytest.mark.parametrize("wide", [False, True])
    def test_sparse_npz(self, write, wide):
        matrix = sparse.random_array((5, 7), density=0.4, format="csr", rng=0)
        if wide:
            matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        for content in (saved(sparse.save_npz, matrix), gzip.compress(saved(sparse.save_npz, matrix))):
            dataset = read(write("X.npz", content), labels=write("y.txt", b"0\n1\n0\n1\n0\n"))
            assert sparse.issparse(dataset.X)
            np.testing.assert_array_equal(dataset.X.toarray(), matrix.toarray())
        assert read(write("X.npz", saved(sparse.save_npz, matrix.tocsc()))).X.format == "csr"

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("X.npz", saved(np.savez, a=X, b=Y), "holds the arrays 'a', 'b': save the features as X"),
            ("X.npy", saved(np.save, X)[:-8], "not a whole NumPy file"),
            ("X.npz", saved(np.savez, X=X, y=Y)[:-30], "not a whole NumPy file"),
            (
                "X.npy",
                saved(np.save, np.array([{}, {}]), allow_pickle=True),
                "Python objects, which are never loaded",
            ),
            ("X.npy", saved(np.save, Y), "shape"),
            ("X.npy", saved(np.save, X.astype(complex)), "complex128, not as real numbers"),
            ("X.npy", saved(np.save, X.astype(str)), "not as real numbers"),
            ("X.npz", saved(np.savez, X=X, y=Y[:2]), "4 rows and 2 labels"),
            ("X.npy", saved(np.save, X[:0]), "0 rows"),
            ("X.npy", b"", "is empty"),
            ("X.npz", b"label,a", "X.npz is not a whole NumPy file"),
        ],
    )
    def test_faults(self, write, name, content, sentence):
        with pytest.raises(DataFileError, match=sentence) as caught:
            read(write(name, content))
        assert "\n" not in str(caught.value)

    def test_width_of_a_model(self, write):
        with pytest.raises(DataFileError, match="it has 3 columns and 4 are expected"):
            read(write("X.npy", saved(np.save, X)), features=4)

    def test_archive_without_arrays(self, tmp_path):
        import zipfile

        with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
            archive.writestr("cat.jpg", b"...")
        with pytest.raises(DataFileError, match="zip archive without NumPy arrays"):
            read(tmp_path / "photos.zip")


def idx(values):
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    code = codes[values.dtype.str[1:]]
    return (
        struct.pack(f">HBB{values.ndim}I", 0, code, values.ndim, *values.shape)
        + values.astype(values.dtype.newbyteorder(">")).tobytes()
    )


class TestIDX:
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    @pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
    def test_round_trip(self, write, compress, dtype):
        path = write("train-images-idx3-ubyte", compress(idx(self.images.astype(dtype))))
        labels = write("train-labels-idx1-ubyte", compress(idx(np.array([3, 7], dtype=np.uint8))))
        dataset = read(path, labels=labels)
        np.testing.assert_array_equal(dataset.X, self.images.reshape(2, -1))
        assert dataset.y.tolist() == [3, 7]
        assert dataset.X.dtype == (np.float64 if dtype == "f8" else np.float32)
        assert companion_labels(path) == labels

    def test_no_companion(self, write):
        assert companion_labels(write("train-images-idx3-ubyte", b"")) is None
        assert companion_labels(write("rows.idx", b"")) is None

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (idx(images)[:-1], "not a whole IDX file"),
            (idx(images)[:10], "not a whole IDX file"),
            (idx(images[0, 0]), "these are labels"),
            (gzip.compress(idx(np.zeros((99, 9, 9), "u1")), mtime=0)[:-10], "ends too early"),
        ],
    )
    def test_faults(self, write, content, sentence):
        with pytest.raises(DataFileError, match=sentence):
            read(write("images", content))

    def test_labels_that_are_images(self, write):
        path = write("images", idx(self.images))
        with pytest.raises(DataFileError, match="one label per row"):
            read(path, labels=path)


class TestParquet:
    pa, pq = pyarrow, pyarrow.parquet

    def save(self, tmp_path, columns, compress=False):
        path = tmp_path / ("rows.parquet.gz" if compress else "rows.parquet")
        buffer = io.BytesIO()
        self.pq.write_table(self.pa.table(columns), buffer)
        path.write_bytes(gzip.compress(buffer.getvalue()) if compress else buffer.getvalue())
        return path

    @pytest.mark.parametrize("compress", [False, True])
    def test_round_trip(self, tmp_path, compress):
        kinds = self.pa.array(["u", "v", "u", "w"]).dictionary_encode()
        path = self.save(tmp_path, {"a": X[:, 0], "target": kinds, "b": X[:, 1]}, compress)
        dataset = read(path)
        np.testing.assert_array_equal(dataset.X, X[:, :2])
        assert dataset.y.tolist() == ["u", "v", "u", "w"]
        assert (dataset.feature_names, dataset.target_name) == (("a", "b"), "target")
        assert dataset.X.flags.c_contiguous

    def test_types(self, tmp_path):
        columns = {
            "i": np.array([1, 2], np.int64),
            "f": np.array([0.5, 1], np.float32),
            "b": np.array([True, False]),
            "y": np.array([1, 2]),
        }
        dataset = read(self.save(tmp_path, columns))
        assert dataset.X.dtype == np.float32
        assert dataset.X.tolist() == [[1, 0.5, 1], [2, 1, 0]]
        assert dataset.y.tolist() == [1, 2]
        columns["d"] = np.array([0.1, 0.2])
        assert read(self.save(tmp_path, columns)).X.dtype == np.float64
        assert read(self.save(tmp_path, columns), dtype=np.float32).X.dtype == np.float32

    def test_nulls_are_nan(self, tmp_path):
        columns = {"a": self.pa.array([1, None, 3]), "b": self.pa.array([0.5, 1.5, None]), "y": [0, 1, 0]}
        np.testing.assert_array_equal(read(self.save(tmp_path, columns)).X, [[1, 0.5], [np.nan, 1.5], [3, np.nan]])
        with pytest.raises(DataFileError, match=r"row 2 has no label \(column 'a' is empty\)"):
            read(self.save(tmp_path, columns), target="a")

    @pytest.mark.parametrize("fixed", [False, True])
    def test_embeddings_in_a_list_column(self, tmp_path, fixed):
        kind = self.pa.list_(self.pa.float32(), 3) if fixed else self.pa.list_(self.pa.float32())
        table = {"id": ["p", "q", "r", "s"], "e": self.pa.array(X.tolist(), kind), "n": X[:, 0], "label": Y}
        path = self.save(tmp_path, table)
        dataset = read(path, drop=["id"])
        assert dataset.feature_names == ("e[0]", "e[1]", "e[2]", "n")
        np.testing.assert_allclose(dataset.X, np.column_stack([X, X[:, 0]]), rtol=1e-6)
        again = read(path, features=("e[2]", "e[0]"))
        np.testing.assert_allclose(again.X, X[:, [2, 0]], rtol=1e-6)
        only = read(path, drop=["id", "e"])
        assert only.feature_names == ("n",)

    def test_the_index_of_pandas_is_no_column_that_was_left_out(self, tmp_path):
        pd = pytest.importorskip("pandas")
        pd.DataFrame({"a": [1.0, 2.0], "kind": ["p", "q"]}, index=[5, 9]).to_parquet(tmp_path / "rows.parquet")
        dataset = read(tmp_path / "rows.parquet")
        assert (dataset.feature_names, dataset.y.tolist()) == (("a",), ["p", "q"])
        with pytest.raises(DataFileError, match="column 'kind' would be its labels and is left out"):
            read(tmp_path / "rows.parquet", drop=["kind"])

    @pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint8"])
    @pytest.mark.parametrize("size", [-1, 5])
    def test_list_columns_alone(self, tmp_path, kind, size):
        """Embeddings are read as they lie in the file, in one piece or in several."""
        rows = (np.arange(50.0).reshape(10, 5) / 4).astype(kind)
        lists = self.pa.array(list(rows), self.pa.list_(self.pa.from_numpy_dtype(rows.dtype), size))
        for row_group_size in (10, 3):
            path = tmp_path / "rows.parquet"
            self.pq.write_table(self.pa.table({"e": lists, "y": np.arange(10)}), path, row_group_size=row_group_size)
            dataset = read(path)
            assert dataset.X.dtype == (np.float64 if kind == "float64" else np.float32)
            np.testing.assert_array_equal(dataset.X, rows)
            np.testing.assert_array_equal(read(path, dtype=np.float64).X, rows)
            np.testing.assert_array_equal(read(path, features=("e[3]", "e[4]")).X, rows[:, 3:])

    @pytest.mark.parametrize("size", [-1, 2])
    def test_lists_and_numbers_in_any_order(self, tmp_path, size):
        lists = self.pa.array([[1.5, None], [3.5, 4.5]], self.pa.list_(self.pa.float32(), size))
        path = self.save(tmp_path, {"a": [0.5, 1.5], "e": lists, "b": [True, None], "y": ["p", "q"]})
        np.testing.assert_array_equal(read(path).X, [[0.5, 1.5, np.nan, 1], [1.5, 3.5, 4.5, np.nan]])
        wanted = ("b", "e[1]", "a", "e[0]")
        np.testing.assert_array_equal(read(path, features=wanted).X, [[1, np.nan, 0.5, 1.5], [np.nan, 4.5, 1.5, 3.5]])

    def test_more_rows_than_are_filled_at_once(self, tmp_path):
        rows = np.random.default_rng(0).standard_normal((5000, 4))
        columns = {f"x{j}": rows[:, j] for j in range(4)} | {"e": self.pa.array(list(rows)), "y": np.arange(5000)}
        self.pq.write_table(self.pa.table(columns), tmp_path / "rows.parquet", row_group_size=1111)
        np.testing.assert_array_equal(read(tmp_path / "rows.parquet").X, np.column_stack([rows, rows]))

    def test_numbers_and_labels_stored_as_dictionaries(self, tmp_path):
        kinds = self.pa.array([3, 7, 3]).dictionary_encode()
        dataset = read(self.save(tmp_path, {"a": kinds, "y": kinds}))
        assert (dataset.X.tolist(), dataset.y.tolist()) == ([[3], [7], [3]], [3, 7, 3])

    def test_several_targets(self, tmp_path):
        columns = {"a": X[:, 0], "red": [1, 0, 1, 0], "blue": [True, True, False, False]}
        dataset = read(self.save(tmp_path, columns), target=["red", "blue"])
        assert dataset.y.tolist() == [[1, 1], [0, 1], [1, 0], [0, 0]]
        assert dataset.label_names == ("red", "blue")

    def test_faults(self, tmp_path):
        with pytest.raises(DataFileError, match="column 'job' holds text"):
            read(self.save(tmp_path, {"job": ["cook", "clerk"], "y": [0, 1]}))
        with pytest.raises(DataFileError, match="no column 'z'"):
            read(self.save(tmp_path, {"a": [1, 2], "y": [0, 1]}), target="z")
        with pytest.raises(DataFileError, match="not all of length 2"):
            read(self.save(tmp_path, {"e": [[1.0, 2.0], [1.0]], "y": [0, 1]}))
        with pytest.raises(DataFileError, match="not all of length 2"):
            read(self.save(tmp_path, {"e": [[1.0, 2.0], None], "y": [0, 1]}))
        with pytest.raises(DataFileError, match=r"column 'when' holds timestamp.* values: convert it to numbers"):
            read(self.save(tmp_path, {"when": np.array([0, 1], "datetime64[us]"), "y": [0, 1]}))
        both = {"job": ["cook", "clerk"], "when": np.array([0, 1], "datetime64[us]"), "y": [0, 1]}
        with pytest.raises(DataFileError, match=r"columns 'job', 'when' hold text or timestamp\[us\] values where"):
            read(self.save(tmp_path, both))
        with pytest.raises(DataFileError, match="no rows"):
            read(self.save(tmp_path, {"a": self.pa.array([], "float64"), "y": self.pa.array([], "int64")}))
        path = self.save(tmp_path, {"a": [1, 2], "y": [0, 1]})
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DataFileError, match="not a whole Parquet file") as caught:
            read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["npz", "parquet", "safetensors"])
def test_of_a_file_of_labels_those_that_are_called_so_are_taken(tmp_path, kind):
    from safetensors.numpy import save_file

    np.save(tmp_path / "X.npy", X)
    path, columns = tmp_path / f"y.{kind}", {"id": np.arange(4), "label": Y}
    if kind == "npz":
        np.savez(path, id=columns["id"], y=Y)
    elif kind == "safetensors":
        save_file(columns, path)
    else:
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    np.testing.assert_array_equal(read(tmp_path / "X.npy", labels=path).y, Y)


def test_a_tensor_may_be_named_as_the_target(tmp_path):
    from safetensors.numpy import save_file

    save_file({"X": X, "y": Y, "kind": 2 - Y}, tmp_path / "rows.safetensors")
    np.testing.assert_array_equal(read(tmp_path / "rows.safetensors").y, Y)
    np.testing.assert_array_equal(read(tmp_path / "rows.safetensors", target="kind").y, 2 - Y)
    with pytest.raises(DataFileError, match="no tensor 'colour'"):
        read(tmp_path / "rows.safetensors", target="colour")


@pytest.mark.parametrize(("dtype", "full_scale"), [(np.uint8, 255), (np.int8, None), (bool, None), (np.uint16, None)])
def test_only_unsigned_bytes_have_a_full_scale(write, dtype, full_scale):
    assert read(write("rows.npz", saved(np.savez, X=(X > 1).astype(dtype), y=Y))).full_scale == full_scale


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_rows_are_compact_in_the_form_that_takes_less_memory(write, density):
    full = np.where(np.random.default_rng(0).random((20, 10)) < density, 1.5, 0.0)
    held = read(write("X.npz", saved(sparse.save_npz, sparse.csr_array(full)))).compact()
    assert sparse.issparse(held.X) == (density < 0.5)
    np.testing.assert_array_equal(held.X.toarray() if sparse.issparse(held.X) else held.X, full)

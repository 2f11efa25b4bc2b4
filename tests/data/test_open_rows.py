"""Rows of every format stay in their files, and are the rows that were written."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from manyclass.data import ChunkedRows, open_rows
from manyclass.data.memory import as_bytes
from manyclass.data.readers import DataFileError, read

N, D = 230, 6


@pytest.fixture
def table(rng):
    X = rng.standard_normal((N, D)).astype(np.float32)
    return X, rng.permutation(np.arange(N) % 3)


def lists(X, y, size=D):
    values = pa.array(X.ravel())
    if size is None:
        offsets = pa.array(np.arange(0, X.size + 1, D, dtype=np.int32))
        return pa.table({"embedding": pa.ListArray.from_arrays(offsets, values), "label": y})
    return pa.table({"embedding": pa.FixedSizeListArray.from_arrays(values, size), "label": y})


def columns(X, y):
    return pa.table({**{f"x{j}": X[:, j] for j in range(D)}, "label": y})


def ipc(path, table, new=pa.ipc.new_file):
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return path


def npy(folder, X, y):
    np.save(folder / "X.npy", X)
    return folder / "X.npy", y


def npy_with_file(folder, X, y):
    np.save(folder / "labels.npy", y)
    return npy(folder, X, y)[0], folder / "labels.npy"


def shards(folder, X, y):
    (folder / "shards").mkdir()
    (folder / "labels").mkdir()
    for number, start in enumerate(range(0, N, 20)):  # so that the tenth comes after the second
        np.save(folder / "shards" / f"part_{number}.npy", X[start : start + 20])
        np.save(folder / "labels" / f"part_{number}.npy", y[start : start + 20])
    (folder / "shards" / "README.txt").write_text("not rows")
    return folder / "shards", folder / "labels"


def parquet(make, **options):
    def write(folder, X, y):
        pq.write_table(make(X, y, **options), folder / "X.parquet", row_group_size=50)
        return folder / "X.parquet", "label"

    return write


def parquet_folder(folder, X, y):
    (folder / "parts" / "kind=a").mkdir(parents=True)
    for number, start in enumerate((0, 100)):
        part = slice(start, N if number else 100)
        pq.write_table(lists(X[part], y[part]), folder / "parts" / "kind=a" / f"{number}.parquet", row_group_size=50)
    return folder / "parts", None


def hugging_face(folder, X, y):
    saved = folder / "saved"
    saved.mkdir()
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for name, part in zip(names, (slice(0, 100), slice(100, N)), strict=True):
        ipc(saved / name, lists(X[part], y[part], None), pa.ipc.new_stream)
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (saved / "dataset_info.json").write_text("{}")
    return saved, None


def compressed_feather(folder, X, y):
    pyarrow.feather.write_feather(lists(X, y), folder / "X.feather", compression="lz4", chunksize=70)
    return folder / "X.feather", None


def safetensors(folder, X, y):
    from safetensors.numpy import save_file

    save_file({"X": X, "labels": y}, folder / "X.safetensors")
    return folder / "X.safetensors", None


def npz(folder, X, y):
    np.savez(folder / "X.npz", X=X, y=y)
    return folder / "X.npz", None


def csv(folder, X, y):
    pa.csv.write_csv(columns(X.astype(np.float32), y), folder / "X.csv")
    return folder / "X.csv", None


def libsvm(folder, X, y):
    dump_svmlight_file(X.astype(np.float32), y, str(folder / "X.svm"), zero_based=False)
    return folder / "X.svm", None


FORMATS = {
    "npy": npy,
    "npy and a file of labels": npy_with_file,
    "shards": shards,
    "parquet lists": parquet(lists, size=None),
    "parquet fixed lists": parquet(lists),
    "parquet columns": parquet(columns),
    "parquet folder": parquet_folder,
    "arrow": lambda folder, X, y: (ipc(folder / "X.arrow", lists(X, y)), None),
    "arrow columns": lambda folder, X, y: (ipc(folder / "X.arrow", columns(X, y)), "label"),
    "arrow compressed": compressed_feather,
    "hugging face": hugging_face,
    "safetensors": safetensors,
    "npz": npz,
    "csv": csv,
    "libsvm": libsvm,
    "table": lambda folder, X, y: (lists(X, y), None),
    "array of lists": lambda folder, X, y: (lists(X, y)["embedding"], y),
}
MAPPED = ("npy", "shards", "arrow", "arrow columns", "hugging face", "safetensors", "table")
every_format = pytest.mark.parametrize("name", FORMATS)


@every_format
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rows_are_those_of_the_file(tmp_path, table, name, dtype):
    X, y = table[0].astype(dtype), table[1]
    path, labels = FORMATS[name](tmp_path, X, y)
    rows, found = open_rows(path, labels, memory_limit="20KB", keep=True)
    assert isinstance(rows, ChunkedRows) and (rows.n_rows, rows.n_features) == (N, D)
    np.testing.assert_array_equal(found, y)
    blocks = [(part.start, block.dense()) for part, block in rows.blocks(40)]
    assert [start for start, _ in blocks] == np.cumsum([0, *(len(block) for _, block in blocks[:-1])]).tolist()
    close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(np.concatenate([block for _, block in blocks]), X, **close)
    index = np.array([229, 3, 3, 150, 0])
    np.testing.assert_allclose(rows.take(index).dense(), X[index], **close)
    np.testing.assert_allclose(rows.part(slice(45, 130)).dense(), X[45:130], **close)
    np.testing.assert_allclose(rows.select(np.array([4, 1])).part(slice(0, N)).dense(), X[:, [4, 1]], **close)
    sizes = [block.arrays().data.size for _, block in rows.visits(np.random.default_rng(0))]
    assert len(sizes) > 1 and sum(sizes) == X.size
    loaded, _ = open_rows(path, labels, memory_limit="1MB")
    assert loaded.has_arrays
    np.testing.assert_allclose(loaded.dense(), X, **close)


@pytest.mark.parametrize("name", MAPPED)
def test_chosen_rows_are_found_without_a_pass_over_the_file(tmp_path, table, name, monkeypatch):
    rows, _ = open_rows(*FORMATS[name](tmp_path, *table), memory_limit="20KB", keep=True)
    monkeypatch.setattr(type(rows.store), "chunks", lambda *_: pytest.fail("the file was scanned"))
    assert rows.take(np.array([200])).n_rows == 1 and rows.part(slice(3, 9)).n_rows == 6


@pytest.mark.parametrize("name", ["table", "arrow", "npy", "safetensors"])
def test_numbers_are_not_copied_before_they_are_read(tmp_path, table, name):
    path, labels = FORMATS[name](tmp_path, *table)
    rows, _ = open_rows(path, labels, keep=True)
    pieces = getattr(rows.store, "guarded", rows.store).pieces
    assert all(isinstance(piece, np.ndarray) and not piece.flags.owndata for piece in pieces)


def test_chunks_are_read_anew_in_another_order(tmp_path, table):
    rows, _ = open_rows(*npy(tmp_path, *table), memory_limit="20KB", keep=True)
    rng = np.random.default_rng(0)
    for _ in range(3):
        found = [(index, block.dense()) for index, block in rows.visits(rng)]
        order = np.concatenate([index for index, _ in found])
        assert not np.array_equal(order, np.arange(N)) and np.array_equal(np.sort(order), np.arange(N))
        np.testing.assert_array_equal(np.concatenate([values for _, values in found]), table[0][order])


def test_sparse_rows_keep_their_zeros(tmp_path, table):
    X = np.where(table[0] > 0.8, table[0], 0)
    X[0] = table[0][0]
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X))
    for path, y in ((libsvm(tmp_path, X, table[1])[0], None), (tmp_path / "X.npz", table[1])):
        rows, _ = open_rows(path, y, memory_limit="50KB", keep=True)
        assert not rows.can_be_centred
        np.testing.assert_allclose(rows.matmat(np.eye(D)), X, rtol=1e-6)


def test_bfloat16(tmp_path, table):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    X = torch.asarray(table[0]).to(torch.bfloat16)
    save_file({"embeddings": X}, tmp_path / "X.safetensors")
    rows, _ = open_rows(tmp_path / "X.safetensors", table[1], keep=True)
    np.testing.assert_array_equal(rows.matmat(np.eye(D, dtype=np.float32)), X.float().numpy(force=True))


@pytest.mark.parametrize("place", [0, 180])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_missing_is_named_when_it_is_read(tmp_path, table, place, value):
    X = table[0].copy()
    X[place, 2] = value
    rows, _ = open_rows(*npy(tmp_path, X, table[1]), memory_limit="20KB", keep=True)
    cell = rf"X\.npy: the value in row {place + 1}, column 3 is {'missing' if np.isnan(value) else 'infinite'}"
    for reading in (
        rows.mean,
        rows.select(np.array([2, 4])).mean,
        lambda: rows.part(slice(place, N)),
        lambda: rows.take(np.array([100, place])),
        lambda: list(rows.visits(np.random.default_rng(0))),
    ):
        with pytest.raises(ValueError, match=cell):
            reading()


@pytest.mark.parametrize("write", [csv, parquet(columns)], ids=["csv", "parquet"])
def test_a_missing_cell_is_named_by_its_column(tmp_path, table, write):
    X = table[0].copy()
    X[7, 2] = np.nan
    rows, _ = open_rows(write(tmp_path, X, table[1])[0], memory_limit="20KB", keep=True)
    with pytest.raises(ValueError, match="the value in row 8, column 'x2' is missing"):
        rows.mean()


def test_errors_of_the_reader_reach_the_consumer_and_its_thread_ends(table):
    import threading

    def read():
        yield table[0][:100]
        if begun:
            raise OSError("the disk is gone")

    begun = []
    rows = ChunkedRows(read, N)
    begun.append(True)
    with pytest.raises(OSError, match="the disk is gone"):
        rows.mean()
    blocks = ChunkedRows(lambda: iter(np.array_split(table[0], 9)), N).blocks(10)
    next(blocks)
    blocks.close()
    assert not any("reader" in thread.name for thread in threading.enumerate())


def test_waiting_is_counted(table):
    import time

    def read():
        for chunk in np.array_split(table[0], 5):
            time.sleep(0.02)
            yield chunk

    rows = ChunkedRows(read, N)
    rows.shifted(rows.mean()).mean()
    assert 0.1 < rows.seconds_waiting < 2.0


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ([], "holds no data file"),
        (["a.npy", "b.parquet"], "files of the formats 'numpy', 'parquet'"),
        (["dataset_dict.json"], "splits 'train', 'test': give the folder of one of them"),
    ],
)
def test_folders_that_are_not_one_table(tmp_path, files, sentence):
    for name in files:
        (tmp_path / name).write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataFileError, match=sentence):
        open_rows(tmp_path)


def test_files_whose_names_begin_with_a_dot_or_an_underscore_hold_no_rows_of_a_folder(tmp_path):
    (tmp_path / "_metadata").mkdir()
    for name in ("1.npy", "2.npy", "_3.npy", ".4.npy", "_metadata/5.npy"):
        np.save(tmp_path / name, np.ones((4, 2)))
    assert open_rows(tmp_path, False)[0].n_rows == 8


def test_shards_of_different_widths(tmp_path):
    for width in (2, 3):
        np.save(tmp_path / f"{width}.npy", np.ones((4, width)))
    with pytest.raises(DataFileError, match="differ in their number of columns"):
        open_rows(tmp_path, False)


def test_labels_that_are_too_few(tmp_path, table):
    path, _ = npy(tmp_path, *table)
    np.save(tmp_path / "y.npy", table[1][:-1])
    with pytest.raises(DataFileError, match=r"229 labels and .* has 230 rows"):
        open_rows(path, tmp_path / "y.npy")


def test_a_file_that_has_to_be_read_as_a_whole(tmp_path, table):
    with pytest.raises(DataFileError, match=r"takes 7.* has to be read as a whole, which may take 500 bytes"):
        open_rows(npz(tmp_path, *table)[0], memory_limit=1000)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{}", "ends before its header does"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff{}", "ends before its header does"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}", "holds no tensors"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "is not a whole safetensors file"),
    ],
)
def test_damaged_safetensors(tmp_path, content, sentence):
    (tmp_path / "X.safetensors").write_bytes(content)
    with pytest.raises(DataFileError, match=sentence):
        open_rows(tmp_path / "X.safetensors")


def test_safetensors_whose_numbers_lie_elsewhere(tmp_path, table):
    path, _ = safetensors(tmp_path, *table)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataFileError, match="is not where its header says"):
        open_rows(path)


def test_amounts_of_memory():
    assert [as_bytes(given) for given in (5, "5", "2kb", "1.5 GB", "1GiB", "3M")] == [5, 5, 2000, 1.5e9, 2**30, 3e6]
    assert as_bytes(None) > 0
    for wrong in ("much", "-1GB", 0, "1XB", True):
        with pytest.raises(ValueError, match="memory_limit"):
            as_bytes(wrong)


def test_names_of_rows_that_pandas_stored_are_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label": np.array([2**63 + 5, 3, 2**63 + 6], dtype=np.uint64)})
    frame.iloc[[2, 0, 1]].to_parquet(tmp_path / "rows.parquet")
    dataset = read(tmp_path / "rows.parquet")
    assert dataset.feature_names == ("a",) and dataset.X.ravel().tolist() == [3.0, 1.0, 2.0]
    assert dataset.y.tolist() == [2**63 + 6, 2**63 + 5, 3]
    frame.set_index("label").to_parquet(tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet", target="label").feature_names == ("a",)
    frame["b"] = [4, 5, 4]
    frame.set_index("label").to_parquet(tmp_path / "rows.parquet")
    dataset = read(tmp_path / "rows.parquet")
    assert dataset.feature_names == ("a", "b") and dataset.y.tolist() == [2**63 + 5, 3, 2**63 + 6]


def test_columns_of_a_type_that_python_defines_may_be_left_out():
    class Own(pa.ExtensionType):  # has no hash
        def __init__(self):
            super().__init__(pa.float32(), "own")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls()

    odd = pa.ExtensionArray.from_storage(Own(), pa.array([1, 2, 3], pa.float32()))
    held = pa.table({"a": [0.0, 1.0, 2.0], "odd": odd, "label": ["x", "y", "x"]})
    rows, y = open_rows(held, "label", features=["a"])
    assert rows.shape == (3, 1) and y.tolist() == ["x", "y", "x"]
    with pytest.raises(DataFileError, match=r"column 'odd' holds .* values: convert it to numbers or leave it out"):
        open_rows(held, "label")


def test_columns_of_chunks_come_in_the_order_asked_for():
    X = np.random.default_rng(0).standard_normal((30, 5))
    rows = ChunkedRows(lambda: iter(np.array_split(X, 4)), 30).select(np.array([3, 0, 4]))
    np.testing.assert_array_equal(np.vstack([block.dense() for _, block in rows.blocks(7)]), X[:, [3, 0, 4]])
    np.testing.assert_array_equal(rows.take(np.array([8, 2])).dense(), X[[8, 2]][:, [3, 0, 4]])

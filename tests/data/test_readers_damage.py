"""Damaged files of every format: one sentence on what to do, whatever the damage."""

import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from manyclass.data.readers import DataFileError, read, read_chunks

N_MUTATIONS = 200
X = np.arange(12.0).reshape(4, 3) / 7
ARFF = """@relation 'flowers: 100%'
@attribute length numeric
@attribute wild {no, yes}
@attribute note string
@attribute class {setosa, virginica}
@data
1.5, yes, 'a b', virginica
?, no, c, setosa
"""
SPARSE_ARFF = """@relation words
@attribute a {0,1}
@attribute b numeric
@attribute y {p,q}
@data
{0 1, 2 q}
{1 .5}
"""


def saved(save, *args, **kwargs):
    buffer = io.BytesIO()
    save(buffer, *args, **kwargs)
    return buffer.getvalue()


def parquet(**options):
    table = pa.table({"a": X[:, 0], "e": pa.array(X.tolist(), pa.list_(pa.float32())), "label": ["u", "v", "u", "v"]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


FILES = {
    "rows.csv": b'a,"b c",label\n1,2.5,x\n,3e-1,"y, z"\n-4,NA,x\n' * 3,
    "rows.arff": ARFF.encode(),
    "sparse.arff": SPARSE_ARFF.encode(),
    "rows.svm": b"1 1:0.5 3:2\n# remark\n-1 qid:3 2:1\n" * 3,
    "many.svm": b"1,2 1:0.5 3:2\n2 2:1\n" * 3,
    "X.npy": saved(np.save, X),
    "X.npz": saved(np.savez, X=X, y=np.arange(4)),
    "sparse.npz": saved(sparse.save_npz, sparse.csr_array(X)),
    "rows.idx": struct.pack(">HBB3I", 0, 8, 3, 2, 2, 3) + bytes(12),
    "rows.parquet": parquet(),
    "plain.parquet": parquet(compression="none", use_dictionary=False),
}


def mutated(content, rng):
    """One to three of: a byte changed, a piece removed, a piece written twice, the end cut off."""
    damaged = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if not damaged:
            break
        start = int(rng.integers(len(damaged)))
        stop = start + int(rng.integers(1, 9))
        match rng.integers(6):
            case 0:
                del damaged[start:stop]
            case 1:
                damaged[start:start] = damaged[start:stop]
            case 2 if start:
                del damaged[start:]
            case _:
                damaged[start] = rng.integers(256)
    return bytes(damaged)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_read_or_refused_with_a_sentence(tmp_path, name):
    """Nothing but `DataFileError` comes out, from whole files and from chunks."""
    rng = np.random.default_rng(0)
    path = tmp_path / name
    for _ in range(N_MUTATIONS):
        path.write_bytes(mutated(FILES[name], rng))
        with np.errstate(all="ignore"):
            for attempt in (read, lambda path: list(read_chunks(path, 2))):
                try:
                    attempt(path)
                except DataFileError as error:
                    assert str(path) in str(error) and "\n" not in str(error)


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
            FILES["X.npy"].replace(b"'fortran_order': False", b"'fortran_order': (alse"),
            "not a whole NumPy file",
        ),
        ("X.npz", encrypted(FILES["X.npz"]), "not a whole NumPy file"),
        ("rows.arff", ARFF.replace("note string", "note st%ring").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("no, c", "no%d %s, c").encode(), "not correct ARFF"),
        ("rows.arff", ARFF.replace("@attribute length numeric", "@attribute").encode(), "not correct ARFF"),
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

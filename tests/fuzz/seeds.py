"""Valid files of every kind, small enough that a change is likely to hit something that matters."""

from __future__ import annotations

import io
import json
import struct
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save as tensors
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from manyclass import CalibratedLeastSquaresClassifier, ClassMoments, GLMClassifier, Moments, StagewiseClassifier
from manyclass.cli import modelfile
from manyclass.cli.inputs import encoded
from manyclass.data.readers import Dataset
from manyclass.dual.gap import BestPoint
from manyclass.export import save_coefficients
from manyclass.fit import Checkpoint

N_ROWS = 4
X = np.arange(12.0).reshape(N_ROWS, 3) / 7
ARFF = """@relation 'flowers: 100%'
@attribute length numeric
@attribute wild {no, yes}
@attribute note string
@attribute class {setosa, virginica}
@data
1.5, yes, 'a b', virginica
?, no, c, setosa
"""
PLAIN_ARFF = ARFF.replace("note string", "note {1,2}").replace("'a b'", "1").replace(" c,", " 2,")
SPARSE_ARFF = """@relation 'words: -C 1'
@attribute a {0,1}
@attribute b numeric
@attribute y {0,1}
@data
{0 1, 2 1}
{1 .5}
"""
XML = b"""<?xml version="1.0"?>
<labels xmlns="http://mulan.sourceforge.net/labels"><label name="y"></label><label name="a"/></labels>
"""


def saved(save, *args, **kwargs):
    buffer = io.BytesIO()
    save(buffer, *args, **kwargs)
    return buffer.getvalue()


LISTED = ("data-00000-of-00002.arrow", "data-00001-of-00002.arrow")
STATE = json.dumps(
    {"_data_files": [{"filename": name} for name in LISTED], "_fingerprint": "1b", "_format_type": None}, indent=2
).encode()
BELONGS_TO = {"estimator": "GLMClassifier", "rows": [1.0, 2.5], "alpha": 0.1}


TABLE = pa.table({"a": X[:, 0], "e": pa.array(X.tolist(), pa.list_(pa.float32())), "label": ["u", "v", "u", "v"]})
NAMES = TABLE.select(["label"])


def parquet(table=TABLE, **options):
    return saved(lambda buffer: pq.write_table(table, buffer, **options))


def arrow(table, kind):
    def write(buffer):
        with kind(buffer, table.schema) as writer:
            writer.write_table(table)

    return saved(write)


FILES = {
    "csv": [
        b'a,"b c",label\n' + b'1,2.5,x\n,3e-1,"y, z"\n-4,NA,x\n' * 3,
        b"0.5\t1\t2\n0.25\t3\t4\n",
        b"\xef\xbb\xbf1;2;0\r\n3;4;1\r\n",
    ],
    "arff": [PLAIN_ARFF.encode(), SPARSE_ARFF.encode()],
    "libsvm": [b"1 1:0.5 3:2\n# remark\n-1 qid:3 2:1\n" * 3, b"1,2 0:0.5 3:2\n2 2:1\n" * 3],
    "numpy": [
        saved(np.save, X),
        saved(np.save, np.asfortranarray(X[:, :2].astype(np.uint8))),
        saved(np.savez, X=X, y=np.arange(4)),
        saved(np.savez_compressed, data=X, target=np.array(list("abab"))),
        saved(sparse.save_npz, sparse.csr_array(X)),
        saved(sparse.save_npz, sparse.coo_array(X)),
        saved(sparse.save_npz, sparse.csc_array(X)),
    ],
    "idx": [struct.pack(">HBB3I", 0, 8, 3, 2, 2, 3) + bytes(12), struct.pack(">HBB2I", 0, 13, 2, 3, 1) + bytes(12)],
    "parquet": [parquet(), parquet(compression="none", use_dictionary=False)],
    "arrow": [arrow(TABLE, pa.ipc.new_file), arrow(TABLE, pa.ipc.new_stream)],
    "safetensors": [
        tensors({"X": X, "y": np.arange(N_ROWS)}),
        tensors({"embeddings": X.astype(np.float16), "labels": np.eye(N_ROWS, dtype=np.int8)}),
    ],
}
"""Rows, by the name of the format."""

MIXED = pa.table(
    {
        "size": [1.0, None, 2.0, 3.0] * 3,
        "colour": pa.array(["red", "blue", "red", None] * 3).dictionary_encode(),
        "text": ["of two words", "of two", None, "of more words than two"] * 3,
        "day": pa.array([19_000, 19_001, None, 19_002] * 3, pa.date32()),
        "label": list("abab") * 3,
    }
)
MIXED_ARFF = """@relation mixed
@attribute size numeric
@attribute colour {red, 'light blue'}
@attribute text string
@attribute label {a, b}
@data
1,red,'of two words',a
?,'light blue','of two',b
2,red,?,a
"""
TABLES = {
    "csv": [
        b"size,colour,text,day,label\n" + b'1,red,"of two, words",2024-01-31,x\n,blue,of two,2024-02-01T12:30,y\n' * 3,
        b"a;b;c\n1;x;u\n2;;v\n?;y;u\n",
    ],
    "arff": [MIXED_ARFF.encode()],
    "parquet": [parquet(MIXED)],
    "arrow": [arrow(MIXED, pa.ipc.new_file), arrow(MIXED, pa.ipc.new_stream)],
}
"""Rows of more than numbers, by the name of the format."""

LABELS = {
    "csv": [b'label\na\nb\n"a"\nb\n', b"0,1\n1,1\n0,0\n1,0\n", b"3\n2\n1\n0\n"],
    "numpy": [
        saved(np.save, np.arange(N_ROWS)),
        saved(np.save, np.array(list("abab"), dtype="S1")),
        saved(np.save, np.eye(N_ROWS, dtype=np.int8)),
        saved(np.savez, y=np.array(list("abab"))),
    ],
    "idx": [struct.pack(">HBBI", 0, 8, 1, N_ROWS) + bytes(range(N_ROWS))],
    "parquet": [parquet(NAMES)],
    "arrow": [arrow(NAMES, pa.ipc.new_file)],
    "safetensors": [tensors({"labels": np.arange(N_ROWS)})],
}
"""Labels of `N_ROWS` rows, by the name of the format."""


def models() -> list[bytes]:
    """Model files: estimators with parts of their own, behind a scaler, for several labels, and scikit-learn's."""
    y = np.array(["u", "v", "w", "u"])
    dataset = Dataset(X, y, ("a", "b", "c"), "label")
    table = pa.table({"a": [1.0, None, 2.0, 3.0], "b": ["p", "q", "p", "q"], "c": ["one or two", "two", "one", None]})
    several = Dataset(X, np.eye(N_ROWS, 2, dtype=np.int8), label_names=("p", "q"))
    fitted = [
        (None, GLMClassifier(max_iter=3), dataset),
        (StandardScaler().fit(X), CalibratedLeastSquaresClassifier(max_iter=2), dataset),
        (None, StagewiseClassifier(n_components=8, block_size=4, alpha=0.1), dataset),
        (None, GLMClassifier(loss="logistic", max_iter=3), several),
        (None, LogisticRegression(), dataset),
        (None, GLMClassifier(max_iter=3), replace(dataset, X=table, feature_names=("a", "b", "c"))),
    ]
    models = [
        modelfile.Model.of(encoder, scaler, estimator.fit(held.X, rows.y), modelfile.Schema.of(rows))
        for scaler, estimator, rows in fitted
        for encoder, held in [encoded(rows)]
    ]
    return [_written(partial(modelfile.save, model)) for model in models]


def moments() -> list[bytes]:
    return [_written(Moments.zeros(3, 2).partial_fit(X, X[:, :2]).save)]


def class_moments() -> list[bytes]:
    named = ClassMoments.of(X, np.eye(N_ROWS, 2, dtype=np.int8), classes=["p", "q"])
    named.about = {"feature_names": ["a", "b", "c"], "target_name": None}
    return [_written(part.save) for part in (ClassMoments.of(X, list("uvwu")), ClassMoments.of(X, [1, 2, 2, 1]), named)]


def checkpoints() -> list[bytes]:
    """States with everything that can be stored: arrays and scalars, text, generators, tuples, objects, repetition."""
    state = {
        "status": None,
        "iterate": (X, np.float64(2.5), np.arange(3)),
        "again": [X, X, {"a": np.random.default_rng(0), 1: np.array(["u", "v"], dtype=object)}],
        "best": BestPoint(1.0),
    }
    return [_written(partial(_checkpoint, state)), _written(partial(_checkpoint, {"x": X}))]


def _checkpoint(state: dict[str, Any], path: Path) -> None:
    Checkpoint(path, BELONGS_TO).write(state)


def coefficients() -> list[bytes]:
    models = (GLMClassifier(max_iter=3), GLMClassifier(loss="logistic", max_iter=3))
    return [_written(partial(save_coefficients, model.fit(X, list("uvwu")))) for model in models]


def _written(save: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.skops"
        save(path)
        return path.read_bytes()

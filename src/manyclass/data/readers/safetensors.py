"""Safetensors: a length, a JSON header with names, types and places, and the numbers, which are mapped.

https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.dataset import DataFileError, Dataset, Request, labels_from_array, quoted
from manyclass.data.readers.source import Source
from manyclass.data.stores import Pieces

NAME, SUFFIXES, WHAT = "safetensors", (".safetensors",), "a whole safetensors file"
TAKES = ("target",)
_TYPES = {
    **{"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "BOOL": "|b1"},
    **{
        f"{kind}{bits}": f"<{letter}{bits // 8}"
        for kind, letter in (("I", "i"), ("U", "u"))
        for bits in (8, 16, 32, 64)
    },
}
_X = ("X", "x", "embeddings", "embedding", "features", "data")
_Y = ("y", "labels", "label", "target", "targets")
_LONGEST_HEADER = 100_000_000


def sniff(head: bytes) -> bool:
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < _LONGEST_HEADER


def read(source: Source, request: Request) -> Dataset:
    """The tensor X (or embeddings, features, data, or the only matrix), and y (or labels, target) if there is one."""
    found = stored(source, request)
    return Dataset.stored(found.X.read(0, found.X.n_rows), request.dtype, found.y)


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    """The tensor y or labels, or the only one."""
    _, tensors = _opened(source)
    name = next((name for name in _Y if name in tensors), None)
    if name is None and len(tensors) > 1:
        raise DataFileError(f"it holds the tensors {quoted(list(tensors))}: call that of the labels 'labels'")
    return labels_from_array(np.array(tensors[name or next(iter(tensors))][:])), None


def stored(source: Source, request: Request) -> Dataset:
    """The labels, and rows that stay in the file."""
    file, tensors = _opened(source)
    wanted = request.targets
    names = [name for name in (_Y if wanted is None else map(str, wanted)) if name in tensors][:1]
    if wanted and not names and request.needs_labels:
        raise DataFileError(f"there is no tensor {quoted(list(map(str, wanted)))}: it holds {quoted(list(tensors))}")
    matrices = [name for name, tensor in tensors.items() if len(tensor.shape) > 1 and name not in names]
    chosen = next((name for name in _X if name in matrices), matrices[0] if len(matrices) == 1 else None)
    if chosen is None:
        raise DataFileError(f"it holds the tensors {quoted(list(tensors))}: call that of the features 'X'")
    X = tensors[chosen]
    if len(X.shape) > 2:
        X = X.reshape(X.shape[0], math.prod(X.shape[1:]))
    y = labels_from_array(np.array(tensors[names[0]][:])) if names and request.needs_labels else None
    return Dataset(Pieces([X], [file]), y)


class _Bfloat16:
    """Numbers that NumPy has no type for: the upper halves of float32."""

    dtype = np.dtype(np.float32)

    def __init__(self, bits: NDArray[np.uint16]):
        self._bits, self.shape = bits, bits.shape

    def __getitem__(self, rows: Any) -> Any:
        return (self._bits[rows].astype(np.uint32) << 16).view(np.float32)

    def reshape(self, *shape: int) -> _Bfloat16:
        return _Bfloat16(self._bits.reshape(shape))


def _opened(source: Source) -> tuple[Any, dict[str, Any]]:
    """The file's memory, and the arrays in it by their names."""
    file = source.memory()
    (length,) = struct.unpack("<Q", file[:8])
    start = 8 + length
    if length > min(_LONGEST_HEADER, len(file)):
        raise DataFileError("it ends before its header does: copy or download it again")
    tensors = {}
    for name, entry in json.loads(file[8:start]).items():
        if name == "__metadata__":
            continue
        kind, shape, (first, last) = entry["dtype"], [int(size) for size in entry["shape"]], entry["data_offsets"]
        if kind not in _TYPES:
            raise DataFileError(f"its tensor '{name}' holds {kind} numbers: save them as F16, F32 or F64")
        size = math.prod(shape)
        if not 0 <= first <= last <= len(file) - start or last - first != size * np.dtype(_TYPES[kind]).itemsize:
            raise DataFileError(f"its tensor '{name}' is not where its header says: copy or download it again")
        array = np.frombuffer(file, _TYPES[kind], size, start + first).reshape(shape)
        tensors[name] = _Bfloat16(array) if kind == "BF16" else array
    if not tensors:
        raise DataFileError("it holds no tensors: save the features as X")
    return file, tensors

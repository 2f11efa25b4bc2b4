"""IDX, the format of MNIST: a big-endian header, then the numbers; labels are in a file of their own.

The layout is described with the data: LeCun, Cortes and Burges, "The MNIST database of handwritten digits".
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.dataset import DataFileError, Dataset, Request, as_labels
from manyclass.data.readers.source import Source

NAME, SUFFIXES, WHAT = "idx", (".idx",), "a whole IDX file"
_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def sniff(head: bytes) -> bool:
    return len(head) >= 4 and head[:2] == b"\x00\x00" and head[2] in _TYPES and 1 <= head[3] <= 8


def read(source: Source, request: Request) -> Dataset:
    """Each image as one row, its values as they are in the file (0 to 255 for MNIST)."""
    values = _decode(source)
    if values.ndim == 1:
        raise DataFileError("it holds one number per row: these are labels, give the file of images with it")
    return Dataset.stored(values, request.dtype)


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    values = _decode(source)
    if values.ndim != 1:
        raise DataFileError(f"it holds an array of shape {values.shape}: give a file with one label per row")
    return as_labels(values), None


def companion_labels(path: Path) -> Path | None:
    """The labels file that lies beside an images file under the names MNIST and its successors use."""
    if "images" not in path.name or "idx3" not in path.name:
        return None
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    return beside if beside.is_file() else None


def _decode(source: Source) -> NDArray[Any]:
    with source.binary() as file:
        content = file.read()
    if not sniff(content[:4]):
        raise DataFileError("it is not an IDX file: give the format it has, or copy it again")
    start = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    return np.frombuffer(content, _TYPES[content[2]], offset=start).reshape(shape)

"""The formats `read` knows; a new one is a module with `SUFFIXES`, `sniff` and `read`, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from manyclass.data.readers import arff, idx, libsvm, numpy_files, parquet, text
from manyclass.data.readers.dataset import DataFileError, Dataset, Request
from manyclass.data.readers.source import Source


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes
    ----------
    name : str
        As given to ``read(path, format=...)``.
    suffixes : tuple of str
        File name endings that settle the format.
    sniff : callable(bytes) -> bool
        Whether a file that starts with these bytes may have this format.
    read : callable(Source, Request) -> Dataset
    read_labels : callable(Source, int) -> (labels, label names or None), or None
        Reads a file that holds nothing but the labels of so many rows.
    read_chunks : callable(Source, Request, int) -> iterator of Dataset, or None
        Reads so many rows at a time.
    is_mapped : bool
        Whether what `read` returns may stay in the file, so that its rows can be taken piece by piece.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Callable[[Source, Request], Dataset]
    read_labels: Callable[[Source, int], tuple[Any, tuple[str, ...] | None]] | None = None
    read_chunks: Callable[[Source, Request, int], Iterator[Dataset]] | None = None
    is_mapped: bool = False

    @property
    def has_chunks(self) -> bool:
        return self.is_mapped or self.read_chunks is not None


# In the order in which content is tried: text comes last, as anything may be text.
FORMATS = (
    Format("numpy", numpy_files.SUFFIXES, numpy_files.sniff, numpy_files.read, numpy_files.read_labels, is_mapped=True),
    Format("parquet", parquet.SUFFIXES, parquet.sniff, parquet.read, read_chunks=parquet.read_chunks),
    Format("idx", idx.SUFFIXES, idx.sniff, idx.read, idx.read_labels),
    Format("arff", arff.SUFFIXES, arff.sniff, arff.read),
    Format("libsvm", libsvm.SUFFIXES, libsvm.sniff, libsvm.read, read_chunks=libsvm.read_chunks),
    Format("csv", text.SUFFIXES, text.sniff, text.read, text.read_labels, text.read_chunks),
)
FORMAT_NAMES = tuple(entry.name for entry in FORMATS)


def find_format(source: Source, name: str | None = None) -> Format:
    """The format called `name`, else the one the file's ending or its content speaks of.

    Raises
    ------
    DataFileError
        Where the file is empty or nothing fits.
    ValueError
        Where `name` is not a format.
    """
    if name is not None:
        for entry in FORMATS:
            if entry.name == name:
                return entry
        raise ValueError(f"there is no format '{name}': choose one of {', '.join(FORMAT_NAMES)}")
    if not source.head:
        raise DataFileError("it is empty")
    for entry in FORMATS:
        if source.suffix in entry.suffixes:
            return entry
    for entry in FORMATS:
        if entry.sniff(source.head):
            return entry
    raise DataFileError(f"it is in none of the known formats: convert it to one of {', '.join(FORMAT_NAMES)}")

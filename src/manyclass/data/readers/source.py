"""Files as streams, decompressed by what they hold rather than by what they are called."""

import bz2
import csv
import errno
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TextIO

from manyclass.data.readers.dataset import DataFileError
from manyclass.data.stores import mapped

_HEAD = 1 << 16
_COMPRESSIONS: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)
_COMPRESSED_SUFFIXES = {".gz", ".bz2", ".xz"}


class Source:
    """One file to read; `path` is as the user wrote it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            # What comes through a pipe comes once.
            self._piped = file.read() if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode) else None
            magic = file.read(8) if self._piped is None else self._piped[:8]
        found = [opener for prefix, opener in _COMPRESSIONS if magic.startswith(prefix)]
        self.is_compressed = bool(found)
        self._open: Callable[..., IO[Any]] = found[0] if found else open

    @property
    def is_plain(self) -> bool:
        """Whether the file at `path` holds the content as it is."""
        return not self.is_compressed and self._piped is None

    @property
    def suffix(self) -> str:
        """The last suffix that does not speak of compression, in lower case."""
        path = self.path
        return (path.with_suffix("") if path.suffix.lower() in _COMPRESSED_SUFFIXES else path).suffix.lower()

    def binary(self) -> IO[bytes]:
        if self._piped is None:
            return self._open(self.path, "rb")
        piped = io.BytesIO(self._piped)
        return self._open(piped, "rb") if self.is_compressed else piped

    def seekable(self) -> Path | IO[bytes]:
        """The path itself, or the decompressed content: zip and Parquet files are read from their end."""
        if self.is_plain:
            return self.path
        with self.binary() as file:
            return io.BytesIO(file.read())

    def memory(self) -> Any:
        """The content as one buffer: the file mapped, or decompressed."""
        if self.is_plain:
            return mapped(self.path)
        with self.binary() as file:
            return file.read()

    def text(self) -> TextIO:
        # utf-8-sig: spreadsheets put a byte order mark in front of the first column's name.
        return io.TextIOWrapper(self.binary(), encoding="utf-8-sig", newline="")

    @cached_property
    def head(self) -> bytes:
        with self.binary() as file:
            return file.read(_HEAD)


class Lines(Source):
    """Some lines of a text file, read as if they were a file of their own."""

    is_plain = False

    def __init__(self, source: Source, content: bytes) -> None:
        self.path, self._source, self._content = source.path, source, content

    def binary(self) -> IO[bytes]:
        return io.BytesIO(self._content)

    def text(self) -> TextIO:
        # The whole file, in which a faulty line has its number.
        return self._source.text()


@contextmanager
def translated(path: Path, what: str = "readable") -> Iterator[None]:
    """Whatever is raised on content that is not `what`, as a `DataFileError` that names the file.

    What a damaged file makes a parser raise is seldom part of what it documents.
    """
    try:
        yield
    except DataFileError as error:
        if str(error).startswith(str(path)):
            raise
        raise type(error)(f"{path}: {one_line(str(error))}") from error
    except Exception as error:
        # Seeking to where a damaged header points is an invalid argument; all else is the file system's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise DataFileError(f"{path} {one_line(_diagnosis(error, what))}") from error


def _diagnosis(error: Exception, what: str) -> str:
    match error:
        case EOFError():
            return "ends too early: copy or download it again"
        case UnicodeDecodeError():
            return "is not UTF-8 text: save it again with that encoding"
        case csv.Error():
            return f"cannot be split into cells ({error}): check its quotes"
        case MemoryError():
            return "announces more numbers than memory can hold: copy it again, or make it smaller"
        case OSError() | zlib.error() | lzma.LZMAError():
            return f"is damaged ({first_line(error)}): copy or download it again"
    return f"is not {what} ({first_line(error)}): correct it, or copy it again"


def one_line(text: str) -> str:
    """A message that may quote a file, without what would upset a terminal, and no longer than can be read."""
    text = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return text if len(text) <= 600 else f"{text[:400]} … {text[-199:]}"


def first_line(error: BaseException) -> str:
    """What a library says is wrong, without the lines of the file it may quote."""
    try:
        return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
    except (TypeError, ValueError):
        # liac-arff formats its message when asked for it, and cannot where the file's text holds a %.
        return type(error).__name__

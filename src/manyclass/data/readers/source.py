"""Files as streams, decompressed by what they hold rather than by what they are called."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TextIO

from manyclass.data.readers.dataset import DataFileError

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
            magic = file.read(8)
        found = [opener for prefix, opener in _COMPRESSIONS if magic.startswith(prefix)]
        self.is_compressed = bool(found)
        self._open: Callable[..., Any] = found[0] if found else open

    @property
    def suffix(self) -> str:
        """The last suffix that does not speak of compression, in lower case."""
        path = self.path
        return (path.with_suffix("") if path.suffix.lower() in _COMPRESSED_SUFFIXES else path).suffix.lower()

    def binary(self) -> IO[bytes]:
        return self._open(self.path, "rb")

    def seekable(self) -> Path | IO[bytes]:
        """The path itself, or the decompressed content: zip and Parquet files are read from their end."""
        if not self.is_compressed:
            return self.path
        with self.binary() as file:
            return io.BytesIO(file.read())

    def text(self) -> TextIO:
        # utf-8-sig: spreadsheets put a byte order mark in front of the first column's name.
        return io.TextIOWrapper(self.binary(), encoding="utf-8-sig", newline="")

    @cached_property
    def head(self) -> bytes:
        with self.binary() as file:
            return file.read(_HEAD)


class Lines(Source):
    """Some lines of a text file, as if they were a file of their own."""

    def __init__(self, source: Source, content: bytes) -> None:
        self.path, self.is_compressed, self._content = source.path, True, content

    def binary(self) -> IO[bytes]:
        return io.BytesIO(self._content)


@contextmanager
def translated(source_path: Path) -> Iterator[None]:
    """Damage found while decompressing or decoding, as a `DataFileError` that names the file."""
    try:
        yield
    except DataFileError as error:
        if str(source_path) in str(error):
            raise
        raise DataFileError(f"{source_path}: {error}") from error
    except EOFError as error:
        raise DataFileError(f"{source_path} ends too early: copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataFileError(f"{source_path} is damaged ({error}): copy or download it again") from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{source_path} is not UTF-8 text: save it again with that encoding") from error

"""Where a fit has come to, in a file: written whole or not at all, and read only if every byte is as it was written."""

import errno
import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyclass.data.readers.numpy_files import check_size
from manyclass.data.readers.source import one_line
from manyclass.data.whole_file import replaced, try_to_write
from manyclass.fit.stored import Decoder, Encoder

MAGIC, FORMAT = b"manyclass checkpoint ", 2
EVERY = 5.0
"""Least seconds between two writes."""
SHARE = 0.04
"""Most of the time that may be spent on writing."""
DIGEST_BYTES = 32


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why and what to do."""


class Checkpoint:
    """A file that a fit goes on from.

    It holds one line with the format and its version, a JSON tree behind its length, the arrays that the tree refers to
    in NPY format, and the SHA-256 of all that. A new one takes the place of the old as a whole (`replaced`).

    `belongs_to` tells this fit from others: of each name a plain value, or a list of numbers, which are compared to
    half their digits. `more` gives what is to be stored beside the state of the run.
    """

    def __init__(self, path: Any, belongs_to: dict[str, Any], more: Callable[[], dict[str, Any]] = dict):
        self.path, self.belongs_to, self.more = Path(os.fspath(path)), belongs_to, more
        self._due, self._has_warned = time.perf_counter() + EVERY, False
        if self.path.is_dir() or not self.path.parent.is_dir():
            what = "is a folder" if self.path.is_dir() else "would lie in a folder that does not exist"
            raise CheckpointError(f"checkpoint={str(path)!r} {what}; give the name of a file in a folder that exists.")
        try:
            try_to_write(self.path)
        except OSError as error:
            # ENOENT of a folder that is there: it takes no new files.
            reason = "its folder takes no new files" if error.errno == errno.ENOENT else error.strerror
            raise CheckpointError(
                f"checkpoint={str(path)!r} cannot be written ({reason}); give the name of a file in another folder."
            ) from error

    # -- writing ----------------------------------------------------------------------------------------------------

    def offer(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write, if it is long enough since the last time."""
        if time.perf_counter() >= self._due:
            self.write(state())

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file; where the disk is full or gone, say so once and leave the old file as it was."""
        started = time.perf_counter()
        try:
            # One writer, as those that killed runs leave would pile up.
            with replaced(self.path, "run") as temporary, temporary.open("w+b") as file:
                encode = Encoder()
                encoded = encode({**state, "more": self.more()})
                tree = {"manyclass": _version(), "belongs_to": self.belongs_to, "state": encoded}
                text = json.dumps(tree).encode()
                file.write(MAGIC + f"{FORMAT}\n".encode() + len(text).to_bytes(8, "little") + text)
                for array in encode.arrays:
                    np.lib.format.write_array(file, array, allow_pickle=False)
                file.flush()
                file.write(_digest(file, file.tell()))
        except OSError as error:
            if not self._has_warned:
                is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                reason = "the disk is full" if is_full else error.strerror or error
                warnings.warn(
                    f"The checkpoint {self.path} could not be written ({reason}); the fit goes on, and what was there "
                    "before is still there." + " Make room, and the next one will be written." * is_full,
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._has_warned = True
        now = time.perf_counter()
        self._due = now + max(EVERY, (now - started) / SHARE)

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, asarray: Callable[[np.ndarray], Any] = np.asarray) -> dict[str, Any] | None:
        """What was written last; None where there is no file.

        `asarray` puts arrays that were not NumPy's where the rows are.
        """
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return None
        with file:
            size = os.fstat(file.fileno()).st_size
            first = file.readline(len(MAGIC) + 20)
            if not first.startswith(MAGIC):
                raise CheckpointError(f"{self.path} is no checkpoint of manyclass; give another name, or delete it.")
            damaged = (
                f"The checkpoint {self.path} is damaged or incomplete; put a good copy in its place, or delete it and "
                "the fit begins anew."
            )
            end = max(size - DIGEST_BYTES, len(first))
            file.seek(end)
            if file.read() != _digest(file, end):
                raise CheckpointError(damaged)
            if (written := first[len(MAGIC) : -1]) != str(FORMAT).encode():
                whose = "an older manyclass; go on with" if written == b"1" else "a newer manyclass; install"
                raise CheckpointError(f"The checkpoint {self.path} was written by {whose} that, or delete it.")
            file.seek(len(first))
            try:
                length = int.from_bytes(file.read(8), "little")
                tree, arrays = json.loads(file.read(min(length, size))), []
                self._check(tree)
                while file.tell() < end:
                    check_size(file, end - file.tell())
                    arrays.append(np.lib.format.read_array(file, allow_pickle=False))
                if file.tell() != end:
                    raise EOFError
                return dict(Decoder(arrays, asarray)(tree["state"]))
            except CheckpointError:
                raise
            except Exception as error:  # of a file that somebody else has made, anything
                raise CheckpointError(damaged) from error

    def _check(self, tree: dict[str, Any]) -> None:
        """Refuse what another fit, or another version, has left."""
        if tree["manyclass"] != _version():
            raise CheckpointError(
                f"The checkpoint {self.path} was written by manyclass {one_line(str(tree['manyclass']))[:60]}, and "
                f"this is {_version()}; go on with that version, or delete the file and the fit begins anew."
            )
        theirs = tree["belongs_to"]
        for name, ours in self.belongs_to.items():
            if not _is_same(ours, theirs.get(name)):
                pair = [one_line(str(value)) for value in (theirs.get(name), ours)]
                told = (
                    f": {pair[0]}, not {pair[1]}" if max(map(len, pair)) <= 60 and isinstance(ours, str | int) else ""
                )
                raise CheckpointError(
                    f"The checkpoint {self.path} is of another fit (its {name} differs{told}); give another name, or "
                    "delete the file and the fit begins anew."
                )


def _digest(file: BinaryIO, length: int) -> bytes:
    """The SHA-256 of the first so many bytes."""
    with mmap(file.fileno(), length, access=ACCESS_READ) as content:
        return hashlib.sha256(content).digest()


def _is_same(ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, list):
        return bool(ours == theirs)
    if not isinstance(theirs, list) or len(ours) != len(theirs):
        return False
    scale = max((abs(value) for value in ours), default=0.0)
    return all(abs(a - b) <= 1e-4 * scale for a, b in zip(ours, theirs, strict=True))


def _version() -> str:
    import manyclass

    return str(getattr(manyclass, "__version__", "of no version"))

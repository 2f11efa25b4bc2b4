"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replaced(path: Path, writer: str = "") -> Iterator[Path]:
    """A temporary path beside `path` that takes its name once the block has succeeded and all is on the disk.

    A process that is killed at any moment leaves the old file or the new one behind, and perhaps a temporary one, which
    the next `writer` of that name, by default each process, uses again.
    """
    temporary = _beside(path, writer)
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        # The user knows the file by the name they gave.
        if error.filename is None or Path(os.fsdecode(error.filename)) == temporary:
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def try_to_write(path: Path) -> None:
    """Make a temporary file beside `path`, as `replaced` does, and remove it: what keeps it from that is raised."""
    # Nothing else tells: a folder's permissions do not bind the superuser, and /proc takes files of nobody.
    temporary = _beside(path, "")
    try:
        temporary.open("ab").close()
        temporary.unlink()
    except OSError as error:
        error.filename = str(path)
        raise


def _beside(path: Path, writer: str) -> Path:
    return path.with_name(f".{path.name}.{writer or os.getpid()}.part")


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk only once its folder is; not every system opens folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Rows from a path, or from what pyarrow holds."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyclass.data.chunked import ChunkedRows
from manyclass.data.memory import as_bytes, told
from manyclass.data.rows import GRAM_BLOCK_BYTES, Rows
from manyclass.data.spooled import Spooled
from manyclass.data.stored_table import StoredTable
from manyclass.data.stores import Store

if TYPE_CHECKING:
    from manyclass.data.readers import Dataset

CHUNK_SHARE, VISIT_SHARE, WHOLE_SHARE, SAMPLE_SHARE = 16, 8, 2, 64
"""Of the limit, what is one over the size of a chunk, of a chunk that compiled loops visit, of rows that are read as a
whole, and of rows of a table from which it is learned what numbers to make of them: the words of texts take several
times as much. Of chunks there are two."""
SMALLEST_CHUNK = 1 << 20


def is_stored(X: Any) -> bool:
    """Whether X is a path, or a table or array of pyarrow."""
    return isinstance(X, str | os.PathLike) or type(X).__module__.partition(".")[0] == "pyarrow"


def open_rows(
    path: Any, y: Any = None, memory_limit: float | str | None = None, *, keep: bool = False, **options: Any
) -> tuple[Any, Any]:
    """Rows of a file or folder, and their labels.

    Rows that take more than half of the limit stay where they are, and are read in chunks whenever they are needed: the
    next one by a thread, while the present one is computed with.

    Parameters
    ----------
    path : path-like, or a table or array of lists of pyarrow
        NPY, safetensors and uncompressed Arrow files are mapped; Parquet, CSV and LIBSVM files are read in pieces;
        others, and compressed ones, as a whole. A folder holds files of one of these formats, in the order of their
        names (numbers in them count as numbers), or is what Hugging Face's ``save_to_disk`` has written.
    y : array, str, path-like, False or None
        The labels; or the name of their column (of their tensor, in a safetensors file); or the path of another file
        or folder that holds them, which as a str has a suffix. None is the column called target, label, class or y,
        else the last one; False is no labels.
    memory_limit : float or str, optional
        Bytes, or text such as "2GB"; by default half of the memory that is free.
    keep : bool
        Leave the rows in the file, however few there are.
    **options
        Those of `manyclass.data.readers.read`; with ``kinds={}`` columns may be text, dates or gaps.

    Returns
    -------
    rows : Rows, or StoredTable
        The latter where there is more in them than numbers: `TableEncoder` makes the former of them.
    y : array or None

    Raises
    ------
    DataFileError
        A ValueError with one sentence on what is wrong with the file, or that it can only be read as a whole and is
        larger than the limit.

    Examples
    --------
    >>> import numpy, pathlib, tempfile
    >>> from manyclass.data import open_rows
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> numpy.save(folder / "X.npy", numpy.ones((4, 3), dtype=numpy.float16))
    >>> rows, y = open_rows(folder / "X.npy", [0, 1, 0, 1], memory_limit="1GB", keep=True)
    >>> type(rows).__name__, rows.n_rows, rows.dtype.name, y
    ('ChunkedRows', 4, 'float32', [0, 1, 0, 1])
    """
    found = opened(path, y, memory_limit, keep=keep, **options)
    return found.X, found.y


def opened(X: Any, y: Any, memory_limit: float | str | None, *, keep: bool = False, **options: Any) -> Dataset:
    """As `open_rows`, with the names of the columns; X are the rows."""
    from manyclass.data.readers import Request, stored
    from manyclass.data.readers.arrow import stored_table

    limit = as_bytes(memory_limit)
    given = None
    names_column = isinstance(y, str) and not (Path(y).suffix and Path(y).exists()) and not Path(y).is_dir()
    if y is True or names_column:
        options["target"] = y
    elif isinstance(y, str | os.PathLike):
        options["labels"] = y
    elif y is not None:
        given, options["target"] = (None if y is False else y), False
    if isinstance(X, str | os.PathLike):
        found = stored(X, most_bytes=limit / WHOLE_SHARE, **options)
    else:
        found = stored_table(X, Request(**options))
    smallest = SMALLEST_CHUNK if memory_limit is None or limit > CHUNK_SHARE * SMALLEST_CHUNK else 1

    def as_rows(store: Store) -> Rows:
        rows: Rows = ChunkedRows(
            Spooled(store) if store.is_slow else store,
            chunk_bytes=int(min(max(limit / CHUNK_SHARE, smallest), GRAM_BLOCK_BYTES)),
            visit_bytes=int(max(limit / VISIT_SHARE, smallest)),
            whole_bytes=limit / WHOLE_SHARE,
            name=X if isinstance(X, str | os.PathLike) else "Input X",
            columns=found.feature_names,
            all_needed=options.get("features") is not None,
        )
        fits = not keep and rows.n_rows * rows.row_bytes <= limit / WHOLE_SHARE
        return rows.part(slice(0, rows.n_rows)) if fits else rows

    is_table = found.X.kinds is not None
    held = StoredTable(found.X, as_rows, limit / SAMPLE_SHARE) if is_table else as_rows(found.X)
    return replace(found, X=held, y=found.y if given is None else given, full_scale=None)


def check_memory(needed: dict[str, float], limit: float | str | None, advice: str) -> None:
    """Refuse what cannot fit before it is made.

    `needed` has bytes by what they are for.
    """
    if limit is None or sum(needed.values()) <= as_bytes(limit):
        return
    parts = ", ".join(f"{told(size)} for {what}" for what, size in needed.items() if size > 0)
    raise MemoryError(f"This fit would take {parts}, more than memory_limit={limit!r}; raise it, or {advice}.")

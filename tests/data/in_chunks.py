"""Files in chunks, with their labels."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyclass.data.readers import Dataset, stored


def in_chunks(path: Path, n_rows: int, **options: Any) -> Iterator[Dataset]:
    """The rows of a file where they lie, so many at a time."""
    found, start = stored(path, **options), 0
    for X in found.X.chunks(n_rows):
        stop = start + X.shape[0]
        yield dataclasses.replace(found, X=X, y=None if found.y is None else found.y[start:stop])
        start = stop

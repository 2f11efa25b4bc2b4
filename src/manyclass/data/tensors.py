"""Named arrays in one file: safetensors with a kind, a version and a checksum, written whole or not at all."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.data.readers.dataset import DataFileError
from manyclass.data.readers.source import one_line, translated
from manyclass.data.rows import Array, to_numpy
from manyclass.data.whole_file import replaced

VERSION = 1


def save_tensors(path: str | Path, kind: str, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Write arrays, and what JSON can hold `about` them; a file of that name is replaced once all is on the disk."""
    from safetensors.numpy import save

    held = {name: np.ascontiguousarray(to_numpy(values)) for name, values in arrays.items()}
    text = json.dumps(dict(about))
    metadata = {"manyclass": kind, "version": str(VERSION), "about": text, "sha256": checksum(kind, text, held)}
    with replaced(Path(path)) as temporary:
        temporary.write_bytes(save(held, metadata))


def load_tensors(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `save_tensors` wrote; nothing in the file is executed."""
    from safetensors import safe_open

    path = Path(path)
    path.open("rb").close()  # to fail as any file does that cannot be opened
    with translated(path, "a safetensors file, or is damaged"):
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        if metadata.get("manyclass") != kind:
            found = one_line(metadata.get("manyclass", "something else"))
            raise DataFileError(f"it holds {found} and not {kind}: give a file that was saved as such")
        if metadata.get("version") != str(VERSION):
            raise DataFileError("it was written by a newer manyclass: pip install --upgrade manyclass")
        text = metadata.get("about", "")
        if metadata.get("sha256") != checksum(kind, text, arrays):
            raise DataFileError("it is damaged: write it again, or copy it again from where it was")
        return arrays, dict(json.loads(text))


def plain(value: Any) -> Any:
    """What JSON can hold of a value: no types of NumPy's, and None for what it has no number for."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def is_number(value: Any) -> bool:
    """Whether what JSON held is a finite number that NumPy has a type for."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def checksum(kind: str, text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of all that a file says, in hexadecimal digits."""
    digest = hashlib.sha256(json.dumps([kind, text]).encode())
    for name in sorted(arrays):
        digest.update(json.dumps([name, str(arrays[name].dtype), arrays[name].shape]).encode())
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).tobytes())
    return digest.hexdigest()

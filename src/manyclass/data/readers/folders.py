"""Which files of a folder hold the rows, and in which order."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from manyclass.data.readers.dataset import DataFileError, quoted

_PARTS = re.compile(r"(\d+)")


def files_in(path: Path, suffixes: Mapping[str, str]) -> list[Path]:
    """The file itself, or the files of a folder that are of the one format in it; `suffixes` name the formats.

    Hugging Face's folders list their files; of others, subfolders count too, names that begin with a dot or an
    underscore do not, and numbers in names are ordered as numbers.
    """
    if not path.is_dir():
        return [path]
    if (path / "dataset_dict.json").is_file():
        splits = json.loads((path / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
        raise DataFileError(f"it holds the splits {quoted(splits)}: give the folder of one of them")
    state = path / "state.json"
    if state.is_file():
        listed = json.loads(state.read_text(encoding="utf-8")).get("_data_files") or []
        files = [path / Path(entry["filename"]).name for entry in listed]
        missing = [file.name for file in files if not os.path.isfile(file)]  # for any name, be it none of a file's
        if missing or not files:
            held = f"{quoted(missing)}, which is not there" if missing else "no files"
            raise DataFileError(f"its state.json lists {held}: copy all of the folder again")
        return files
    by_format: dict[str, list[Path]] = {}
    for file in path.rglob("*"):
        inside = file.relative_to(path).parts
        if file.suffix.lower() in suffixes and file.is_file() and not any(part[0] in "._" for part in inside):
            by_format.setdefault(suffixes[file.suffix.lower()], []).append(file)
    if len(by_format) != 1:
        held = f"files of the formats {quoted(sorted(by_format))}" if by_format else "no data file"
        raise DataFileError(f"this folder holds {held}: give a folder with files of one format")
    (files,) = by_format.values()
    return sorted(files, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in _PARTS.split(str(path)) if part]

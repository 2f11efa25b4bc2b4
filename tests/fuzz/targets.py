"""What is fuzzed: readers and loaders, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random

import numpy as np

from manyclass.cli.errors import CommandError
from manyclass.data.readers import FORMATS, DataFileError
from manyclass.fit import CheckpointError
from tests.fuzz import opened, seals, seeds
from tests.fuzz.mutations import mutated


@dataclass(frozen=True)
class Target:
    """`open` reads a file called `suffix` and checks what it gives; only `refusal` may come out of it.

    Every other damaged file is sealed: given the lengths and checksums that its content now has.
    """

    name: str
    suffix: str
    make: Callable[[], list[bytes]]
    open: Callable[[Path, Random], None]
    refusal: type[Exception] = DataFileError
    seal: Callable[[bytes], bytes] | None = None

    @cached_property
    def valid(self) -> list[bytes]:
        return self.make()

    def attempt(self, seed: int, number: int, folder: Path) -> bool:
        """Whether one damaged file was read; an error of any other kind than a refusal with a sentence is a finding."""
        rng = Random(f"{seed} {self.name} {number}")
        path = folder / f"fuzzed{self.suffix}"
        content = mutated(self.valid, rng)
        path.write_bytes(content if self.seal is None or number % 2 else self.seal(content))
        try:
            with np.errstate(all="ignore"):
                self.open(path, rng)
        except self.refusal as error:
            opened.check_refusal(error, path)
            return False
        return True


_SEALS = {"safetensors": seals.header_length}


def _rows(name: str) -> Target:
    make = partial(seeds.FILES.__getitem__, name)
    return Target(name, FORMATS[name].SUFFIXES[0], make, opened.rows, seal=_SEALS.get(name))


def _labels(name: str) -> Target:
    make = partial(seeds.LABELS.__getitem__, name)
    return Target(f"{name}-labels", FORMATS[name].SUFFIXES[0], make, opened.labels, seal=_SEALS.get(name))


def _tables(name: str) -> Target:
    make = partial(seeds.TABLES.__getitem__, name)
    return Target(f"{name}-table", FORMATS[name].SUFFIXES[0], make, opened.tables)


TARGETS = [
    *map(_rows, FORMATS),
    *map(_tables, ("csv", "parquet", "arrow", "arff")),
    *(_labels(name) for name, entry in FORMATS.items() if hasattr(entry, "read_labels")),
    Target("mulan-xml", ".xml", lambda: [seeds.XML], opened.label_names),
    Target("folder", ".json", lambda: [seeds.STATE], opened.folder),
    Target("model", ".skops", seeds.models, opened.model, CommandError),
    Target("moments", ".moments", seeds.moments, opened.moments, seal=seals.checksum_of_tensors),
    Target("class-moments", ".moments", seeds.class_moments, opened.class_moments, seal=seals.checksum_of_tensors),
    Target(
        "checkpoint", ".checkpoint", seeds.checkpoints, opened.checkpoint, CheckpointError, seals.digest_of_checkpoint
    ),
    Target("coefficients", ".safetensors", seeds.coefficients, opened.coefficients, seal=seals.header_length),
]
"""Readers and loaders; each is one line."""

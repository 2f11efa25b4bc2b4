"""What ``manyclass fit`` was asked for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyclass.cli.errors import UsageError
from manyclass.cli.inputs import DataOptions
from manyclass.cli.modelfile import Model
from manyclass.cli.output import check_writable
from manyclass.cli.scaling import check_scaling
from manyclass.data.readers import Dataset


@dataclass(frozen=True)
class FitRequest:
    """A command line of ``manyclass fit``; None leaves a parameter of the estimator at its default."""

    train: Path | None
    data: DataOptions
    test: Path | None
    test_labels: str | None
    holdout: float
    scale: str
    chunk_rows: int | None
    solver: str
    parameters: dict[str, Any]
    output: Path | None
    force: bool
    as_json: bool

    def __post_init__(self) -> None:
        if self.train is None and (self.data != DataOptions() or self.test is not None):
            raise UsageError("these options describe data files, but no file to fit was given: name it after 'fit'")
        if self.test is None and self.test_labels is not None:
            raise UsageError("--test-labels belongs to a test file: name it with --test")
        if not 0 <= self.holdout < 1:
            raise UsageError(f"--holdout is a share of the rows from 0 up to 1, not {self.holdout:g}")
        if self.chunk_rows is not None and self.train is None:
            raise UsageError("--chunk-rows reads a file in pieces: name the file after 'fit'")
        if self.chunk_rows is not None and self.solver != "pegasos":
            raise UsageError("--chunk-rows needs a solver that learns from one chunk at a time: add --solver pegasos")
        check_scaling(self.scale)
        if self.output is not None:
            check_writable(self.output, self.force)

    @property
    def name(self) -> str:
        """What messages call the rows that are fitted to."""
        return "scikit-learn's digits" if self.train is None else self.train.name

    @property
    def test_name(self) -> str:
        """What messages call the rows that the model is judged on."""
        return "held out" if self.test is None else self.test.name

    @property
    def seed(self) -> int:
        """Decides which rows are held out."""
        return self.parameters["random_state"] or 0


@dataclass(frozen=True)
class Fitted:
    """A model, how many rows of which kind it comes from, and what it is to be judged on."""

    model: Model
    n_rows: int
    kind: str
    test: Dataset | None
    seconds: dict[str, float]

import json
import resource
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path
from shutil import copy

import numpy as np
import pytest
from sklearn.datasets import load_iris

from manyclass.cli import main

Result = namedtuple("Result", "code out err")


@pytest.fixture
def run(capsys):
    """Run a command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def run_ok(run):
    def run_ok(*arguments):
        result = run(*arguments)
        assert result.code == 0, result.err
        assert result.err == ""
        return result.out

    return run_ok


@pytest.fixture
def run_json(run_ok):
    return lambda *arguments: json.loads(run_ok(*arguments, "--json"))


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versi,color", "virginica"])[y]


def as_csv(X, y, names=("sl", "sw", "pl", "pw", "kind")):
    rows = [",".join([*map(repr, map(float, row)), f'"{label}"']) for row, label in zip(X, y, strict=True)]
    return "\n".join([",".join(names), *rows]) + "\n"


@pytest.fixture
def write_csv():
    return lambda path, *table: path.write_text(as_csv(*table))


@pytest.fixture(scope="session")
def iris_files(tmp_path_factory, iris):
    """150 flowers with names that need quoting, and their model: made once, copied for each test."""
    folder = tmp_path_factory.mktemp("iris")
    (folder / "iris.csv").write_text(as_csv(*iris))
    assert (
        main(["fit", "--solver", "auto", str(folder / "iris.csv"), "--holdout", "0", "-o", str(folder / "iris.skops")])
        == 0
    )
    return folder


@pytest.fixture
def iris_csv(tmp_path, iris_files):
    return Path(copy(iris_files / "iris.csv", tmp_path))


@pytest.fixture
def iris_model(tmp_path, iris_csv, iris_files):
    return Path(copy(iris_files / "iris.skops", tmp_path))


@pytest.fixture
def full_disk():
    """No file may grow beyond so many bytes, which to a program looks as a full disk does."""

    @contextmanager
    def full_disk(n_bytes):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return full_disk

import json
from collections import namedtuple

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


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versi,color", "virginica"])[y]


@pytest.fixture
def write_csv():
    def write_csv(path, X, y, names=("sl", "sw", "pl", "pw", "kind")):
        rows = [",".join([*map(repr, map(float, row)), f'"{label}"']) for row, label in zip(X, y, strict=True)]
        path.write_text("\n".join([",".join(names), *rows]) + "\n")

    return write_csv


@pytest.fixture
def iris_csv(tmp_path, iris, write_csv):
    """150 flowers with names that need quoting."""
    path = tmp_path / "iris.csv"
    write_csv(path, *iris)
    return path


@pytest.fixture
def iris_model(tmp_path, iris_csv, run_ok):
    path = tmp_path / "iris.skops"
    run_ok("fit", iris_csv, "--holdout", 0, "-o", path)
    return path

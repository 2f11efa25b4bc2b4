import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import manyclass


def test_version_is_that_of_the_installed_package():
    assert manyclass.__version__ == version("manyclass")


def test_without_installation_there_is_no_version(monkeypatch):
    import importlib.metadata

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delitem(vars(manyclass), "__version__", raising=False)
    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert not hasattr(manyclass, "__version__")


def test_importing_the_package_imports_nothing_large():
    """Nor do estimators and diagnostics load what compiles, draws or computes elsewhere before it is used."""
    code = (
        "import sys, manyclass; print({'numpy', 'scipy', 'sklearn', 'numba', 'rich'} & set(sys.modules));"
        "[getattr(manyclass, name) for name in manyclass.__all__];"
        "of_sklearn = {f'sklearn.{name}' for name in ('calibration', 'cluster', 'datasets', 'svm')};"
        "print(({'numba', 'torch', 'dask', 'matplotlib'} | of_sklearn) & set(sys.modules));"
        "manyclass.diagnostics.spectrum; print({'matplotlib'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["set()"] * 3


def test_every_public_name_is_there():
    assert set(manyclass.__all__) == set(manyclass._PUBLIC) <= set(dir(manyclass))
    for name in manyclass.__all__:
        assert getattr(manyclass, name).__name__ == name
    assert not hasattr(manyclass, "Nothing")


def registered():
    from manyclass.curvature import CURVATURES
    from manyclass.estimators.vocabulary import LOSSES_OF
    from manyclass.solvers import SOLVERS

    yield "GLMClassifier", {*SOLVERS, *CURVATURES}
    for name, losses in LOSSES_OF.items():
        if "loss" in getattr(manyclass, name)().get_params():
            yield name, set(losses)


@pytest.mark.parametrize(("estimator", "names"), list(registered()))
def test_what_can_be_chosen_is_explained(estimator, names):
    text = getattr(manyclass, estimator).__doc__
    assert [name for name in sorted(names) if f'"{name}"' not in text] == []


def test_python_dash_m_is_the_command_line():
    result = subprocess.run(
        [sys.executable, "-m", "manyclass", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout.split()) == (0, ["manyclass", manyclass.__version__])


def test_every_public_name_is_in_the_reference():
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text()
    for module in (manyclass, manyclass.diagnostics, manyclass.export, manyclass.features, manyclass.linear_model):
        assert [name for name in module.__all__ if f"   {name}\n" not in page] == []

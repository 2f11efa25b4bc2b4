"""Shared fixtures. scikit-learn's array-API checks only run when SciPy was told before its first import.

Where there is a GPU, tensors of the tests lie on it (``MANYCLASS_DEVICE=cpu`` for those of the host).
"""

import gc
import os
import shutil

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest

DEVICE = os.environ.get("MANYCLASS_DEVICE", "cuda" if shutil.which("nvidia-smi") else "cpu")


def pytest_sessionstart():
    if DEVICE != "cpu":
        pytest.importorskip("torch").set_default_device(DEVICE)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """All that is collected stays to the end: to look through it for garbage again and again took a quarter of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Neighbouring tests in one process, which makes what they share, and compiles, once; the other takes of the rest.

    In turn, as is usual, both would do so at the same time.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def rng():
    return np.random.default_rng(0)

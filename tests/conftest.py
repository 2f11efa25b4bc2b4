"""Shared fixtures. scikit-learn's array-API checks only run when SciPy was told before its first import."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)

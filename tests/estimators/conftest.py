"""Data that the tests of several estimators share."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="session")
def divided_digits():
    """Rows to fit and to judge by, and their labels."""
    X, y = load_digits(return_X_y=True)
    return train_test_split((X / 16).astype(np.float32), y, test_size=0.4, random_state=0, stratify=y)


@pytest.fixture(scope="session")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return 10 * X, y / 100


@pytest.fixture(scope="session")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    y = np.argmax(X @ rng.standard_normal((20, 4)) + 1.5 * rng.gumbel(size=(4000, 4)), axis=1)
    return X, y


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((80, 6))
    y = np.argmax(X @ rng.standard_normal((6, 3)) + 0.3 * rng.standard_normal((80, 3)), axis=1)
    return X, np.array(["a", "b", "c"])[y]

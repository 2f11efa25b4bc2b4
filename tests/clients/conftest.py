"""Rows with a third class that is rare, a group and labels that are text, as clients meet them."""

import numpy as np
import pytest
from sklearn.datasets import make_classification


@pytest.fixture(scope="session")
def problem():
    """X, y for training and X, y for testing."""
    X, y = make_classification(
        600, 6, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, weights=[0.6, 0.3], random_state=0
    )
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture
def two_classes(problem):
    X, y, X_test, y_test = problem
    return X, np.where(y == 0, "no", "yes"), X_test, np.where(y_test == 0, "no", "yes")

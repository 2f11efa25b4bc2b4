import numpy as np
import pytest

from tests.execution.parts import D, K, N


@pytest.fixture(scope="package")
def client():
    """Two workers in this process: what one of them holds the other has to fetch."""
    distributed = pytest.importorskip("distributed", reason="needs manyclass[dask]")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="package")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * np.logspace(-1, 1, D)
    y = np.argmax(X @ rng.standard_normal((D, K)) + rng.gumbel(size=(N, K)), axis=1)
    return X, y, rng.integers(0, 3, N).astype(float)

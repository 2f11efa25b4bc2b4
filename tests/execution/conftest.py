import pytest


@pytest.fixture(scope="package")
def client():
    """Two workers in this process: what one of them holds the other has to fetch."""
    distributed = pytest.importorskip("distributed", reason="needs manyclass[dask]")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client

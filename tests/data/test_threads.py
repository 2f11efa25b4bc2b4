"""Threads of the libraries that multiply matrices."""

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from manyclass import GLMClassifier
from manyclass.data import factor, threads


def counts() -> dict[str, int]:
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2):
        if max(counts().values()) < 2:
            pytest.skip("a BLAS built for one thread")
        yield


def test_small_factors_take_one_thread_of_scipy_and_leave_those_of_numpy():
    before = counts()
    with threads.factor_threads(1e6):
        inside = counts()
    assert counts() == before
    if len(before) > 1:
        assert sorted(inside.values()) == [1, *sorted(before.values())[1:]]
    with threads.factor_threads(1e12):
        assert counts() == before


def test_small_calls_of_scipy_in_a_fit_take_one_thread(monkeypatch):
    """Threads that spin after SciPy's calls took half the time of a fit whose products are NumPy's."""
    if len(counts()) == 1:
        pytest.skip("NumPy and SciPy share one BLAS")
    seen = {"cholesky": [], "trsm": []}

    def watched(name, function):
        def call(*given, **options):
            seen[name].append(min(counts().values()))
            return function(*given, **options)

        return call

    found = factor.get_blas_funcs
    monkeypatch.setattr(scipy.linalg, "cholesky", watched("cholesky", scipy.linalg.cholesky))
    monkeypatch.setattr(factor, "get_blas_funcs", lambda name, arrays: watched(name, found(name, arrays)))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 60)), rng.integers(0, 20, 3000)
    GLMClassifier(solver="quasi-newton", curvature="kronecker").fit(X, y)
    assert {name: set(threads) for name, threads in seen.items()} == {"cholesky": {1}, "trsm": {1}}
    assert min(counts().values()) == 2


@pytest.mark.parametrize("n_waiting", [0.0, 3.0])
def test_products_that_take_as_long_as_a_core_is_lent_for_take_one_thread_where_others_wait(monkeypatch, n_waiting):
    """They took up to ten times as long on two threads, of which one hardly ever had a core."""
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (threads.os.cpu_count() + n_waiting, 0.0, 0.0), raising=False)
    assert threads.threads_for(threads.SMALL_PRODUCT) == 1
    assert threads.threads_for(threads.SLICE) == (1 if n_waiting else None)
    assert threads.threads_for(2.0 * threads.SLICE) is None

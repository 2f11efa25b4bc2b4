import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's own")


@pytest.fixture
def global_random_seed():
    return 42

import pytest

from tests.sklearn_suite.skipped import reason


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's own")


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if "sklearn_suite" in item.nodeid and reason(item.name)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


@pytest.fixture
def global_random_seed():
    return 42

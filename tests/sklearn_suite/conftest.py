import pytest

from tests.sklearn_suite.skipped import reason


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's own")


def pytest_collection_modifyitems(items):
    for item in items:
        if "sklearn_suite" in item.nodeid and (why := reason(item.name)):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def global_random_seed():
    return 42

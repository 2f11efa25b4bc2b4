import pytest

from manyclass.estimators.automatic import candidates, rounds


@pytest.fixture
def few(monkeypatch):
    """Candidates of which all can be fitted again and again."""
    monkeypatch.setattr(candidates, "PENALTIES", (1e-1, 1e-3))
    monkeypatch.setattr(candidates, "BANDWIDTHS", (1.0,))
    monkeypatch.setattr(candidates, "MOST_FEATURES", 64)
    monkeypatch.setattr(candidates, "FEWEST_FEATURES", 64)
    monkeypatch.setattr(rounds, "FOLDS", 2)

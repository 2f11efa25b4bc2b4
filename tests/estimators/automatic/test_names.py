"""Names of columns."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from manyclass import AutoClassifier
from manyclass.estimators.automatic import candidates
from manyclass.estimators.automatic.scalings import STEPS


def frame(kind, rng):
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((400, 2))
    if kind == "uneven":
        X[:, 1] *= 1e3
    y = X[:, 0] > 0
    if kind == STEPS:
        X = np.exp(3.0 * X)
        y = np.floor(np.log(X[:, 0])) % 2 == 0
    return pandas.DataFrame(X, columns=["age", "income"]), np.where(y, "a", "b")


@pytest.mark.parametrize("kind", ["even", "uneven", STEPS])
def test_the_estimator_that_is_found_knows_the_columns_by_name(few, rng, kind, monkeypatch):
    monkeypatch.setattr(candidates, "OF_STEPS", (1e-3,))
    X, y = frame(kind, rng)
    model = AutoClassifier(random_state=0).fit(X, y)
    found = model.best_estimator_
    assert list(found.feature_names_in_) == ["age", "income"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.predict_proba(X), found.predict_proba(X), atol=1e-5)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(X.rename(columns={"age": "years"}))
    if kind == STEPS:
        assert isinstance(found, Pipeline)
        assert found[0].get_feature_names_out()[0].startswith("age > ")

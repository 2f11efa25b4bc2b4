"""What a release promises: names that stay, and files that load."""

import numpy as np
import pytest

import manyclass
from manyclass import linear_model
from tests.release.api import SNAPSHOT, lines
from tests.release.stored import FOLDER, models, read, rows, values_of

STORED = sorted(FOLDER.glob("*/*.skops"))


def test_the_public_api_changes_only_when_announced():
    before, now = set(SNAPSHOT.read_text().splitlines()), set(lines())
    assert before == now, (
        f"gone: {sorted(before - now)}; new: {sorted(now - before)}. If this is meant, run `python -m tests.release "
        "api`, and say so in CHANGELOG.md; what was released goes only after a deprecation (CONTRIBUTING.md)."
    )


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_models_of_earlier_versions_load_and_predict_the_same(path):
    model = read(path)
    X, y = rows()
    with np.load(path.parent / "values.npz") as expected:
        np.testing.assert_allclose(values_of(model, X), expected[path.stem], rtol=1e-6, atol=1e-6)
    assert "status_" not in vars(model) or str(model.status_)
    if path.stem.endswith("streamed"):
        model.partial_fit(X, y)


def test_every_estimator_has_a_stored_model():
    kinds = {getattr(manyclass, name) for name in manyclass.__all__} | {
        getattr(linear_model, name) for name in linear_model.__all__
    }
    estimators = {kind.__name__ for kind in kinds if hasattr(kind, "fit")}
    assert estimators == {type(model).__name__ for model in models().values()}
    assert {path.stem for path in STORED} == set(models())

"""Coefficients in a file, and the description of what becomes of scores."""

import json

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris, load_wine

import manyclass
from manyclass import export
from manyclass.data.readers import DataFileError


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_are_as_they_were_written_or_refused(tmp_path, n_classes, fit_intercept):
    from safetensors.numpy import save_file

    path = tmp_path / "model.safetensors"
    X, y = load_iris(return_X_y=True)
    model = manyclass.GLMClassifier(fit_intercept=fit_intercept).fit(X, np.minimum(y, n_classes - 1))
    export.save_coefficients(model, path)
    arrays, description = export.load_coefficients(path)
    assert len(arrays["coef"]) == len(arrays["intercept"])
    content, told = path.read_bytes(), {"description": json.dumps(description)}
    for damaged in (content[:-1], b"", content.replace(b'"coef"', b'"coof"')):
        path.write_bytes(damaged)
        with pytest.raises(DataFileError, match=f"^{path}"):
            export.load_coefficients(path)
    for other, about in (
        ({**arrays, "coef": arrays["coef"][:, 0]}, told),
        ({**arrays, "intercept": arrays["intercept"][:0]}, told),
        ({**arrays, "coef": np.ones(arrays["coef"].shape, dtype=np.int64)}, told),
        (arrays, {"description": "[]"}),
        (arrays, None),
    ):
        save_file(other, path, metadata=about)
        with pytest.raises(DataFileError, match="it holds no coefficients"):
            export.load_coefficients(path)


def test_a_description_names_a_link_that_least_squares_has_learned(tmp_path):
    X, y = load_wine(return_X_y=True)
    model = manyclass.CalibratedLeastSquaresClassifier().fit(X, y)
    export.save_coefficients(model, tmp_path / "model")
    arrays, told = export.load_coefficients(tmp_path / "model")
    assert told["link"] == "softmax"
    Z = (X @ arrays["coef"].T + arrays["intercept"]) / told["temperature"]
    np.testing.assert_allclose(softmax(Z, axis=1), model.predict_proba(X), atol=1e-9)

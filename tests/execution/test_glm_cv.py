"""The path of penalties of the squared loss, from the moments of parts."""

import numpy as np
import pytest

from manyclass import GLMClassifierCV
from tests.execution.parts import N, fit_parts


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("per_output", [False, True])
def test_generalised_cross_validation_is_that_of_one_machine(data, per_output, wide, rng):
    X, y, weight = data
    X = np.hstack([X, rng.standard_normal((N, N))]) if wide else X  # more features than rows
    model = GLMClassifierCV(loss="squared", cv="gcv", alphas=7, alpha_per_output=per_output)
    one = GLMClassifierCV(**model.get_params()).fit(X, y, weight)
    found = fit_parts(model, X, y, weight)
    np.testing.assert_allclose(found.alphas_, one.alphas_, rtol=1e-10)
    np.testing.assert_allclose(found.scores_, one.scores_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.coef_, one.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, one.intercept_, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"cv": 5}, {"loss": "softmax"}, {"cv": "gcv", "leave_one_out": True}])
def test_what_needs_single_rows_is_refused(data, options):
    X, y, _ = data
    with pytest.raises(ValueError, match="cv='gcv'"):
        fit_parts(GLMClassifierCV(**({"loss": "squared"} | options)), X, y)

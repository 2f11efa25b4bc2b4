"""Spectra and response correlations against NumPy's eigh, and what must not change them."""

import numpy as np
import pytest
import scipy.sparse as sp

import manyclass
from manyclass.diagnostics import condition_number, effective_dimension, response_correlation, spectra, spectrum


def data(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(1, -1, d) + np.linspace(-3, 3, d)
    X[rng.random((n, d)) < 0.3] = 0.0
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def by_eigh(X, y, center=True):
    """λ and c²/λ² from the definitions, in the order of λ."""
    if center:
        X, y = X - X.mean(axis=0), y - y.mean()
    y = y / np.sqrt(np.mean(y**2))
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    kept = values > 1e-12 * values.max()
    values, Z = values[kept][::-1], (X @ vectors[:, kept])[:, ::-1]
    return values, (y @ Z / len(X)) ** 2 / values**2


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(80, 6), (6, 80), (40, 40)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_agrees_with_eigh(shape, center, make):
    X, y = data(*shape)
    values, bound = by_eigh(X, y, center)
    found = response_correlation(make(X), y, center=center)
    assert found.spectrum.is_complete
    np.testing.assert_allclose(found.eigenvalues, values, rtol=1e-8)
    np.testing.assert_allclose(found.boundedness[:, 0], bound, rtol=1e-6, atol=1e-12 * bound.max())
    assert found.tau == pytest.approx(bound.max(), rel=1e-6)
    assert found.spectrum.total_variance == pytest.approx(values.sum())
    assert found.spectrum.condition_number() == pytest.approx(values[0] / values[-1], rel=1e-6)
    np.testing.assert_allclose(found.spectrum.components @ found.spectrum.components.T, np.eye(len(values)), atol=1e-6)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_leading_part_agrees_with_the_whole(monkeypatch, center, make):
    X, y = data(60, 30)
    whole = response_correlation(make(X), y, center=center)
    monkeypatch.setattr(spectra, "EXACT_SIZE", 10)
    part = response_correlation(make(X), y, center=center, n_components=8)
    assert not part.spectrum.is_complete and part.spectrum.n_components == 8
    np.testing.assert_allclose(part.eigenvalues, whole.eigenvalues[:8], rtol=1e-8)
    np.testing.assert_allclose(part.boundedness, whole.boundedness[:8], rtol=1e-5, atol=1e-10)
    assert part.spectrum.total_variance == pytest.approx(whole.spectrum.total_variance)
    assert part.spectrum.condition_number() <= whole.spectrum.condition_number()
    for alpha in (1e-3, 1.0, 100.0):
        assert part.spectrum.effective_dimension(alpha) >= whole.spectrum.effective_dimension(alpha) * (1 - 1e-12)


@pytest.mark.parametrize("center", [True, False])
def test_numbers_of_a_matrix_are_those_of_its_spectrum(center):
    X = data()[0] + 100.0
    X = X[:, np.ptp(X, axis=0) > 0]
    values = np.linalg.eigvalsh((X - X.mean(axis=0) * center).T @ (X - X.mean(axis=0) * center) / len(X))
    assert condition_number(X, center=center) == pytest.approx(values[-1] / values[0], rel=1e-5)
    expected = np.sum(values / (values + 10.0))
    assert effective_dimension(X, 10.0, center=center) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("exact", [True, False])
def test_what_leading_eigenvalues_say_bounds_what_all_say(monkeypatch, exact):
    X = np.random.default_rng(0).standard_normal((60, 30))
    whole = spectrum(X)
    if not exact:
        monkeypatch.setattr(spectra, "EXACT_SIZE", 10)
    part = spectrum(X, n_components=5)
    assert whole.is_complete and not part.is_complete
    np.testing.assert_allclose(part.eigenvalues, whole.eigenvalues[:5])
    for alpha in (1e-3, 0.1, 10.0):
        assert part.condition_number(alpha) <= whole.condition_number(alpha) * (1 + 1e-9)
        assert part.effective_dimension(alpha) >= whole.effective_dimension(alpha) * (1 - 1e-9)


def test_fewer_rows_than_columns_have_no_more_directions_than_rows(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 300))
    monkeypatch.setattr(spectra, "EXACT_SIZE", 10)
    assert 29 - 1e-6 <= spectrum(X, n_components=5).effective_dimension(1e-9) <= 30


def test_what_does_not_change_tau_and_what_scales_it(rng):
    X, y = data()
    tau = response_correlation(X, y).tau
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert response_correlation(X @ rotation, y).tau == pytest.approx(tau, rel=1e-6)
    assert response_correlation(X + 5, 3 * y - 2).tau == pytest.approx(tau, rel=1e-6)
    assert response_correlation(np.repeat(X, 2, axis=0), np.repeat(y, 2)).tau == pytest.approx(tau, rel=1e-6)
    order = rng.permutation(len(y))
    assert response_correlation(X[order], y[order]).tau == pytest.approx(tau, rel=1e-6)
    assert response_correlation(10 * X, y).tau == pytest.approx(tau / 100, rel=1e-6)
    assert response_correlation(X, 3 * y, unit_variance=False).tau == pytest.approx(9 * tau * y.var(), rel=1e-6)


def test_shares_of_the_variance_add_up_to_that_of_least_squares():
    X, y = data()
    fitted = np.column_stack([X, np.ones(len(y))])
    left = y - fitted @ np.linalg.lstsq(fitted, y)[0]
    assert response_correlation(X, y).rho_squared.sum() == pytest.approx(1 - left.var() / y.var())


def test_classes_are_signs_or_indicators():
    X, y = data()
    two, three = np.where(y > 0, "yes", "no"), np.digitize(y, [-1, 1])
    assert response_correlation(X, two).tau == pytest.approx(response_correlation(X, np.sign(y) + 0.0).tau)
    found = response_correlation(X, three)
    assert found.boundedness.shape == (6, 3)
    each = [response_correlation(X, three == j).tau for j in range(3)]
    np.testing.assert_allclose(found.tau_per_response, each, rtol=1e-6)
    assert found.tau == pytest.approx(max(each))
    assert response_correlation(X, np.eye(3)[three]).tau == pytest.approx(found.tau)


def test_effective_dimension_counts_directions():
    X, _ = data()
    assert effective_dimension(X, 1e-12) == pytest.approx(6)
    assert effective_dimension(X, 1e12) == pytest.approx(0, abs=1e-8)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    assert effective_dimension(X, 0.3) == pytest.approx(np.sum(values / (values + 0.3)))
    assert condition_number(X, 0.3) == pytest.approx((values[-1] + 0.3) / (values[0] + 0.3))
    deficient = np.hstack([X, X[:, :1], np.ones((len(X), 1))])
    assert spectrum(deficient).n_components == 6
    assert condition_number(deficient) < 1e6
    assert condition_number(deficient, 0.1) == pytest.approx(spectrum(deficient).eigenvalues[0] / 0.1 + 1)


def test_rows_that_do_not_vary():
    found = response_correlation(np.ones((5, 3)), np.arange(5.0) + 0.5)
    assert found.tau == 0 and found.spectrum.n_components == 0
    assert found.spectrum.condition_number() == 1 and found.spectrum.effective_dimension(1.0) == 0


def test_float32_rows_are_summed_in_float64():
    X, y = data(n=500)
    X = X.astype(np.float32)
    a, b = response_correlation(X, y), response_correlation(X.astype(np.float64), y)
    np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, rtol=1e-8)
    assert a.tau == pytest.approx(b.tau, rel=1e-5)


def test_errors_say_what_to_do():
    X, y = data()
    with pytest.raises(ValueError, match="one response per row"):
        response_correlation(X, y[:-1])
    with pytest.raises(ValueError, match="leave it out"):
        spectrum(X, n_components=0)
    with pytest.raises(ValueError, match="NaN"):
        spectrum(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="requires y"):
        response_correlation(X, None)
    with pytest.raises(ValueError, match="must be ≥ 0"):
        spectrum(X).condition_number(-1.0)
    with pytest.raises(ValueError, match="must be > 0"):
        spectrum(X).effective_dimension(0.0)


def test_is_public():
    assert manyclass.diagnostics.response_correlation is response_correlation


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 10.0), (np.float32, 1e4), (np.float64, 1e10)])
def test_few_rows_away_from_the_origin_have_no_false_direction(dtype, offset):
    """Which would be what rounding leaves of their mean."""
    X = np.random.default_rng(0).standard_normal((20, 50))
    near, far = (spectrum(given) for given in (X, (X + offset).astype(dtype)))
    assert far.n_components == near.n_components == 19
    assert far.condition_number() == pytest.approx(near.condition_number(), rel=1e-2)


def test_the_variance_of_wide_rows_away_from_the_origin_is_theirs(monkeypatch):
    monkeypatch.setattr(spectra, "EXACT_SIZE", 10)
    X = np.random.default_rng(0).standard_normal((300, 40))
    near, far = (spectrum(given, n_components=5) for given in (X, (X + 1e4).astype(np.float32)))
    assert far.total_variance == pytest.approx(near.total_variance, rel=1e-2)

"""Leave-one-out and generalised cross-validation along a path of penalties, against what they stand for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from manyclass.data import MatrixTargets, as_rows
from manyclass.data.penalty import ALIKE, RidgeSpectrum, best, path_of_rows, penalties, usual_scale
from manyclass.model import SMOOTH_LOSSES, Problem


def problem(n=14, d=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0
    Y = (rng.random((n, k)) < 0.4).astype(float)  # several labels at once
    return X, Y, 0.9 * rng.random(n) + 0.05


def effective_rows(weight):
    rows = as_rows(np.ones((len(weight), 1)))
    return Problem(rows, MatrixTargets(np.ones((len(weight), 1))), SMOOTH_LOSSES["squared"], 1.0).effective_rows(weight)


def ridge(X, Y, weight, penalty, fit_intercept):
    A = np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X
    P = penalty * np.eye(A.shape[1])
    P[X.shape[1] :, X.shape[1] :] = 0.0
    return lambda T: (
        (np.hstack([T, np.ones((len(T), 1))]) if fit_intercept else T)
        @ np.linalg.solve(A.T @ (weight[:, None] * A) + P, A.T @ (weight[:, None] * Y))
    )


def spectrum(X, Y, weight, fit_intercept):
    S = weight.sum()
    center, mean = (weight @ X / S, weight @ Y / S) if fit_intercept else (0.0, 0.0)
    A, R = X - center, Y - mean
    eigenvalues, vectors = np.linalg.eigh(A.T @ (weight[:, None] * A) / S)
    Z = A @ vectors
    return RidgeSpectrum(eigenvalues, Z.T @ (weight[:, None] * R) / S, S, fit_intercept), Z, R


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(14, 5), (6, 9)])
@pytest.mark.parametrize("weighted", [True, False])
def test_leave_one_out_is_n_refits(fit_intercept, shape, weighted):
    X, Y, weight = problem(*shape)
    s = weight if weighted else np.ones(len(X))
    path, Z, R = spectrum(X, Y, s, fit_intercept)
    alphas = np.array([1e-3, 0.1, 2.0])
    halves = [(Z[part], R[part], s[part] if weighted else None) for part in (slice(0, 4), slice(4, None))]
    errors = path.leave_one_out(alphas, halves)
    for alpha, found in zip(alphas, errors, strict=True):
        expected = np.zeros(Y.shape[1])
        for i in range(len(X)):
            kept = np.arange(len(X)) != i
            fit = ridge(X[kept], Y[kept], s[kept], alpha * s.sum(), fit_intercept)
            expected += s[i] * (Y[i] - fit(X[i : i + 1])[0]) ** 2
        assert_allclose(found, expected / s.sum(), rtol=1e-8)


def test_a_weight_of_copies_leaves_out_one_of_them():
    X, Y, _ = problem()
    weight = np.arange(len(X)) % 3 + 1.0
    repeat = weight.astype(int)
    alphas = np.logspace(-3, 1, 4)
    weighted, Z, R = spectrum(X, Y, weight, True)
    copied, ZZ, RR = spectrum(np.repeat(X, repeat, axis=0), np.repeat(Y, repeat, axis=0), np.ones(repeat.sum()), True)
    expected = copied.leave_one_out(alphas, [(ZZ, RR, None)])
    assert_allclose(weighted.leave_one_out(alphas, [(Z, R, weight)]), expected, rtol=1e-9)
    assert effective_rows(weight) == pytest.approx(repeat.sum())
    assert effective_rows(np.full(7, 0.2)) == pytest.approx(7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_generalised_cross_validation_is_one_fit_for_each_alpha(fit_intercept):
    X, Y, _ = problem(30)
    s = np.ones(len(X))
    path, _, R = spectrum(X, Y, s, fit_intercept)
    alphas = np.logspace(-4, 1, 5)
    errors = path.generalised_cross_validation(alphas, np.mean(R**2, axis=0), len(X))
    for alpha, found in zip(alphas, errors, strict=True):
        hat = ridge(X, np.eye(len(X)), s, alpha * len(X), fit_intercept)(X)
        residual = np.mean((Y - hat @ Y) ** 2, axis=0)
        assert_allclose(found, residual / (1.0 - np.trace(hat) / len(X)) ** 2, rtol=1e-8)


def test_with_many_rows_both_agree():
    X, Y, weight = problem(2000)
    path, Z, R = spectrum(X, Y, weight, True)
    alphas = path.grid()
    squares = weight @ R**2 / weight.sum()
    one = path.generalised_cross_validation(alphas, squares, effective_rows(weight))
    assert_allclose(one, path.leave_one_out(alphas, [(Z, R, weight)]), rtol=1e-2)


def test_the_best_is_the_largest_of_those_as_good_as_the_least():
    alphas = np.array([1e-3, 1.0, 1e-1, 1e-2])
    errors = np.array([[1.0, 4.0], [2.0, 1.0], [1.0 + 0.5 * ALIKE, 3.0], [1.0, 2.0]])
    assert [best(alphas, errors[:, [output]]) for output in (0, 1)] == [1e-1, 1.0]
    assert best(alphas, errors) == 1.0
    assert best(alphas, 1.0 + 1e-15 * errors) == 1.0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coefficients_without_a_few_rows_are_those_of_a_fit_to_the_others(rng, fit_intercept):
    X, Y, few, alpha = rng.standard_normal((60, 5)), rng.standard_normal((60, 2)), slice(0, 7), 0.1
    origin, mean = (X.mean(axis=0), Y.mean(axis=0)) if fit_intercept else (np.zeros(5), np.zeros(2))
    Z, R = X - origin, Y - mean
    eigenvalues, vectors = np.linalg.eigh(Z.T @ Z / 60)
    path = RidgeSpectrum(eigenvalues, vectors.T @ Z.T @ R / 60, 60.0, fit_intercept)
    coef, intercept = path.coefficients_without(alpha, Z[few] @ vectors, R[few])
    others = Ridge(60 * alpha, fit_intercept=fit_intercept).fit(X[7:], Y[7:])
    assert_allclose(Z @ vectors @ coef + intercept + mean, others.predict(X), atol=1e-7)


def left_out_one_by_one(X, R, weight, alphas):
    """Mean squared errors of exact models without a row, or one of its copies, in float64."""
    n, S, errors = len(X), weight.sum(), np.zeros(len(alphas))
    for i in range(n):
        s = weight - np.minimum(weight, 1.0) * (np.arange(n) == i)
        center, mean = s @ X / s.sum(), s @ R / s.sum()
        U, lengths, V = np.linalg.svd(np.sqrt(s)[:, None] * (X - center), full_matrices=False)
        along, ahead = U.T @ (np.sqrt(s)[:, None] * (R - mean)), V @ (X[i] - center)
        for place, alpha in enumerate(alphas):
            predicted = mean + ahead * lengths / (lengths**2 + S * alpha) @ along
            errors[place] += weight[i] * float((R[i] - predicted)[0]) ** 2 / S
    return errors


KINDS = {
    "plain": lambda X, rng: X,
    "far": lambda X, rng: X + 30.0,
    "decaying": lambda X, rng: X * np.arange(1.0, X.shape[1] + 1.0) ** -1.5,
    "of all sizes": lambda X, rng: X * 10.0 ** rng.uniform(-3.0, 3.0, X.shape[1]),
    "in pairs": lambda X, rng: np.repeat(X[::2], 2, axis=0),
    "some with a column of their own": lambda X, rng: np.hstack([X[:, :5], np.eye(len(X))[:, : len(X) // 2]]),
    "waves": lambda X, rng: np.cos(X[:, :2] @ rng.standard_normal((2, X.shape[1])) + rng.uniform(0, 6, X.shape[1])),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [8, 40, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_penalties_are_ranked_as_by_leaving_rows_out_one_by_one(kind, d, weighted):
    """In float32, too, in which errors of tiny penalties may be those of larger ones."""
    rng = np.random.default_rng(d)
    X = KINDS[kind](rng.standard_normal((40, d)), rng).astype(np.float32)
    R = X[:, :1] / X[:, 0].std() + 0.7 * rng.standard_normal((40, 1))
    weight = rng.uniform(0.3, 3.0, 40)
    for rows in (X, X.astype(np.float64)):
        alphas, errors, _ = path_of_rows(as_rows(rows), R, weight if weighted else None)
        some, s = alphas[::4], weight if weighted else np.ones(40)
        expected = left_out_one_by_one(X.astype(np.float64), R, s, [*some, best(alphas, errors)])
        assert_allclose(errors[::4, 0], expected[:-1], rtol=0.3 if rows is X else 1e-4)
        assert expected[-1] < 1.05 * expected[:-1].min()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-12, 1e-6])
def test_one_row_that_alone_is_interpolated_is_left_out(fit_intercept, alpha):
    rng = np.random.default_rng(1)
    X, Y = np.column_stack([rng.standard_normal((30, 4)), np.eye(30)[:, 0]]), rng.standard_normal((30, 2))
    path, Z, R = spectrum(X, Y, np.ones(30), fit_intercept)
    others = ridge(X[1:, :4], Y[1:], np.ones(29), 30 * alpha, fit_intercept)
    ((_, error, _),) = path.left_out_errors(np.array([alpha]), [(Z, R, None)])
    assert_allclose(error[0], Y[0] - others(X[:1, :4])[0], rtol=1e-3)


@pytest.mark.parametrize(("largest", "n", "n_expected"), [(3e3, 9, 9), (9e5, 9, 11), (9e5, 1, 1)])
def test_a_grid_goes_on_where_the_mean_variance_is_far_above_the_median(largest, n, n_expected):
    variances = np.array([0.0, largest, *np.ones(98), 0.0])
    alphas = penalties(n, lambda: variances)
    assert len(alphas) == n_expected and alphas[0] == pytest.approx(variances.sum())
    assert_allclose(alphas[1:] / alphas[:-1], 0.1)


def test_a_grid_goes_on_where_it_begins_far_above_most_rows(rng):
    X = rng.standard_normal((400, 5))
    X[7] = 1e5
    usual = usual_scale(as_rows(X))
    alphas = penalties(9, lambda: X.var(axis=0), lambda: usual)
    assert 2 * 100 * 5 > usual > 100 and alphas[0] == pytest.approx(X.var(axis=0).sum())
    assert alphas[-1] < 1e-6 * usual and penalties(9, lambda: X[1:7].var(axis=0), lambda: usual).size == 9


def test_penalties_of_rows_in_float32_are_the_first_of_those_in_float64(rng):
    path, *_ = spectrum(rng.standard_normal((30, 4)), rng.standard_normal((30, 2)), np.ones(30), True)
    wide, narrow = path.grid(2.2e-16), path.grid(1.2e-7)
    assert 10 < len(narrow) < len(wide)
    assert_allclose(wide[: len(narrow)], narrow)
    scale = float(np.maximum(path.eigenvalues, 0.0).sum())
    assert 1.2e-7 <= narrow[-1] / scale < 4 * 1.2e-7  # the next, half a power of ten below, is lost in rounding


def test_scales_are_of_small_columns_and_of_rows_that_are_not_zero():
    assert len(penalties(10, lambda: np.r_[[1e-6] * 3, np.ones(5)])) > 10
    X = np.zeros((9, 2))
    X[0] = 1.0
    assert usual_scale(as_rows(X)) == np.inf

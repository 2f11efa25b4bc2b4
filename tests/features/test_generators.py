from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import _get_check_estimator_ids

from manyclass.features import (
    FeatureGenerator,
    FeatureSubset,
    ImagePatches,
    Landmarks,
    RandomFourierFeatures,
    RandomPolynomials,
    RandomUnits,
    TableEncoder,
    ThermometerEncoder,
    median_squared_distance,
)
from manyclass.features.base import affordable_rows, response_columns
from tests.checks import OF_NUMBERS, WEIGHT_CHECKS, checks

GENERATORS = [
    RandomFourierFeatures(20, random_state=0),
    RandomUnits(20, random_state=0),
    RandomUnits(20, activation="relu", random_state=0),
    RandomPolynomials(20, random_state=0),
    FeatureSubset(3),
    FeatureSubset(3, order="gradient"),
    FeatureSubset(3, order="random", random_state=0),
    Landmarks(4, random_state=0),
    ImagePatches(8, patch_size=2, n_patches=60, random_state=0),
    ImagePatches(16, patch_size=2, n_patches=60, kind="kmeans", polynomial=2, random_state=0),
    ImagePatches(16, patch_size=2, n_patches=60, overlap=1, mirror="even", keep=True, random_state=0),
    RandomFourierFeatures(20, metric="learned", random_state=0),
]


ANY_ROWS = [generator for generator in GENERATORS if not isinstance(generator, ImagePatches)]
"""Those that compute with rows of other array libraries."""
WHOLE = [GENERATORS[at] for at in (0, 8)]
"""One for each way that input is checked."""
OF_EACH_KIND = [GENERATORS[at] for at in (1, 3, 4, 5, 7, 11)]
"""Those that differ from them in the numbers they compute alone."""
ANY_NORM = [generator for generator in GENERATORS if not isinstance(generator, FeatureSubset)]
"""Those that do not leave columns as they are."""
TAKES_SPARSE = [generator for generator in GENERATORS if get_tags(generator).input_tags.sparse]


def test_every_public_generator_is_among_them():
    import manyclass.features as room

    others = {FeatureGenerator, TableEncoder, ThermometerEncoder, median_squared_distance}
    public = {getattr(room, name) for name in room.__all__} - others
    assert {type(generator) for generator in GENERATORS} == public


def expected_failures(estimator):
    if isinstance(estimator, ImagePatches):
        why = "whitening and k-means are learned from patches of the rows as given, whatever their weights"
        return {"check_sample_weight_equivalence_on_dense_data": why}
    if isinstance(estimator, Landmarks):
        return dict.fromkeys(WEIGHT_CHECKS, "a repeated row is drawn more often")
    return {}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        case
        for generators, which in ((WHOLE, None), (OF_EACH_KIND, OF_NUMBERS))
        for generator in generators
        for case in checks(generator, expected_failures(generator), which=which)
    ],
    ids=_get_check_estimator_ids,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rows(n=60, d=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def kernel_error(Z, K):
    """Largest deviation in units of the standard error of a mean of p products, each at most 2 in size."""
    return np.abs(Z @ Z.T - K).max() * np.sqrt(Z.shape[1])


@pytest.mark.parametrize("bandwidth", [0.5, 2.0, 10.0])
def test_fourier_features_approximate_the_gaussian_kernel(bandwidth):
    X = rows()
    Z = RandomFourierFeatures(40_000, bandwidth=bandwidth, random_state=0).fit_transform(X)
    K = np.exp(-euclidean_distances(X, squared=True) / bandwidth)
    assert kernel_error(Z, K) < 6.0
    # A bandwidth that is off by a tenth is found out: the test before would see it.
    wrong = np.exp(-euclidean_distances(X, squared=True) / (1.1 * bandwidth))
    assert kernel_error(Z, wrong) > 1.2 * kernel_error(Z, K)
    # Averaged over pairs, the error in the logarithm of the bandwidth is much smaller still.
    near = (K > 0.2) & (K < 0.9)
    fitted = (-euclidean_distances(X, squared=True)[near]).sum() / np.log((Z @ Z.T)[near]).sum()
    assert fitted == pytest.approx(bandwidth, rel=0.02)


def test_fourier_features_shrink_their_error_as_one_over_root_p():
    X = rows()
    K = rbf_kernel(X, gamma=0.5)
    errors = []
    for p in (1000, 64_000):
        drawn = [RandomFourierFeatures(p, bandwidth=2.0, random_state=seed).fit_transform(X) for seed in range(3)]
        errors.append(np.mean([np.mean((Z @ Z.T - K) ** 2) for Z in drawn]))
    assert errors[0] / errors[1] == pytest.approx(64, rel=0.5)


def test_median_bandwidth_is_the_median_of_the_squared_distance():
    X = rows(200)
    squared = euclidean_distances(X, squared=True)[np.triu_indices(200, 1)]
    median = np.median(squared)
    assert RandomFourierFeatures(5).fit(X).bandwidth_ == pytest.approx(median, rel=1e-3)
    assert RandomFourierFeatures(5).fit(7.0 * X).bandwidth_ == pytest.approx(49 * median, rel=1e-3)
    assert median_squared_distance(sp.csr_array(X)) == pytest.approx(median, rel=1e-3)


def test_fourier_features_of_columns_in_their_own_units_are_those_of_standardized_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) * [1e-3, 1.0, 10.0, 0.0] + [0.0, 1.0, 5.0, 2.0]
    weight = rng.integers(1, 4, 200)
    repeated = np.repeat(X, weight, axis=0)
    scaled = (X - repeated.mean(axis=0)) / [*repeated[:, :3].std(axis=0), 1.0]
    found = RandomFourierFeatures(20_000, standardize=True, random_state=0).fit(X, sample_weight=weight)
    kernel = rbf_kernel(scaled, gamma=1.0 / found.bandwidth_)
    Z = found.transform(X)
    assert_allclose(Z @ Z.T, kernel, atol=0.05)
    assert found.bandwidth_ == pytest.approx(RandomFourierFeatures().fit(scaled, sample_weight=weight).bandwidth_)


def test_a_metric_is_of_rows_in_units_of_their_columns():
    X = rows(60, 3) * [1e-3, 1.0, 100.0]
    L = np.random.default_rng(1).standard_normal((3, 2))
    generator = RandomFourierFeatures(20_000, metric=L, bandwidth=2.0, standardize=True, random_state=0)
    Z = generator.fit_transform(X)
    assert_allclose(Z @ Z.T, rbf_kernel(X / X.std(axis=0) @ L, gamma=0.5), atol=0.06)


def test_median_from_a_sample_of_many_rows_is_close():
    X = rows(20_000, 10, 3)
    assert median_squared_distance(X) == pytest.approx(18.68, rel=0.05)  # 2·χ²₁₀ has median 2·9.342


def test_median_takes_lists_and_frames_and_refuses_weights_of_other_rows():
    X = [[0.0], [1.0], [3.0]]
    assert median_squared_distance(X) == median_squared_distance(pytest.importorskip("pandas").DataFrame(X)) == 4.0
    with pytest.raises(ValueError, match=r"expected \(3,\)"):
        median_squared_distance(X, [1.0, 2.0])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_median_of_distances_that_no_number_holds_is_refused(size):
    with pytest.raises(ValueError, match="beyond float64; scale the columns"):
        median_squared_distance([[0.0], [size]])


def test_median_knows_weights_and_ignores_repetition():
    X = rows(30)
    weight = np.random.default_rng(1).integers(0, 4, 30)
    repeated = np.repeat(X, weight, axis=0)
    assert median_squared_distance(X, weight) == pytest.approx(median_squared_distance(repeated), rel=1e-12)
    assert median_squared_distance(np.ones((4, 3))) == 1.0
    assert median_squared_distance(1e30 * X) == pytest.approx(1e60 * median_squared_distance(X), rel=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomials_approximate_the_polynomial_kernel(degree):
    X = rows(40, 4)
    Z = RandomPolynomials(200_000, degree=degree, gamma=0.3, coef0=0.5, random_state=0).fit_transform(X)
    X -= X.mean(axis=0)
    K = (0.3 * X @ X.T + 0.5) ** degree
    K /= np.mean(np.diag(K))
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert np.abs((Z @ Z.T - K) / scale).mean() < 0.01
    assert RandomPolynomials().fit(X).gamma_ == pytest.approx(1 / np.mean(np.sum(X**2, axis=1)))
    assert RandomPolynomials().fit(sp.csr_array(X)).gamma_ == pytest.approx(RandomPolynomials().fit(X).gamma_)


@pytest.mark.parametrize("activation", ["logistic", "relu"])
def test_units_are_what_they_say(activation):
    X = rows()
    units = RandomUnits(50, activation=activation, random_state=0).fit(X)
    S = X @ units.random_weights_ + units.random_offset_
    expected = 1 / (1 + np.exp(-S)) if activation == "logistic" else np.maximum(S, 0)
    assert_allclose(units.transform(X), expected / np.linalg.norm(expected) * np.sqrt(len(X)), atol=1e-12)
    # Every unit switches at a training row.
    assert_allclose(np.abs(S).min(axis=0), 0, atol=1e-9)


def test_units_do_not_depend_on_the_units_of_x():
    X = rows()
    small, large = (RandomUnits(50, random_state=0).fit_transform(c * X) for c in (1.0, 1e3))
    assert_allclose(small, large, rtol=1e-9)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: f"{type(g).__name__}")
def test_drawn_features_are_new_reproducible_and_keep_their_dtype(generator):
    X = rows(60, 16).astype(np.float32)
    y = np.arange(60) % 3
    fitted = clone(generator).fit(X, y)
    n = generator.n_components
    first, second = fitted.draw(n, np.random.default_rng(0)), fitted.draw(n, np.random.default_rng(1))
    assert first.transform(X).dtype == np.float32
    assert first.transform(X).shape == (60, len(first.get_feature_names_out()))
    assert_array_equal(first.transform(X), first.transform(X))
    assert not np.array_equal(first.transform(X), second.transform(X))
    assert_array_equal(clone(generator).fit(X, y).transform(X), fitted.transform(X))


@pytest.mark.parametrize("generator", TAKES_SPARSE, ids=lambda g: f"{type(g).__name__}")
def test_sparse_rows_give_the_features_of_dense_rows(generator):
    X = rows(60, 16) * (np.random.default_rng(1).random((60, 16)) < 0.3)
    y = np.arange(60) % 3
    dense = generator.fit(X, y).transform(X)
    sparse = generator.fit(sp.csr_array(X), y).transform(sp.csr_array(X))
    assert_allclose(sparse.toarray() if sp.issparse(sparse) else sparse, dense, atol=1e-12)


@pytest.mark.parametrize("generator", ANY_ROWS, ids=lambda g: f"{type(g).__name__}")
def test_torch_rows_stay_in_torch(generator):
    torch = pytest.importorskip("torch")
    X = rows(60, 16)
    y = np.arange(60) % 3
    fitted = generator.fit(X, y)
    there = fitted.transform(torch.asarray(X))
    assert isinstance(there, torch.Tensor)
    assert_allclose(there.numpy(force=True), fitted.transform(X), atol=1e-12)


def test_subset_orders():
    rng = np.random.default_rng(0)
    X = rng.random((200, 6)) * (rng.random((200, 6)) < np.array([0.1, 0.9, 0.3, 0.7, 0.2, 0.5]))
    y = (X[:, 4] > 0).astype(int)
    assert_array_equal(FeatureSubset(3).fit(X).feature_indices_, [1, 3, 5])
    assert_array_equal(FeatureSubset(1, order="gradient").fit(X, y).feature_indices_, [4])
    assert_array_equal(FeatureSubset(100).fit(X).feature_indices_, np.arange(6))
    assert sp.issparse(FeatureSubset(2).fit_transform(sp.csr_array(X)))
    names = FeatureSubset(2).fit(X).get_feature_names_out(list("abcdef"))
    assert_array_equal(names, ["b", "d"])
    with pytest.raises(ValueError, match="requires y"):
        FeatureSubset(1, order="gradient").fit(X)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_the_gradient_is_that_of_the_residuals_of_the_weighted_mean(weighted):
    """Responses and columns far from zero would put the longest column first."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * [1.0, 2.0, 1.0, 0.5, 1.0] + [9.0, 0.0, 0.0, 0.0, 3.0]
    y = 10.0 + X[:, 2] + 0.5 * X[:, 4] + (0.3 if weighted else 0.0) * (np.arange(60) < 20) * X[:, 1]
    weight = np.where(np.arange(60) < 20, 5.0, 0.2) if weighted else np.ones(60)
    gradient = abs(X.T @ (weight * (y - np.average(y, weights=weight))))
    for n in range(1, 5):
        found = FeatureSubset(n, order="gradient").fit(X, y, sample_weight=weight if weighted else None)
        assert_array_equal(found.feature_indices_, np.sort(np.argsort(-gradient)[:n]))


def test_a_new_visit_begins_with_the_columns_of_the_longest_gradient():
    X = rows(60, 6)
    generator = FeatureSubset(2, order="gradient").fit(X, np.arange(60) % 2)
    rng = np.random.default_rng(0)
    generator.begin_visit(lambda: np.array([[0.0, 0.1], [3, 0], [0, 1], [-9, 0], [1, 1], [0.5, 0]]), rng)
    assert [generator.draw(2, rng).feature_indices_.tolist() for _ in range(3)] == [[1, 3], [2, 4], [0, 5]]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_responses_are_those_of_the_rows_asked_for(kind):
    Y = (rows(60, 3) > 0).astype(float)
    assert_array_equal(response_columns(kind(Y), np.array([5, 2])), Y[[5, 2]])
    assert_array_equal(response_columns(kind(Y)), Y)


def test_a_gain_makes_units_steeper():
    X = rows(60, 6)
    flat, steep = (RandomUnits(9, gain=gain, random_state=0).fit(X) for gain in (1.0, 4.0))
    assert_allclose(steep.random_weights_, 4.0 * flat.random_weights_)


def test_subset_draws_every_column_once_a_pass():
    X = rows(30, 10)
    generator = FeatureSubset(4, order="random", random_state=0).fit(X)

    rng = np.random.default_rng(0)
    for _ in range(2):
        generator.begin_visit(lambda: np.zeros((10, 1)), rng)
        drawn = [generator.draw(4, rng).feature_indices_ for _ in range(3)]
        assert_array_equal(np.sort(np.concatenate(drawn)), np.arange(10))
    with pytest.raises(ValueError, match="All 10 features"):
        generator.draw(4, rng)


def test_landmarks_give_the_gaussian_kernel_with_every_row():
    X = rows(50)
    Z = Landmarks(20, bandwidth=3.0, random_state=0).fit(X)
    kernel = rbf_kernel(X, Z.landmarks_, gamma=1 / 3.0)
    assert_allclose(Z.transform(X) @ Z.transform(Z.landmarks_).T, kernel, atol=2e-3)
    # No other features in the span of the landmarks come nearer to the kernel of all rows.
    whole = rbf_kernel(X, gamma=1 / 3.0)
    nystroem = kernel @ np.linalg.solve(rbf_kernel(Z.landmarks_, gamma=1 / 3.0), kernel.T)
    assert_allclose(Z.transform(X) @ Z.transform(X).T, nystroem, atol=2e-3)
    assert (np.diag(whole) - (Z.transform(X) ** 2).sum(axis=1)).min() > -1e-8


@pytest.mark.parametrize(
    "generator",
    [
        RandomUnits(20, random_state=0),
        RandomUnits(20, activation="relu", random_state=0),
        RandomPolynomials(20, random_state=0),
        Landmarks(20, random_state=0),
    ],
    ids=lambda g: type(g).__name__,
)
def test_the_origin_does_not_matter(generator):
    X = np.round(rows(50) * 64).astype(np.float32) / 64  # so that shifting by 1024 rounds nothing
    near, far = (clone(generator).fit_transform(X + shift) for shift in np.float32([0.0, 1024.0]))
    assert_allclose(far, near, atol=5e-3)


def test_the_kernel_of_fourier_features_does_not_depend_on_the_origin():
    X = (rows(50) + 1024.0).astype(np.float32)
    Z = RandomFourierFeatures(40_000, bandwidth=2.0, random_state=0).fit_transform(X)
    assert kernel_error(Z, rbf_kernel(X.astype(np.float64), gamma=0.5)) < 6.0


def test_landmarks_are_disjoint_until_all_rows_are_taken():
    X = rows(60)
    generator = Landmarks(20, random_state=0).fit(X)
    drawn = [generator, *(generator.draw(20, np.random.default_rng(0)) for _ in range(2))]
    taken = np.vstack([part.landmarks_ for part in drawn])
    assert len(np.unique(taken, axis=0)) == 60
    assert generator.draw(80, np.random.default_rng(0)).n_features_out == 60
    # Rows without weight are no landmarks.
    weight = (np.arange(60) < 10).astype(float)
    assert Landmarks(20, random_state=0).fit(X, sample_weight=weight).n_features_out == 10


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("generator", ANY_NORM, ids=lambda g: f"{type(g).__name__}")
def test_rows_have_the_mean_squared_norm_1_in_blocks_of_any_size(generator, size):
    X = 5.0 + 3.0 * rows(120, 16)
    fitted = clone(generator).set_params(n_components=1024).fit(X, X[:, 0] > 5.0)
    drawn = [fitted.draw(size, np.random.default_rng(seed)).transform(X) for seed in (0, 1, 2)]
    norms = [np.mean(np.sum(Z**2, axis=1)) for Z in drawn]
    few = isinstance(generator, Landmarks) and size < len(X)
    assert (0.3 if few else 0.7) < np.mean(norms) < 1.3


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="image_shape"):
        ImagePatches(image_shape=(5, 5)).fit(rows(10, 24))
    with pytest.raises(ValueError, match="bandwidth"):
        RandomFourierFeatures(bandwidth=-1.0).fit(rows())
    with pytest.raises(ValueError, match="activation"):
        RandomUnits(activation="tanh").fit(rows())


@pytest.mark.parametrize(
    ("d", "limit", "expected"),
    [(8, np.inf, 500), (1 << 15, np.inf, 256), (1 << 24, np.inf, 2), (1 << 12, 1 << 21, 128), (1 << 12, 0, 64)],
)
def test_fewer_rows_are_looked_at_where_they_are_wide_or_blocks_are_to_be_small(d, limit, expected):
    assert affordable_rows(SimpleNamespace(n_rows=10_000, n_features=d, block_limit=limit), 500) == expected


def test_the_median_of_many_rows_knows_their_weights_once():
    rng = np.random.default_rng(0)
    is_far = rng.random(20_000) < 0.5
    X = rng.standard_normal((20_000, 5)) * np.where(is_far, 3.0, 1.0)[:, None]
    weight, few = np.where(is_far, 0.25, 1.0), np.arange(1000)
    assert median_squared_distance(X, weight) == pytest.approx(median_squared_distance(X[few], weight[few]), rel=0.1)

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from manyclass.data import GeneratedRows, MatrixTargets, Moments, as_rows
from manyclass.features import FeatureSubset, RandomFourierFeatures


def test_generated_rows_are_the_rows_of_their_features():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 5)), rng.standard_normal((300, 2))
    generator = RandomFourierFeatures(40, random_state=0).fit(X)
    Z = generator.transform(X)
    made, held = GeneratedRows(as_rows(X), generator), as_rows(Z)
    assert (made.n_rows, made.n_features) == Z.shape
    W = rng.standard_normal((40, 3))
    assert_allclose(made.matmat(W), held.matmat(W))
    assert made.typed(np.float32).matmat(W).dtype == held.typed(np.float32).matmat(W).dtype == np.float64
    assert_allclose(made.take(np.array([5, 3, 3])).dense(), Z[[5, 3, 3]])
    one, two = (Moments.of(rows, MatrixTargets(Y)) for rows in (made, held))
    assert_allclose(one.covariance, two.covariance, atol=1e-12)
    assert_allclose(one.cross_covariance, two.cross_covariance, atol=1e-12)
    assert made.seconds > 0


def test_sparse_features_are_filled_block_by_block():
    X = sp.random_array((50, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    subset = FeatureSubset(7).fit(X)
    block = GeneratedRows(as_rows(X), subset).part(slice(10, 20)).dense()
    assert isinstance(block, np.ndarray)
    assert_allclose(block, X.toarray()[10:20][:, subset.feature_indices_])


class Counting(RandomFourierFeatures):
    keep = True

    def generate(self, rows):
        self.seen = getattr(self, "seen", 0) + rows.n_rows
        return super().generate(rows)


def test_kept_features_are_made_once_and_rounded():
    X = np.random.default_rng(0).standard_normal((300, 5))
    generator = Counting(40, random_state=0).fit(X)
    Z = generator.transform(X)
    generator.seen, made = 0, GeneratedRows(as_rows(X), generator)
    for _ in range(3):
        read = np.concatenate([block.dense() for _, block in made.blocks(70)])
        assert read.dtype == Z.dtype
        assert_allclose(read, Z, atol=1e-3 * abs(Z).max())
    assert_allclose(made.take(np.array([5, 3, 3])).dense(), read[[5, 3, 3]])
    assert generator.seen == 300

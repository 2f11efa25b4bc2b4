import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from manyclass.data import Design, MatrixTargets, Moments
from manyclass.data.generated import GeneratedDesign
from manyclass.features import FeatureSubset, RandomFourierFeatures


def test_a_generated_design_is_the_design_of_its_features():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 5)), rng.standard_normal((300, 2))
    generator = RandomFourierFeatures(40, random_state=0).fit(X)
    Z = generator.transform(X)
    made, held = GeneratedDesign(Design(X), generator), Design(Z)
    assert (made.n_rows, made.n_features) == Z.shape
    W, R = rng.standard_normal((40, 3)), rng.standard_normal((300, 3))
    assert_allclose(made.matmat(W), held.matmat(W))
    assert_allclose(made.rmatmat(R), held.rmatmat(R))
    assert_allclose(made.mean(), held.mean())
    assert_allclose(made.take(np.array([5, 3, 3])), Z[[5, 3, 3]])
    one, two = (Moments.of(design, MatrixTargets(Y)) for design in (made, held))
    assert_allclose(one.xx, two.xx)
    assert_allclose(one.xy, two.xy)


def test_sparse_features_are_filled_block_by_block():
    X = sp.random_array((50, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    subset = FeatureSubset(7).fit(X)
    made = GeneratedDesign(Design(X), subset)
    block = made.rows(slice(10, 20))
    assert isinstance(block, np.ndarray)
    assert_allclose(block, X.toarray()[10:20][:, subset.feature_indices_])

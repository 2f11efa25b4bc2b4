import numpy as np
import pytest

from manyclass.curvature import CURVATURES
from manyclass.curvature.class_bounds import class_bound
from manyclass.curvature.partition_bound import LARGEST, PairSums, PartitionBound, bound_curvature, require_room
from manyclass.solvers import SOLVERS
from tests import problems
from tests.oracles.log_linear import log_linear_bound


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_is_the_mean_of_algorithm_1_over_the_rows(sparse, fit_intercept, weighted, rng):
    F, X, _, s = problems.problem(alpha=0.3, sparse=sparse, fit_intercept=fit_intercept, weighted=weighted)
    theta = rng.standard_normal((5 + fit_intercept, 3))
    rows = np.c_[X - F.center, np.ones(len(X))] if fit_intercept else X
    expected = np.zeros((theta.size, theta.size))
    for x, weight in zip(rows, s, strict=True):
        features = np.stack([np.outer(x, np.eye(3)[y]).ravel() for y in range(3)])
        expected += weight * log_linear_bound(theta.ravel(), features).curvature / s.sum()
    penalised = np.arange(theta.size) < 15
    expected += 0.3 * np.diag(penalised.astype(float))
    H = bound_curvature(F, theta)
    np.testing.assert_allclose(H, expected, atol=1e-10 * np.abs(H).max())


@pytest.mark.parametrize(("loss", "m"), [("softmax", 4), ("softmax", 2), ("logistic", 1), ("logistic", 3)])
def test_pair_sums_do_not_depend_on_blocks(loss, m, rng):
    bound = class_bound(loss)
    X, W = rng.standard_normal((30, 4)), bound.weights(rng.standard_normal((30, m)), np)
    whole, parts = PairSums(bound, m, 4, np), PairSums(bound, m, 4, np)
    whole.add(X, W)
    for rows in (slice(0, 7), slice(7, 30)):
        parts.add(X[rows], W[rows])
    np.testing.assert_allclose(whole.matrix(), parts.matrix(), atol=1e-12)
    a, b = bound.pairs(m)
    B = np.zeros((30, m, m))
    B[:, a, b] = B[:, b, a] = W
    expected = np.einsum("ni,nab,nj->iajb", X, B, X).reshape(4 * m, 4 * m)
    np.testing.assert_allclose(whole.matrix(), expected, atol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 10.0])
def test_each_step_lowers_the_objective(loss, alpha):
    F, *_ = problems.problem(loss, alpha=alpha)
    outcome = problems.run(F, SOLVERS["majorize"], PartitionBound, tol=1e-12, max_iter=60)
    values = np.array([record.objective for record in outcome.history])
    assert len(values) > 3 and (np.diff(values) <= 1e-13 * values[:-1]).all()


def test_reaches_the_optimum_in_fewer_steps_than_the_second_moment():
    """A curvature built from the probabilities of each row is tighter than one that holds everywhere."""

    def steps(name):
        F, *_ = problems.problem(alpha=1e-3)
        return problems.run(F, SOLVERS["majorize"], CURVATURES[name], tol=1e-6, max_iter=5000).n_passes

    assert steps("partition-bound") < steps("second-moment") / 2


def test_quasi_newton_takes_it_as_a_metric():
    F, *_ = problems.problem(alpha=1e-3)
    assert problems.run(F, SOLVERS["quasi-newton"], PartitionBound, tol=1e-8, max_iter=60).duality_gap <= 1e-8


def test_too_many_parameters_are_refused():
    with pytest.raises(ValueError, match=r"BoundMajorizationClassifier\(\) as it comes.*rank=1 to 20"):
        require_room(LARGEST + 1)


def test_time_is_looked_at_between_blocks_of_rows():
    F, *_ = problems.problem()
    calls = []
    F.on_block = lambda *ahead: calls.append(1)
    bound_curvature(F, F.constant_model())
    assert calls

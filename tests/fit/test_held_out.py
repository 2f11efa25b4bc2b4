import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import ClassTargets, as_rows
from manyclass.fit.held_out import hold_out
from manyclass.model import LOSSES, Problem


def divide(rows, codes, weight=None, fraction=0.25):
    return hold_out(rows, codes, weight, fraction, np.random.default_rng(0))


@pytest.mark.parametrize("weighted", [True, False])
def test_each_row_of_positive_weight_is_fitted_to_or_scores(weighted, rng):
    codes = np.arange(200) % 4
    weight = rng.random(200) * (rng.random(200) > 0.3) if weighted else None
    held = divide(as_rows(np.zeros((200, 2))), codes, weight)
    total = np.ones(200) if weight is None else weight
    np.testing.assert_array_equal(held.weight + held.scored, total)
    assert not (held.weight * held.scored).any()
    np.testing.assert_array_equal(np.flatnonzero(held.scored), held.index)
    assert len(held.index) == np.ceil(0.25 * (total > 0).sum())


def test_classes_are_shared_out_evenly():
    codes = np.repeat([0, 1, 2], [100, 60, 40])
    held = divide(as_rows(np.zeros((200, 2))), codes)
    np.testing.assert_array_equal(np.bincount(codes[held.index]), [25, 15, 10])


def test_a_class_of_one_row_is_no_hindrance():
    codes = np.r_[np.zeros(50, int), np.ones(49, int), 2]
    assert len(divide(as_rows(np.zeros((100, 2))), codes).index) == 25


def test_one_row_of_weight_is_too_few():
    with pytest.raises(ValueError, match="early_stopping=False"):
        divide(as_rows(np.zeros((9, 2))), None, np.eye(9)[0])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["softmax", "crammer_singer", "perceptron"])
def test_the_loss_is_the_weighted_mean_over_the_rows_that_score(kind, loss, rng):
    X, codes, weight = rng.standard_normal((80, 3)), np.arange(80) % 4, rng.random(80)
    rows = as_rows(kind(X))
    held = divide(rows, codes, weight)
    W, b = rng.standard_normal((3, 4)), rng.standard_normal(4)
    found = held.loss(Problem(rows, ClassTargets(codes, 4), LOSSES[loss], 0.0), W, b)
    Z, y, s = (X @ W + b)[held.index], codes[held.index], weight[held.index]
    own = Z[np.arange(len(y)), y]
    expected = {
        "softmax": np.log(np.exp(Z).sum(1)) - own,
        "crammer_singer": (Z + (np.arange(4) != y[:, None])).max(1) - own,
        "perceptron": Z.max(1) - own,
    }[loss]
    assert found == pytest.approx(s @ expected / s.sum())

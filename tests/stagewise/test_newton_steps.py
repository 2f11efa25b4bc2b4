"""Newton's steps of a stage: the curvature of rows and labels, and how far a step goes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from manyclass import GLMClassifier, StagewiseClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.model import LOSSES, Problem
from manyclass.stagewise import UPDATES
from manyclass.stagewise.sums import sums_of_block
from manyclass.stagewise.updates import LONGEST, lowest
from tests.stagewise.run import problem, solve


@pytest.mark.parametrize("weighted", [True, False])
def test_the_curvature_of_labels_that_share_nothing_has_the_sums_of_theirs(weighted, rng):
    scores, s = 3.0 * rng.standard_normal((40, 6)) - np.arange(6.0), rng.random(40) if weighted else None
    P = Problem(
        as_rows(rng.standard_normal((40, 2))), MatrixTargets(np.ones((40, 6))), LOSSES["logistic"], 1e-3, weight=s
    )
    update, p = UPDATES["logistic"](P), 1.0 / (1.0 + np.exp(-scores))
    of_rows, of_labels = update.row_weight(scores), update.output_weight(scores, s)
    s = np.ones(40) if s is None else s
    product = of_rows[:, None] * of_labels / of_labels.mean()
    # Of each label the sum over the rows is in units of that of the mean label.
    assert_allclose(product.sum(axis=1), (p * (1 - p)).sum(axis=1))
    assert_allclose((s[:, None] * product).sum(axis=0), (s[:, None] * p * (1 - p)).sum(axis=0))


@pytest.mark.parametrize("n_equal", [2, 60])
def test_a_label_that_is_given_several_times_is_fitted_as_once(n_equal):
    X, y = problem(n=300)
    label = (y == 0).astype(float)[:, None]
    once = solve(X, y, "logistic", targets=MatrixTargets(label))
    several = solve(X, y, "logistic", targets=MatrixTargets(np.repeat(label, n_equal, axis=1)))
    assert_allclose(several.scores(X), np.repeat(once.scores(X), n_equal, axis=1), rtol=1e-6, atol=1e-9)


def some_labels(rng, n_rare, n_common, n_rows=1500):
    X = rng.standard_normal((n_rows, 6))
    scores = X @ rng.standard_normal((6, n_rare + n_common)) + rng.gumbel(size=(n_rows, n_rare + n_common))
    return X, (scores > np.repeat([6.0, 0.0], [n_rare, n_common])).astype(float)


@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_several_visits_reach_what_each_label_would_by_itself(rng, alpha):
    """A step divided by the curvature of its label, with the penalty on all alike, stalled: rare labels overshot."""
    X, Y = some_labels(rng, 20, 20)
    fit = solve(X, None, "logistic", targets=MatrixTargets(Y), alpha=alpha, n_components=96, block_size=32, max_iter=8)
    each = [GLMClassifier(alpha=alpha, loss="logistic", tol=1e-7).fit(fit.features(X), y) for y in Y.T.astype(int)]
    least = sum(one.history_[-1].objective for one in each)
    assert fit.history[-1].objective <= least + 2e-3 * Y.shape[1] * np.log(2)


def test_many_rare_labels_are_fitted_nearly_as_well_as_by_themselves(rng):
    """One row weight that bounds the sum of their curvatures left them at probabilities of a half."""
    X, Y = some_labels(rng, 80, 0)
    Y = Y[:, Y[:1000].any(axis=0)]
    options = {"alpha": 1e-3, "loss": "logistic", "n_components": 512, "block_size": 128, "random_state": 0}

    def loss(Y):
        P = StagewiseClassifier(**options).fit(X[:1000], Y[:1000].astype(int)).predict_proba(X[1000:])
        return log_loss(Y[1000:].ravel(), (P if Y.ndim > 1 else P[:, 1]).ravel())

    alone = np.mean([loss(Y[:, label]) for label in range(0, Y.shape[1], 8)])
    assert loss(Y[:, ::8]) < 1.1 * alone
    assert loss(Y) < 1.1 * np.mean([loss(Y[:, start : start + 8]) for start in range(0, Y.shape[1], 8)])


def test_rows_without_weight_do_not_decide_which_are_read(rng):
    """They had made those that hold nearly all of the weight, 80 of 100 here, seem few enough to read no others."""
    X, y, weight = rng.standard_normal((200, 3)), np.arange(200) % 2, np.repeat([1.0, 0.0], 100)
    state = np.zeros((200, 2))
    state[80:, 0] = 5.6  # decided, but for the last per cent of the weight

    def moments(part):
        stage = Problem(as_rows(X[part]), ClassTargets(y[part], 2), LOSSES["softmax"], 0.0, weight=weight[part])
        return sums_of_block(stage, state[part], lambda stage: UPDATES["softmax"](stage), with_moments=True)[-1]

    assert_allclose(moments(slice(200)).second_moment, moments(slice(100)).second_moment, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_lengths_are_where_convex_functions_are_lowest(seed):
    rng = np.random.default_rng(seed)
    steep, place = rng.uniform(0.1, 20.0, 40), rng.uniform(-0.5, 1.5 * LONGEST, 40)

    def derivatives(length):
        return np.tanh(steep * (length - place)), steep / np.cosh(np.clip(steep * (length - place), -300, 300)) ** 2

    expected = np.clip(place, 0.0, LONGEST)
    assert_allclose(lowest(derivatives, 40), expected, rtol=0.03, atol=0.03)


def test_no_length_is_taken_that_raises_a_function(rng):
    """A step just beyond a kink, where slope and curvature are both large, is short, and high up."""
    places, steep = rng.uniform(0.01, LONGEST, 500), 10.0 ** rng.uniform(-2, 5, 500)
    falls, rises = 10.0 ** rng.uniform(-3, 0, 500), 10.0 ** rng.uniform(-1, 6, 500)

    def value(length):
        return -falls * length + rises / steep * np.logaddexp(0, steep * (length - places))

    def derivatives(length):
        share = 1 / (1 + np.exp(-np.clip(steep * (length - places), -700, 700)))
        return -falls + rises * share, rises * steep * share * (1 - share)

    begun = value(np.zeros(500))
    gained, falling = begun - value(lowest(derivatives, 500)), derivatives(np.zeros(500))[0] < 0
    assert (gained >= -1e-12).all()
    assert np.mean(gained[falling] > 0) > 0.9


def test_a_rare_label_beside_common_ones_is_fitted_nearly_as_by_itself():
    """With one step for all it would come as far as these allow: to 1.27 times the loss that it has alone."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 4))
        rare = (X[:, :1] + 0.5 * rng.standard_normal((600, 1)) > 2.2).astype(float)
        common = (X @ rng.standard_normal((4, 20)) + rng.standard_normal((600, 20)) > 0).astype(float)
        alone, beside = (
            solve(X, np.arange(600) % 3, "logistic", targets=MatrixTargets(Y), block_size=20, n_components=200)
            for Y in (rare, np.hstack([rare, common]))
        )
        losses = [np.mean(np.logaddexp(0, z) - rare[:, 0] * z) for z in (alone.scores(X)[:, 0], beside.scores(X)[:, 0])]
        ratios.append(losses[1] / losses[0])
    assert np.mean(ratios) < 1.18

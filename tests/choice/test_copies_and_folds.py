"""What stands for rows that are copies, and for classes that a fold lacks."""

import numpy as np
import pytest

from manyclass.choice.descent import mean_model
from manyclass.choice.features import _unexplained, better_bandwidths, errors_of_representations
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.features import RandomFourierFeatures
from manyclass.model import SMOOTH_LOSSES, Problem


class Watched(RandomFourierFeatures):
    def fit(self, X, y=None, sample_weight=None):
        type(self).seen = X.dense(), y, sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_are_looked_at_on_each_row_once_with_the_weight_and_label_of_its_copies(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    labels = np.where(np.arange(120) < 80, 0, 1 + np.arange(120) % (n_classes - 1))
    times = np.where(labels == 0, 1, 6)
    order = rng.permutation(np.repeat(np.arange(120), times))
    y = labels[order]
    given = labelled(X[order], y, n_classes)
    found = errors_of_representations(given, generators={"waves": Watched(random_state=0)}, guide=y)
    rows, guide, weight = Watched.seen
    place = np.array([np.flatnonzero((X == row).all(axis=1))[0] for row in rows])
    assert sorted(place) == list(range(120))
    assert np.array_equal(guide, labels[place]) and np.allclose(weight, times[place] / 6)
    assert all(0.0 < error < 1.1 for error in found.values())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_count_each_row_as_often_as_it_is_there(n_classes):
    rng = np.random.default_rng(0)
    X = np.hstack([np.repeat([0.0, 1.0, 2.0], [90, 20, 20])[:, None], rng.standard_normal((130, 3))])
    labels = np.repeat([0, 1, n_classes - 1], [90, 20, 20])
    labels[90:110:2] = n_classes - 1 if n_classes == 3 else 0  # half of these rows cannot be told from the others
    times = np.where(np.arange(130) < 90, 1, 4)
    often, once = (
        errors_of_representations(labelled(X[order], labels[order], n_classes), guide=labels[order])["columns"]
        for order in (np.repeat(np.arange(130), times), np.arange(130))
    )
    assert abs(np.log(often / once)) > 0.1


def test_squared_errors_of_copies_are_those_of_rows_given_as_often():
    rng = np.random.default_rng(0)
    residual, Y, copies = rng.standard_normal((9, 2)), rng.standard_normal((9, 2)), np.arange(1, 10)
    given = (np.repeat(part, copies, axis=0) for part in (residual, Y))
    assert _unexplained(residual, Y, copies) == pytest.approx(_unexplained(*given, np.ones(45)))


def labelled(X, y, n_classes):
    targets = ClassTargets(y, 3) if n_classes == 3 else MatrixTargets(2.0 * y[:, None] - 1.0)
    return Problem(as_rows(X), targets, SMOOTH_LOSSES["squared"], 1.0)


def models(k):
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((3, k)), rng.standard_normal(k)) for _ in range(2)]


def of(targets):
    return Problem(as_rows(np.random.default_rng(0).standard_normal((6, 3))), *targets, 1.0)


def test_the_mean_of_folds_is_that_of_those_that_know_a_class():
    (W, b), (V, c) = both = models(3)
    softmax = SMOOTH_LOSSES["softmax"]
    folds = [of((ClassTargets(np.array(codes), 3), softmax)) for codes in ([0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0])]
    coef, intercept = mean_model(both, folds)
    np.testing.assert_allclose(coef, np.stack([(W + V)[:, 0] / 2, W[:, 1], (W + V)[:, 2] / 2], axis=1))
    np.testing.assert_allclose(intercept, [(b + c)[0] / 2, b[1], (b + c)[2] / 2])  # none knows the last class
    several = [of((MatrixTargets(Y), SMOOTH_LOSSES["logistic"])) for Y in (np.eye(6)[:, :3], np.zeros((6, 3)))]
    coef, intercept = mean_model(both, several)
    np.testing.assert_allclose(coef, (W + V) / 2)
    np.testing.assert_allclose(intercept, (b + c) / 2)


def test_only_features_that_are_looked_at_are_drawn(monkeypatch):
    drawn, draw = [], RandomFourierFeatures._draw
    monkeypatch.setattr(
        RandomFourierFeatures, "_draw", lambda self, n, *given: drawn.append(n) or draw(self, n, *given)
    )
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 4)), np.arange(90) % 3
    waves = {"waves": RandomFourierFeatures(random_state=0)}
    errors_of_representations(labelled(X, y, 3), generators=waves, guide=y, n_components=32)
    assert drawn == [32]


def test_what_is_left_out_is_of_the_bandwidth_that_is_chosen():
    X = np.random.default_rng(0).uniform(0.0, 5.0, (700, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 3
    given, waves, left_out = labelled(X, y, 3), {"waves": RandomFourierFeatures(random_state=0)}, {}
    errors = errors_of_representations(given, generators=waves, guide=y, left_out=left_out)
    before = errors["waves"]
    assert better_bandwidths(given, waves, errors, y, None, left_out)["waves"] < waves["waves"].bandwidth_
    scores, labels, _ = left_out["waves"]
    assert errors["waves"] == np.mean(scores.argmax(axis=1) != labels.argmax(axis=1)) < 0.9 * before

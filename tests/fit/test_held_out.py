import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier

from manyclass import SDCAClassifier
from manyclass.data import ClassTargets, as_rows
from manyclass.fit.held_out import folds_by_content, hold_out
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


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_do_not_depend_on_the_order_of_rows_and_keep_copies_together(rng, n_folds):
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    fold = folds_by_content(as_rows(X), y, None, n_folds)
    order = rng.permutation(60)
    np.testing.assert_array_equal(folds_by_content(as_rows(X[order]), y[order], None, n_folds), fold[order])
    twice = folds_by_content(as_rows(np.vstack([X, X])), np.tile(y, 2), None, n_folds)
    np.testing.assert_array_equal(twice, np.tile(fold, 2))
    assert np.bincount(fold).min() >= 60 // n_folds - 3


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_folds_are_even_whatever_few_rows_there_are_and_however_far_one_lies(rng, kind):
    few = np.eye(8)[rng.integers(0, 8, 400)]
    far = rng.standard_normal((400, 8))
    far[0] = 1e9
    constant, large = np.ones((400, 8)), np.hstack([rng.standard_normal((400, 7)), np.full((400, 1), 1e8)])
    y = np.arange(400) % 2
    for X in (few, far, constant, large.astype(np.float32)):
        fold = folds_by_content(as_rows(kind(X)), y, None, 5)
        counts = np.array([np.bincount(fold[y == label], minlength=5) for label in range(2)])
        assert counts.min() >= 35 and counts.max() <= 45


def test_rows_of_a_few_kinds_and_several_classes_are_judged_by_others_of_their_kind(rng):
    """Fits that know nothing of the rows that judge would have to guess, or, by class, be wrong."""
    X = np.eye(8)[rng.integers(0, 8, 120)]
    y = (X @ np.linspace(-2, 2, 8) + rng.logistic(size=120) > 0).astype(int)
    fold = folds_by_content(as_rows(X), y, None, 5)
    for number in range(5):
        known = {(tuple(row), label) for row, label in zip(X[fold != number], y[fold != number], strict=True)}
        judging = {(tuple(row), label) for row, label in zip(X[fold == number], y[fold == number], strict=True)}
        assert len(judging - known) <= 1
    calibrated = SDCAClassifier("hinge", calibrate="sigmoid").fit(X, y)
    assert (calibrated.predict_proba(X).argmax(axis=1) == y).mean() > 0.7


@pytest.mark.parametrize("d", [1, 2, 30])
def test_neighbours_are_in_one_fold_as_often_as_any_two_rows(d, rng):
    """Were each in another, folds would be copies of each other, and know the chances of each other's rows."""
    X = rng.standard_normal((3000, 1)) * np.ones(d)
    fold = folds_by_content(as_rows(X), None, None, 5)[np.argsort(X[:, 0])]
    assert np.mean(fold[1:] == fold[:-1]) == pytest.approx(0.2, abs=0.03)


def test_no_model_foretells_labels_of_pure_chance(rng):
    X, y = rng.random((3000, 1)), rng.integers(0, 2, 3000)
    fold, accuracies = folds_by_content(as_rows(X), y, None, 5), []
    for number in range(5):
        fitted = KNeighborsClassifier(15).fit(X[fold != number], y[fold != number])
        accuracies.append(fitted.score(X[fold == number], y[fold == number]))
    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.04)


def test_folds_do_not_know_the_names_of_classes(rng):
    X, y = rng.standard_normal((145, 4)), np.repeat([0, 1, 2], [45, 50, 50])
    folds = folds_by_content(as_rows(X), y, None, 4)
    np.testing.assert_array_equal(folds_by_content(as_rows(X), (y + 1) % 3, None, 4), folds)


def test_a_few_equal_rows_of_one_class_stay_together_and_others_do_not(rng):
    copies = folds_by_content(as_rows(np.repeat(rng.standard_normal((40, 2)), 4, axis=0)), None, None, 5).reshape(40, 4)
    assert (copies == copies[:, :1]).all()
    X, y = np.repeat([[0.0, 1.0], [2.0, 3.0]], 4, axis=0), np.tile([0, 0, 1, 1], 2)
    fold = folds_by_content(as_rows(X), y, None, 2)
    assert fold[0] != fold[1] and fold[2] != fold[3]


@pytest.mark.parametrize("kind", ["different", "oversampled", "of few kinds"])
@pytest.mark.parametrize("times", [3, 50])
def test_rows_given_often_are_divided_as_rows_given_once(kind, times, rng):
    """Or each fold would be judged by rows that the others know by heart."""
    X, y = rng.standard_normal((60, 4)), np.repeat([0, 1, 2], [25, 25, 10])
    if kind == "oversampled":
        often = np.where(y == 2, 9, 1)
        X, y = np.repeat(X, often, axis=0), np.repeat(y, often)
    if kind == "of few kinds":
        X = np.eye(4)[rng.integers(0, 4, 60)]
        y = X.argmax(axis=1) // 2
    order = rng.permutation(times * len(X))
    often = folds_by_content(as_rows(np.tile(X, (times, 1))[order]), np.tile(y, times)[order], None, 5)
    once, found = folds_by_content(as_rows(X), y, None, 5), np.empty(len(order), dtype=int)
    found[order] = often
    if kind == "of few kinds":  # no copies: any may be in any fold
        assert np.bincount(found).min() >= 0.9 * times * len(X) / 5
    else:
        np.testing.assert_array_equal(found, np.tile(once, times))


def test_a_column_of_seconds_does_not_make_rows_equal(rng):
    X, y, order = np.c_[rng.standard_normal((300, 3)), np.full(300, 1.7e12)], np.arange(300) % 2, rng.permutation(300)
    fold = folds_by_content(as_rows(X), y, None, 5)
    np.testing.assert_array_equal(folds_by_content(as_rows(X[order]), y[order], None, 5), fold[order])


def test_copies_of_some_rows_among_equal_rows_of_others_do_not_depend_on_the_order_either(rng):
    X = np.vstack([rng.standard_normal((40, 3)), np.repeat(rng.standard_normal((4, 3)), 2, axis=0), np.zeros((30, 3))])
    y = np.repeat([0, 1, 0], [40, 8, 30])
    fold, order = folds_by_content(as_rows(X), y, None, 4), rng.permutation(len(X))
    moved = folds_by_content(as_rows(X[order]), y[order], None, 4)
    np.testing.assert_array_equal(moved[order < 48], fold[order][order < 48])
    assert np.array_equal(fold[40:48:2], fold[41:48:2])
    assert np.bincount(fold[48:], minlength=4).min() > 0  # no copies: any may be in any fold


def test_a_share_that_leaves_no_row_to_fit_is_refused_by_its_name(rng):
    with pytest.raises(ValueError, match=r"validation_fraction=0\.99 of 20 rows leaves none to fit"):
        hold_out(as_rows(rng.standard_normal((20, 2))), None, None, 0.99, rng)


def test_of_classes_of_one_row_some_are_held_out_and_none_of_their_rows():
    codes = np.r_[np.arange(900) % 3, 3 + np.arange(60)]
    found = hold_out(as_rows(np.zeros((960, 1))), codes, None, 0.2, np.random.default_rng(0))
    assert len(found.index) > 150 and codes[found.index].max() < 3
    every = hold_out(as_rows(np.zeros((40, 1))), np.arange(40), None, 0.2, np.random.default_rng(0))
    assert len(every.index) == 8

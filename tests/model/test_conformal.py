"""Thresholds of prediction sets are order statistics of the rows, weights being copies."""

import numpy as np

from manyclass.model.conformal import Conformity


def test_rows_of_no_weight_give_no_threshold():

    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    weight = (np.arange(60) % 2).astype(float)
    for by in (False, True):
        for coverage in (0.5, 0.7, 0.8):
            one = Conformity.of(P, y, weight).thresholds(coverage, by_class=by)
            two = Conformity.of(P[1::2], y[1::2], None).thresholds(coverage, by_class=by)
            np.testing.assert_array_equal(one, two)


def test_a_new_row_is_one_more():

    fit = np.arange(1.0, 10.0)  # 9 rows: the k-th smallest with k = floor(0.2 * 10) = 2
    P = np.c_[fit, 0 * fit]
    assert Conformity.of(P, np.zeros(9, dtype=int), None).thresholds(0.8, by_class=False)[0] == 2.0


def test_weights_are_copies_in_sets():

    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 31), rng.integers(0, 3, 31)
    w = rng.integers(1, 4, 31)
    for coverage in (0.5, 0.7, 0.8, 0.9):
        one = Conformity.of(P, y, w.astype(float)).thresholds(coverage, by_class=False)
        two = Conformity.of(np.repeat(P, w, axis=0), np.repeat(y, w), None).thresholds(coverage, by_class=False)
        np.testing.assert_array_equal(one, two)

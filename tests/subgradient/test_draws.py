"""Draws of rows: permutations, even in every place."""

import numpy as np
import pytest

from manyclass.subgradient.draws import draw, make_draws


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 1000])
def test_each_epoch_draws_every_row_once(n):
    draws = make_draws(n, 3, replace=False)
    epochs = [[draw(draws, e * n + i) for i in range(n)] for e in range(3)]
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    if n > 10:
        assert epochs[0] != epochs[1] != epochs[2] and epochs[0] != sorted(epochs[0])


@pytest.mark.parametrize("replace", [True, False])
def test_draws_are_even_in_every_place(replace):
    """The first draw of many seeds falls on every row equally often: a χ² within five standard deviations."""
    n, seeds = 20, 4000
    for position in (0, 13):
        counts = np.bincount([draw(make_draws(n, s, replace), position) for s in range(seeds)], minlength=n)
        chi2 = ((counts - seeds / n) ** 2 / (seeds / n)).sum()
        assert abs(chi2 - (n - 1)) < 5 * np.sqrt(2 * (n - 1))


@pytest.mark.parametrize("replace", [True, False])
def test_rows_of_no_weight_are_never_drawn(replace):
    weight = np.zeros(10)
    weight[[3, 5, 8]] = 0.5
    draws = make_draws(10, 0, replace, weight)
    assert draws.n == 3
    assert {draw(draws, i) for i in range(60)} == {3, 5, 8}
    assert replace or sorted(draw(draws, i) for i in range(3)) == [3, 5, 8]


def test_all_rows_of_some_weight_are_drawn_as_without_weights():
    plain, weighted = make_draws(10, 7, False), make_draws(10, 7, False, np.linspace(1, 2, 10))
    assert [draw(plain, i) for i in range(30)] == [draw(weighted, i) for i in range(30)]

"""Rows in other units than most."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import as_rows
from manyclass.data.units import in_other_units


def wild(n_columns, size=1e5, offset=0.0):
    X = np.random.default_rng(0).standard_normal((300, 6))
    X[7, :n_columns] *= size
    return X + offset


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("n_columns", "is_one"), [(0, False), (1, False), (3, False), (4, True), (6, True)])
def test_a_row_is_one_where_most_of_its_numbers_are_far_from_those_of_others(n_columns, is_one, offset):
    rows = as_rows(wild(n_columns, offset=offset))
    assert np.flatnonzero(in_other_units(rows, rows)).tolist() == [7] * is_one


def test_a_fifth_of_the_rows_may_be_some():
    X = wild(0)
    X[::5] *= 1e5
    assert np.array_equal(np.flatnonzero(in_other_units(as_rows(X), as_rows(X))), np.arange(0, 300, 5))


def test_the_order_of_the_rows_is_no_matter():
    X = wild(0)
    X[:45] *= 1e5
    assert np.array_equal(np.flatnonzero(in_other_units(as_rows(X), as_rows(X))), np.arange(45))


def test_columns_in_which_most_rows_have_the_same_number_do_not_tell():
    flags = np.zeros((300, 20))
    flags[7] = 1.0
    rows = as_rows(np.column_stack([flags, wild(0)]))
    assert not in_other_units(rows, rows).any()
    assert not in_other_units(as_rows(flags), as_rows(flags)).any()
    sparse = as_rows(sp.csr_array(flags))
    assert not in_other_units(sparse, sparse).any()

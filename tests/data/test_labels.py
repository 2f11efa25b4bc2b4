"""Integer labels are encoded as sorting would, and targets of classes are what their columns are."""

import re
import warnings

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import GLMClassifier
from manyclass.data import ClassTargets, as_rows
from manyclass.data.labels import encode, encode_chunk, of_present
from manyclass.data.rows import to_numpy

HIGHEST = {kind: np.iinfo(kind).max for kind in ("int8", "uint8", "int16", "int64", "uint64")}


@pytest.mark.parametrize("kind", HIGHEST)
@pytest.mark.parametrize("where", ["lowest", "highest", "far apart"])
def test_integers_are_encoded_as_by_sorting(kind, where, rng):
    limits = np.iinfo(kind)
    first = limits.min if where != "highest" else limits.max - 6
    y = (rng.integers(0, 7, 50).astype(np.uint64) + np.uint64(first % 2**64)).astype(kind)
    if where == "far apart":
        y[:9] = limits.max
    found = encode(y, "Estimator")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found.classes, classes)
    np.testing.assert_array_equal(found.codes, codes)
    assert found.classes.dtype == y.dtype and found.indicator is None


@pytest.mark.parametrize("kind", ["U", "object", "float16", "float32", "float64"])
def test_texts_and_whole_numbers_are_encoded_as_by_sorting(kind, rng):
    numbers = rng.permutation(np.repeat(np.r_[-3:40, 100], 3))
    y = numbers.astype(kind) if kind.startswith("f") else np.array([f"c{i}é" for i in numbers], dtype=kind)
    found = encode(y, "Estimator")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found.classes, classes)
    np.testing.assert_array_equal(found.codes, codes)
    assert found.classes.dtype == y.dtype and found.indicator is None
    with pytest.warns(UserWarning, match="unique classes"):
        encode(np.unique(y), "Estimator")
    with pytest.raises(ValueError, match=f"one class: {re.escape(repr(y[0].item() if kind[0] == 'f' else str(y[0])))}"):
        encode(y[y == y[0]], "Estimator")


def test_numbers_with_fractions_are_refused(rng):
    with pytest.raises(ValueError, match="continuous"):
        encode(rng.standard_normal(30), "Estimator")


def test_labels_that_hardly_repeat_are_wondered_at_and_one_class_is_refused():
    with pytest.warns(UserWarning, match="unique classes"):
        encode(np.arange(30), "Estimator")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(np.arange(30), "Estimator", least=1)
        encode(np.arange(30) // 3, "Estimator")
    with pytest.raises(ValueError, match="class"):
        encode(np.ones(30, dtype=int), "Estimator")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0], "holds int; convert"),
        ([0, "a", 0], "holds int and str; convert"),
        (["a", None, "b"], "missing labels"),
        (["a", np.nan, "b"], "missing labels"),
    ],
)
def test_objects_that_are_no_text_are_refused_in_a_sentence(y, message):
    with pytest.raises(ValueError, match=message):
        encode(np.array(y, dtype=object), "Estimator")


def test_what_pandas_misses_is_said():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(["a", "b", None, "a"], dtype="string")
    with pytest.raises(ValueError, match="some of it is missing; drop these rows"):
        GLMClassifier().fit(np.eye(4), y)


@pytest.mark.parametrize("namespace", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0)])
def test_targets_of_classes_are_found_and_subtracted_like_their_columns(namespace, values, rng):
    library = pytest.importorskip(namespace)
    rows = as_rows(library.asarray(rng.standard_normal((30, 4))))
    codes, where = rng.integers(0, 4, 30), slice(5, 25)
    targets, Z = ClassTargets(rows.asarray(codes, dtype=rows.xp.int64), 4, values), rows.X[where, :]
    Y = np.where(np.eye(4, dtype=bool)[codes[where]], values[1], values[0])
    np.testing.assert_array_equal(to_numpy(targets.dense(where, Z, rows.xp)), Y)
    np.testing.assert_allclose(to_numpy(targets.dot(where, Z, rows.xp)), (Y * to_numpy(Z)).sum(axis=1), atol=1e-12)
    P = Z + 0
    targets.subtract(where, P, rows.xp)
    np.testing.assert_allclose(to_numpy(P), to_numpy(Z) - Y, atol=1e-15)


@pytest.mark.parametrize("y", [[[-1, 1], [1, -1]], [[1, 2], [2, 1]], [[0, 1], [2, 0]], [[0.5, 1.0], [0.0, 0.25]]])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, array_api_strict.asarray])
def test_several_columns_are_zeros_and_ones_or_refused(kind, y):
    with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
        encode(kind(np.array(y)), "Name")
    good = encode(kind(np.array([[0, 1], [1, 1]])), "Name")
    assert good.is_multilabel and to_numpy(good.indicator).tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    "y", [np.array([9, 1, 2, 9]), np.array(list("daba")), np.array([[1, 1], [0, 1], [1, 0], [1, 1]])]
)
def test_labels_of_rows_that_weigh_nothing_add_no_class(y):
    weight = np.array([0.0, 0.5, 2.0, 0.0])
    found = of_present(y, weight)
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(y[1:3], axis=0))
    np.testing.assert_array_equal(found[1:3], y[1:3])


@pytest.mark.parametrize("earlier", [{"known": None, "classes": [0, 1, 2]}, {"known": np.arange(3), "classes": None}])
def test_an_indicator_matrix_has_a_column_for_each_class_that_was_announced(earlier):
    with pytest.raises(ValueError, match="y has 2 label columns, but 3 were announced"):
        encode_chunk(np.array([[0, 1], [1, 0]]), estimator_name="Name", **earlier)
    Y = np.eye(3, dtype=int)
    np.testing.assert_array_equal(encode_chunk(Y, estimator_name="Name", **earlier).indicator, Y)


@pytest.mark.parametrize("dtype", ["U", object])
def test_very_many_texts_are_encoded(rng, dtype):
    y = rng.choice(["b", "a", "cc", "Ω"], 40_000).astype(dtype)
    found = encode(y, "A test")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found.classes, classes)
    np.testing.assert_array_equal(found.codes, codes)

"""Integer labels are encoded as sorting would, whatever their type, sign and distance."""

import warnings

import numpy as np
import pytest

from manyclass.data.labels import encode

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


def test_labels_that_hardly_repeat_are_wondered_at_and_one_class_is_refused():
    with pytest.warns(UserWarning, match="unique classes"):
        encode(np.arange(30), "Estimator")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(np.arange(30), "Estimator", least=1)
        encode(np.arange(30) // 3, "Estimator")
    with pytest.raises(ValueError, match="class"):
        encode(np.ones(30, dtype=int), "Estimator")

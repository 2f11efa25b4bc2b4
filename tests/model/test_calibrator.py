"""Sums of the calibrator."""

import numpy as np

from manyclass.data import ClassTargets, as_rows
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.model.calibrator import Calibrator, sums_of_each


def test_parts_of_the_sums_of_each_output_add_up(rng):

    V, codes, s = rng.random((40, 3)) + np.arange(40)[:, None] / 20, rng.integers(0, 3, 40), rng.random(40)
    cal = Calibrator((1, 2), SMOOTH_LOSSES["softmax"].domain)

    def sums(at):
        part = Problem(as_rows(V[at]), ClassTargets(codes[at], 3), SMOOTH_LOSSES["softmax"], 0.1, weight=s[at])
        return sums_of_each(part, V[at], cal)

    def central(found):
        mean = found.first / found.total
        return found.pilot + mean, found.second / found.total - mean[:, None] * mean[None, :2]

    one, parts = sums(slice(None)), sums(slice(0, 15)) + sums(slice(15, None))
    for a, b in zip(central(one), central(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.data.rows import Array
from manyclass.model import Problem


class Identity(Curvature):
    """H = I: no curvature at all, which makes gradient descent of a solver that searches along its steps."""

    name = "identity"
    majorizes = False

    @classmethod
    def build(cls, problem: Problem, rng: np.random.Generator) -> Identity:
        return cls()

    def solve(self, gradient: Array) -> Array:
        return gradient

"""Which penalties the ascent goes through before it arrives at the one asked for."""

from __future__ import annotations

import numpy as np


def homotopy_path(alpha: float, homotopy: bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` is alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*, §3.2); an integer
    P ≥ 2 is P points from ν to alpha in geometric progression. Where ν ≤ alpha there is nothing to go through.
    """
    first = 0.25 * alpha**0.5
    if homotopy is False or first <= alpha:
        return [alpha]
    points = 2 if homotopy is True else int(homotopy)
    return [*np.geomspace(first, alpha, points)[:-1].tolist(), alpha]

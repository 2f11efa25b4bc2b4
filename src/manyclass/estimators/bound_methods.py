"""What each method of `BoundMajorizationClassifier` is: the one loop, with the curvature that makes it that method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manyclass.curvature import Curvature
from manyclass.curvature.dense_inverse import DenseInverse
from manyclass.curvature.low_rank import LowRank
from manyclass.curvature.partition_bound import PartitionBound
from manyclass.curvature.streamed import StreamedBound
from manyclass.model import Objective
from manyclass.solvers import SOLVERS, Solver
from manyclass.solvers.stochastic_bound import FIRST_ETA, StochasticBound


@dataclass(frozen=True)
class BoundSettings:
    """The parameters of the estimator that only some methods look at."""

    rank: int | None
    step: str | float
    batch_size: int


@dataclass(frozen=True)
class BoundMethod:
    """One way of minimising the bounds; a new one is one entry of ``METHODS``.

    Attributes
    ----------
    build : callable
        (objective, settings, rng) ↦ the curvature and the solver that moves by it.
    center : bool
        Whether the objective should be centred (see `Objective`).
    takes_rank : bool
        Whether less than the full curvature may be kept.
    needs_numpy : bool
        Whether rows of other array-API namespaces are refused.
    """

    build: Callable[[Objective, BoundSettings, np.random.Generator], tuple[Curvature, Solver]]
    center: bool
    takes_rank: bool = False
    needs_numpy: bool = False


def _batch(objective: Objective, settings: BoundSettings, rng: np.random.Generator) -> tuple[Curvature, Solver]:
    return PartitionBound.build(objective, rng), SOLVERS["majorize"]


def _stochastic(objective: Objective, settings: BoundSettings, rng: np.random.Generator) -> tuple[Curvature, Solver]:
    curvature = DenseInverse(objective) if settings.rank is None else LowRank(objective, int(settings.rank))
    named: dict[str | float, float] = {"paper": 1.0, "refreshed": FIRST_ETA}
    eta = named.get(settings.step) or float(settings.step)
    return curvature, StochasticBound(eta, settings.batch_size, refresh=settings.step == "refreshed", rng=rng)


METHODS: dict[str, BoundMethod] = {
    "stochastic": BoundMethod(_stochastic, StreamedBound.center, takes_rank=True, needs_numpy=True),
    "batch": BoundMethod(_batch, PartitionBound.center),
}


def methods_that(allow: Callable[[BoundMethod], bool]) -> str:
    """Those for which `allow` holds, as a user would write them."""
    return " or ".join(f"method={name!r}" for name, method in METHODS.items() if allow(method))

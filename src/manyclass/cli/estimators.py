"""Which estimator a name on the command line stands for: a new one is one line in `BUILDERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from manyclass.cli.errors import UsageError


@dataclass(frozen=True)
class FitSettings:
    """The options of ``manyclass fit`` that concern the model; None leaves the estimator's default."""

    solver: str = "quasi-newton"
    link: str | None = None
    alpha: float | None = None
    tol: float | None = None
    max_iter: int | None = None
    max_time: float | None = None
    class_weight: str | None = None
    seed: int | None = None


Builder = Callable[[FitSettings, Callable[[Any], None]], Any]


def _glm(solver: str, settings: FitSettings, callback: Callable[[Any], None]) -> Any:
    from manyclass import GLMClassifier

    given: dict[str, Any] = {
        "link": settings.link,
        "alpha": settings.alpha,
        "tol": settings.tol,
        "max_iter": settings.max_iter,
        "max_time": settings.max_time,
        "class_weight": settings.class_weight,
        "random_state": settings.seed,
    }
    return GLMClassifier(
        solver=solver,
        callback=callback,
        **{name: value for name, value in given.items() if value is not None},
    )


BUILDERS: dict[str, Builder] = {
    name: partial(_glm, name)
    for name in ("quasi-newton", "newton-cg", "accelerated", "majorize", "gradient", "biased-gradient")
}


def build(settings: FitSettings, callback: Callable[[Any], None]) -> Any:
    """The unfitted estimator, its parameters checked.

    Raises
    ------
    UsageError
        Where no solver has that name.
    ValueError
        Where a parameter is out of its range.
    """
    if settings.solver not in BUILDERS:
        raise UsageError(f"there is no solver '{settings.solver}': choose one of {', '.join(BUILDERS)}")
    estimator = BUILDERS[settings.solver](settings, callback)
    # Now rather than at fit, which comes after the data has been read.
    estimator._validate_params()
    return estimator

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
    loss: str | None = None
    alpha: float | None = None
    tol: float | None = None
    max_iter: int | None = None
    max_time: float | None = None
    class_weight: str | None = None
    seed: int | None = None


Builder = Callable[[FitSettings, Callable[[Any], None]], Any]


def _glm(solver: str, settings: FitSettings, callback: Callable[[Any], None]) -> Any:
    from manyclass import GLMClassifier

    if settings.loss is not None:
        raise UsageError(f"--loss belongs to --solver pegasos and sdca: choose the loss of '{solver}' with --link")
    return GLMClassifier(solver=solver, callback=callback, **_given(settings, link=settings.link))


def _pegasos(settings: FitSettings, callback: Callable[[Any], None]) -> Any:
    from manyclass import PegasosClassifier

    if settings.link not in (None, "auto"):
        raise UsageError("--link belongs to the other solvers: choose the loss of 'pegasos' with --loss")
    return PegasosClassifier(callback=callback, **_given(settings, loss=settings.loss))


def _plain(solver: str, name: str, settings: FitSettings, callback: Callable[[Any], None]) -> Any:
    """Any other estimator, with those of the options that it knows."""
    import manyclass

    estimator = getattr(manyclass, name)(callback=callback)
    link = None if settings.link == "auto" else settings.link
    given, known = _given(settings, link=link, loss=settings.loss), estimator.get_params()
    for option in given:
        if option not in known:
            raise UsageError(f"--solver {solver} has no --{option.replace('_', '-')}: leave it out")
    return estimator.set_params(**given)


def _given(settings: FitSettings, **own: Any) -> dict[str, Any]:
    shared = {name: getattr(settings, name) for name in ("alpha", "tol", "max_iter", "max_time", "class_weight")}
    options = own | shared | {"random_state": settings.seed}
    return {name: value for name, value in options.items() if value is not None}


BUILDERS: dict[str, Builder] = {
    name: partial(_glm, name)
    for name in ("quasi-newton", "newton-cg", "accelerated", "majorize", "gradient", "biased-gradient")
}
BUILDERS["pegasos"] = _pegasos
BUILDERS |= {
    solver: partial(_plain, solver, name)
    for solver, name in (
        ("calibrated", "CalibratedLeastSquaresClassifier"),
        ("stagewise", "StagewiseClassifier"),
        ("sdca", "SDCAClassifier"),
    )
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

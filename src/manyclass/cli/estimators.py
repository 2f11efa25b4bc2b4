"""Which estimator a name on the command line stands for: a new one is one line in `ESTIMATORS`."""

from collections.abc import Mapping
from typing import Any

from manyclass.cli.errors import UsageError

_GLM = ("auto", "quasi-newton", "newton-cg", "newton", "accelerated", "majorize", "gradient", "biased-gradient")

ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "any": ("AutoClassifier", {}),
    **{solver: ("GLMClassifier", {"solver": solver}) for solver in _GLM},
    "glm-cv": ("GLMClassifierCV", {}),
    "calibrated": ("CalibratedLeastSquaresClassifier", {}),
    "stagewise": ("StagewiseClassifier", {}),
    "pegasos": ("PegasosClassifier", {}),
    "sdca": ("SDCAClassifier", {}),
    "bound": ("BoundMajorizationClassifier", {}),
}
"""The class of each solver in `manyclass`, and what the name says of its parameters."""

OF_ONE = ("loss", "alpha", "leave_one_out", "tol", "max_iter")
"""Parameters of one estimator: who gives them has made a choice."""

SEARCHES = ("any",)
"""Those that fit several models: none that a checkpoint could go on with, and on copies of rows that are in memory."""


def default_solver(parameters: Mapping[str, Any]) -> str:
    """What is taken where no solver is named."""
    return "auto" if any(parameters.get(name) is not None for name in OF_ONE) else "any"


def name_of(classifier: Any) -> str:
    """The solver that stands for a fitted estimator."""
    if hasattr(classifier, "choice_") and "solver" in classifier.get_params():
        return str(classifier.choice_["solver"])
    return next(name for name, (kind, _) in ESTIMATORS.items() if kind == type(classifier).__name__)


def build(solver: str, parameters: Mapping[str, Any]) -> Any:
    """The unfitted estimator, its parameters checked; None leaves the estimator's default."""
    import manyclass
    from manyclass.estimators.vocabulary import LOSSES_OF, check_loss

    if solver not in ESTIMATORS:
        raise UsageError(f"there is no solver '{solver}': choose one of {', '.join(ESTIMATORS)}")
    name, fixed = ESTIMATORS[solver]
    estimator = getattr(manyclass, name)(**fixed)
    given = {option: value for option, value in parameters.items() if value is not None}
    if "loss" in given and name in LOSSES_OF:
        try:
            check_loss(type(estimator), given["loss"])
        except ValueError as error:
            able = [other for other, (owner, _) in ESTIMATORS.items() if given["loss"] in LOSSES_OF.get(owner, ())]
            raise UsageError(f"{error}" + f" Here: --solver {', '.join(able)}" * bool(able)) from error
        if len(LOSSES_OF[name]) == 1:
            del given["loss"]
    for option in given.keys() - estimator.get_params().keys():
        able = [other for other in ESTIMATORS if option in _parameters(other)]
        told = f", or name --solver {' or '.join(able)}" if 0 < len(able) < len(ESTIMATORS) // 2 else ""
        raise UsageError(f"--solver {solver} has no --{option.replace('_', '-')}: leave it out{told}")
    # Now rather than at fit, which comes after the data has been read.
    estimator.set_params(**given)._validate_params()
    return estimator


def _parameters(solver: str) -> set[str]:
    import manyclass

    name, fixed = ESTIMATORS[solver]
    return set(getattr(manyclass, name)().get_params()) - set(fixed)

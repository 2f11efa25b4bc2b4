"""Which estimator fits which loss, and the error for other losses."""

from sklearn.utils._param_validation import InvalidParameterError

from manyclass.model import SMOOTH_LOSSES
from manyclass.model.losses.squared import Calibrated

# Generalised linear models take every loss whose link is given, so that a new one is a line in one registry.
_WITH_LINK = tuple(name for name, loss in SMOOTH_LOSSES.items() if not isinstance(loss, Calibrated))

LOSSES_OF: dict[str, tuple[str, ...]] = {
    "GLMClassifier": _WITH_LINK,
    "GLMClassifierCV": _WITH_LINK,
    "CalibratedLeastSquaresClassifier": ("calibrated",),
    "StagewiseClassifier": ("squared", "calibrated", "softmax", "logistic"),
    "PegasosClassifier": (
        "softmax",
        "logistic",
        "hinge",
        "squared_hinge",
        "crammer_singer",
        "squared_crammer_singer",
        "perceptron",
    ),
    "SDCAClassifier": ("softmax", "logistic", "squared", "hinge", "squared_hinge", "crammer_singer"),
    "SDCARegressor": ("squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"),
    "BoundMajorizationClassifier": ("softmax", "logistic"),
}


def check_loss(kind: type, loss: str) -> None:
    """Refuse a loss that an estimator, or its base in `LOSSES_OF`, does not fit; a default of "auto" is allowed."""
    base = next(base for base in kind.__mro__ if base.__name__ in LOSSES_OF)
    estimator = base.__name__
    allowed = (*(["auto"] if getattr(base, "loss", "") == "auto" else []), *LOSSES_OF[estimator])
    if loss in allowed:
        return
    others = [name for name, losses in LOSSES_OF.items() if loss in losses]
    if others:
        raise InvalidParameterError(f"{estimator} does not fit loss={loss!r}; use {' or '.join(others)}.")
    raise InvalidParameterError(f"There is no loss={loss!r}; {estimator} fits {', '.join(map(repr, allowed))}.")

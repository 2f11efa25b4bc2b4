"""Linear models for many classes and many rows, without learning rates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyclass import diagnostics as diagnostics
    from manyclass import export as export
    from manyclass import linear_model as linear_model
    from manyclass.data.class_moments import ClassMoments
    from manyclass.data.moments import Moments
    from manyclass.diagnostics.analysis import analyze
    from manyclass.estimators.auto import AutoClassifier
    from manyclass.estimators.bound_majorization import BoundMajorizationClassifier
    from manyclass.estimators.calibrated import CalibratedLeastSquaresClassifier
    from manyclass.estimators.glm import GLMClassifier
    from manyclass.estimators.glm_cv import GLMClassifierCV
    from manyclass.estimators.pegasos import PegasosClassifier
    from manyclass.estimators.sdca import SDCAClassifier, SDCARegressor
    from manyclass.estimators.stagewise import StagewiseClassifier, StagewiseRegressor

    __version__: str

# Where each public name lives; it is imported when first used, so that importing the package stays fast.
_PUBLIC = {
    "AutoClassifier": "manyclass.estimators.auto",
    "BoundMajorizationClassifier": "manyclass.estimators.bound_majorization",
    "CalibratedLeastSquaresClassifier": "manyclass.estimators.calibrated",
    "ClassMoments": "manyclass.data.class_moments",
    "GLMClassifier": "manyclass.estimators.glm",
    "GLMClassifierCV": "manyclass.estimators.glm_cv",
    "Moments": "manyclass.data.moments",
    "PegasosClassifier": "manyclass.estimators.pegasos",
    "SDCAClassifier": "manyclass.estimators.sdca",
    "SDCARegressor": "manyclass.estimators.sdca",
    "StagewiseClassifier": "manyclass.estimators.stagewise",
    "StagewiseRegressor": "manyclass.estimators.stagewise",
    "analyze": "manyclass.diagnostics.analysis",
}

_PACKAGES = ("diagnostics", "export", "linear_model")

__all__ = [
    "AutoClassifier",
    "BoundMajorizationClassifier",
    "CalibratedLeastSquaresClassifier",
    "ClassMoments",
    "GLMClassifier",
    "GLMClassifierCV",
    "Moments",
    "PegasosClassifier",
    "SDCAClassifier",
    "SDCARegressor",
    "StagewiseClassifier",
    "StagewiseRegressor",
    "analyze",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        value = _version()
    elif name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_PACKAGES, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(__name__)
    except PackageNotFoundError:
        raise AttributeError("manyclass has no version where it is not installed, but only on the path") from None

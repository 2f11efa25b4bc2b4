"""Linear models for many classes and many rows, without learning rates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyclass import diagnostics as diagnostics
    from manyclass import export as export
    from manyclass import linear_model as linear_model
    from manyclass.data.class_moments import ClassMoments as ClassMoments
    from manyclass.data.moments import Moments as Moments
    from manyclass.diagnostics.analysis import analyze as analyze
    from manyclass.estimators.auto import AutoClassifier as AutoClassifier
    from manyclass.estimators.bound_majorization import BoundMajorizationClassifier as BoundMajorizationClassifier
    from manyclass.estimators.calibrated import CalibratedLeastSquaresClassifier as CalibratedLeastSquaresClassifier
    from manyclass.estimators.glm import GLMClassifier as GLMClassifier
    from manyclass.estimators.glm_cv import GLMClassifierCV as GLMClassifierCV
    from manyclass.estimators.pegasos import PegasosClassifier as PegasosClassifier
    from manyclass.estimators.sdca import SDCAClassifier as SDCAClassifier
    from manyclass.estimators.sdca import SDCARegressor as SDCARegressor
    from manyclass.estimators.stagewise import StagewiseClassifier as StagewiseClassifier
    from manyclass.estimators.stagewise import StagewiseRegressor as StagewiseRegressor

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

__all__ = list(_PUBLIC)


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

"""What scikit-learn asks of everything that has parameters."""

from functools import cache
from typing import Any

from sklearn.base import BaseEstimator


class Parametrised(BaseEstimator):
    """Reads its own signature once, not for each of the copies that a search makes by the thousand."""

    @classmethod
    @cache
    def _get_param_names(cls) -> Any:
        return super()._get_param_names()

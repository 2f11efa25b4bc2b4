"""What regressors share: responses of one or several columns, and predictions from coefficients."""

from abc import abstractmethod
from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin

from manyclass.data import Rows
from manyclass.data.labels import Responses
from manyclass.data.rows import Array
from manyclass.estimators.base import Estimator, Task
from manyclass.estimators.linear import LinearModel
from manyclass.model import LOSSES, Loss
from manyclass.model.losses import RESPONSE_LOSSES


class Regressor(RegressorMixin, MultiOutputMixin, Estimator):
    """Predicts one response, of shape (n_rows,), where y had one dimension; else one column for each of y.

    Subclasses set what `_scores` needs, and the base sets ``loss_``.
    """

    loss_: str
    _is_one_dimensional: bool

    def predict(self, X: Any) -> Array:
        """Responses of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        """
        Z = self._scores(self._fitted_rows(X))
        return Z[:, 0] if self._is_one_dimensional else Z

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination R², as scikit-learn defines it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Where X is a path, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        r2 : float
        """
        return float(super().score(*self._opened(X, y), sample_weight))

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _scores(self, rows: Rows) -> Array:
        """Of shape (n_rows, n_outputs)."""

    def _encode(self, rows: Rows, y: Any) -> Responses:
        responses = Responses.of(y, rows.itemsize)
        self._is_one_dimensional = responses.is_one_dimensional
        return responses

    def _choose_loss(self, encoded: Responses) -> tuple[str, Loss]:
        name = getattr(self, "loss", "squared")
        return name, RESPONSE_LOSSES[name](self.epsilon) if name in RESPONSE_LOSSES else LOSSES[name]


class LinearRegressor(LinearModel, Regressor):
    """Predictions W x + b."""

    def _store(self, task: Task, model: tuple[Array, Array]) -> None:
        super()._store(task, model)
        if self._is_one_dimensional:
            self.coef_, self.intercept_ = self.coef_[0, :], self.intercept_[0]

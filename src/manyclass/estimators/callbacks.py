"""What scikit-learn's callbacks are told of a fit."""

from typing import Any


def tell_callbacks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """That the fit is over, where there are any."""
    if hasattr(estimator, "_callback_fit_ctx"):
        metadata, state = for_scorers(sample_weight), dict(vars(estimator))
        estimator._callback_fit_ctx.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, metadata=metadata, reconstruction_attributes=state
        )


def for_scorers(sample_weight: Any) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}


class Metadata(dict[str, Any]):
    """What scorers take by name; what is `told` beside it is there, too, but not a key, as no scorer takes it."""

    def __init__(self, given: dict[str, Any], **told: Any):
        super().__init__(given)
        self.told = told

    def __bool__(self) -> bool:
        return True  # nor does an empty dict say so: callbacks write ``metadata or {}``

    def __contains__(self, key: object) -> bool:
        return key in self.told or super().__contains__(key)

    def __missing__(self, key: str) -> Any:
        return self.told[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

"""The end of a fit, and the metadata of an iteration, for scikit-learn's callbacks."""

from typing import Any


def tell_callbacks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Tell the callbacks, if there are any, that the fit is over."""
    if hasattr(estimator, "_callback_fit_ctx"):
        metadata, state = for_scorers(sample_weight), dict(vars(estimator))
        estimator._callback_fit_ctx.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, metadata=metadata, reconstruction_attributes=state
        )


def for_scorers(sample_weight: Any) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}


class Metadata(dict[str, Any]):
    """Keyword arguments of scorers; `extra` items can be looked up, but are not among the keys, which scorers take."""

    def __init__(self, arguments: dict[str, Any], **extra: Any):
        super().__init__(arguments)
        self.extra = extra

    def __bool__(self) -> bool:
        return True  # though it may be empty: callbacks write ``metadata or {}``

    def __contains__(self, key: object) -> bool:
        return key in self.extra or super().__contains__(key)

    def __missing__(self, key: str) -> Any:
        return self.extra[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

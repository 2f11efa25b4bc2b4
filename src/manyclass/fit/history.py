"""What a fit leaves behind of each of its iterations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAN = float("nan")


@dataclass(frozen=True)
class Record:
    """The state after one iteration.

    Attributes
    ----------
    n_iter : float
        Iterations so far, in the units of ``max_iter``: a whole number unless rows are drawn one by one.
    n_passes : float
        Passes over the rows so far, a whole number unless rows are drawn one by one; curvature estimates on samples
        of rows are left out.
    seconds : float
        Since the start of the fit, everything included.
    objective : float
    duality_gap : float
        (F − D)/F(zero model), a bound on (F − F*)/F(zero model); nan where none is known.
    validation_score : float
        Minus the mean loss of the held-out rows; nan without.
    details : mapping
        What belongs to one kind of estimator alone; each documents its own.
    """

    n_iter: float
    n_passes: float
    seconds: float
    objective: float
    duality_gap: float = NAN
    validation_score: float = NAN
    details: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """An attribute, or one of the details."""
        return getattr(self, name) if name in self.__dataclass_fields__ else self.details[name]

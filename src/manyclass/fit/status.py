"""Why a fit ended, as a sentence that says what to do."""

from enum import Enum


class Status(Enum):
    """The same reasons for every estimator."""

    CONVERGED = "Converged: the duality gap, a bound on the distance from the minimum, is at or below tol."
    STATIONARY = (
        "Stationary: with alpha=0 there is no duality gap; what a step is expected to gain, and what the last ones did "
        "gain, is at or below tol times the loss of the zero model."
    )
    SETTLED = "Settled: what another iteration is expected to gain is at or below tol; an estimate, not a bound."
    FINISHED = "Finished: all the work that was asked for is done."
    EARLY_STOPPED = "Stopped early: the score of the held-out rows no longer improved; the best model was kept."
    STALLED = (
        "No further progress is possible in this floating-point precision; the model is as good as rounding allows: "
        "where a smaller gap is needed, scale the columns (StandardScaler), pass float64 data, or raise tol or alpha."
    )
    NOT_CONVERGED = (
        "Not converged: the fit ended far from tol, as numbers are so large beside others that rounding left no step; "
        "scale the columns (StandardScaler), correct such numbers, or raise alpha."
    )
    MAX_ITER = "Stopped at max_iter before reaching tol; raise max_iter or tol."
    MAX_TIME = "Stopped at max_time: the model holds what was done until then; raise max_time for more."
    INTERRUPTED = "Interrupted: the model holds what was done until then; fit again for the whole of it."
    STOPPED_BY_CALLBACK = "Stopped by a callback: the model holds what was done until then."

    def __str__(self) -> str:
        return self.value

    @property
    def is_failure(self) -> bool:
        """Whether a user should be warned."""
        return self in (Status.NOT_CONVERGED, Status.MAX_ITER, Status.MAX_TIME, Status.INTERRUPTED)

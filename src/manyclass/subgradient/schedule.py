"""What is left to choose in Algorithm 1: the first step, how many rows each has, in which order, and the model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Steps of length 1/(alpha (t + offset)), the rows they are taken on, and the model they give.

    Parameters
    ----------
    offset : float, default=None
        0 is the paper's. None makes the first step no longer than the data allow, L · mean‖x‖² / alpha where L bounds
        the curvature of the loss; a quarter of that where subgradients are bounded. Where features differ in size,
        each has one of its own, L · mean‖x/u‖² · u_j² / alpha with its root mean square u_j.
    average : bool, default=True
        Whether the model is the average of the iterates W_t with weights t (t + offset), rather than the last of them.
    replace : bool, default=False
        Whether rows are drawn with replacement, as in the paper, or each once before any is drawn again.
    batch_size : int, default=1
        r, the rows of a step.

    Raises
    ------
    ValueError
        If the offset is negative, or a step has no rows.
    """

    offset: float | None = None
    average: bool = True
    replace: bool = False
    batch_size: int = 1

    def __post_init__(self) -> None:
        if self.offset is not None and not 0.0 <= self.offset < float("inf"):
            raise ValueError(f"offset={self.offset!r} must be a number of steps, 0 or more, or None to derive it.")
        if self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size!r} must be a number of rows, 1 or more.")


SCHEDULES = {"auto": Schedule(), "paper": Schedule(offset=0.0, average=False, replace=True)}

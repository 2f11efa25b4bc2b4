"""Runs the chosen method, and switches to another when it takes longer than was estimated."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from manyclass.choice.frame import Frame
from manyclass.choice.methods import Choice, Method
from manyclass.curvature import CURVATURES
from manyclass.data.rows import Array
from manyclass.fit import Clock, InOrder, Iterate, Iterates, Status, changed
from manyclass.model import Problem
from manyclass.solvers import SOLVERS, iterates_in

PATIENCE = 2.0
"""Factor on the estimated seconds of a method, after which another method may replace it."""
DOUBT = 4.0
"""The replacement of a doubted method may take the estimate of that method, times `Iterate.doubts`, times this."""
LAST_HOPE = 100.0, 30.0
"""When a method finds no further step, another is tried if its estimate is below this many times the seconds spent, or
below this many seconds."""
LOOKED_AT = 10
"""Number of iterations whose total gain is compared with the rounding of the objective."""


@dataclass
class Leg:
    """One method's part of a run."""

    method: Method
    others: list[Method]  # its possible replacements
    patience: float  # seconds that it may take
    n_iter: float = 0  # of the methods before it, as the next two
    n_passes: float = 0
    seconds: float = 0.0
    values: list[float] = field(default_factory=list)  # its last objectives


def in_turn(
    choice: Choice,
    given: Problem,
    rng: np.random.Generator,
    start: tuple[Array, Array] | None,
    on_change: Callable[[Method], None],
    saved: dict[str, Any] | None = None,
    clock: Clock | None = None,
) -> Iterates:
    """The iterates of the chosen method, and of its replacements, each of which starts at the last model.

    - After `PATIENCE` times its estimated seconds, a method is replaced by the one with the lowest estimate, as soon as
      this estimate is no more than the seconds spent. A wrong estimate costs about twice the time of the best method.
    - If the first steps speak against the metric of a method (`Iterate.doubts`), a method with a diagonal metric
      replaces it at once. The doubted method may come back later.
    - If rounding keeps a method from the tolerance, the same method goes on with products in float64. If it finds no
      step there either, it is replaced, unless all others would take far longer.
    - No method is begun whose set-up would outlast the `clock`, as a set-up can hardly be interrupted.

    Seconds are those of the cost model, so that a fit does not depend on the load of the machine. `saved` is the state
    of an iterate of an earlier run; the iterates that followed it are given.
    """
    if saved is None:
        first = choice.method if clock is None else _farthest(choice, clock.left)
        if first is not choice.method:
            on_change(first)
        others = [one for one in choice.candidates if one is not first and one.fits]
        leg = Leg(first, others, PATIENCE * first.seconds, n_passes=given.n_passes)
    else:
        leg = saved["relay"]
        rng.bit_generator.state = saved["random"]
    while True:
        method, others = leg.method, leg.others
        random, is_rounding, taken = rng.bit_generator.state, False, 0.0
        is_narrow = not method.wide and given.rows.itemsize < 8 and given.rows.place.is_here
        iterates = InOrder(_at_work(method, given, rng, start, None if saved is None else saved["solver"]))
        for iterate in iterates:
            taken = method.taken(iterate.n_passes, iterate.n_looks)
            if clock is not None:
                others = [one for one in others if one.set_up < clock.left]
            promising = [one for one in others if iterate.doubts and CURVATURES[one.curvature].is_diagonal]
            if promising:
                others = [*others, method]
                break
            if saved is None:  # otherwise this iterate was yielded before
                leg.values = [*leg.values, iterate.objective][-LOOKED_AT:]
                state = partial(_with, iterate, choice=choice, relay=leg, random=random)
                n_iter, n_passes = leg.n_iter + iterate.n_iter, leg.n_passes + iterate.n_passes
                yield replace(iterate, n_iter=n_iter, n_passes=n_passes, state=state)
            saved = None
            promising = [one for one in others if one.seconds <= leg.seconds + taken]
            is_rounding = is_narrow and _is_rounding(leg.values, given.rows.precision)
            if is_rounding or (promising and taken > leg.patience):
                break
        else:
            times, seconds = LAST_HOPE
            others = [one for one in others if one.seconds <= max(times * (leg.seconds + taken), seconds)]
            is_rounding, promising = is_narrow, others
            if iterates.reason is not Status.STALLED or not (is_narrow or others):
                return iterates.reason
        if is_rounding:
            others, promising = [replace(one, wide=True) for one in others], [replace(method, wide=True)]
        iterates.close()
        start, doubted, method = iterate.model(), method, min(promising, key=lambda one: one.seconds)
        on_change(method)
        patience = PATIENCE * method.seconds
        if doubted in others:
            # The stronger the doubt, the more steps it takes to leave the region where the metric is wrong.
            patience = min(patience, DOUBT * iterate.doubts * doubted.seconds)
        others = [one for one in others if one is not method]
        n_iter, n_passes = leg.n_iter + iterate.n_iter, leg.n_passes + iterate.n_passes
        leg = Leg(method, others, patience, n_iter, n_passes, leg.seconds + taken)


def _farthest(choice: Choice, seconds: float) -> Method:
    """The chosen method; if it would take more seconds, the one that gets through the largest share of its passes."""
    if not choice.method.seconds > seconds:  # true of NaN, too, where there is no estimate
        return choice.method
    able = [one for one in choice.candidates if one.fits and one.set_up < seconds]
    if not able:
        return min((one for one in choice.candidates if one.fits), key=lambda one: one.set_up)
    return max(able, key=lambda one: (seconds - one.set_up) / max(one.seconds - one.set_up, 1e-9))


def _is_rounding(values: list[float], precision: float) -> bool:
    """Whether the last `LOOKED_AT` iterations gained no more than the rounding of the objective."""
    return len(values) == LOOKED_AT and values[0] - values[-1] <= LOOKED_AT * precision * abs(values[-1])


def _with(iterate: Iterate, **more: Any) -> dict[str, Any]:
    """The state of an iterate for a checkpoint, and further entries."""
    assert iterate.state is not None
    return {"solver": iterate.state(), **more}


def _at_work(
    method: Method, given: Problem, rng: np.random.Generator, start: Any, saved: dict[str, Any] | None
) -> Iterates:
    """The iterates of one method, in the coordinates of the given rows. Passes and looks are counted from 0."""
    curvature, solver = CURVATURES[method.curvature], SOLVERS[method.solver]
    frame = Frame(given, rotate=method.row_space, wide=method.wide)
    problem, start = frame.problem, frame.project(start)
    before, looks = (problem.n_passes, problem.n_looks) if saved is None else saved["before"]
    iterates = iterates_in(curvature, solver, problem, rng, start, None if saved is None else saved["solver"])

    def of_given(iterate: Iterate) -> Iterate:
        state = partial(_with, iterate, before=(before, looks))
        n_passes, n_looks = iterate.n_passes - before, iterate.n_looks - looks
        return replace(iterate, model=frame.lifted(iterate.model), n_passes=n_passes, n_looks=n_looks, state=state)

    return (yield from changed(iterates, of_given))

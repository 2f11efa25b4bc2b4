"""The chosen method at work, and others that take over when it needs longer than was estimated."""

from collections.abc import Callable
from dataclasses import replace
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
"""A method may take so many times its estimated seconds before another is looked for."""
DOUBT = 4.0
"""A stand-in for a method in doubt may take so many times the estimate of that one, times `Iterate.doubts`."""
LAST_HOPE = 100.0, 30.0
"""Where a method finds no step, another may be estimated at so many times the seconds spent, or so many seconds."""
LOOKED_AT = 10
"""Iterations whose joint gain says whether nothing but rounding is left."""


def in_turn(
    choice: Choice,
    given: Problem,
    rng: np.random.Generator,
    start: tuple[Array, Array] | None,
    on_change: Callable[[Method], None],
    saved: dict[str, Any] | None = None,
    clock: Clock | None = None,
) -> Iterates:
    """The iterates of the chosen method, and of others that go on from where it is when it does badly.

    - A method that has taken `PATIENCE` times its estimate gives way to the one with the lowest estimate, as soon as
      that is no more than what has been spent: a wrong estimate costs about twice the time of the best method.
    - A method whose start casts doubt on its metric gives way at once to a diagonal one, and may come back later.
    - A method that rounding keeps from the tolerance goes on with products in float64. If it finds no step in these
      either, it gives way too, unless all others would take far longer.
    - No method is begun whose set-up, which can hardly be interrupted, outlasts the `clock`.

    Seconds are those of the cost model, so that a fit does not depend on what else the machine does. With `saved`, the
    state of an iterate of an earlier run, the iterates that followed it are given.
    """
    if saved is None:
        first = choice.method if clock is None else _farthest(choice, clock.left)
        if first is not choice.method:
            on_change(first)
        left = [one for one in choice.candidates if one is not first and one.fits]
        known = _begun(first, left, 0, 0.0, given.n_passes, PATIENCE * first.seconds)
    else:
        known = saved["relay"]
        rng.bit_generator.state = saved["random"]
    while True:
        method, left, before, spent, passes = (known[name] for name in ("method", "left", "before", "spent", "passes"))
        random, is_rounding, taken = rng.bit_generator.state, False, 0.0
        is_narrow = not method.wide and given.rows.itemsize < 8 and given.rows.place.is_here
        iterates = InOrder(_at_work(method, given, rng, start, None if saved is None else saved["solver"]))
        for iterate in iterates:
            taken = method.taken(iterate.n_passes, iterate.n_looks)
            if clock is not None:
                left = [one for one in left if one.set_up < clock.left]
            promising = [one for one in left if iterate.doubts and CURVATURES[one.curvature].is_diagonal]
            if promising:
                left = [*left, method]
                break
            if saved is None:  # otherwise this iterate was yielded before
                known["values"] = [*known["values"], iterate.objective][-LOOKED_AT:]
                state = partial(_with, iterate, choice=choice, relay=known, random=random)
                n_iter, n_passes = before + iterate.n_iter, passes + iterate.n_passes
                yield replace(iterate, n_iter=n_iter, n_passes=n_passes, state=state)
            saved = None
            promising = [one for one in left if one.seconds <= spent + taken]
            is_rounding = is_narrow and _is_rounding(known["values"], given.rows.precision)
            if is_rounding or (promising and taken > known["patience"]):
                break
        else:
            times, seconds = LAST_HOPE
            left = [one for one in left if one.seconds <= max(times * (spent + taken), seconds)]
            is_rounding, promising = is_narrow, left
            if iterates.reason is not Status.STALLED or not (is_narrow or left):
                return iterates.reason
        if is_rounding:
            left, promising = [replace(one, wide=True) for one in left], [replace(method, wide=True)]
        iterates.close()
        start, doubted, method = iterate.model(), method, min(promising, key=lambda one: one.seconds)
        on_change(method)
        patience = PATIENCE * method.seconds
        if doubted in left:
            # The stronger the doubt, the longer the stand-in leads away from where the metric is wrong.
            patience = min(patience, DOUBT * iterate.doubts * doubted.seconds)
        left = [one for one in left if one is not method]
        passes += iterate.n_passes
        known = _begun(method, left, before + iterate.n_iter, spent + taken, passes, patience)


def _farthest(choice: Choice, seconds: float) -> Method:
    """The chosen method, or, if the seconds are too few for it, the one that gets through most of its passes."""
    if not choice.method.seconds > seconds:  # true of NaN, too, where there is no estimate
        return choice.method
    able = [one for one in choice.candidates if one.fits and one.set_up < seconds]
    if not able:
        return min((one for one in choice.candidates if one.fits), key=lambda one: one.set_up)
    return max(able, key=lambda one: (seconds - one.set_up) / max(one.seconds - one.set_up, 1e-9))


def _begun(
    method: Method, left: list[Method], before: float, spent: float, passes: float, patience: float
) -> dict[str, Any]:
    """The state of the relay: a method, those that may follow it, iterations, seconds and passes before it, the seconds
    that it may take, and its last objectives."""
    known = {"method": method, "left": left, "before": before, "spent": spent, "passes": passes}
    return known | {"patience": patience, "values": []}


def _is_rounding(values: list[float], precision: float) -> bool:
    """Whether the gain of the last iterations cannot be told from the rounding of a sum."""
    return len(values) == LOOKED_AT and values[0] - values[-1] <= LOOKED_AT * precision * abs(values[-1])


def _with(iterate: Iterate, **more: Any) -> dict[str, Any]:
    """The state of an iterate, with more beside it."""
    assert iterate.state is not None
    return {"solver": iterate.state(), **more}


def _at_work(
    method: Method, given: Problem, rng: np.random.Generator, start: Any, saved: dict[str, Any] | None
) -> Iterates:
    """The iterates of one method, as models of the rows given; passes are counted from 0."""
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

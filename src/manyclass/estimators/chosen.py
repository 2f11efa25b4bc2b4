"""A fit by the method that was chosen, and what the user is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from manyclass.choice import Choice, in_turn
from manyclass.choice.frame import Frame
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.fit import Iterates, changed
from manyclass.model import Problem


def by_choice(model: LinearClassifier, task: Task, choose: Callable[[Problem], Choice]) -> Iterates:
    """The iterates, with ``choice_`` of the model set, and kept right where one method takes the place of another."""
    frame, saved = Frame(task.problem, drops_empty=True), task.saved
    problem = frame.problem
    if saved is None:
        # What is told where the time is over before anything is chosen.
        model.choice_ = _told(Choice.of("auto", "auto"), [])
    choice = choose(problem) if saved is None else saved["choice"]
    changes: list[str] = [] if saved is None else model.choice_["changed_to"]
    model.choice_ = _told(choice, changes)
    start = frame.project(model._start(task.problem)) if saved is None else None
    iterates = in_turn(choice, problem, task.rng, start, lambda new: changes.append(str(new)), saved, task.clock)
    return (yield from changed(iterates, lambda one: replace(one, model=frame.lifted(one.model))))


def _told(choice: Choice, changes: list[str]) -> dict[str, Any]:
    method = choice.method
    return {
        "solver": method.solver,
        "curvature": method.curvature,
        "row_space": method.row_space,
        "estimates": {str(one): one.seconds for one in choice.candidates if one.seconds == one.seconds},
        "changed_to": changes,
    }

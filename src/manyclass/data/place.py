"""Where rows lie: here, or in parts elsewhere; and how a problem on them is asked for sums."""

import math
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from manyclass.data.memory import room_for
from manyclass.execution import Parts


class Here:
    """In one place: a problem is asked itself. See `Problem` for what the methods mean."""

    is_here = True

    def map(self, problem: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(problem, *arguments)

    sum = sum_of_first = map

    def changed(self, problem: Any, function: Callable[..., None], state: Any, *arguments: Any) -> Any:
        function(problem, state, *arguments)
        return state

    def gather(self, values: Any) -> Any:
        """What there is for each row, in one array; None stays None."""
        return values

    def room(self, limit: float | None) -> float:
        """Bytes for what there is for each row, under a limit on memory here."""
        return room_for(limit)

    def refuse(self, why: str) -> None:
        """Raise a ValueError, unless all is here."""

    @property
    def traffic(self) -> dict[str, Any]:
        return {}


HERE = Here()


class Elsewhere(Here):
    """In parts: the problem of each part is asked, there."""

    is_here = False

    def __init__(self, parts: Parts, firsts: np.ndarray):
        self.parts, self.firsts = parts, firsts

    def map(self, problem: Any, function: Callable[..., Any], *arguments: Any) -> Parts:
        return self.parts.map(*_asked(problem, function, arguments), name=_name(function))

    def sum(self, problem: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.parts.sum(*_asked(problem, function, arguments), name=_name(function), check=problem.on_block)

    def sum_of_first(self, problem: Any, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Parts]:
        found = self.map(problem, function, *arguments)
        total = found.sum(itemgetter(0), name=_name(function), check=problem.on_block)
        return total, found.map(itemgetter(1))

    def changed(self, problem: Any, function: Callable[..., None], state: Parts, *arguments: Any) -> Parts:
        return self.map(problem, partial(_on_copy, function), state, *arguments)

    def gather(self, values: Parts | None) -> Any:
        return None if values is None else np.concatenate(values.at(np.argsort(self.firsts).tolist()).values())

    def room(self, limit: float | None) -> float:
        return math.inf  # it stays with the rows

    def refuse(self, why: str) -> None:
        raise ValueError(why)

    @property
    def traffic(self) -> dict[str, Any]:
        return {"bytes": self.parts.executor.bytes_moved}


def _asked(problem: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return _of_part, problem.recipe, problem.targets.parts, problem.weight, function, *arguments


def _of_part(held: Any, recipe: Any, targets: Any, weight: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    rows = recipe.rows.held(held)
    share = rows.n_rows / max(recipe.rows.n_rows, 1)
    return function(recipe.variant(rows=rows, targets=targets, weight=weight, share=share), *arguments)


def _on_copy(function: Callable[..., None], part: Any, state: Any, *arguments: Any) -> Any:
    state = state + 0
    function(part, state, *arguments)
    return state


def _name(function: Callable[..., Any]) -> str:
    function = function.args[0] if isinstance(function, partial) else function
    return function.__name__.strip("_")

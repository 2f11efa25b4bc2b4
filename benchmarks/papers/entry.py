"""What an entry of the registry says, and how it is run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.data import at_most
from benchmarks.papers import sources
from benchmarks.report import Table

QUICK_ROWS = 2_000
"""Training rows of a set at quick size, and test rows."""
NOT_MEASURED = "not at this size"


@dataclass(frozen=True)
class Number:
    """Something that the paper printed, and where in our tables its counterpart stands.

    Parameters
    ----------
    what, paper : str
    row : tuple of str
        Cells of the row, in any columns.
    column : str
        Its heading, or the beginning of it (the shortest such); "" where there is no counterpart.
    """

    what: str
    paper: str
    row: tuple[str, ...] = ()
    column: str = ""

    def ours(self, tables: Iterable[Table]) -> str:
        for table in tables:
            heading, *rows = table.rows
            places = [i for i, name in enumerate(heading) if self.column and name.startswith(self.column)]
            found = [row for row in rows if set(self.row) <= set(row)]
            if places and found:
                return found[0][min(places, key=lambda i: len(heading[i]))]
            inner = self.ours(note for note in table.notes if isinstance(note, Table))
            if inner not in ("", NOT_MEASURED):
                return inner
        return NOT_MEASURED if self.column else ""


@dataclass(frozen=True)
class Call:
    """A function of the benchmarks, its arguments, and the data it takes.

    Parameters
    ----------
    function : str
        ``module:name`` below ``benchmarks``.
    data : dict
        Arguments that are data sets of `sources`: one name, or several.
    needs : tuple of str
        Sets that the function finds by itself.
    full, quick : dict
        The other arguments at either size; None where it is left out.
    quick_rows : int or None
        Rows of a set at most at quick size.
    """

    function: str
    data: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    full: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] | None = field(default_factory=dict)
    quick_rows: int | None = QUICK_ROWS

    def resolve(self) -> Callable[..., Any]:
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(f"benchmarks.{module}"), name)

    def make(self, quick: bool, file: str | None = None) -> None:
        function, arguments = self.resolve(), self.arguments(quick, file)
        with at_most(self.quick_rows if quick else None):
            function(**arguments)

    def names(self) -> list[str]:
        """All sets it wants."""
        given = [names if isinstance(names, tuple) else (names,) for names in self.data.values()]
        return [*(name for names in given for name in names), *self.needs]

    def arguments(self, quick: bool, file: str | None = None) -> dict[str, Any]:
        """With what stands in for sets that are not at hand, or with `file` in place of every set.

        Raises
        ------
        `sources.MissingError`
            If there is nothing to take.
        """
        for name in self.needs:
            if sources.missing(name):
                raise sources.MissingError(sources.wanted(name))
        found: dict[str, Any] = {}
        for argument, names in self.data.items():
            if isinstance(names, tuple):
                found[argument] = [file] if file else [sources.at_hand(name, quick) for name in names]
            else:
                found[argument] = file or sources.at_hand(names, quick)
        return found | ((self.quick or {}) if quick else self.full)


@dataclass(frozen=True)
class Entry:
    """A table or figure.

    Parameters
    ----------
    name : str
        ``paper/figure-1``
    what : str
    calls : tuple of Call
    numbers : tuple of Number
    """

    name: str
    what: str
    calls: tuple[Call, ...]
    numbers: tuple[Number, ...] = ()

    def made(self, quick: bool) -> list[Call]:
        """The calls that are made at this size."""
        return [call for call in self.calls if not quick or call.quick is not None]

    def names(self, quick: bool = False) -> list[str]:
        return list(dict.fromkeys(name for call in self.made(quick) for name in call.names()))

"""Small pictures as SVG, made here so that a page needs no library, no script and no network.

Colours come from the classes of `page.css`, which knows whether it is light or dark.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyclass.diagnostics.page import Html, join, tag

WIDTH, HEIGHT = 380.0, 250.0
"""About a phone's width, so that letters keep their size there."""
LEFT, RIGHT, TOP, BOTTOM = 58.0, 18.0, 10.0, 40.0
TICKS = 5
POINTS = 500
"""Marks of a picture; more than can be told apart only make the page heavy."""


@dataclass(frozen=True)
class Scale:
    """From values to places along an axis."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def of(cls, values: Any, *, log: bool = False, zero: bool = False) -> Self:
        """Wide enough for all of the values, and not of no width; `zero` begins at it."""
        values = np.asarray(values, dtype=np.float64)
        values = values[np.isfinite(values) & (values > 0)] if log else values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (1.0, 10.0)
        if log:
            # A decade at least, so that one of its powers of ten is there to be named.
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
            return cls(low, high if high > low else 10 * low, True)
        low = 0.0 if zero else low
        room = (high - low) or abs(high) or 1.0
        return cls(low if zero else low - 0.04 * room, high + 0.04 * room)

    def place(self, values: Any) -> np.ndarray:
        """0 at the low end, 1 at the high one."""
        values, low, high = np.asarray(values, dtype=np.float64), self.low, self.high
        if self.log:
            values, low, high = np.log10(np.maximum(values, low)), math.log10(low), math.log10(high)
        shares: np.ndarray = (values - low) / (high - low)
        return shares

    def ticks(self) -> list[tuple[float, str]]:
        """Round values and their names."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [(10.0**power, _power(power)) for power in range(first, last + 1, -(-(last - first) // TICKS))]
        rough = (self.high - self.low) / TICKS
        size = 10 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        count = math.floor(self.high / step + 1e-9)
        first = math.ceil(self.low / step - 1e-9)
        return [(number * step, f"{round(number * step, 12):,.6g}") for number in range(first, count + 1)]


def _power(power: int) -> str:
    if -2 <= power <= 3:
        return f"{10.0**power:,.6g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


@dataclass(frozen=True)
class Chart:
    """A picture with two axes: marks are added as text of SVG.

    `alt` says what it shows, for those who do not see it.
    """

    alt: str
    x: Scale
    y: Scale
    x_label: str
    y_label: str

    def at(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Places in the picture."""
        across = LEFT + (WIDTH - LEFT - RIGHT) * np.clip(self.x.place(x), 0, 1)
        down = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * np.clip(self.y.place(y), 0, 1)
        return [(round(float(a), 1), round(float(d), 1)) for a, d in zip(across, down, strict=True)]

    def line(self, x: Any, y: Any, kind: str = "line") -> Html:
        return tag("path", d="M" + "L".join(f"{a} {d}" for a, d in self.at(x, y)), class_=kind)

    def points(self, x: Any, y: Any) -> Html:
        """Dots, which are strokes of no length with round ends."""
        return tag("path", d="".join(f"M{a} {d}h0" for a, d in self.at(x, y)), class_="points")

    def bars(self, left: Any, right: Any, y: Any) -> Html:
        floor = HEIGHT - BOTTOM
        corners = zip(self.at(left, y), self.at(right, y), strict=True)
        return tag("path", d="".join(f"M{a} {floor}V{d}H{b}V{floor}z" for (a, d), (b, _) in corners), class_="bars")

    def drawn(self, *marks: Html) -> Html:
        """The picture, with its axes below the marks."""
        box = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
        return tag("svg", *self._axes(), *marks, viewBox=box, role="img", aria_label=self.alt, class_="chart")

    def _axes(self) -> Iterable[Html]:
        floor, end = HEIGHT - BOTTOM, WIDTH - RIGHT
        grid, names = [], []
        for value, name in self.x.ticks():
            ((across, _),) = self.at([value], [self.y.low])
            grid.append(f"M{across} {TOP}V{floor}")
            names.append(tag("text", name, x=across, y=floor + 15, class_="middle"))
        for value, name in self.y.ticks():
            ((_, down),) = self.at([self.x.low], [value])
            grid.append(f"M{LEFT} {down}H{end}")
            names.append(tag("text", name, x=LEFT - 6, y=down + 4, class_="end"))
        yield tag("path", d="".join(grid), class_="grid")
        yield join(names)
        yield tag("text", self.x_label, x=(LEFT + end) / 2, y=HEIGHT - 5, class_="middle label")
        up, middle = 12, (TOP + floor) / 2
        turned = f"rotate(-90 {up} {middle})"
        yield tag("text", self.y_label, x=up, y=middle, transform=turned, class_="middle label")


def thinned(n: int) -> np.ndarray:
    """Places among n in a row, closer together at the beginning, as on a log scale; all of them where they are few."""
    if n <= POINTS:
        return np.arange(n)
    return np.unique(np.concatenate([np.arange(20), np.geomspace(20, n - 1, POINTS).astype(int)]))

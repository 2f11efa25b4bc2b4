"""The report of `analyze` as the parts of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manyclass.diagnostics.charts import Chart, Scale, thinned
from manyclass.diagnostics.correlation import ResponseCorrelation
from manyclass.diagnostics.mistakes import Mistakes
from manyclass.diagnostics.names import shown
from manyclass.diagnostics.page import Html, bar, facts, figure, section, side_by_side, table, tag
from manyclass.diagnostics.spectra import Spectrum

if TYPE_CHECKING:
    from manyclass.diagnostics.report import DataReport

Facts = list[tuple[str, list[tuple[str, str]]]]
NAMED = 30
"""Classes up to which each has a bar with its name."""


def parts(report: DataReport, printed: Facts) -> list[Html]:
    """The sections of the page; `printed` is what ``print`` shows before the table of costs."""
    data = (facts(rows, title[:1].upper() + title[1:]) for title, rows in printed)
    sections = [
        section("Recommendation", tag("p", report.recommendation, class_="advice")),
        section("The data", side_by_side(*data)),
    ]
    if report.correlation is not None and report.spectrum is not None and report.spectrum.n_components:
        pictures = (spectrum_chart(report.spectrum), correlation_chart(report.correlation))
        sections.append(section(f"Spectrum and response{report.of_scaled}", side_by_side(*pictures)))
    sections.append(section("Class balance" if not report.labels.multilabel else "Label balance", balance(report)))
    if report.mistakes is not None:
        sections.append(section(f"Worst {report.labels.nouns[1]}", *worst(report, report.mistakes)))
    sections.append(section("Cost of each method", *costs(report)))
    return sections


def spectrum_chart(spectrum: Spectrum) -> Html:
    values, n = spectrum.eigenvalues, spectrum.n_components
    place = thinned(n)
    alt = f"Eigenvalues of the covariance: the largest of {n:,} is {values[0]:.3g}, the smallest {values[-1]:.3g}."
    x, y = Scale.of([1, n], log=n > NAMED), Scale.of(values, log=True)
    chart = Chart(alt, x, y, "number of the eigenvalue, the largest first", "eigenvalue")
    caption = "How much the rows vary in each direction. The steeper, the more steps a gradient needs."
    marks = [chart.line(place + 1, values[place]), chart.points(place + 1, values[place])]
    return figure(chart.drawn(*marks[: 1 + (n <= NAMED)]), caption)


def correlation_chart(correlation: ResponseCorrelation) -> Html:
    bound, values, tau = correlation.boundedness.max(axis=1), correlation.eigenvalues, correlation.tau
    place = np.union1d(thinned(len(bound)), np.argmax(bound))
    place = place[bound[place] > 0]
    alt = f"How much the classes depend on each direction for its size: at most tau, which is {tau:.3g}."
    x, y = Scale.of(values, log=True), Scale.of([*bound[place], tau], log=True)
    chart = Chart(alt, x, y, "eigenvalue", "largest c²/λ² of a class")
    marks = [chart.points(values[place], bound[place])]
    if tau > 0:
        marks.append(chart.line([x.low, x.high], [tau, tau], "aside"))
    caption = (
        "How much the classes depend on each direction for its size; the largest is tau, the dashed line. Points that "
        "rise to the left say that directions of small variance matter, and gradients are slow in those."
    )
    return figure(chart.drawn(*marks), caption)


def balance(report: DataReport) -> Html:
    labels, (noun, nouns) = report.labels, report.labels.nouns
    order = np.argsort(-np.asarray(labels.counts), kind="stable")
    counts = np.asarray(labels.counts)[order]
    most = max(int(counts[0]), 1)
    rows = [(shown(labels.classes[place]), bar(n / most, f"{n:,}")) for place, n in zip(order, counts, strict=True)]
    listed = table(f"Rows of each {noun}", (noun, "rows"), rows)
    if len(rows) <= NAMED:
        return tag("div", listed, class_="narrow")
    alt = f"Rows of each of {len(rows):,} {nouns}: {labels.most_frequent} has the most, {labels.rarest} the fewest."
    edges = np.unique(np.linspace(0, len(counts), min(len(counts), 200) + 1).astype(int))
    x, y = Scale(0, len(counts)), Scale.of(counts, zero=True)
    chart = Chart(alt, x, y, f"{nouns}, the most frequent first", "rows")
    return side_by_side(figure(chart.drawn(chart.bars(edges[:-1], edges[1:], counts[edges[:-1]])), alt), listed)


def worst(report: DataReport, mistakes: Mistakes) -> list[Html]:
    """The classes with the most errors, and what they are taken for."""
    names, noun = [shown(name) for name in report.labels.classes], report.labels.nouns[0]
    n_rows = mistakes.n_rows if report.hardness is None else report.hardness.n_rows
    note = (
        f"A linear model{report.of_scaled}, of {n_rows:,} rows (least squares), judged by {mistakes.n_rows:,} of them, "
        f"a tenth at a time left out of it: {100 * mistakes.error:.3g} % errors."
    )
    tables = side_by_side(mistakes_by_class(mistakes, names, noun), pairs_of_classes(mistakes, names))
    return [tag("p", note, class_="note"), tables]


def mistakes_by_class(mistakes: Mistakes, names: Sequence[str], noun: str, **scores: Sequence[float]) -> Html:
    """The classes by their share of missed rows, the worst first, with other `scores` of each."""
    rows = []
    without_rows = [place for place, n in enumerate(mistakes.rows) if not n and mistakes.added[place]]
    for place in [*mistakes.worst(), *without_rows]:
        n, share = mistakes.rows[place], mistakes.missed[place] / max(mistakes.rows[place], 1)
        figures = (f"{n:,}", f"{mistakes.added[place]:,}", *(f"{score[place]:.3f}" for score in scores.values()))
        rows.append((names[place], bar(share, f"{100 * share:.1f} %"), *figures))
    caption = f"Share of the rows of a {noun} that are not recognised, the worst first"
    return table(caption, (noun, "missed", "rows", "others taken for it", *scores), rows)


def pairs_of_classes(mistakes: Mistakes, names: Sequence[str]) -> Html | None:
    """The pairs of classes that are most often confused; None if there are none."""
    if not mistakes.pairs:
        return None
    largest = mistakes.pairs[0][2]
    rows = [
        (names[true], names[predicted], bar(n / largest, f"{n:,}"), f"{100 * n / mistakes.rows[true]:.1f} %")
        for true, predicted, n in mistakes.pairs
    ]
    return table("Most often taken for another", ("class", "taken for", "rows", "of the class"), rows, words=2)


def costs(report: DataReport) -> list[Html]:
    """The table of costs; its bars are on a log scale, as seconds differ by powers of ten."""
    seconds = np.array([cost.seconds for cost in report.methods])
    rows: list[tuple[Any, ...]] = []
    for estimator, loss, text, memory, how in report.costs_table()[1:]:
        share = np.log(2 * seconds[len(rows)] / seconds.min()) / np.log(2 * seconds.max() / seconds.min())
        rows.append((estimator, loss, how, bar(share, text), memory))
    hardness = report.hardness
    note = "Seconds and memory are estimates, from the speed of this machine and a small sample; "
    note += "they can be off by a factor of two or more. Bars are on a log scale."
    if hardness is not None and hardness.n_rows < report.rows.n_rows:
        note += f" The spectrum is of {hardness.n_rows:,} rows drawn at random."
    names = ("estimator", "loss", "how", "seconds", "memory")
    return [table("Estimated for a fit with the defaults", names, rows, words=3), tag("p", note, class_="note")]

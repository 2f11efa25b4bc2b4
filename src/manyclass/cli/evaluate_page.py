"""The page of ``manyclass evaluate --html``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyclass.diagnostics.names import shown
from manyclass.diagnostics.page import Html, bar, document, section, side_by_side, table, tag, tiles
from manyclass.diagnostics.reliability import Reliability
from manyclass.diagnostics.report_page import mistakes_by_class, pairs_of_classes

if TYPE_CHECKING:
    from manyclass.cli.evaluate import Scores


def page(title: str, subtitle: str, figures: list[tuple[str, str]], scores: Scores, multilabel: bool) -> str:
    """All that is known of how good a model is."""
    nouns = ("label", "labels") if multilabel else ("class", "classes")
    facts = [tiles(figures), *(tag("p", note, class_="advice") for note in scores.notes)]
    names, precision, f1 = zip(
        *((shown(row["label"]), row["precision"], row["f1"]) for row in scores.per_class), strict=True
    )
    by_class = mistakes_by_class(scores.mistakes, names, nouns[0], precision=precision, F1=f1)
    parts = [tag("div", *facts), section(f"Errors by {nouns[0]}", by_class)]
    if not multilabel:
        pairs = pairs_of_classes(scores.mistakes, names)
        parts.append(section(f"Confusion between {nouns[1]}", pairs or tag("p", "No row is taken for another class.")))
    if scores.reliability is not None and scores.reliability.counts.any():
        parts.append(section("Reliability", _reliability(scores.reliability, multilabel)))
    if scores.sets:
        parts.append(section("Prediction sets", _sets(scores, nouns[1])))
    return document(title, subtitle, *parts)


def _reliability(found: Reliability, multilabel: bool) -> Html:
    what = "labels of rows" if multilabel else "predictions"
    rows = [(f"{100 * stated:.1f} %", f"{100 * true:.1f} %", f"{n:,}") for stated, true, n in found.rows()]
    told = table(
        f"The same in figures; on average {100 * found.error:.2f} points apart", ("stated", "came true", what), rows
    )
    return side_by_side(found.picture(what), told)


def _sets(scores: Scores, noun: str) -> Html:
    """Wanted and found, by coverage."""
    rows = [
        (
            f"{100 * one['wanted']:g} %",
            bar(one["covered"], f"{100 * one['covered']:.1f} %"),
            f"{one['mean_size']:.2f}",
            f"{100 * one['empty']:.1f} %",
            f"{100 * one['single']:.1f} %",
        )
        for one in scores.sets
    ]
    caption = f"Sets of {noun} that should hold the true one with a given probability"
    return table(caption, ("wanted", "covered", f"mean number of {noun}", "empty", "of one"), rows)

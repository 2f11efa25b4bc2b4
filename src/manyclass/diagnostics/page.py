"""Reports as pages: one file each, without scripts and without a network, or pieces of one for a notebook.

Nothing that comes from data is ever read as markup.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

LONGEST = 1000
"""Rows of a table that a page shows; more are heavy, and nobody reads them."""


class Html(str):
    """Text that is markup already; all other text is escaped where it is put into a tag."""


def html(content: Any) -> Html:
    return content if isinstance(content, Html) else Html(escape(str(content)))


def join(parts: Iterable[Any]) -> Html:
    return Html("".join(map(html, parts)))


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is its class, ``aria_label`` its aria-label, and attributes that are None are left out."""
    written = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{''.join(written)}>{join(content)}</{name}>")


@cache
def style() -> Html:
    """The style of everything within a "manyclass" element, and of nothing else."""
    return Html(f"<style>{files(__package__).joinpath('page.css').read_text(encoding='utf-8')}</style>")


def section(title: str, *parts: Any) -> Html:
    """A part of a report under its heading; parts that are None are left out."""
    name = re.sub(r"\W+", "-", title).strip("-").lower()
    inside = [part for part in parts if part is not None]
    return tag("section", tag("h2", title, id=name), *inside, aria_labelledby=name)


def facts(rows: Iterable[tuple[Any, Any]], title: str | None = None) -> Html:
    """Names, and what is to say about each."""
    body = (tag("div", tag("dt", name), tag("dd", fact)) for name, fact in rows)
    return tag("div", None if title is None else tag("h3", title), tag("dl", *body), class_="facts")


def tiles(rows: Iterable[tuple[Any, Any]]) -> Html:
    """The few figures that matter most."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", figure)) for name, figure in rows), class_="tiles")


def side_by_side(*parts: Any) -> Html:
    """As many in a row as there is room for."""
    return tag("div", *(part for part in parts if part is not None), class_="beside")


def figure(picture: Html, caption: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption))


def bar(share: float, text: Any) -> Html:
    """A cell of a table, filled as far as its share of the widest says."""
    return tag("td", text, class_="bar", style=f"--share:{100 * min(max(share, 0.0), 1.0):.3g}%")


def table(caption: str, names: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> Html:
    """A table that scrolls where it is too wide or too long; cells are text, or whole cells such as a `bar`.

    So many `words`, columns at the left, are words; all others numbers.
    """

    def cell(place: int, content: Any) -> Html:
        if isinstance(content, Html):
            return content
        if not place:
            return tag("th", content, scope="row")
        return tag("td", content, class_=None if place < words else "number")

    shown = rows[:LONGEST]
    if len(rows) > LONGEST:
        caption += f" (the first {LONGEST:,} of {len(rows):,})"
    head = (
        tag("th", name, scope="col", class_=None if place < words else "number") for place, name in enumerate(names)
    )
    body = (tag("tr", *(cell(place, content) for place, content in enumerate(row))) for row in shown)
    inside = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), aria_label=caption)
    # A caption of the table itself would scroll away with it.
    scrolled = tag("div", inside, class_="scroll", role="region", aria_label=caption, tabindex="0")
    return tag("div", tag("p", caption, class_="caption"), scrolled)


def document(title: str, subtitle: str, *parts: Any) -> str:
    headings = re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', "".join(parts))
    links = (tag("a", Html(text), href=f"#{name}") for name, text in headings)
    head = (
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        tag("title", f"{title} – manyclass"),
        style(),
    )
    body = (
        tag("a", "Skip to the report", href="#report", class_="skip"),
        tag("header", tag("h1", title), tag("p", subtitle), tag("nav", *links, aria_label="Sections")),
        tag("main", *map(html, parts), id="report", tabindex="-1"),
    )
    page = tag("html", tag("head", *head), tag("body", *body, class_="manyclass"), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"

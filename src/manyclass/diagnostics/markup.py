"""HTML in which nothing that comes from data is ever read as markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any


class Html(str):
    """Text that is markup already; all other text is escaped where it is put into a tag."""


def html(content: Any) -> Html:
    return content if isinstance(content, Html) else Html(escape(str(content)))


def join(parts: Iterable[Any]) -> Html:
    return Html("".join(map(html, parts)))


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is its class, ``aria_label`` its aria-label, and attributes that are None are left out."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{''.join(given)}>{join(content)}</{name}>")

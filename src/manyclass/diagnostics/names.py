"""Names and numbers from data in sentences: the former must not move what stands beside them."""

import re
import unicodedata
from typing import Any

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LEFTWARD = {"R", "AL", "AN"}


def counted(n: float, noun: str) -> str:
    """So many of what is called by a noun."""
    many = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else many}"


def shown(name: Any) -> str:
    """A name for people: characters that turn the direction of what follows, or steer a terminal, are shown as codes.

    A name that itself runs to the left is put between a FIRST STRONG ISOLATE and a POP DIRECTIONAL ISOLATE, as numbers
    that follow it would be taken for a part of it.
    """
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", str(name))
    if text.isascii() or _LEFTWARD.isdisjoint(map(unicodedata.bidirectional, text)):
        return text
    return f"\u2068{text}\u2069"

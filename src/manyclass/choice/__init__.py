"""Which method a problem gets, and why: estimated seconds of every one that could serve."""

from manyclass.choice.methods import Choice, Method, asked_for, choose
from manyclass.choice.relay import in_turn

__all__ = ["Choice", "Method", "asked_for", "choose", "in_turn"]

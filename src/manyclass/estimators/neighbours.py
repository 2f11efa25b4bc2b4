"""What is tried beside the best so far: the next smaller penalty, and kernels of twice and of half its bandwidth."""

from __future__ import annotations

from collections.abc import Callable

from manyclass.estimators.entries import Entry

Best = Callable[[list[Entry]], Entry]
FACTORS = 2.0, 0.5


def smaller_penalty(best: Entry, tried: list[Entry], entries: list[Entry]) -> Entry | None:
    """The next on the path of the best, where that is the smallest tried and has the least log loss of its path: more
    rows take smaller penalties."""
    path = [one for one in entries if one.kin == best.kin]
    known = [one for one in path if one in tried]
    rest = path[path.index(known[-1]) + 1 :]
    return rest[0] if rest and min(known, key=lambda one: one.log_loss) is known[-1] is best else None


def other_bandwidth(best: Best, tried: list[Entry], entries: list[Entry], asked: list[Entry]) -> Entry | None:
    """Twice or half that of the best by Newton's steps, where these were not `asked` for: kernels were compared by
    least squares, to which others are right. What is new is added to `entries`."""
    steps = [one for one in tried if one.candidate.penalty]
    if not steps:
        return None
    middle = best(steps)
    for factor in FACTORS:
        candidate = middle.candidate.of_bandwidth(factor)
        found = next((one for one in entries if one.candidate.key == candidate.key), None)
        if found is None:
            found = Entry(candidate, middle.expected, middle.n_rows, of_all=middle.of_all)
            entries.append(found)
        if found not in tried and found not in asked:
            return found
    return None

"""Neighbours of the best candidate so far: the next penalty, twice or half the bandwidth, or another kind of features;
and the learned metrics that kernels share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from manyclass.estimators.automatic.candidates import NEARER, Candidate
from manyclass.estimators.automatic.entries import CLEARLY, Entry
from manyclass.estimators.automatic.feature_kinds import KINDS, LEARNED_WAVES, WAVES

Best = Callable[[list[Entry]], Entry]
FACTORS, GAIN = (2.0, 0.5), 1.01
"""Factors on the bandwidth; and the factor by which the log loss has to fall if the accuracy does not rise."""
NAMED = " nearer"
"""Suffix of the name of a family that is fitted to a smaller gap."""
WIDEST_SPAN = 1024.0
"""Bandwidths are tried between the median divided by this and the median times this."""


def next_penalty(best: Entry, tried: list[Entry], entries: list[Entry]) -> Entry | None:
    """The next penalty on the path of the best, if the last one tried at that end has the least log loss of the path.

    More rows may want a smaller penalty; or a larger one, if fewer rows held too few rare words to show which are too
    small. The smaller one is tried if the best is that end; the larger one if that end is within a standard error of
    the best. Beyond the largest listed, where that still gains, a new entry is added to `entries`.
    """
    path = [one for one in entries if one.kin == best.kin]
    known = [one for one in path if one in tried]
    least = min(known, key=lambda one: one.log_loss)
    first, last = path.index(known[0]), path.index(known[-1])
    if least is known[0] and least.accuracy >= best.accuracy - best.standard_error:
        if first:
            return path[first - 1]
        if len(known) > 1 and _gains(known[1], least):
            return _added(least, least.candidate.with_next_penalty(larger=True), entries, entries.index(least))
    return path[last + 1] if least is known[-1] is best and path[last + 1 :] else None


def beyond_the_end(tried: list[Entry], entries: list[Entry]) -> Entry | None:
    """A smaller penalty than the last of a path, if that has clearly the least log loss of it, as with columns of heavy
    tails. It is added to `entries`."""
    for family in dict.fromkeys(one.candidate.family for one in tried if one.candidate.family):
        path = [one for one in entries if one.candidate.family == family]
        if len(path) < 2 or path[-1] not in tried or path[-2] not in tried:
            continue
        last, known = path[-1], [one for one in path if one in tried]
        if _gains(path[-2], last) and min(known, key=lambda one: one.log_loss) is last:
            return _added(last, last.candidate.with_next_penalty(), entries, len(entries))
    return None


def nearer(best: Entry, tried: list[Entry], entries: list[Entry]) -> Entry | None:
    """The entry with the least log loss, of those within a standard error of the best, fitted to a smaller gap; once
    that is tried, the next penalty on the path at that gap. New entries are added to `entries`."""
    near = [one for one in tried if one.accuracy >= best.accuracy - best.standard_error]
    least = min(near, key=lambda one: one.log_loss)
    family = least.candidate.family
    if not family or family.endswith(NAMED) or least.candidate.model.tol <= NEARER:
        return next_penalty(least, tried, entries) if family else None
    known = {one.candidate.alpha: one for one in entries if one.candidate.family == family + NAMED}
    for one in [one for one in entries if one.candidate.family == family] if not known else ():
        candidate = replace(one.candidate.within(NEARER), family=family + NAMED)
        known[candidate.alpha] = _added(least, candidate, entries, len(entries))
    return known.get(least.candidate.alpha)


def _gains(before: Entry, end: Entry) -> bool:
    """Whether the end of a path has clearly less log loss than the entry before it."""
    return before.loss_told > GAIN * end.loss_told and before.has_more_loss(end)


def _added(beside: Entry, candidate: Candidate, entries: list[Entry], place: int) -> Entry:
    found = Entry(candidate, beside.expected, beside.n_rows, of_all=beside.of_all)
    entries.insert(place, found)
    return found


def other_bandwidth(best: Best, tried: list[Entry], entries: list[Entry], asked: list[Entry]) -> Entry | None:
    """The best kernel with twice or half its bandwidth, if not yet `asked` for. New entries are added to `entries`.

    None where a linear model is clearly better. Where the last step gained next to nothing, none is tried beyond it.
    """
    kernels, leading = [one for one in tried if not one.candidate.is_linear], best(tried)
    if not kernels:
        return None
    middle = best(kernels)
    if middle.accuracy < leading.accuracy - leading.standard_error or middle.has_more_loss(leading, CLEARLY):
        return None
    before = middle.beside
    if before in tried and not (middle.accuracy > before.accuracy or before.log_loss > GAIN * middle.log_loss):
        middle = before
    for factor in FACTORS:
        candidate = middle.candidate.of_bandwidth(factor)
        if not 1.0 / WIDEST_SPAN <= candidate.bandwidth <= WIDEST_SPAN:
            continue
        found = _beside(middle, candidate, entries)
        if found not in tried and found not in asked:
            return found
    return None


def other_kernel(best: Best, tried: list[Entry], entries: list[Entry], asked: list[Entry]) -> Entry | None:
    """Next to the best, if that is a kernel: another bandwidth, larger blocks, or another kind of features."""
    leading = best(tried)
    if leading.candidate.is_linear:
        return None
    found = other_bandwidth(best, tried, entries, asked)
    known = {one.candidate.kind for one in entries} - {leading.candidate.kind}
    others = [leading.candidate.of_kind(kind) for kind in KINDS if kind in known]
    if larger := leading.candidate.with_larger_blocks(leading.n_rows):
        others.insert(0, larger)
    for other in () if found else others:
        found = _beside(leading, other, entries)
        if found not in tried and found not in asked:
            return found
        found = None
    return found


def _beside(middle: Entry, candidate: Candidate, entries: list[Entry]) -> Entry:
    """The entry of a candidate next to the one in the middle, added if it is new."""
    found = next((one for one in entries if one.candidate.key == candidate.key), None)
    if found is None:
        times = candidate.times_as_long / middle.candidate.times_as_long
        of_all = None if middle.of_all is None else (times * middle.of_all[0], middle.of_all[1])
        found = Entry(candidate, times * middle.expected, middle.n_rows, of_all=of_all, beside=middle)
        entries.append(found)
    return found


class LearnedMetrics(dict[tuple[str, int], Any]):
    """Metrics by scaling and part of the rows. They are the same for every bandwidth, loss and penalty."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0  # the most that learning took; it hardly grows with the rows
        self._first: dict[tuple[str, int], float] = {}  # seconds of the fits that learned a metric

    def seconds_for(self, candidate: Candidate) -> float:
        """Seconds that a fit of the candidate would spend on learning metrics."""
        return self._seconds * candidate.n_learned

    @contextmanager
    def shared(self, candidate: Candidate, part: int, model: Any) -> Iterator[None]:
        """Within this context the model has the known metric, if any; and a metric that its fit learns is kept."""
        if candidate.kind != LEARNED_WAVES:
            yield
            return
        key, started = (candidate.scaling, part), time.perf_counter()
        if key in self:
            model.set_params(features__metric=self[key])
        try:
            yield
        finally:
            model.set_params(features__metric=LEARNED_WAVES.metric)
        spent = time.perf_counter() - started
        if key in self:
            self._seconds = max(self._seconds, self._first[key] - spent)
        elif not is_empty(model):
            root = model.models_[0].blocks[0].metric_root_
            self[key], self._first[key] = WAVES.metric if root is None else root, spent


def is_empty(model: Any) -> bool:
    """Whether a fit of generated features ended before its first stage."""
    return not any(block is not None for fitted in model.models_ for block in fitted.blocks)

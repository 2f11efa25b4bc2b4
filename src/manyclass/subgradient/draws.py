"""Which row comes next: a function of the seed and a counter, so that nothing is shuffled, stored or threaded."""

from typing import NamedTuple

import numpy as np

from manyclass.data.compiled import entry, inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ROUNDS = 4
_DOUBLE_STEP = 2.0**-53


class Draws(NamedTuple):
    allowed: np.ndarray  # the rows that may be drawn; empty for all of them
    n: int  # rows to draw from
    key: np.uint64  # the seed
    half: np.uint64  # half the bits of the smallest square that holds n
    replace: bool  # independent draws, as in the paper; else each epoch draws every row once


def make_draws(n_rows: int, seed: int, replace: bool, weight: np.ndarray | None = None) -> Draws:
    """Draws from all rows, or from those of positive weight."""
    index = np.empty(0, dtype=np.int64) if weight is None else np.flatnonzero(weight > 0)
    if len(index) == n_rows:
        index = index[:0]
    n = len(index) or n_rows
    half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    return Draws(index, n, np.uint64(seed), np.uint64(half), replace)


@inner
def mix(x):
    """SplitMix64 (Steele, Lea and Flood, 2014): 64 bits of which every one depends on every bit of x."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@inner
def permuted(position, n, half, key):
    """The image of `position` under a permutation of 0 .. n − 1 that is never stored.

    A Feistel network permutes the 4^half numbers; walking along its cycle until below n permutes those below n
    (Black and Rogaway, 2002). A step costs the same for any n, where shuffling an array would cost n at its start.
    """
    mask = (np.uint64(1) << half) - np.uint64(1)
    value = np.uint64(position)
    while True:
        left, right = value >> half, value & mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ (mix(right + key * np.uint64(turn + 1)) & mask)
        value = (left << half) | right
        if value < np.uint64(n):
            return np.int64(value)


@entry
def draw(draws, position):
    """The row of draw number `position`."""
    if draws.replace:
        bits = mix(draws.key ^ mix(np.uint64(position)))
        row = np.int64((bits >> np.uint64(11)) * _DOUBLE_STEP * draws.n)
    else:
        epoch, place = divmod(position, draws.n)
        row = permuted(place, draws.n, draws.half, mix(draws.key ^ mix(np.uint64(epoch))))
    return draws.allowed[row] if len(draws.allowed) else row

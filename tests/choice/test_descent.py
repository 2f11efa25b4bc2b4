import math

import pytest

from manyclass.choice.descent import stride


@pytest.mark.parametrize("left", [1e3, math.inf])
def test_with_time_for_all_penalties_none_is_left_out(left):
    assert all(stride(to_go, 1.0, left) == 1 for to_go in range(1, 30))


def test_before_anything_is_known_of_their_cost_the_next_penalty_follows():
    assert stride(20, 0.0, 1.0) == 1


@pytest.mark.parametrize("seconds", [1.0, 5.0, 20.0])
def test_a_path_is_crossed_in_the_time_that_there_is(seconds):
    """Where each penalty takes no more than twice as long as the one before it, and as long as the first."""
    place, left, visited = 0, seconds, 0
    while place < 40 and left > 0:
        place += stride(40 - place, 0.5, left)
        left -= 1.0
        visited += 1
    assert place == 40 or (left <= 0 and place >= 20)
    assert visited >= min(seconds, 40) / 2


def test_out_of_time_the_next_penalty_is_the_last():
    assert stride(17, 1.0, -1.0) == 17

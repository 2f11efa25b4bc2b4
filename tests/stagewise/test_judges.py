"""By how many stages penalties are compared."""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from manyclass.stagewise.judges import MOST_STAGES, PATIENCE, Judge, Score, Trials


@dataclass
class Told:
    """A fit whose stages have the losses that it is told, and the judge of it."""

    losses: tuple
    judge: SimpleNamespace
    equations: dict = field(default_factory=dict)

    def iterates(self):
        for loss in self.losses:
            self.judge.n_seen += 1
            self.judge.latest = Score(loss, loss, 1000.0)
            yield

    @property
    def problem(self):
        return SimpleNamespace()


SLOWLY = 1.0 - 1e-4 * np.arange(100)


@pytest.mark.parametrize(
    ("losses", "n_stages", "least"),
    [
        (0.9 ** np.arange(100), MOST_STAGES, 0.9 ** (MOST_STAGES - 1)),  # clearly better, again and again
        (SLOWLY, PATIENCE + 1, SLOWLY[PATIENCE]),  # ever better, by what decides nothing between penalties
        (np.where(np.arange(100) < 4, 1.0, 0.5), 4 + PATIENCE + 1, 0.5),  # after a while
    ],
)
def test_stages_are_tried_until_none_is_clearly_better(losses, n_stages, least):
    judge = SimpleNamespace(n_seen=0, latest=None, plain=None)
    trials = Trials([Told(tuple(losses), judge)], [judge], [1.0])
    known = SimpleNamespace(anew=lambda: None)
    found = trials._least(1.0, known, time.perf_counter() + 60.0)
    assert judge.n_seen == n_stages
    assert found.loss == pytest.approx(least)


def test_doubt_is_by_the_rule_of_succession_and_of_the_predictions_that_are_kept():
    plain, worse = Score(0.1, 0.1, 30.0, 0.1), Score(0.2, 0.2, 30.0, 0.5)
    assert plain.doubt == pytest.approx(4 / 32)

    class Known(Judge):
        def before_calibration(self, update, state):
            raise AssertionError

        def score(self, update, state):
            self.plain = plain
            return worse

    assert Known()(None, None) == (0.1, False, plain.doubt)

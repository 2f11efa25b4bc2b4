"""By how many stages penalties are compared."""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from manyclass import CalibratedLeastSquaresClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.stagewise.judges import MOST_STAGES, PATIENCE, FoldsJudge, Judge, StageScore, Trials
from manyclass.stagewise.updates import wrong_labels


@dataclass
class Told:
    """A fit whose stages have the losses that it is told, and the judge of it."""

    losses: tuple
    judge: SimpleNamespace
    equations: dict = field(default_factory=dict)
    gain: float = 1.0

    def iterates(self):
        for loss in self.losses:
            self.judge.n_seen += 1
            self.judge.latest = StageScore(loss, loss, 1000.0)
            yield SimpleNamespace(measure=self.gain)

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


def test_a_trial_ends_where_a_fit_would():
    judges = [SimpleNamespace(n_seen=0, latest=None, plain=None) for _ in range(2)]
    known = SimpleNamespace(anew=lambda: None)
    for gains, n_stages in (((1e-4, 1e-3), 1), ((1e-4, 2e-3), MOST_STAGES), ((np.nan, 1e-4), MOST_STAGES)):
        fits = [Told(tuple(0.9 ** np.arange(100)), judge, gain=one) for judge, one in zip(judges, gains, strict=True)]
        before = judges[0].n_seen
        Trials(fits, judges, [0.5, 0.5], 1e-3)._least(1.0, known, time.perf_counter() + 60.0)
        assert judges[0].n_seen - before == n_stages


@pytest.mark.parametrize(("n_rows", "n_fits"), [(100, 5), (700, 3), (1000, 2), (2500, 1)])
def test_penalties_are_compared_by_as_many_folds_as_hold_enough_rows(n_rows, n_fits):
    problem = SimpleNamespace(effective_rows=sum)
    fits = [SimpleNamespace(problem=problem) for _ in range(5)]
    judges = [SimpleNamespace(weight=[1.0] * n_rows, number=number) for number in range(5)]
    few = Trials(fits, judges, [0.3, 0.1, 0.2, 0.2, 0.2]).few()
    assert len(few.fits) == len(few.judges) == len(few.shares) == n_fits
    assert sum(few.shares) == pytest.approx(1.0)
    assert few.mean([StageScore(2.0, 0.5, 1.0)] * n_fits).loss == pytest.approx(2.0)


def test_calibrated_least_squares_tries_penalties_on_few_folds(monkeypatch):
    rng, seen = np.random.default_rng(0), []
    y = rng.integers(0, 3, 6000)
    monkeypatch.setattr(Trials, "best_penalty", lambda self, alpha, _: seen.append(len(self.fits)) or alpha)
    CalibratedLeastSquaresClassifier(max_iter=1).fit(rng.normal(size=(6000, 3)) + y[:, None], y)
    assert seen == [2]


def test_doubt_is_by_the_rule_of_succession_and_of_the_predictions_that_are_kept():
    plain, worse = StageScore(0.1, 0.1, 30.0, 0.1), StageScore(0.2, 0.2, 30.0, 0.5)
    assert plain.doubt == pytest.approx(4 / 32)

    class Known(Judge):
        def before_calibration(self, update, state):
            raise AssertionError

        note = before_calibration

        def score(self, update, state):
            self.plain = plain
            return worse

    assert Known()(None, None) == (0.1, False, plain.doubt)


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_label_has_no_probability_where_rounding_alone_would_leave_it_one(exclusive):
    P = np.array([[1.0, 0.0], [1.0 - 1e-9, 1e-9], [0.99, 0.01], [0.3, 0.7]])
    codes = np.array([1, 1, 1, 1])
    targets = ClassTargets(codes, 2) if exclusive else MatrixTargets(np.eye(2)[codes])
    F = Problem(as_rows(np.zeros((4, 1))), targets, SMOOTH_LOSSES["squared"], 1.0)
    domain = SimpleNamespace(exclusive=exclusive)
    assert wrong_labels(F, P, None, domain) == (3.0, 2.0, 4.0)


def test_folds_keep_the_scores_of_the_stage_with_the_least_loss_also_where_a_run_goes_on():
    class Known(FoldsJudge):
        def score(self, update, state):
            self.plain = StageScore(1.0, 0.5, 1000.0)
            return StageScore(state, state, 1000.0)

    kept, now = [], []

    def judge():
        return Known(SimpleNamespace(judges=[SimpleNamespace(keep=lambda: kept.append(now[-1]))], fits=[]))

    first = judge()
    for loss in (0.3, 0.2, 0.4):
        now.append(loss)
        first(None, loss)
    second = judge()
    second.resume(first.state())
    for loss in (0.25, 0.1):
        now.append(loss)
        second(None, loss)
    assert kept == [0.3, 0.2, 0.1]

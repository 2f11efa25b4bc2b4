"""`AutoClassifier` shows what it tries, and keeps what it has where it is stopped."""

import numpy as np
import pytest
from sklearn.callback import ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score

from manyclass import AutoClassifier, StagewiseClassifier
from manyclass.estimators.automatic import halving
from manyclass.fit import Status


class Watching:
    """A callback that notes what is tried, and may do something at the end of a task."""

    def __init__(self, at_end=lambda n_tried: False):
        self.tried, self.best, self.ended, self._at_end = [], [], [], at_end

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        if context.task_name == "candidate":
            self.tried.append(metadata["trying"])
            self.best.append(metadata["best_accuracy"])

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append(context.task_name)
        if fitted_estimator is not None:  # None of what was stopped
            assert fitted_estimator.predict(np.zeros((1, 4))).shape == (1,)
        return context.task_name == "candidate" and self._at_end(len(self.tried))


def test_callbacks_are_shown_what_is_tried(few):
    X, y = load_iris(return_X_y=True)
    watching = Watching()
    model = AutoClassifier().set_callbacks(watching).fit(X, y)
    assert len(watching.tried) > len(model.leaderboard_) > 3  # some in both rounds, and once more to all rows
    assert watching.tried[-1] in next(told for told in model.why_ if told.startswith("Taken: "))
    assert watching.ended == ["candidate"] * len(watching.tried) + ["fit"]
    assert watching.best[0] is None and watching.best[-1] == model.best_score_


@pytest.mark.parametrize("weight", [None, np.ones(150)])
def test_scorers_of_callbacks_are_given_what_they_take(few, weight):
    X, y = load_iris(return_X_y=True)
    monitor = ScoringMonitor(scoring="accuracy")
    model = AutoClassifier().set_callbacks(monitor).fit(X, y, weight)
    scores = [row["accuracy"] for row in monitor.get_logs().data]
    assert len(scores) > 5 and scores[-1] == model.score(X, y)


def test_tasks_that_are_refused_for_their_memory_end(few, monkeypatch):
    def refuse(self, *given):
        raise MemoryError("This fit would take 1 TB for nothing, more than memory_limit=3.0; raise it.")

    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(StagewiseClassifier, "fit", refuse)
    watching = Watching()
    model = AutoClassifier().set_callbacks(watching).fit(X, y)
    assert watching.ended == ["candidate"] * len(watching.tried) + ["fit"]
    said = [one for one in model.why_ if "1 TB" in one]
    assert len(said) == 1 and said[0].endswith(" This fit would take 1 TB for nothing, more than there is room for.")


@pytest.mark.parametrize("how", ["Ctrl-C", "callback"])
def test_a_stopped_search_keeps_what_it_has(few, how, monkeypatch):
    X, y = load_iris(return_X_y=True)
    watching, judge = Watching(lambda n_tried: how == "callback" and n_tried == 3), halving.score

    def judged(*given):
        if how == "Ctrl-C" and len(watching.tried) == 4:
            raise KeyboardInterrupt
        return judge(*given)

    monkeypatch.setattr(halving, "score", judged)
    model = AutoClassifier().set_callbacks(watching).fit(X, y)
    assert len(model.leaderboard_) == 3 and "the search was stopped" in model.why_[-1]
    expected = Status.INTERRUPTED if how == "Ctrl-C" else Status.STOPPED_BY_CALLBACK
    taken = model.best_estimator_
    assert getattr(taken, "steps", [("", taken)])[-1][1].status_ is expected
    assert accuracy_score(y, model.predict(X)) > 0.5


def test_ctrl_c_before_there_is_a_model(few, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(halving, "score", stop)
    with pytest.raises(KeyboardInterrupt):
        AutoClassifier().fit(*load_iris(return_X_y=True))

"""L-BFGS and Newton-CG in turn, whichever gains more."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import GLMClassifier
from manyclass.fit import Status
from manyclass.solvers.quasi_newton import Pace
from tests.problems import Callback

METHOD = {"alpha": 1e-4, "solver": "quasi-newton", "curvature": "jacobi", "max_iter": 20_000}


def counts(n, d, seed):
    """Of which a few are huge, in rows that are told apart by their logarithms."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.01, random_state=rng, format="csr")
    X.data = np.ceil(2.0 * rng.pareto(1.2, X.nnz))
    logs = X.copy()
    logs.data = np.log1p(logs.data)
    Z = logs @ (0.6 * rng.standard_normal((d, 3)))
    return X, (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)


def test_newton_steps_give_way_where_they_gain_less(monkeypatch):
    """Few rows hold most of a column here, so that the variances of columns say little of what curves."""
    sets = [counts(1500, 300, seed) for seed in range(3)]
    in_turn = [GLMClassifier(**METHOD, tol=1e-2).fit(*one) for one in sets]
    monkeypatch.setattr("manyclass.solvers.quasi_newton.SLOW", -math.inf)
    never_back = [GLMClassifier(**METHOD, tol=1e-2).fit(*one) for one in sets]
    assert {one.status_ for one in in_turn} == {Status.CONVERGED}
    assert sum(one.n_passes_ for one in in_turn) < 0.6 * sum(one.n_passes_ for one in never_back)


class Stopper(Callback):
    def __init__(self, at):
        self.at, self.n_seen = at, 0

    def on_fit_task_end(self, estimator, context, **_):
        self.n_seen += context.parent is not None
        return self.n_seen == self.at


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_goes_on_from_any_of_its_points_as_it_would_have(tmp_path, monkeypatch):
    monkeypatch.setattr("manyclass.solvers.quasi_newton.BEFORE_NEWTON", 12)
    X, y = counts(400, 80, 0)
    method = METHOD | {"tol": 1e-3, "max_iter": 60}
    whole = GLMClassifier(**method).fit(X, y)
    for at in range(1, len(whole.history_)):
        path = tmp_path / str(at)
        GLMClassifier(**method).set_callbacks(Stopper(at)).fit(X, y, checkpoint=path)
        again = GLMClassifier(**method).fit(X, y, checkpoint=path)
        np.testing.assert_array_equal(again.coef_, whole.coef_, str(at))
        assert (again.n_iter_, again.n_passes_) == (whole.n_iter_, whole.n_passes_)


def test_a_pace_is_looked_at_after_as_many_passes():
    pace = Pace.of(100, 5.0, (60, 9.0))
    assert (pace.width, pace.gain) == (40, 4.0)
    assert pace.after(139, 4.0) is pace
    later = pace.after(180, 4.0)  # 1 in 80 passes
    assert (later.passes, later.value, later.width, later.gain) == (180, 4.0, 40, 0.5)
    assert Pace.of(100, 5.0, None).after(10**9, 5.0).width == math.inf

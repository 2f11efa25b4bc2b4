"""Small dual problems, and how they are solved."""

import numpy as np

from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.dual import DualProblem, Limits, ascend, homotopy_path
from manyclass.dual.losses import DUAL_LOSSES as LOSSES
from manyclass.dual.losses import JointLoss
from manyclass.fit import Clock, Outcome, Run
from manyclass.model import LOSSES as MODEL_LOSSES
from manyclass.model import Problem
from manyclass.model.losses import RESPONSE_LOSSES

EPSILON = 0.3
JOINT = ("crammer_singer", "softmax")


def small(seed=0, n=40, d=4, k=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(0.5, -0.5, d) + np.linspace(-1, 1, d)
    codes = np.argmax(X @ rng.standard_normal((d, k)) + rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = np.arange(k)
    return X, codes, rng.random(n) + 0.2


def targets(name, codes, k=3, seed=1):
    loss = LOSSES[name](EPSILON)
    if isinstance(loss, JointLoss):
        return codes
    if loss.labels:
        return np.where(codes[:, None] == np.arange(k), 1.0, -1.0)
    return np.eye(k)[codes] * 2 + np.random.default_rng(seed).standard_normal((len(codes), k)) + 3


def problem(name, X, y, alpha, *, weight=None, fit_intercept=True):
    loss = RESPONSE_LOSSES[name](EPSILON) if name in RESPONSE_LOSSES else MODEL_LOSSES[name]
    targets = ClassTargets(y, int(y.max()) + 1) if y.ndim == 1 else MatrixTargets(y)
    return DualProblem(Problem(as_rows(X), targets, loss, alpha, weight=weight, fit_intercept=fit_intercept))


def solve(built, homotopy=False, *, path=None, tol=1e-9, max_iter=50_000, max_time=None, **options) -> Outcome:
    run = Run(Clock(max_time), tol=tol, max_iter=max_iter)
    built.problem.on_block = run.clock.check
    path = homotopy_path(built, homotopy) if path is None else path
    return run(ascend(built, path, Limits(tol, max_iter, run.clock), **options), lambda: None)

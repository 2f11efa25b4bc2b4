"""Small problems that every layer is tested on."""

from functools import cache

import numpy as np
import scipy.sparse as sp

from manyclass.curvature.class_bounds import CLASS_BOUNDS
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.fit import Clock, Run
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.model.problem import nothing
from tests.oracles import glm as oracle

ESTIMATORS = {
    "GLMClassifier": {},
    "GLMClassifierCV": {"alphas": 4, "cv": 3},
    "CalibratedLeastSquaresClassifier": {},
    "StagewiseClassifier": {"n_components": 40, "block_size": 20},
    "StagewiseRegressor": {"n_components": 40, "block_size": 20},
    "PegasosClassifier": {},
    "SDCAClassifier": {},
    "SDCARegressor": {},
    "BoundMajorizationClassifier": {},
}
"""Every estimator, with options that keep its fit short."""


class Callback:
    """Of scikit-learn's protocol what does nothing."""

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass


def rows(seed=0, n=60, d=5, k=3):
    """X with very different scales and a mean, class codes, positive weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(1, -1, d) + np.linspace(-2, 2, d)
    codes = np.argmax(X @ rng.standard_normal((d, k)) / 3 + rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = np.arange(k)
    return X, codes, rng.random(n) + 0.2


def problem(loss="softmax", alpha=0.05, *, sparse=False, weighted=True, dtype=np.float64, seed=0, **options):
    """A `Problem` and the dense X, Y, s behind it."""
    X, codes, weight = rows(seed)
    X, center = X.astype(dtype), options.pop("center", True)
    absent, present = SMOOTH_LOSSES[loss].label_values or (0.0, 1.0)
    Y = absent + (present - absent) * np.eye(3)[codes]
    targets = ClassTargets(codes, 3) if SMOOTH_LOSSES[loss].label_values is None else MatrixTargets(Y)
    weights = weight.astype(dtype) if weighted else None
    built = Problem(
        as_rows(sp.csr_array(X) if sparse else X), targets, SMOOTH_LOSSES[loss], alpha, weight=weights, **options
    )
    built.centred = center
    return built, X, Y, weight if weighted else np.ones(len(X))


@cache
def optimum(loss, fit_intercept):
    """The least value of `problem(loss)`, W and b, which takes the oracle seconds."""
    F, X, Y, s = problem(loss, fit_intercept=fit_intercept)
    return oracle.minimum(loss, X, Y, s, F.alpha, fit_intercept)


def serves(curvature, loss):
    """Whether a curvature, by name, is one of this loss."""
    return curvature != "partition-bound" or loss in CLASS_BOUNDS


def run(problem, solver, curvature, start=None, max_time=None, **limits):
    """The `Outcome` of a solver, by the loop that every estimator has."""
    clock = Clock(max_time)
    problem.on_block = clock.check

    def iterates():
        metric = curvature(problem, np.random.default_rng(0))
        theta = solver.begin(problem, metric).theta if start is None else start
        return (yield from solver.iterates(problem, metric, theta))

    fallback = problem.constant_model()
    outcome = Run(clock, **limits)(iterates(), lambda: problem.coefficients(fallback))
    problem.on_block = nothing
    return outcome


def texts(rng, n, k, n_words, length, share):
    """Words by Zipf's law, as rows of unit norm; `share` of them of those that a class has for its own."""
    shares = np.cumsum(1.0 / np.arange(1, n_words + 1))
    y, words, own = (
        rng.integers(0, k, n),
        *(np.searchsorted(shares, shares[-1] * rng.random(shape)) for shape in ((n, length), (k, 300))),
    )
    words = np.where(rng.random((n, length)) < share, own[y[:, None], rng.integers(0, 300, (n, length))], words)
    first = np.arange(0, length * n + 1, length)
    X = sp.csr_array((np.full(length * n, length**-0.5), words.ravel(), first), (n, n_words))
    X.sum_duplicates()
    return X, y

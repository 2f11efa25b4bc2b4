"""A stagewise fit by the loop that every estimator has."""

import numpy as np

from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.features import RandomFourierFeatures
from manyclass.fit import Clock, Run
from manyclass.model import LOSSES, Problem
from manyclass.model.calibrator import Calibrator
from manyclass.model.sets import Simplex
from manyclass.stagewise import UPDATES, DrawnBlocks, HeldOutJudge, OriginalColumns, Stage, Stagewise, StagewiseModel


def targets_of(codes, k, loss):
    """One column per class, as the loss wants it."""
    absent, present = LOSSES[loss].label_values or (0.0, 1.0)
    if loss == "logistic":
        return MatrixTargets(absent + (present - absent) * np.eye(k)[codes])
    return ClassTargets(codes, k, (absent, present))


class Fit:
    """A run, its outcome, and the model's scores and predictions."""

    def __init__(
        self, X, targets, loss="squared", generator=None, *, weight=None, scored=None, alpha=1e-3, block_size=10,
        n_components=40, max_iter=1, n_models=1, fit_intercept=True, basis=(1, 2, 3), domain=None, max_time=None,
        **limits,
    ):  # fmt: skip
        rows, clock = as_rows(X), Clock(max_time)
        self.problem = Problem(rows, targets, LOSSES[loss], alpha, weight=weight, fit_intercept=fit_intercept)
        self.problem.on_block = clock.check
        domain = domain or Simplex()
        self.calibrator = Calibrator(basis, domain) if loss == "calibrated" else None
        self.update = UPDATES[loss](self.problem, self.calibrator)
        rng = np.random.default_rng(0)

        def blocks(number):
            if generator is None:
                return OriginalColumns(self.problem.rows)
            return DrawnBlocks(generator, block_size, n_components, rng)

        judge = None if scored is None else HeldOutJudge(scored)
        solver = Stagewise(self.problem, self.update, blocks, max_iter, n_models, judge, clock)
        start = Stage(0, rows.zeros((rows.n_features, targets.n_outputs)), rows.zeros((targets.n_outputs,)))
        zero = StagewiseModel((None,), (start,))
        run = Run(clock, max_iter=max_iter, **limits)
        outcome = run(solver.iterates(), lambda: (zero,))
        self.models, self.status, self.history = outcome.model, outcome.status, outcome.history
        self.n_iter, self.n_passes = outcome.n_iter, outcome.n_passes
        self.model = self.models[0]
        self.stages, self.blocks = self.model.stages, self.model.blocks

    def rows(self, X):
        rows = as_rows(X)
        return rows if self.problem.shift is None else rows.shifted(self.problem.shift)

    def scores(self, X):
        return self.model.scores(self.rows(X), self.calibrator)

    def predictions(self, X):
        """Scores, projected where the model is calibrated."""
        scores = self.scores(X)
        return scores if self.calibrator is None else self.calibrator.domain.project(scores, as_rows(X).xp)

    def staged(self, X):
        return self.model.staged_scores(self.rows(X), self.calibrator)

    def features(self, X):
        return np.hstack([block.transform(X) for block in self.blocks])

    def objectives(self):
        return np.array([record.objective for record in self.history])


def problem(n=150, d=4, k=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return X, np.argmax(np.sin(X @ rng.standard_normal((d, k))) + 0.3 * rng.gumbel(size=(n, k)), axis=1)


def solve(X, y, loss="squared", generator=None, targets=None, **options):
    generator = (generator or RandomFourierFeatures(random_state=0)).fit(X, y)
    targets = targets_of(y, 3, loss) if targets is None else targets
    return Fit(X, targets, loss, generator, **options)

"""Stagewise regression over features that are generated block by block and never stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from manyclass.choice.features import (
    COLUMNS,
    IN_UNITS,
    LeftOut,
    better_bandwidths,
    column_units,
    columns_suffice,
    errors_of_representations,
    features_to_look_at,
    in_units_is_better,
    in_units_is_no_worse,
    weight_of_copies,
)
from manyclass.data.labels import Labels
from manyclass.data.memory import room_for
from manyclass.data.rows import Array, Rows
from manyclass.data.summary import are_in_memory
from manyclass.data.threads import blas_threads, threads_for
from manyclass.estimators.base import Task
from manyclass.estimators.generators import GENERATOR, Generators, listed
from manyclass.estimators.learned_link import LearnedLink
from manyclass.estimators.linear_rival import LINKED, LinearRival
from manyclass.estimators.parameters import CHOSEN_ALPHA, CLASS_WEIGHT, RUN, Balanced, HoldsOut
from manyclass.estimators.regressor import Regressor
from manyclass.estimators.stagewise_base import StagewiseEstimator, judge_of
from manyclass.features import FeatureGenerator, RandomFourierFeatures
from manyclass.fit import Clock, Iterate, Iterates, changed
from manyclass.fit.held_out import folds_by_content
from manyclass.model import Problem
from manyclass.stagewise import DrawnBlocks, HeldOutJudge, SmallerTrials, StagewiseModel
from manyclass.stagewise.blocks import Blocks

COPIES = 5
"""Matrices of a block's size that exist while its normal equations are computed."""
TRIAL_ROWS, LEAST_TRIAL_ROWS = 4096, 256
"""Smaller penalties are tried by fits to half of the rows, within these limits; with fewer rows they are not."""
TRIAL_ROOM = 0.05
"""Their share of the available memory."""
FOURIER, FOURIER_IN_UNITS = "RandomFourierFeatures", "standardized RandomFourierFeatures"
_COUNT = [Interval(Integral, 1, None, closed="left")]


@dataclass(eq=False, repr=False)
class GeneratedBlocks(HoldsOut, StagewiseEstimator):
    """Blocks of generated features."""

    features: FeatureGenerator | Sequence[FeatureGenerator] | None = None
    _: KW_ONLY
    alpha: float | str = "auto"
    n_components: int | None = 8192
    block_size: int = 1024
    max_iter: int = 1
    n_models: int = 1
    n_iter_no_change: int = 10

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: allowed for name, allowed in RUN.items() if name != "tol"},
        **CHOSEN_ALPHA,
        "features": [GENERATOR, list, tuple, None],
        "n_components": [*_COUNT, None],
        "block_size": _COUNT,
        "n_models": _COUNT,
    }

    def _iterates(self, task: Task) -> Iterates:
        problem = task.problem
        # The meaning of a given penalty depends on the features, so these are not chosen then.
        if self.features is not None or self._n_models > 1 or self.alpha != "auto":
            return (yield from self._generated(task))
        if task.saved is None:
            self.choice_ = {"features": "auto", "representation": "auto", "errors": {}}
            if task.clock.max_time is not None:
                yield from self._at_first(task)
            self.choice_ = self._choice(task)
            problem.alpha = 0.0
        features = self.choice_["features"]
        if features not in (LINKED, COLUMNS, IN_UNITS):
            return (yield from self._generated(task))
        with blas_threads(super()._n_threads(problem)):  # columns may be few beside the features of a block
            if features == LINKED:
                return (yield from self._rival(task, self.choice_["errors"]).iterates())
            unit = column_units(problem) if features == IN_UNITS else None
            return (yield from self._least_squares(task, self.choice_["representation"], unit))

    def _generated(self, task: Task) -> Iterates:
        choice = vars(self).get("choice_", {})
        in_units, bandwidth = choice.get("features") == FOURIER_IN_UNITS, choice.get("bandwidth", "median")
        default = RandomFourierFeatures(standardize=in_units, bandwidth=bandwidth)
        features = [generator or default for generator in listed(self.features)]
        generators = Generators(features, task, self.n_components, self.n_models)
        first = generators.of_model(0)

        def draw(number: int) -> Blocks:
            return DrawnBlocks(generators.of_model(number), self.block_size, self.n_components, task.rng)

        solver = self._solver(task.problem, draw, judge_of(task), task.clock)
        trials, distinct = None, task.problem
        if solver.chooses_alpha and are_in_memory(distinct.rows):
            solver.left_out = weight = weight_of_copies(distinct, task.encoded.guide)
            if weight is not None:
                distinct = distinct.variant(weight=weight)
        # With no more rows than a block has features, its errors are those of any number of such blocks.
        if solver.chooses_alpha and first.capacity is None and distinct.n_present > self.block_size:
            solver.trials = trials = self._trials(task, distinct, first)

        def learn_link(iterate: Iterate) -> Iterate:
            if trials is not None and trials.best is not None and self._learns_link:
                (_, scores), trials.best = trials.best, None
                self._learn_from(trials.fits[0].problem, trials.judges[0].weight, scores)
            return iterate

        return (yield from changed(solver.iterates(task.saved), learn_link))

    def _trials(self, task: Task, problem: Problem, generator: FeatureGenerator) -> SmallerTrials | None:
        """Fits to half of a sample of rows, judged by the other half, with features and blocks in proportion."""
        rows, room = problem.rows, TRIAL_ROOM * room_for(problem.memory_limit)
        n_fitted = int(min(TRIAL_ROWS, room / (rows.row_bytes + rows.itemsize * problem.n_outputs)))
        sample = problem.taken(problem.sample(2 * n_fitted))
        fitted = folds_by_content(sample.rows, None, sample.weight, 2) == 0
        share = fitted.sum() / problem.n_present
        if fitted.sum() < LEAST_TRIAL_ROWS:
            return None
        total, size = max(round(share * self.n_components), 1), max(round(share * self.block_size), 1)
        inside, judging = sample.weights_of(fitted)
        part, judge = sample.variant(weight=inside), HeldOutJudge(judging)

        def draw(number: int) -> Blocks:
            return DrawnBlocks(generator, size, total, np.random.default_rng(0))

        fit = self._solver(part, draw, judge, task.clock)
        fit.chooses_alpha, fit.n_models = False, 1
        return SmallerTrials([fit], [judge], [1.0], scale=problem.total_weight / part.total_weight)

    def _choice(self, task: Task) -> dict[str, Any]:
        """``choice_``: columns, standardised or not, or generated features of these, or a linear model with a link."""
        problem = task.problem
        unit = column_units(problem)
        generators = {FOURIER: RandomFourierFeatures(random_state=0)}
        if unit is not None:
            generators[FOURIER_IN_UNITS] = RandomFourierFeatures(standardize=True, random_state=0)
        left_out: dict[str, LeftOut] | None = {} if self._learns_link else None
        guide = task.encoded.guide
        errors = errors_of_representations(problem, unit, generators, guide, self.n_components, left_out)
        bandwidths = better_bandwidths(problem, generators, errors, guide, self.n_components, left_out)
        representation = self._fastest(problem)
        columns = IN_UNITS if in_units_is_better(errors, COLUMNS, IN_UNITS) else COLUMNS
        generated = FOURIER_IN_UNITS if in_units_is_better(errors, FOURIER, FOURIER_IN_UNITS) else FOURIER
        # Only the two candidates count: an error in units that are not taken must not speak for either.
        candidates = {name: errors[name] for name in (columns, generated)}
        features = columns if columns_suffice(candidates, problem.rows.n_features) else generated
        if self._has_rival and self._rival(task, errors).wins(errors, self._few_features(problem, errors)):
            features = LINKED
        elif left_out:
            self._learn_link(left_out[features])
        choice: dict[str, Any] = {"features": features, "representation": representation, "errors": errors}
        return choice | ({"bandwidth": bandwidths[features]} if features in bandwidths else {})

    @property
    def _has_rival(self) -> bool:
        """Whether a linear model with a link may replace the stages."""
        return False

    def _rival(self, task: Task, errors: Mapping[str, float]) -> LinearRival:
        return LinearRival(self, task, column_units(task.problem) if in_units_is_no_worse(errors) else None)

    def _few_features(self, problem: Problem, errors: Mapping[str, float]) -> Self:
        """A classifier on as many features as are compared, of the kernel with the smaller error."""
        in_units = in_units_is_better(errors, FOURIER, FOURIER_IN_UNITS)
        n_components = features_to_look_at(problem.rows.n_features, self.n_components)
        features = RandomFourierFeatures(standardize=in_units)
        options = {"features": features, "n_components": n_components, "loss": "squared", "random_state": 0}
        # The weights of rows include those of classes; unlike a clone, it has no callbacks.
        return type(self)(**self.get_params(deep=False) | options | {"class_weight": None})

    @property
    def _n_models(self) -> int:
        return self.n_models * len(listed(self.features))

    def _memory(self, problem: Problem) -> dict[str, float]:
        size = min(self.block_size, self.n_components or self.block_size)
        return super()._memory(problem) | {"the second moments of a block": 8.0 * COPIES * size**2}

    _memory_advice = f"lower block_size, {StagewiseEstimator._memory_advice}"

    def _max_iterates(self) -> None:
        """Unknown, as generators may round the sizes of blocks."""

    def _n_threads(self, problem: Problem) -> int | None:
        return threads_for(float(problem.rows.n_rows) * self.block_size**2)


@dataclass(eq=False, repr=False)
class StagewiseClassifier(Balanced, GeneratedBlocks, LearnedLink):
    """Stagewise regression over generated features: *Least Squares Revisited*, Algorithm 3.

    From ŷ = 0, stage t generates a block of p new features φ_t(x), fits what is left over,

        W_t = argmin_W (1/2S) Σ_i s_i ‖y_i − ŷ_i − Wᵀφ_t(x_i) − b‖² + (alpha/2) ‖W‖²      (loss="squared")

    and moves the predictions. Features are never stored: a block is generated chunk by chunk while its Gram matrix is
    summed, once more to move the predictions, and again to predict. A model with tens of thousands of features needs
    the memory of X, of one (n, k) array, of one chunk and of a few p×p matrices. Further visits of the blocks tend to
    the joint solution of all features (block coordinate descent), the minimum of

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀφ(x_i) + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i.

    Dimension reduction in front, such as PCA, belongs in a ``Pipeline``, which applies it once to each row instead of
    once for each block.

    Parameters
    ----------
    features : FeatureGenerator, list of FeatureGenerator, or None, default=None
        Where blocks come from: `RandomFourierFeatures`, `RandomUnits`, `RandomPolynomials`, `Landmarks`,
        `FeatureSubset`, `ImagePatches`, or your own. Its ``n_components`` and ``random_state`` are not used. Each
        generator of a list has models of its own, and all models are averaged: those that err in different ways err
        less together. None takes `RandomFourierFeatures`, or, with ``alpha="auto"`` and one model, the columns as they
        are where leave-one-out errors on a sample of rows are smaller for these. Where the spread of one column is more
        than ten times that of another, either is also tried on standardised columns (see ``choice_``).
    loss : {"auto", "squared", "calibrated", "softmax", "logistic"}, default="auto"
        "auto" is "squared", or, where rows left out prefer it (see ``choice_``), softmax (logistic, for several labels)
        on the columns themselves, with the penalty that `GLMClassifierCV` chooses on up to 8192 rows (for several
        labels: the one with the best F1 score of those with as few wrong labels as any). The latter is not tried with
        `features` or a penalty given, several models, or early stopping. "squared": ½‖z − y‖² with y = ±1, least
        squares on the residuals, the fastest. "calibrated": the same with y = 0 or 1, and Algorithm 2's calibration and
        projection after each visit of all blocks. "softmax": a Newton step on the log loss of a block, with the running
        scores as offset; "logistic": the same with one logistic loss per class or label.
    alpha : float or "auto", default="auto"
        Penalty, ≥ 0. "auto" takes the one with the least leave-one-out error (generalised cross-validation from four
        rows per feature on) of the linearised loss for the first block that is not constant, times the number of
        blocks, as their kernels add up; 0 if all are constant. With more rows than features in a block, and a generator
        that never runs out of features, it is then divided by ten for as long as held-out rows gain: by fits to half of
        the rows, at most 4096, with the same share of the features.
        Generators scale their features so that rows have the mean squared norm 1 in every block, whatever its size
        and the units of X (less only where `Landmarks` are too few), and alpha means the same for all of them.
        `FeatureSubset` leaves columns as they are: there alpha is that of `GLMClassifier`.
    n_components : int or None, default=8192
        Features of each model; None for all that a `FeatureSubset` has.
    block_size : int, default=1024
        Features per stage, p. Larger blocks are nearer to the joint solution; a stage costs n·p².
    max_iter : int, default=1
        How often each block is visited. A further visit costs a small part of the first, as long as the factors of the
        blocks fit into 1 GB.
    n_models : int, default=1
        Models on disjoint features, trained one after the other and averaged; with a list, so many per generator.
    early_stopping : bool, default=False
        Hold rows out, stop when their loss (with several models, that of their average) no longer falls, and keep the
        stages up to the best.
    n_iter_no_change : int, default=10
        Stages without gain on the held-out rows after which to stop.
    max_time : float, default=None
        Limit in seconds. No stage is begun that would probably exceed it; the finished ones are the model.
    <shared>

    Attributes
    ----------
    models_ : list of StagewiseModel
        Each has blocks (fitted transformers) and stages.
    choice_ : dict
        Where there was a choice: what was taken (``features``, and for columns ``representation``, as in
        `CalibratedLeastSquaresClassifier`), the errors on rows left out (``errors``) and, where it is not the median,
        the ``bandwidth`` of Fourier features: four times the median, a 4th, a 16th or a 64th of it, if its errors are
        at most 0.9 of the median's. "columns with a link" is the linear model of ``loss="auto"``, on standardised
        columns where these are no worse; it is fitted at once, with a ``duality_gap_``.
    temperature_ : float
        What scores of the loss "squared" are divided by before they become probabilities (see the notes).
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or the generator cannot give the features.

    Notes
    -----
    ``history_`` has a record per stage, with details: model, stage, n_features (different ones so far), phases (in
    seconds) and before_calibration (the objective before a calibration). For a linear model with a link it has one per
    iteration of `GLMClassifier`, with that objective. ``n_iter_`` is how often all blocks of all models have been
    visited. With `max_time` and features to choose, the first record is least squares on the columns, which is the
    model where the time is over before anything is chosen.

    Ctrl-C ends the fit after the last finished stage: the model holds all stages before, ``status_`` says so, and a
    ConvergenceWarning is issued.

    Probabilities of "softmax" and "logistic" follow from their links. For "squared" ``predict_proba`` is
    softmax(z/``temperature_``), or 1/(1 + exp(−z/``temperature_``)) for two classes and for labels, at the temperature
    with the least log loss on rows that were not fitted to: those held out, else those that judge penalties of
    generated features, else those left out to choose the features. It is (1 + z)/2, projected onto the simplex or
    [0, 1], where that has less log loss, or where there are no such rows (a penalty is given, or `features` and few
    rows). For "calibrated" it is z projected. Projections are mixed with even probabilities, as in
    `CalibratedLeastSquaresClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import StagewiseClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StagewiseClassifier(n_components=1024, block_size=256).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GeneratedBlocks._parameter_constraints,
        **CLASS_WEIGHT,
        "loss": [str],
    }

    _: KW_ONLY
    loss: str = "auto"

    def _loss_to_begin_with(self, encoded: Labels) -> str:
        return "squared"

    @property
    def _has_rival(self) -> bool:
        return self.loss == "auto" and not self.early_stopping

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each stage (of every model, where there are several).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels) for multi-label models
        """
        for scores in self._staged_scores(self._fitted_rows(X)):
            yield self._labels(self._best(scores))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each stage; see `staged_predict`."""
        return map(self._probabilities, self._staged_scores(self._fitted_rows(X)))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each stage; see `staged_predict`."""
        for scores in self._staged_scores(self._fitted_rows(X)):
            yield scores[:, 0] if self._is_single(scores) else scores


@dataclass(eq=False, repr=False)
class StagewiseRegressor(GeneratedBlocks, Regressor):
    """Least squares on generated features, block by block; see `StagewiseClassifier`.

    Minimises (1/2S) Σ_i s_i ‖y_i − Wᵀφ(x_i) − b‖² + (alpha/2) ‖W‖² by block coordinate descent over blocks of φ that
    are generated when they are needed. y may have several columns, for which one choice of features and penalty is
    made, that with the least errors relative to the variance of each; in ``history_`` losses are of y in units of a
    power of two next above its standard deviation.

    Parameters
    ----------
    features, alpha, n_components, block_size, max_iter, n_models, fit_intercept, early_stopping, validation_fraction, \
n_iter_no_change, max_time, random_state
        As in `StagewiseClassifier`.

    Attributes
    ----------
    models_, alpha_, choice_, n_iter_, n_passes_, history_, status_, n_features_in_, feature_names_in_
        As in `StagewiseClassifier`.

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, shapes disagree, or the generator cannot give the features.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manyclass import StagewiseRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StagewiseRegressor(n_components=512, block_size=128).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    """

    def _task(self, rows: Rows, encoded: Any, weight: Any, clock: Clock) -> Task:
        """The task with outputs in units of their own, as one choice of features and penalty is made for all."""
        return super()._task(rows, encoded.in_units(weight), weight, clock)

    def _store(self, task: Task, model: tuple[StagewiseModel, ...]) -> None:
        unit = task.rows.asarray(task.encoded.unit)
        super()._store(task, tuple(member.times(unit) for member in model))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each stage (of every model, where there are several)."""
        for scores in self._staged_scores(self._fitted_rows(X)):
            yield scores[:, 0] if self._is_one_dimensional else scores

"""What the stagewise classifier and regressor share: parameters, fitting, and the replay of stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval

from manyclass.data import Design, TrainingSet
from manyclass.data.design import Array
from manyclass.estimators.parameters import HELD_OUT, generator
from manyclass.estimators.portable import PortableEstimator
from manyclass.features import FeatureGenerator, RandomFourierFeatures
from manyclass.solvers.base import Status
from manyclass.solvers.inner import InnerUpdate
from manyclass.solvers.stages import StageRecord, StagewiseModel, final_states, staged_states
from manyclass.solvers.stagewise import Stagewise


class StagedEstimator(PortableEstimator, ABC):
    """An average of models of stages, each of which uses one block of generated features."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HELD_OUT,
        "features": [HasMethods(["fit", "draw"]), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "block_size": [Interval(Integral, 1, None, closed="left")],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "n_models": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "cache_size": [Interval(Real, 0, None, closed="left")],
        "callback": [callable, None],
        "random_state": ["random_state"],
    }

    def _fit_models(
        self,
        training: TrainingSet,
        guide: Any,
        inner: InnerUpdate,
        weight: Array | None,
        started: float,
    ) -> tuple[Status, list[StageRecord], int]:
        """Train all models; why that ended, the records of the stages kept, and their number.

        Parameters
        ----------
        guide : array of shape (n_rows,) or (n_rows, n_outputs)
            What generators may look at beside X.
        weight : array of shape (n_rows,) or None
            Of all rows, held out or not: what generators learn from.
        """
        rng = generator(self.random_state)
        maker: FeatureGenerator = RandomFourierFeatures() if self.features is None else clone(self.features)
        if "random_state" in maker.get_params():
            maker.set_params(random_state=int(rng.integers(2**31)))
        maker.fit(training.design.X, guide, sample_weight=weight)
        if self.n_components is None and maker.capacity is None:
            raise ValueError(
                f"{type(maker).__name__} can give any number of features; set n_components to how many to use."
            )
        if self.n_models > 1 and maker.capacity is not None:
            raise ValueError(
                f"{type(maker).__name__} has {maker.capacity} features and no others for a second model; use "
                "n_models=1, or a generator of random features."
            )
        solver = Stagewise(
            inner,
            alpha=self.alpha,
            block_size=self.block_size,
            n_components=self.n_components,
            n_passes=self.n_passes,
            fit_intercept=self.fit_intercept,
            cache_bytes=self.cache_size * 2**20,
            patience=self.n_iter_no_change,
            max_time=self.max_time,
            callback=self.callback,
        )
        self.models_: list[StagewiseModel] = []
        history: list[StageRecord] = []
        status = Status.FINISHED
        for model in range(self.n_models):
            try:
                solution = solver.solve(training, maker, rng, started, model)
            except KeyboardInterrupt:
                if not self.models_:
                    raise
                status = Status.INTERRUPTED
                break
            self.models_.append(StagewiseModel(solution.blocks, solution.stages))
            history += solution.history
            status = solution.status
            if status in (Status.INTERRUPTED, Status.TIME_UP):
                break
        return status, history, sum(len(model.stages) for model in self.models_)

    def _states(self, design: Design) -> Array:
        """The state of each row, averaged over the models."""
        states = [final_states(design, m.blocks, m.stages, self._inner_update()) for m in self.models_]
        return sum(states[1:], states[0]) / len(states)

    def _staged_states(self, design: Design) -> Iterator[Array]:
        inner = self._inner_update()
        runs = [staged_states(design, m.blocks, m.stages, inner) for m in self.models_]
        present = [next(run) for run in runs]
        for _ in range(max(len(m.stages) for m in self.models_)):
            yield sum(present[1:], present[0] + 0.0) / len(present)
            present = [next(run, last) for run, last in zip(runs, present, strict=True)]

    @abstractmethod
    def _inner_update(self) -> InnerUpdate:
        """How blocks are fitted, and predictions moved."""

"""The generators of features of a stagewise fit; each has models of its own."""

from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from manyclass.estimators.base import Task
from manyclass.features import FeatureGenerator
from manyclass.features.base import FIRST_ROWS

GENERATOR = HasMethods(["fit", "draw"])
"""Constraint of the parameter ``features``, or of each in a list."""


def listed(features: Any) -> list[FeatureGenerator | None]:
    """The generators as a list; None stands for the default one."""
    several = isinstance(features, list | tuple)
    generators = list(features) if several else [features]
    if not generators or (several and not all(map(GENERATOR.is_satisfied_by, generators))):
        raise TypeError(
            f"features is {features!r}; give a generator of features, such as RandomFourierFeatures(), or a list of "
            "these."
        )
    return generators


class Generators:
    """Clones of generators with seeds of their own, fitted to the rows of a task.

    All but those that learn from y are fitted at once, which checks them. To learn from y may take as long as a stage;
    it is put off until the first model of the generator begins.
    """

    def __init__(self, generators: list[FeatureGenerator], task: Task, n_components: int | None, n_models: int):
        self.task, self.n_components, self.n_models = task, n_components, n_models
        self._seeded = list(map(self._with_seed, generators))
        self._fitted = {i: self._fit(own) for i, own in enumerate(self._seeded) if i == 0 or not _looks_at_y(own)}

    def of_model(self, number: int) -> FeatureGenerator:
        i = number % len(self._seeded)
        self._fitted[i] = self._fitted.get(i) or self._fit(self._seeded[i])
        return self._fitted[i]

    def _with_seed(self, generator: FeatureGenerator) -> FeatureGenerator:
        own: FeatureGenerator = clone(generator)
        if "random_state" in own.get_params():
            own.set_params(random_state=int(self.task.rng.integers(2**31)))
        if hasattr(own, "_validate_params"):
            own._validate_params()
        if not getattr(own, "first_counts", True):
            own.set_params(n_components=min(own.n_components, FIRST_ROWS))  # those beyond would never be drawn from
        return own

    def _fit(self, generator: FeatureGenerator) -> FeatureGenerator:
        name, problem = type(generator).__name__, self.task.problem
        place = problem.rows.place
        if _looks_at_y(generator):
            place.refuse(f"{generator} looks at y, which lies in parts elsewhere; features that do not can be used.")
        generator.fit(problem.rows, self.task.encoded.guide, sample_weight=place.gather(problem.weight))
        if self.n_components is None and generator.capacity is None:
            raise ValueError(f"{name} can give any number of features; set n_components to how many to use.")
        if self.n_models > 1 and generator.capacity is not None:
            raise ValueError(
                f"{name} has {generator.capacity} features and no others for a second model; use n_models=1, or a "
                "generator of random features."
            )
        return generator


def _looks_at_y(generator: FeatureGenerator) -> bool:
    return bool(get_tags(generator).target_tags.required)

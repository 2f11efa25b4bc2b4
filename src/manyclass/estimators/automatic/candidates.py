"""The candidates of `AutoClassifier`: estimators with their parameters, and the scaling of the columns before them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.base import clone

from manyclass.data import Rows, as_rows
from manyclass.data.summary import is_full
from manyclass.estimators.automatic import rounds
from manyclass.estimators.automatic.feature_kinds import LANDMARKS, LEARNED_WAVES, WAVES, FeatureKind
from manyclass.estimators.automatic.scalings import AS_GIVEN, STEPS, leading_variance, scaled_rows, width
from manyclass.estimators.calibrated import CalibratedLeastSquaresClassifier
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.sdca import SDCAClassifier
from manyclass.estimators.stagewise import StagewiseClassifier
from manyclass.features import median_squared_distance
from manyclass.features.learned_metric import waves_for

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Penalties of softmax and logistic regression, in units of `leading_variance`."""
OF_STEPS = (1e-2, 1e-4)
"""Of these, the penalties that are always tried on steps of the columns; the others only if steps lead."""
MARGINS = (1.0, 1e-1, 1e-2)
"""Penalties of squared hinges, in the same units."""
OF_FEW_ROWS = (10.0, 1.0)
"""Further penalties for few rows, which cannot distinguish columns that hardly help from those that do not."""
GAP = 1e-2
"""Duality gap of candidates, for classes of equal size. A smaller one makes no difference on held-out rows, and would
take twice as long on text."""
NEARER = 1e-3
"""The gap for fewer rows than columns if there is no fit at a larger penalty, and for the best candidates. Such rows
have next to no loss, and `GAP` may be many times that."""
MOST_ROWS = 1 << 40
"""Upper limit of the search of `Candidate.rows_for`."""
BANDWIDTHS = (1.0, 0.25)
"""Bandwidths of kernels, in units of the median squared distance of rows."""
FEWEST_FEATURES, MOST_FEATURES = 256, 8192
STEP_PENALTIES = (1e-4, 1e-2, 1.0)
"""Penalties of Newton's steps on generated features, times the number of rows: the right penalty falls with it. Rows of
generated features have the mean squared norm 1."""
WIDEST = 5000
"""Most columns for which kernels are tried, and most columns of steps."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimator with its parameters, and the scaling of the columns in front of it."""

    model: Any  # not fitted
    scaling: str  # a key of `scaled_rows`
    family: str = ""  # models of a family form a path of penalties, each fit beginning where another ended
    kind: FeatureKind | None = None  # of the features that it generates; None for a linear model
    bandwidth: float = 0.0  # of these, in units of the median squared distance
    penalty: float = 0.0  # on the sum over the rows, where alpha is not that of the model
    follows: tuple[str, ...] = ()  # tried only with these attributes of the best linear model, or kernel, so far
    follows_linear: tuple[str, ...] = ()  # the same of the best linear model, for kernels
    n_kernels: int = 1  # whose models are averaged
    width: float = 1.0  # columns that the scaling makes of one

    @property
    def estimator(self) -> str:
        return type(self.model).__name__

    @property
    def is_linear(self) -> bool:
        return self.kind is None

    @property
    def is_dear(self) -> bool:
        """Whether a fit takes several times as long as with other features."""
        return self.kind is not None and self.kind.is_dear

    @property
    def n_learned(self) -> int:
        """The number of its kernels that have to learn a metric."""
        kernels = self.model.features if self.n_kernels > 1 else [self.kind]
        return sum(getattr(one, "metric", "") == "learned" for one in kernels)

    @property
    def alpha(self) -> float:
        """The penalty of a model of a family."""
        return float(self.model.alpha)

    @property
    def can_go_on(self) -> bool:
        """Whether a fit can begin at the model of another."""
        return bool(getattr(self.model, "warm_start", False))

    @property
    def has_temperature(self) -> bool:
        """Whether its probabilities have to be learned from held-out rows."""
        return getattr(self.model, "calibrate", None) == "temperature"

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for candidates that are the same, of those with generated features."""
        return self.scaling, self.bandwidth, self.kind, self.penalty, self.times_as_long

    @property
    def times_as_long(self) -> float:
        """Seconds of a fit, relative to one with random features."""
        return 1.0 if self.kind is None else self.kind.times_as_long(self.model.block_size)

    def with_next_penalty(self, *, larger: bool = False) -> Candidate:
        """The next candidate on the path of its family, beyond those listed."""
        (first, second), alpha = PENALTIES[:2], self.alpha
        alpha *= first / second if larger else second / first
        return replace(self, model=clone(self.model).set_params(alpha=to_read(alpha)))

    def within(self, gap: float) -> Candidate:
        """The same candidate with this gap, if it is smaller than its own."""
        if not gap < self.model.tol:
            return self
        return replace(self, model=clone(self.model).set_params(tol=to_read(gap)))

    def of_bandwidth(self, factor: float) -> Candidate:
        """The same with the bandwidth multiplied by a factor."""
        bandwidth = to_read(factor * self.model.features.bandwidth)
        model = clone(self.model).set_params(features__bandwidth=bandwidth)
        return replace(self, model=model, bandwidth=factor * self.bandwidth)

    def of_kind(self, kind: FeatureKind) -> Candidate:
        """The same kernel with another kind of features."""
        features = kind.generator(self.model.features.bandwidth)
        model = clone(self.model).set_params(features=features, block_size=kind.block_size)
        return replace(self, model=model, kind=kind)

    def with_larger_blocks(self, n_rows: int) -> Candidate | None:
        """The same with blocks twice as large; None if that is of no use, or one has all features."""
        size = self.model.block_size
        if self.kind is None or not self.kind.likes_large_blocks or size >= self.n_features(n_rows):
            return None
        return replace(self, model=clone(self.model).set_params(block_size=2 * size))

    def averaged_with(self, others: list[Candidate]) -> Candidate:
        """The mean of models, one on its own features and one on those of each of the others."""
        kernels = [self.model.features, *(one.model.features for one in others)]
        return replace(self, model=clone(self.model).set_params(features=kernels), n_kernels=len(kernels))

    def work(self, n_rows: int) -> float:
        """The work of a fit to so many rows, in a unit of its own."""
        if self.kind is None:
            return float(n_rows)
        return self.n_kernels * self.kind.work(n_rows, self.n_features(n_rows), self.model.block_size)

    def rows_for(self, work: float) -> int:
        """The number of rows in a fit of so much work."""
        return bisect_right(range(MOST_ROWS), work, key=self.work) - 1

    def most_share(self, n_rows: int) -> float:
        """The largest useful factor on the number of features, for so many rows."""
        return 1.0 if self.is_linear else max(min(self.n_kernels, 2) / self.n_kernels * n_rows / MOST_FEATURES, 1.0)

    def n_models(self, share: float) -> int:
        """Models of each kernel, if there are `share` times as many features as usual."""
        return 1 if self.kind is None else self.kind.n_models(share)

    def n_features(self, n_rows: int) -> int:
        """As many features as rows, within limits: with more, the penalty would take away most of the gain."""
        return int(np.clip(n_rows, FEWEST_FEATURES, MOST_FEATURES))

    def built(self, n_rows: int, seconds: float, start: Any = None, share: float = 1.0) -> Any:
        """The estimator for a fit to so many rows in so many seconds, which begins at `start` if it can.

        It has `share` times the usual number of features.
        """
        given = clone(self.model).get_params(deep=False)  # with features of its own
        if not self.is_linear:
            n_models, usual = self.n_models(share), self.n_features(n_rows)
            n_components = max(FEWEST_FEATURES, int(share / n_models * usual))
            given |= {"n_components": n_components, "block_size": min(given["block_size"], n_components)}
            given |= {"n_models": n_models}
            if self.penalty:  # kernels of blocks add up
                given["alpha"] = self.penalty / n_rows * n_components / usual
        given["max_time"] = None if np.isinf(seconds) else max(seconds, 1e-3)
        return (deepcopy(start) if start is not None and self.can_go_on else clone(self.model)).set_params(**given)

    def __str__(self) -> str:
        told = ", ".join(f"{name}={_told(value)}" for name, value in chosen_parameters(self.model).items())
        return f"{self.estimator}({told})" + (f" on {self.scaling}" if self.scaling != AS_GIVEN else "")


def chosen_parameters(model: Any) -> dict[str, Any]:
    """Parameters of an estimator that differ from its defaults, without those that only the search sets."""
    defaults, given = type(model)().get_params(deep=False), model.get_params(deep=False)
    skipped = ("warm_start", "max_time", "random_state")
    return {name: value for name, value in given.items() if value != defaults[name] and name not in skipped}


def _told(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)


def candidates(
    rows: Rows,
    seed: int,
    class_weight: Any = None,
    multilabel: bool = False,
    evenness: float = 1.0,
    are_all: bool = True,
    numbers: Sequence[int] = (),
) -> tuple[list[Candidate], dict[str, tuple[Any, Any]]]:
    """The candidates, simple ones first; and for each scaling its scaler (or None) and the scaled rows.

    `evenness` is that of the classes (see there). `are_all` says whether the choice will be fitted to these rows alone;
    else there are no landmarks, as their generator would hold all rows in memory. Columns of `numbers` are tried in
    steps where the others are sparse.
    """
    scalings = scaled_rows(rows, WIDEST, numbers)
    units = {name: leading_variance(as_rows(scaled), seed) for name, (_, scaled) in scalings.items()}
    shares = (OF_FEW_ROWS if rows.n_rows < rounds.FEW_ROWS else ()) + PENALTIES
    tol = to_read(GAP * evenness)
    listed = []
    for name, (scaler, scaled) in scalings.items():
        times_as_wide = width(scaler, scaled, rows) if name == STEPS else 1.0
        for share in shares:
            model = GLMClassifier(alpha=share * units[name], tol=tol, warm_start=True)
            follows = ("scaling",) if name == STEPS and share not in OF_STEPS else ()
            listed.append(Candidate(model, name, f"GLM {name}", follows=follows, width=times_as_wide))
    is_generated = is_full(rows) and rows.n_features <= WIDEST
    if multilabel or not is_generated:
        # With one class per row, calibration takes longer than all else and has no fewer errors than least squares.
        squared: Any = StagewiseClassifier(loss="squared", random_state=seed)
        if multilabel:
            squared = CalibratedLeastSquaresClassifier(random_state=seed)
        for name in scalings:
            follows = () if multilabel and name != STEPS else ("scaling",)
            listed.append(Candidate(squared, name, follows=follows))
    if not (multilabel or is_generated):
        hinge = SDCAClassifier(loss="squared_hinge", calibrate="temperature", tol=NEARER, random_state=seed)
        listed += [
            Candidate(clone(hinge).set_params(alpha=to_read(share * units[name])), name, f"SDCA {name}")
            for name in scalings
            if name != STEPS
            for share in MARGINS
        ]
    if is_generated:
        listed += _generated({name: scaled for name, (_, scaled) in scalings.items()}, rows, seed, multilabel, are_all)
    for one in listed:
        one.model.set_params(class_weight=class_weight)
    return listed, scalings


def _generated(scalings: dict[str, Any], rows: Rows, seed: int, multilabel: bool, are_all: bool) -> list[Candidate]:
    """Newton's steps on random features of every kernel. For the best kernel, also with a learned metric, on landmarks,
    and with a penalty that is only right for many rows."""
    medians = {name: median_squared_distance(scaled) for name, scaled in scalings.items()}
    same_kernel, (least, *usual) = ("scaling", "bandwidth"), STEP_PENALTIES
    ways: list[tuple[float, FeatureKind, tuple[str, ...]]]
    ways = [(penalty, WAVES, ()) for penalty in usual] + [(penalty, LEARNED_WAVES, same_kernel) for penalty in usual]
    ways += [(least, kind, (*same_kernel, "kind")) for kind in (WAVES, LEARNED_WAVES)]
    if are_all:
        ways += [(penalty, LANDMARKS, same_kernel) for penalty in (usual[0], least)]
        ways += [(usual[1], LANDMARKS, (*same_kernel, "kind"))]
    shared: dict[str, Any] = {"loss": "logistic" if multilabel else "softmax"}
    shared |= {"n_components": MOST_FEATURES, "random_state": seed}
    found = []
    for penalty, kind, follows in ways:
        for name, scaled in scalings.items():
            if kind is LEARNED_WAVES and as_rows(scaled).n_features > waves_for(rows.n_rows):
                continue  # too many columns to learn a metric: these would be random features again
            # Kernels on steps are tried if a linear model on steps leads.
            of_linear = ("scaling",) if name == STEPS else ()
            for share in BANDWIDTHS:
                features, alpha = kind.generator(to_read(share * medians[name])), penalty / rows.n_rows
                model = StagewiseClassifier(features, alpha=alpha, block_size=kind.block_size, **shared)
                found.append(Candidate(model, name, "", kind, share, penalty, follows, of_linear))
    return found


def to_read(number: float) -> float:
    """A number rounded to four digits, for people."""
    return float(f"{number:.4g}")


def evenness(codes: np.ndarray | None) -> float:
    """The entropy of the class shares, divided by that of even shares; 1 for several labels per row.

    Gaps are relative to the entropy of even shares. If a class is rare, the constant model has far less loss than that,
    and gaps have to be smaller.
    """
    if codes is None:
        return 1.0
    shares = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(np.sum(entr(shares)) / math.log(len(shares)))

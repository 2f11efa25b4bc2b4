"""What `AutoClassifier` tries, on which rows, and how it judges: lists to which more can be added."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from manyclass.data import Rows, as_rows
from manyclass.data.labels import Labels
from manyclass.data.rows import to_numpy
from manyclass.data.summary import ranges
from manyclass.estimators.calibrated import CalibratedLeastSquaresClassifier
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.stagewise import StagewiseClassifier
from manyclass.features import RandomFourierFeatures, median_squared_distance
from manyclass.fit.held_out import hold_out

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Of softmax and logistic regression, in units of the variance of the rows along what they vary in most."""
MEASURED_ROWS = 512
"""By which that variance is estimated."""
BANDWIDTHS = (1.0, 0.25)
"""Of Fourier features, in units of the median squared distance of rows."""
FEWEST_FEATURES, MOST_FEATURES, BLOCK = 256, 8192, 1024
WIDEST = 5000
"""Columns up to which a kernel of their distances is tried."""
UNEVEN = 3.0
"""Ratio of the sizes of columns from which they are brought to one."""
FEW_ROWS, FOLDS, MOST_HELD_OUT, FIRST_ROWS, GROWTH = 3000, 5, 10_000, 2000, 4


Parts = dict[int, tuple[np.ndarray, np.ndarray]]
"""By number, rows to learn from and rows to judge by."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An estimator with its parameters, and the scaling of the rows in front of it.

    Attributes
    ----------
    model : estimator
        Not fitted.
    scaling : str
        A key of the scalings that `candidates` gives.
    is_linear : bool
    family : str
        Models of one family can begin where another ended.
    follows : bool
        Whether it is only tried with the scaling that has served best so far.
    """

    model: Any
    scaling: str
    is_linear: bool
    family: str = field(default="")
    follows: bool = False

    @property
    def estimator(self) -> str:
        return type(self.model).__name__

    def built(self, n_rows: int, seconds: float, start: Any = None) -> Any:
        """The estimator for so many rows and seconds, beginning from a fitted one where it can."""
        given = self.model.get_params(deep=False)
        if "n_components" in given:
            # More features than rows add little that a penalty does not take away again.
            n_components = int(np.clip(n_rows, FEWEST_FEATURES, given["n_components"]))
            given |= {"n_components": n_components, "block_size": min(BLOCK, n_components)}
        given["max_time"] = None if np.isinf(seconds) else max(seconds, 1e-3)
        can_start = start is not None and "warm_start" in given
        return (deepcopy(start) if can_start else clone(self.model)).set_params(**given)

    def __str__(self) -> str:
        told = ", ".join(f"{name}={_told(value)}" for name, value in chosen_parameters(self.model).items())
        return f"{self.estimator}({told})" + (f" on {self.scaling}" if self.scaling != AS_GIVEN else "")


def chosen_parameters(model: Any) -> dict[str, Any]:
    """Parameters of an estimator that are not its defaults, and do not serve the search alone."""
    defaults, given = type(model)().get_params(deep=False), model.get_params(deep=False)
    skipped = ("warm_start", "max_time", "random_state")
    return {name: value for name, value in given.items() if value != defaults[name] and name not in skipped}


AS_GIVEN = "columns as given"
SCALINGS = {
    "deviation": ("columns of unit variance", StandardScaler),
    "largest": ("columns of largest size 1", MaxAbsScaler),
}
"""By `Ranges.measure`: the scaling that makes columns of one size, and its scaler."""


def _told(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)


def candidates(rows: Rows, seed: int, class_weight: Any = None) -> tuple[list[Candidate], dict[str, tuple[Any, Any]]]:
    """What to try, the simple before the others; and by scaling the scaler (or None) and the rows it gives."""
    found = ranges(rows)
    held = rows.unwrapped()
    sizes = found.sizes[(found.maximum > found.minimum) & (found.sizes > 0)]
    scalings: dict[str, tuple[Any, Any]] = {AS_GIVEN: (None, held)}
    if len(sizes) and sizes.max() > UNEVEN * sizes.min():
        name, kind = SCALINGS[found.measure]
        scaler = kind()
        scalings[name] = (scaler, scaler.fit_transform(held))
    units = {name: leading_variance(as_rows(scaled), seed) for name, (_, scaled) in scalings.items()}
    listed = [
        Candidate(GLMClassifier(alpha=share * units[name], warm_start=True), name, True, f"GLM {name}")
        for name in scalings
        for share in PENALTIES
    ]
    calibrated = CalibratedLeastSquaresClassifier(random_state=seed)
    listed += [Candidate(calibrated, name, True, follows=True) for name in scalings]
    if rows.can_be_centred and rows.n_features <= WIDEST:
        for name, (_, scaled) in scalings.items():
            median = median_squared_distance(scaled)
            for share in BANDWIDTHS:
                features = RandomFourierFeatures(bandwidth=share * median)
                model = StagewiseClassifier(features, n_components=MOST_FEATURES, random_state=seed)
                listed.append(Candidate(model, name, False))
    for one in listed:
        one.model.set_params(class_weight=class_weight)
    return listed, scalings


def leading_variance(rows: Rows, seed: int) -> float:
    """tr Σ² / tr Σ, the mean eigenvalue of the covariance Σ of the rows, each weighted by itself; of some of the rows.

    Where most of many columns say next to nothing, as those of words, their mean variance is far below it.
    """
    rng = np.random.default_rng(seed)
    part = rows.take(np.sort(rng.permutation(rows.n_rows)[:MEASURED_ROWS]))
    gram = to_numpy(part.shifted(part.mean()).outer())
    total = float(np.trace(gram)) / part.n_rows
    np.fill_diagonal(gram, 0.0)
    square = float(np.sum(gram**2)) / max(part.n_rows * (part.n_rows - 1), 1)
    return square / total if square > 0 else total or 1.0


def splits(rows: Rows, labels: Labels, fraction: float, rng: np.random.Generator) -> list[Parts]:
    """Rounds of parts; none where no two classes have a second row.

    Few rows: one fold, then all folds. Many: ever more rows, judged by the same.
    """
    n, codes = rows.n_rows, labels.strata
    if n < FEW_ROWS:
        n_folds = min(FOLDS, n if codes is None else int(np.sort(np.bincount(codes))[-2]))
        if n_folds < 2:
            return []
        kind, seed = (KFold if codes is None else StratifiedKFold), int(rng.integers(2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of classes with fewer rows than folds
            parts = list(kind(n_folds, shuffle=True, random_state=seed).split(np.empty(n), codes))
        return [{0: parts[0]}, dict(enumerate(parts))]
    judge = hold_out(rows, codes, None, min(fraction, MOST_HELD_OUT / n), rng).index
    learn = in_random_order(np.delete(np.arange(n), judge), codes, rng)
    rounds: list[Parts] = []
    n_rows = max(FIRST_ROWS, 4 * labels.n_classes)
    while n_rows < len(learn):
        rounds.append({len(rounds): (learn[:n_rows], judge)})
        n_rows *= GROWTH
    return [*rounds, {len(rounds): (learn, judge)}]


def in_random_order(index: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Numbers of rows, with one of each class before the others, so that any part knows them all."""
    index = rng.permutation(index)
    if codes is None:
        return index
    first = np.unique(codes[index], return_index=True)[1]
    return np.concatenate([index[first], np.delete(index, first)])


def score(
    model: Any, X: Any, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Mean accuracy and log loss; of several labels per row, over their cells."""

    def mean(values: np.ndarray) -> float:
        return float(np.average(values if values.ndim == 1 else values.mean(axis=1), weights=weight))

    accuracy = mean(to_numpy(model.predict(X)) == y)
    P = np.clip(np.asarray(to_numpy(model.predict_proba(X)), dtype=np.float64), 1e-6, 1.0 - 1e-6)
    if y.ndim == 2:
        return accuracy, -mean(np.where(y > 0, np.log(P), np.log(1.0 - P)))
    whole = np.full((len(y), len(classes)), 1e-6)
    whole[:, np.searchsorted(classes, model.classes_)] = P
    return accuracy, -mean(np.log(whole[np.arange(len(y)), np.searchsorted(classes, y)]))

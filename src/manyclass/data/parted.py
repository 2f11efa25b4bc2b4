"""Rows, labels and weights that lie in parts elsewhere, as far as the head of a fit knows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from array_api_compat import numpy as numpy_namespace
from sklearn.base import BaseEstimator
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from manyclass.data import as_rows
from manyclass.data.labels import Labels, encode, encode_chunk, few_rows_of_many_labels
from manyclass.data.moments import Moments
from manyclass.data.place import HERE, Elsewhere
from manyclass.data.rows import Array, Rows
from manyclass.data.targets import ClassTargets, MatrixTargets, Targets
from manyclass.data.validation import at_most_one, check_rows, check_size
from manyclass.execution import Executor, Parts

FEW = 1 << 11
"""Rows that may be brought here, where consecutive ones are asked for."""
_OF_A_PART: dict[str, Any] = {"dtype": np.float64, "ensure_non_negative": True, "allow_all_zero_weights": True}


@dataclass(frozen=True)
class Seen:
    """What one look at the rows of a part says; of two parts, their sum."""

    sizes: dict[int, int]  # rows of each part, by its number
    n_features: int = 0
    dtypes: frozenset[str] = frozenset()  # of the products
    stored: float = 0.0  # bytes of all rows
    as_held: bool = True  # whether the parts can be computed with as they are
    can_be_centred: bool = True
    pilot: Any = 0.0  # sum of the points near the rows of those parts that lie far from the origin
    n_far: int = 0  # how many these are
    labels: Any = None  # distinct ones
    counts: Any = None  # weights of the rows that have them
    n_columns: int = 0  # of a multi-label y
    weight: float = 0.0  # Σ s

    @property
    def n_rows(self) -> int:
        return sum(self.sizes.values())

    def __add__(self, other: Self) -> Self:
        sizes = self.sizes | other.sizes
        if not self.n_rows or not other.n_rows:
            return replace(self if self.n_rows else other, sizes=sizes)
        if self.n_features != other.n_features or self.n_columns != other.n_columns:
            raise ValueError(
                f"Some partitions have {self.n_features} features and {self.n_columns or 1} columns of y, and some "
                f"{other.n_features} and {other.n_columns or 1}; give all of them the same columns."
            )
        labels, place = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([self.counts, other.counts]), len(labels))
        found = {name: getattr(self, name) + getattr(other, name) for name in ("stored", "pilot", "n_far", "weight")}
        found |= {name: getattr(self, name) & getattr(other, name) for name in ("as_held", "can_be_centred")}
        return replace(self, sizes=sizes, dtypes=self.dtypes | other.dtypes, labels=labels, counts=counts, **found)


class PartedRows(Rows):
    """The rows of parts that lie elsewhere: their shape and dtype here, and the way to each part.

    What a sum over rows asks of them it asks through `Problem.map`; what needs a row here, or a number for each, is
    refused.
    """

    xp = numpy_namespace
    device = None
    can_be_centred, row_bytes = True, 0.0

    def __init__(self, parts: Parts, seen: Seen, firsts: np.ndarray):
        if len(seen.dtypes) > 1:
            raise ValueError(f"Partitions give numbers of {' and '.join(sorted(seen.dtypes))}; cast them to one dtype.")
        self.place, self.seen = Elsewhere(parts, firsts), seen
        self.dtype = np.dtype(min(seen.dtypes))
        self.n_rows, self.n_features = seen.n_rows, seen.n_features
        self.row_bytes, self.can_be_centred = seen.stored / max(self.n_rows, 1), seen.can_be_centred

    def recipe(self) -> Rows:
        """How the rows of a part are read, to be sent there."""
        return self._like(place=HERE, seen=replace(self.seen, sizes={}, labels=None, counts=None))

    def held(self, X: Any) -> Rows:
        """The rows of a part, there."""
        rows = as_rows(X)
        rows = rows if rows.dtype == self.dtype else rows.typed(self.dtype)
        return rows if self.shift is None else rows.shifted(self.shift)

    def pilot(
        self, weight: Array | None = None, far: float | None = None, *, constant: bool = False, lasting: bool = False
    ) -> Array | None:
        if far is not None:
            return super().pilot(weight, far, constant=constant, lasting=lasting)
        if not self.seen.n_far:
            return None
        return np.asarray(self.seen.pilot / self.seen.n_far, np.float32).astype(np.float64)

    def _like(self, **changes: Any) -> Self:
        twin = copy(self)
        vars(twin).update(changes)
        return twin

    def _with_shift(self, shift: Array) -> Self:
        return self._like(shift=shift)

    def typed(self, dtype: Any) -> Self:
        return self._like(dtype=np.dtype(dtype))

    def take(self, index: np.ndarray) -> Rows:
        """A few rows, brought here."""
        return as_rows(self.brought(index, self.place.parts, _taken, self.recipe()))

    def brought(self, index: np.ndarray, parts: Parts, function: Callable[..., Array], *arguments: Any) -> Array:
        """``function(value, places, *arguments)`` of the parts that hold the rows of these numbers, in their order."""
        firsts = self.place.firsts
        in_order = np.argsort(firsts, kind="stable")  # of parts that begin at one row, only the last has any
        part = in_order[np.searchsorted(firsts[in_order], index, side="right") - 1]
        asked, order = np.unique(part), np.argsort(part, kind="stable")
        where = [index[part == number] - firsts[number] for number in asked]
        found = parts.at(asked.tolist()).map(function, Parts(parts.executor, where), *arguments).values()
        return np.concatenate(found)[np.argsort(order)]

    def column_sums(self, function: Callable[[Array], Array] | None, weight: Array | None) -> Any:
        if weight is not None:
            raise self._refusal()
        return self.place.parts.sum(_column_sums, self.recipe(), function, name="column sums")

    def part(self, rows: slice) -> Rows:
        if rows.stop - rows.start > FEW:
            raise self._refusal()
        return self.take(np.arange(rows.start, rows.stop))

    def matmat(self, W: Array) -> Array:
        raise self._refusal()

    def _refusal(self) -> Exception:
        return TypeError(
            "What was asked for needs the rows in one place, and these lie in partitions; leave it out, or pass "
            "X.compute() where the rows fit into memory."
        )


def _taken(X: Any, index: np.ndarray, recipe: PartedRows) -> Array:
    return recipe.held(X).take(index).dense()


def _column_sums(X: Any, recipe: PartedRows, function: Callable[[Array], Array] | None) -> tuple[Array, float]:
    return recipe.held(X).column_sums(function, None)


@dataclass(frozen=True)
class PartedTargets:
    """`Targets` as `Parts`; `values` are those of `ClassTargets`, where they are these."""

    n_outputs: int
    parts: Parts
    rows: PartedRows
    values: tuple[float, float] | None

    @property
    def exclusive(self) -> bool:
        return self.values is not None

    def take(self, index: np.ndarray) -> Targets:
        """Those of a few rows, brought here."""
        found = self.rows.brought(index, self.parts, _taken_targets)
        return MatrixTargets(found) if self.values is None else ClassTargets(found, self.n_outputs, self.values)


def _taken_targets(targets: Any, index: np.ndarray) -> Array:
    taken = targets.take(index)
    return taken.codes if isinstance(taken, ClassTargets) else taken.Y


@dataclass(frozen=True)
class PartedLabels(Labels):
    """Labels whose codes, or indicator, are `Parts` of y as it was given."""

    counts: Any = None

    @property
    def strata(self) -> Any:
        return self.indicator if self.codes is None else self.codes

    def targets(self, rows: Any, values: tuple[float, float] | None, *, one_column: bool = True) -> Any:
        is_one = self.is_binary and one_column
        found = self.strata.map(_targets, self.classes, rows.dtype, values, one_column)
        of_classes = None if is_one or self.is_multilabel else values or (0.0, 1.0)
        return PartedTargets(1 if is_one else self.n_classes, found, rows, of_classes)

    def weights(
        self, rows: Rows, sample_weight: Parts | None, class_weight: Any, *, balances_rows: bool, relative: bool
    ) -> Any:
        """Of the rows, by part, or None where all are 1; see `check_weights`."""
        if sample_weight is None and class_weight is None:
            return None
        table = None
        if class_weight is not None:
            if self.is_multilabel:
                raise ValueError("class_weight does not go with several labels in partitions; pass sample_weight.")
            if class_weight == "balanced":
                counts = self.strata.sum(_counts, self.classes) if balances_rows else self.counts
                with np.errstate(divide="ignore"):  # of classes of which every row weighs nothing
                    table = counts.sum() / (self.n_classes * counts)
            else:
                table = compute_class_weight(class_weight, classes=self.classes, y=self.classes)
            table = at_most_one(table) if relative else table
        return self.strata.map(_weights, sample_weight, self.classes, table, rows.dtype)

    @property
    def guide(self) -> None:
        """Labels are not brought here to choose features by."""


def _targets(y: Any, classes: Array, dtype: Any, values: tuple[float, float] | None, one_column: bool) -> Targets:
    labels = encode_chunk(_array(y), classes, None, "The model")
    return labels.targets(as_rows(np.empty((0, 0), dtype)), values, one_column=one_column)


def _counts(y: Any, classes: Array) -> Array:
    """Rows of each class."""
    return np.bincount(np.searchsorted(classes, _array(y)), minlength=len(classes))


def _weights(y: Any, sample_weight: Any, classes: Array, table: np.ndarray | None, dtype: Any) -> Array:
    y = _array(y)
    weight = _check_sample_weight(_array(sample_weight), y, **_OF_A_PART)
    if table is not None:
        with np.errstate(invalid="ignore"):
            weight = np.where(weight > 0, weight * table[np.searchsorted(classes, y)], 0.0)
    return weight.astype(dtype, copy=False)


def _array(values: Any) -> Any:
    """A column of a frame, or an array, as an array; one column as a vector."""
    if values is None:
        return None
    values = np.asarray(values.todense() if hasattr(values, "todense") else values)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _named(name: str) -> BaseEstimator:
    """Who checks a part: an estimator that has a name, for messages."""
    return type(name, (BaseEstimator,), {})()


def _look(X: Any, number: int, y: Any, weight: Any, estimator_name: str) -> Seen:
    if not X.shape[0]:
        return Seen({number: 0})
    y = _array(y)
    rows, y = check_rows(_named(estimator_name), X, y, reset=True)
    if not rows.is_numpy:
        raise TypeError("Partitions must hold NumPy arrays, SciPy CSR matrices or data frames.")
    with few_rows_of_many_labels():
        check_classification_targets(y)
    indicator = y.ndim == 2
    if weight is not None:
        weight = _check_sample_weight(_array(weight), y, **_OF_A_PART)
    if indicator:
        labels = counts = np.arange(y.shape[1])
    else:
        labels, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weight)
    pilot = rows.pilot(weight, lasting=True)
    return Seen(
        {number: rows.n_rows},
        rows.n_features,
        frozenset([np.dtype(rows.dtype).str]),
        rows.row_bytes * rows.n_rows,
        rows.unwrapped() is X,
        rows.can_be_centred,
        0.0 if pilot is None else pilot,
        int(pilot is not None),
        labels,
        counts,
        y.shape[1] if indicator else 0,
        float(rows.n_rows if weight is None else weight.sum()),
    )


def _readable(X: Any) -> Any:
    return check_rows(_named("Moments"), X, reset=True)[0].unwrapped()


@contextmanager
def parted(
    engine: type[Executor], X: Any, y: Any, sample_weight: Any, estimator_name: str
) -> Iterator[tuple[PartedRows, PartedLabels, Parts | None]]:
    """Rows, labels and weights for `Estimator.fit`, checked by one look at every part."""
    with engine.connected() as executor:
        parts, given, weight = executor.partitions(X, y, sample_weight)
        if given is None:
            raise ValueError(f"{estimator_name} requires y to be passed, but the target y is None.")
        numbers = Parts(executor, list(range(len(parts.items))))
        seen = parts.sum(_look, numbers, given, weight, estimator_name, name="look")
        if not seen.n_rows:
            raise ValueError("X has no rows; a minimum of one is required.")
        if not seen.weight > 0:
            raise ValueError("All sample weights are zero; give at least one row a positive weight.")
        check_size(seen.weight / seen.n_rows)
        order = [i for i in np.argsort(executor.places(parts.items), kind="stable") if seen.sizes[i]]
        sizes = np.array([seen.sizes[i] for i in numbers.items])
        firsts = (np.cumsum(sizes) - sizes)[order]
        parts, given = parts.at(order), given.at(order)
        weight = None if weight is None else weight.at(order)
        if not seen.as_held:
            parts = parts.map(_readable, name="read")
        if seen.n_columns:
            labels = PartedLabels(seen.labels, None, given, seen.counts)
        else:
            with few_rows_of_many_labels():
                labels = PartedLabels(encode(seen.labels, estimator_name).classes, given, None, seen.counts)
        yield PartedRows(parts, seen, firsts), labels, weight


def moments_of_parts(engine: type[Executor], X: Any, Y: Any, sample_weight: Any = None) -> tuple[Moments, float]:
    """`Moments` of rows and responses in parts, around points near the rows of each; d×d numbers of each travel.

    And the relative precision of their products.
    """
    with engine.connected() as executor:
        parts, given, weight = executor.partitions(X, Y, sample_weight)
        moments, precision = parts.sum(_moments, given, weight, name="moments")
        return moments, precision / max(moments.n, 1)


def _moments(X: Any, Y: Any, weight: Any) -> tuple[Moments, float]:
    rows, Y = as_rows(_readable(X)), _array(Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    moments = Moments.zeros(rows.n_features, Y.shape[1]).partial_fit(rows, Y, _array(weight))
    return moments, rows.precision * rows.n_rows

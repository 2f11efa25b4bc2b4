"""Labels as users write them, and the columns that solvers see."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from manyclass.data.rows import Array, Rows, to_numpy
from manyclass.data.targets import ClassTargets, MatrixTargets, Targets

LARGEST = {4: 1e37, 8: 1e150}
"""Responses by the bytes of a float: predictions of larger ones, or their squares, overflow."""
CONSTANT = 1e-14
"""A standard deviation, of what is at most 1, that is rounding."""
TEXTS_AT_ONCE = 1 << 14
"""That are made objects of Python, which take ten times as much memory."""


@dataclass(frozen=True)
class Labels:
    """Encoded labels of the training rows.

    `classes` are the distinct labels, sorted, or the column numbers of multi-label targets, which have an indicator
    matrix of shape (n_rows, n_labels) in place of codes.
    """

    classes: Any
    codes: Array | None
    indicator: Array | None

    @property
    def n_classes(self) -> int:
        return int(self.classes.shape[0])

    @property
    def is_multilabel(self) -> bool:
        return self.indicator is not None

    @property
    def is_binary(self) -> bool:
        return self.codes is not None and self.n_classes == 2

    def targets(self, rows: Rows, values: tuple[float, float] | None, *, one_column: bool = True) -> Targets:
        """The columns that a loss sees.

        `values` stand for an absent and a present label (`Loss.label_values`; None for one-hot rows). With `one_column`
        two classes are one column (is it the second class?) rather than one each.
        """
        absent, present = (0.0, 1.0) if values is None else values
        if self.indicator is not None:
            indicator = rows.asarray(self.indicator)
            is_as_given = (absent, present) == (0.0, 1.0)
            return MatrixTargets(indicator if is_as_given else absent + (present - absent) * indicator)
        codes = rows.asarray(self.codes, dtype=rows.xp.int64)
        if self.is_binary and one_column:
            second = rows.xp.astype(codes[:, None] == 1, rows.dtype)
            return MatrixTargets(absent + (present - absent) * second)
        return ClassTargets(codes, self.n_classes, (absent, present))

    def take(self, index: np.ndarray) -> Self:
        codes, indicator = (None if held is None else held[index] for held in (self.codes, self.indicator))
        return replace(self, codes=codes, indicator=indicator)

    @property
    def guide(self) -> Array:
        """Class numbers, or the indicator matrix: what features may be chosen by."""
        return self.indicator if self.codes is None else self.codes

    @property
    def strata(self) -> np.ndarray | None:
        """Class numbers on the host; None for multi-label targets."""
        return None if self.codes is None else to_numpy(self.codes)


@dataclass(frozen=True)
class Responses:
    """Real responses of the training rows, of shape (n_rows,) or (n_rows, n_outputs), each output over its `unit`."""

    y: Array
    strata: None = None
    unit: np.ndarray | float = 1.0

    @classmethod
    def of(cls, y: Any, itemsize: int = 8) -> Self:
        """Arrays of other namespaces than NumPy's stay where they are; everything else is made one in float64.

        Models compute with floats of `itemsize` bytes.
        """
        if not is_array_api_obj(y) or is_numpy_array(y):
            y = _as_numbers(y.toarray() if hasattr(y, "toarray") else np.asarray(y))
        size = float(array_namespace(y).max(abs(y)))
        if math.isnan(size):
            raise ValueError("Input y contains NaN: some of it is missing; drop these rows, or fill it in.")
        if size > LARGEST[itemsize]:
            other = ", or make X float64" if itemsize < 8 else ""
            raise ValueError(f"y holds numbers of size {size:.2g}, too large to compute with: scale y{other}.")
        return cls(y)

    def in_units(self, weight: Array | None) -> Self:
        """Each output over the power of two next above its standard deviation: no digit changes, and none counts for
        more than another because of the unit that it was measured in. Of a constant it is that next above its size."""
        y = to_numpy(self.guide).astype(np.float64)
        share = np.full(len(y), 1.0 / len(y)) if weight is None else to_numpy(weight) / to_numpy(weight).sum()
        size = np.ldexp(1.0, np.frexp(np.abs(y).max(axis=0))[1])  # squares of what is divided by that are finite
        y = y / size
        spread = np.sqrt(share @ (y - share @ y) ** 2)
        spread = np.where(spread > CONSTANT, spread, 1.0 - CONSTANT)
        unit = np.ldexp(size, np.frexp(spread)[1])
        xp = array_namespace(self.y)
        there = xp.asarray(unit[0] if self.is_one_dimensional else unit, dtype=xp.float64, device=device(self.y))
        return replace(self, y=xp.astype(self.y, xp.float64) / there, unit=unit)

    @property
    def is_one_dimensional(self) -> bool:
        return bool(self.y.ndim == 1)

    @property
    def guide(self) -> Array:
        """What features may be chosen by: columns, so that whole numbers are not taken for classes."""
        return self.y[:, None] if self.is_one_dimensional else self.y

    def targets(self, rows: Rows, values: None = None, *, one_column: bool = True) -> Targets:
        """One column per response, in float64: responses far from 0 keep their digits."""
        Y = rows.asarray(self.y, dtype=rows.xp.float64)
        return MatrixTargets(Y[:, None] if self.is_one_dimensional else Y)


def _as_numbers(y: np.ndarray) -> np.ndarray:
    """Responses in float64; of dates NumPy would make nanoseconds since 1970."""
    if y.dtype.kind in "Mm":
        raise ValueError(f"y holds dates or times ({y.dtype}): make numbers of it, as days since the first.")
    try:
        return y.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        other = "convert it with y.astype(float), or use a classifier where it holds labels"
        raise ValueError(f"y of a regressor must be numbers ({error}): {other}.") from error


def encode(y: Any, estimator_name: str, *, least: int = 2) -> Labels:
    """Labels of any dtype, or an indicator matrix, encoded.

    There have to be at least so many classes: 1 in a part of a stream.
    """
    if isinstance(y, Labels):
        return y
    labels = _encode_array(y) if is_array_api_obj(y) and not is_numpy_array(y) else _encode(y, least)
    if labels.codes is not None and labels.n_classes < least:
        held = to_numpy(labels.classes).tolist()
        holds = f"only one class: {held[0]!r}" if held else "no labels"
        raise ValueError(f"{estimator_name} needs at least two classes to tell apart, but y holds {holds}.")
    return labels


def _encode(y: Any, least: int) -> Labels:
    _check_objects(y)
    if type(y) is np.ndarray and y.ndim == 1 and len(y):
        find = _texts if y.dtype.kind in "OU" else _numbers if _are_whole(y) else None
        if find is not None:
            classes, codes = find(y)
            if 2 * len(classes) >= len(y):
                _check_targets(y, least)
            return Labels(classes, codes, None)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind == "multilabel-indicator" or "multioutput" in kind or hasattr(y, "toarray"):
        indicator = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        _require_indicator(((indicator == 0) | (indicator == 1)).all())
        return Labels(np.arange(indicator.shape[1]), None, indicator)
    _check_targets(y, least)
    return Labels(*np.unique(np.asarray(y), return_inverse=True), None)


def indicator_of_signs(y: Any) -> Any:
    """Several columns of −1 and 1 as 0 and 1; any other y as it is."""
    several = isinstance(y, np.ndarray) and y.dtype.kind in "if" and y.ndim == 2 and y.shape[1] > 1
    return (y > 0).astype(int) if several and (abs(y) == 1).all() else y


def _are_whole(y: np.ndarray) -> bool:
    if y.dtype.kind != "f":
        return y.dtype.kind in "iu"
    return bool(np.all((np.floor(y) == y) & (np.abs(y.astype(np.float64)) < 2.0**53)))


def _numbers(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By counting where they lie close together, as numbers of classes do: sorting many takes longer than a pass."""
    if int(y.max()) - int(y.min()) > 4 * len(y):
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes
    wide = y.astype(np.uint64 if y.dtype.kind == "u" else np.int64)
    shifted = (wide - wide.min()).astype(np.int64)
    present = np.bincount(shifted) > 0
    classes = (np.flatnonzero(present).astype(wide.dtype) + wide.min()).astype(y.dtype)
    return classes, (np.cumsum(present) - 1)[shifted]


def _texts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By looking each up: sorting many texts takes longer than a fit."""
    found: dict[str, int] = {}
    blocks = (y[start : start + TEXTS_AT_ONCE].tolist() for start in range(0, len(y), TEXTS_AT_ONCE))
    texts = chain.from_iterable(blocks)
    numbers = np.fromiter((found.setdefault(text, len(found)) for text in texts), np.int64, len(y))
    classes = sorted(found)
    place = np.empty(len(found), dtype=np.int64)
    place[[found[text] for text in classes]] = np.arange(len(found))
    return np.array(classes, dtype=y.dtype), place[numbers]


def _check_objects(y: Any) -> None:
    """Refuse what cannot be sorted, or is sorted by nobody knows what."""
    values = None if hasattr(y, "toarray") else np.asarray(y)
    if values is None or values.dtype != object or values.ndim != 1:
        return
    others = [value for value in values if not isinstance(value, str)]
    if any(value is None or type(value).__name__ in ("NAType", "NaTType") or value != value for value in others):
        raise ValueError("y holds missing labels (None or NaN); drop these rows, or give them a label of their own.")
    if others:
        kinds = " and ".join(sorted({type(value).__name__ for value in values}))
        raise ValueError(
            f"Unknown label type: y of dtype object holds {kinds}; convert it with y.astype(str), or with "
            "y.astype(int) where all are whole numbers."
        )


@contextmanager
def few_rows_of_many_labels() -> Iterator[None]:
    """Of parts, and of the labels themselves, each row may be of another class: that is no sign of a regression."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def _check_targets(y: Any, least: int) -> None:
    with few_rows_of_many_labels() if least < 2 else nullcontext():
        check_classification_targets(y)


def decode(classes: Array, codes: Array) -> Array:
    """Labels of class numbers, in the namespace of those; NumPy's where only that has such labels, as of strings."""
    xp = array_namespace(codes)
    if array_namespace(classes) is xp:
        return xp.reshape(xp.take(classes, xp.reshape(codes, (-1,)), axis=0), tuple(codes.shape))
    labels = np.take(to_numpy(classes), to_numpy(codes), axis=0)
    return xp.asarray(labels, device=device(codes)) if labels.dtype.kind in "biuf" else labels


def on_host(values: Any) -> Any:
    """Arrays as NumPy's, and data frames, whose nullable columns scikit-learn's metrics take for objects; anything else
    as it is."""
    if hasattr(values, "columns"):
        return check_array(values, dtype=None)
    return to_numpy(values) if is_array_api_obj(values) else values


def unmistakable(y: np.ndarray) -> Any:
    """Classes, or an indicator that stays one where it has a single column: a dense one would be classes."""
    return sp.csr_array(y) if y.ndim == 2 else y


def encode_chunk(y: Any, known: Any, classes: Any, estimator_name: str, *, several: bool | None = None) -> Labels:
    """Labels of one chunk of a stream, encoded by those of the whole stream.

    The stream's are `known`, None before the first chunk; `classes` is what the caller says they are; `several` says,
    where that is known, whether other rows have several labels each.
    """
    if several is not None and several != (getattr(y, "ndim", 1) == 2):
        raise ValueError(
            "y has one label for each row, and other rows have several, or the other way round; give y of the same "
            "kind for all."
        )
    announced = None if classes is None else np.unique(classes)
    if getattr(y, "ndim", 1) == 2:
        labels = encode(y, estimator_name)
        expected = announced if known is None else known
        if not labels.is_multilabel:
            raise ValueError("A 2-D y must be an indicator matrix of 0 and 1, one column per label.")
        if expected is not None and len(expected) != len(labels.classes):
            raise ValueError(f"y has {len(labels.classes)} label columns, but {len(expected)} were announced before.")
        return labels
    if known is None:
        if announced is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will occur.")
        known = announced
    elif announced is not None and not np.array_equal(announced, known):
        raise ValueError(f"`classes={classes!r}` is not the same as on the last call to partial_fit: {known!r}.")
    if len(known) < 2:
        raise ValueError(f"{estimator_name} needs at least two classes, but `classes` holds only {known!r}.")
    y, there = to_numpy(y), to_numpy(known)
    codes = np.searchsorted(there, y)
    unseen = there[np.minimum(codes, len(there) - 1)] != y
    if unseen.any():
        label, some = y[unseen].tolist()[0], there.tolist()[0]
        raise ValueError(
            f"y holds the label {label!r}, which is none of the {len(there)} classes known, such as {some!r}: leave "
            "such rows out, or give all labels from the beginning."
        )
    return Labels(known, codes, None)


def _encode_array(y: Array) -> Labels:
    xp = array_namespace(y)
    if y.ndim == 2 and int(y.shape[1]) > 1:
        _require_indicator(bool(xp.all((y == 0) | (y == 1))))
        return Labels(np.arange(int(y.shape[1])), None, y)
    y = xp.reshape(y, (-1,))
    if xp.isdtype(y.dtype, "real floating") and not bool(xp.all(xp.floor(y) == y)):
        raise ValueError("Unknown label type: continuous. A classifier needs discrete labels; use a regressor instead.")
    classes, codes = xp.unique_inverse(y)
    return Labels(classes, codes, None)


def _require_indicator(is_one: Any) -> None:
    if not is_one:
        raise ValueError(
            "A y of several columns must be an indicator matrix of 0 and 1, one column per label; for several outputs "
            "of several classes use sklearn.multioutput.MultiOutputClassifier."
        )


def of_present(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Labels in which rows that weigh nothing are called like one that weighs something: they add no class."""
    present = np.reshape(weight > 0, (-1,) + (1,) * (y.ndim - 1))
    return np.where(present, y, y[np.argmax(weight > 0)])

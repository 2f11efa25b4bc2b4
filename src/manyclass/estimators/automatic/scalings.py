"""What `AutoClassifier` makes of the columns before a model sees them."""

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from manyclass.data import ChunkedRows, GeneratedRows, Rows, as_rows
from manyclass.data.memory import room_for
from manyclass.data.rows import to_numpy
from manyclass.data.stores import Whole
from manyclass.data.summary import are_in_memory, is_full, ranges
from manyclass.data.validation import check_labelled
from manyclass.features import TableEncoder, ThermometerEncoder

AS_GIVEN, STEPS = "columns as given", "columns in steps"
SCALINGS = {
    "deviation": ("columns of unit variance", StandardScaler),
    "largest": ("columns of largest size 1", MaxAbsScaler),
}
"""By `Ranges.measure`: the scaling that makes columns of one size, and its scaler."""
UNEVEN = 3.0
"""Ratio of the sizes of columns from which they are brought to one."""
FEWEST_BINS = 16
"""Into which columns are cut; fewer are coarse where a column has many values."""
SHARE = 0.25
"""Of the room there is, what all rows may take; else steps are made again in every pass."""
MEASURED_ROWS = 512
"""By which the leading variance is estimated."""


def scaled_rows(rows: Rows, widest: int, numbers: Sequence[int] = ()) -> dict[str, tuple[Any, Any]]:
    """By scaling the scaler (or None) and the rows it gives; steps where at most so many columns are enough.

    Of sparse rows steps are those of columns of `numbers`, beside which all others stay.
    """
    found = ranges(rows)
    held = rows.canonical().unwrapped()  # which is taken apart many times
    sizes = found.sizes[(found.maximum > found.minimum) & (found.sizes > 0)]
    scalings: dict[str, tuple[Any, Any]] = {AS_GIVEN: (None, held)}
    if len(sizes) and sizes.max() > UNEVEN * sizes.min():
        name, kind = SCALINGS[found.measure]
        scaler = kind().set_output(transform="default")  # whatever scikit-learn is told to give users
        scalings[name] = (scaler, scaler.fit_transform(held))
    n_bins = min(ThermometerEncoder().n_bins, widest // rows.n_features)
    if is_full(rows) and len(sizes) and n_bins >= FEWEST_BINS:
        encoder = ThermometerEncoder(n_bins).fit(rows)
        if encoder.n_features_out > len(sizes):  # else each column has two values
            scalings[STEPS] = (encoder, behind(encoder, as_rows(held)))
    if not is_full(rows) and 0 < len(numbers) * FEWEST_BINS <= widest:
        from sklearn.compose import ColumnTransformer  # with all of scikit-learn's machines

        steps = ThermometerEncoder(min(ThermometerEncoder().n_bins, widest // len(numbers)), sparse_output=True)
        # Which stays sparse, however full it is.
        beside = ColumnTransformer([("steps", steps, list(numbers))], remainder="passthrough", sparse_threshold=1.0)
        beside.set_output(transform="default")
        beside.fit(held)
        room = SHARE * room_for(None)
        fits = rows.n_rows * held_bytes(rows, numbers) <= room
        given = as_rows(held) if fits else ChunkedRows(Whole(held), whole_bytes=room)
        scalings[STEPS] = (beside, given.transformed(beside.transform))
    return scalings


def numbers_of(encoder: TableEncoder | None) -> list[int]:
    """Columns that it makes of numbers and times, among all that it makes."""
    if encoder is None:
        return []
    widths = [len(column.names("")) for column in encoder.columns_]
    starts = np.cumsum([0, *widths]).tolist()
    columns = zip(starts, encoder.columns_, strict=False)
    return [start + place for start, column in columns for place in column.numbers]


def held_bytes(rows: Rows, numbers: Sequence[int]) -> float:
    """Memory of one row in the scaling that takes most, in bytes: sparse rows are held beside steps of their `numbers`,
    half of which are 1 and take a float64 and an index; dense steps are made as they are read."""
    steps = 0 if is_full(rows) else len(numbers) * ThermometerEncoder().n_bins / 2
    return rows.row_bytes + 12.0 * steps


def width(scaler: Any, scaled: Any, rows: Rows) -> float:
    """How many columns, or entries of sparse rows, steps make of one."""
    if hasattr(scaler, "n_features_out"):
        return float(scaler.n_features_out / rows.n_features)
    return as_rows(scaled).row_bytes / rows.row_bytes


def checked_and_encoded(
    estimator: Any, X: Any, y: Any, sample_weight: Any, memory_limit: float | str | None
) -> tuple[TableEncoder | None, Rows, Any]:
    """What makes numbers of X, these, which stay in their file, and y; no encoder where X is of numbers."""
    from manyclass.data.frames import is_mixed

    encoder = TableEncoder().set_output(transform="default")
    encode = partial(encoder.fit_transform, sample_weight=sample_weight)
    held = encode(X) if is_mixed(X) else X
    rows, y = check_labelled(estimator, held, y, memory_limit=memory_limit, keep=True, encode=encode)
    if not hasattr(encoder, "columns_"):
        return None, rows, y
    vars(estimator).update(columns_of(encoder))
    return encoder, rows, y


def columns_of(encoder: TableEncoder) -> dict[str, Any]:
    """What scikit-learn knows of the columns of a table."""
    return {name: value for name, value in vars(encoder).items() if name.endswith("_in_")}


def steps_of(encoder: TableEncoder | None, scaler: Any) -> list[tuple[str, Any]]:
    """What stands in front of a model, each with its name in a pipeline."""
    steps = (("encode", encoder), ("scale", scaler))
    return [(name, step) for name, step in steps if step is not None]


def taken(scaled: Any, index: np.ndarray | None = None) -> Any:
    """Some of scaled rows, or all, as an array if there is room for one."""
    rows = as_rows(scaled)
    if index is not None:
        return rows.take(index).unwrapped()
    fits = rows.n_rows * rows.row_bytes <= SHARE * room_for(None)
    return rows.unwrapped() if fits and are_in_memory(rows) else rows


def behind(scaler: Any, rows: Rows) -> Any:
    """The rows as a model behind a scaler takes them; steps are made as they are read, as they are many."""
    if scaler is None:
        return rows
    if hasattr(scaler, "generate"):
        return GeneratedRows(rows, scaler)
    unnamed = copy(scaler)  # which does not ask for the names of the columns, that are known to be right
    vars(unnamed).pop("feature_names_in_", None)
    return rows.transformed(unnamed.transform)


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

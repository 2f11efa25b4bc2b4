"""Bad input stops here, with one sentence that says what to do."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d, compute_class_weight, compute_sample_weight
from sklearn.utils.validation import _check_n_features, _check_sample_weight, validate_data

from manyclass.data import as_rows
from manyclass.data.memory import as_bytes, room_for
from manyclass.data.opening import is_stored, opened
from manyclass.data.readers.dataset import reads_as_number
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, Rows, to_numpy
from manyclass.data.stored_table import StoredTable
from manyclass.execution import check_here

SPARSE_DTYPES = (np.float64, np.float32)
DENSE_DTYPES = (*SPARSE_DTYPES, np.float16, np.bool_, *map(np.dtype, "bhilqBHILQ"))
"""What stays as it is; everything else becomes the first."""
COPY_SHARE = 0.125
"""Of the room beside X, which a copy may take that only saves time: methods are to find nearly all of it."""


def check_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    memory_limit: float | str | None = None,
    keep: bool = False,
    many_passes: bool = False,
    encode: Callable[[Any], Rows] | None = None,
) -> tuple[Rows, Any]:
    """X as `Rows` and y as a 1-D array or indicator matrix, or the error scikit-learn would raise.

    NumPy arrays, memory maps, lists, data frames and SciPy sparse matrices go through scikit-learn's own validation;
    arrays of other array-API namespaces stay where they are. Half precision, integers and truth values are kept too,
    where X is dense, and converted block by block. Paths and what pyarrow holds are opened as by `open_rows`, which
    may `keep` rows to fit in their file; where there is something to `encode` a `StoredTable`, they may be one. For
    `many_passes` rows are copied row by row where they lie otherwise.
    """
    check_here(X)
    if reset:
        vars(estimator).pop("feature_names_in_", None)  # of other rows
    if is_stored(y) and hasattr(y, "type"):  # an array of pyarrow
        y = np.asarray(y)
    if is_stored(X):
        X, y = _opened(estimator, X, y, reset, memory_limit, keep, encode)
    if isinstance(X, Rows):
        _check_not_empty(X)
        _check_n_features(estimator, np.empty((0, X.n_features)), reset=reset)
        if y is not None and X.place.is_here and (n := y.shape[0] if hasattr(y, "shape") else len(y)) != X.n_rows:
            raise ValueError(f"X has {X.n_rows} rows but y has {n}; give one label row per row of X.")
        return X, y
    if is_array_api_obj(X) and not is_numpy_array(X):
        return _check_array_api(estimator, X, reset), y
    check_columns(X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": list(SPARSE_DTYPES if sp.issparse(X) else DENSE_DTYPES),
        "accept_large_sparse": True,
    }
    if not reset and y is None:
        return as_rows(validate_data(estimator, X, reset=False, **options)), None
    if is_array_api_obj(y) and not is_numpy_array(y):
        y = np.asarray(y)
    check_known(y)
    if y is None:  # an error for all but transformers
        X = validate_data(estimator, X, y, reset=reset, **options)
    elif sp.issparse(y):
        X = validate_data(estimator, X, reset=reset, **options)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {y.shape[0]}; give one label row per row of X.")
    else:
        X, y = validate_data(estimator, X, y, reset=reset, multi_output=True, **options)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
    return as_rows(_row_by_row(X, memory_limit) if many_passes else X), y


def check_known(y: Any) -> None:
    """Refuse missing labels: scikit-learn's own validation stumbles over pandas' NA, and says not what to do."""
    if hasattr(y, "isna"):
        is_missing = bool(np.any(y.isna()))
    else:
        values = y.data if sp.issparse(y) else y.to_numpy() if hasattr(y, "to_numpy") else y
        is_missing = getattr(getattr(values, "dtype", None), "kind", "") == "f" and bool(np.isnan(values).any())
    if is_missing:
        raise ValueError("Input y contains NaN: some of it is missing; drop these rows, or fill it in.")


def check_columns(X: Any) -> None:
    """Refuse what a data frame holds that is no number: dates, of which NumPy makes none beside others, and text."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise ValueError("X is a lazy frame, which holds no rows yet: give X.collect().")
    dtypes: Any = getattr(X, "dtypes", ()) if hasattr(X, "columns") else ()
    twice = next((name for name, count in Counter(getattr(X, "columns", ())).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"Two columns of X are called {twice!r}: rename one of them.")
    for j, (name, dtype) in enumerate(zip(getattr(X, "columns", ()), dtypes, strict=False)):
        if getattr(dtype, "kind", "") in ("M", "m") or getattr(dtype, "is_temporal", bool)():
            raise ValueError(
                f"Column {name!r} of X holds dates or times ({dtype}) where numbers are needed: encode it, for "
                "instance by manyclass.features.TableEncoder, or leave it out."
            )
        if getattr(dtype, "kind", "") == "c":
            raise ValueError(
                f"Complex data not supported: give real and imaginary part of column {name!r} of X by themselves."
            )
        if getattr(dtype, "kind", "O") == "O" and not getattr(dtype, "is_numeric", bool)():
            text = next(filter(_is_text, X.iloc[:, j] if hasattr(X, "iloc") else X[name]), None)
            if text is not None:
                raise ValueError(
                    f"Column {name!r} of X holds text ({text!r}) where numbers are needed: encode it, for instance by "
                    "manyclass.features.TableEncoder, or leave it out."
                )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not reads_as_number(value)


def check_labelled(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    reset: bool = True,
    memory_limit: float | str | None = None,
    keep: bool = False,
    encode: Callable[[Any], Rows] | None = None,
) -> tuple[Rows, Any]:
    """`check_rows`, and labels, which only a file may hold beside its rows."""
    if y is None and not is_stored(X):
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    options: dict[str, Any] = {"memory_limit": memory_limit, "keep": keep, "many_passes": reset, "encode": encode}
    rows, y = check_rows(estimator, X, y, reset=reset, **options)
    if y is None:
        raise ValueError(f"{X} holds no labels; pass them as y: an array, a column's name or a file's path.")
    return rows, y


def _opened(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    reset: bool,
    memory_limit: float | str | None,
    keep: bool,
    encode: Callable[[Any], Rows] | None,
) -> tuple[Rows, Any]:
    """Rows to fit, or rows to predict, which stay in the file, with the columns that were fitted to."""
    if reset:
        found = opened(X, y, memory_limit, keep=keep, kinds=None if encode is None else {})
        if encode is not None and isinstance(found.X, StoredTable):
            found = replace(found, X=encode(found.X))
        if found.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(found.feature_names, dtype=object)
    else:
        features = vars(estimator).get("feature_names_in_")
        features = estimator.n_features_in_ if features is None else list(features)
        found = opened(X, False if y is None else y, memory_limit, keep=True, features=features)
    return found.X, np.asarray(found.y) if isinstance(found.y, list | tuple) else found.y


def _row_by_row(X: Any, memory_limit: float | str | None) -> Any:
    """X, or a copy of what lies column by column, as data frames and results of PCA do, where there is room for it.

    Blocks of rows would be gathered from all over the memory in every pass, which then takes up to twice as long.
    """
    if sp.issparse(X) or X.flags.c_contiguous or (X.strides[1] == X.itemsize and X.strides[0] > 0):
        return X
    if 0 in X.strides or _is_mapped(X):
        return X
    room = room_for(None if memory_limit is None else as_bytes(memory_limit))
    return np.ascontiguousarray(X) if X.nbytes <= COPY_SHARE * room else X


def _is_mapped(X: Any) -> bool:
    return X is not None and (isinstance(X, np.memmap) or _is_mapped(getattr(X, "base", None)))


def _check_array_api(estimator: BaseEstimator, X: Array, reset: bool) -> Rows:
    X, xp = X.detach() if reset and hasattr(X, "detach") else X, array_namespace(X)
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError("Sparse tensors have no products here; pass a scipy.sparse.csr_array of their entries.")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, features), got {X.ndim}; reshape it first.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: pass the real and the imaginary part as separate columns.")
    rows = as_rows(X)
    _check_not_empty(rows)
    step = rows.rows_per_block(1, GRAM_BLOCK_BYTES)
    sums = xp.stack([xp.sum(block.dense()) for _, block in rows.blocks(step)])
    if not bool(xp.all(xp.isfinite(sums))):  # which finite numbers may overflow
        if not all(bool(xp.all(xp.isfinite(block.dense()))) for _, block in rows.blocks(step)):
            raise ValueError("Input X contains NaN or infinity; impute or drop those rows first.")
    _check_n_features(estimator, X, reset=reset)
    return rows


def _check_not_empty(rows: Rows) -> None:
    if 0 in rows.shape:
        raise ValueError(f"X is empty, of shape {rows.shape}; a minimum of one row and one feature is needed.")


def _check_class_weight(class_weight: Any, y: Any) -> None:
    several, listed = getattr(y, "ndim", 1) == 2, isinstance(class_weight, list)
    if class_weight not in (None, "balanced") and (
        several is not listed or (listed and not all(isinstance(each, dict) for each in class_weight))
    ):
        raise ValueError(
            "class_weight of several labels is 'balanced' or a list with a dict for each, as {0: 1, 1: 5}; where a row "
            "has one label it is one dict."
        )
    for each in class_weight if isinstance(class_weight, list) else [class_weight]:
        for label, weight in each.items() if isinstance(each, dict) else ():
            if not (isinstance(weight, Real) and 0.0 <= float(weight) < math.inf):
                raise ValueError(f"class_weight gives class {label!r} the weight {weight!r}; use numbers from 0 up.")


EXTREME = 1e30
"""A weight from which sums over rows are beyond float32, and below whose inverse they are none."""


def check_weights(
    rows: Rows,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    *,
    is_part: bool = False,
    may_be_none: bool = False,
    balances_rows: bool = False,
    relative: bool = False,
) -> Array | None:
    """Non-negative weights of the rows in the dtype of X, or None when all are 1.

    `class_weight` multiplies `sample_weight`, as in scikit-learn's `LogisticRegression`; other rows may hold classes of
    it that these do not where this `is_part`; all may weigh nothing where `may_be_none`. Where it
    `balances_rows`, "balanced" goes by how many rows a class has, rather than by what they weigh.

    What is left out of a row that weighs more than 1 is one of its copies. A class weight is none: where weights are
    `relative`, those of classes are divided by the largest.
    """
    if sample_weight is None and class_weight is None:
        return None
    if is_part and class_weight == "balanced":
        raise ValueError("class_weight='balanced' needs all labels at once: give a dict, or sample_weight.")
    _check_class_weight(class_weight, y)
    if not rows.place.is_here and y is not None:
        return y.weights(rows, sample_weight, class_weight, balances_rows=balances_rows, relative=relative)
    if sample_weight is not None and is_array_api_obj(sample_weight) and not is_numpy_array(sample_weight):
        sample_weight = to_numpy(sample_weight)
    like = np.empty((rows.n_rows, 1))
    options = {"ensure_non_negative": True, "allow_all_zero_weights": may_be_none}
    weight = _check_sample_weight(sample_weight, like, dtype=np.float64, **options)
    if class_weight is not None:
        labels = y.toarray() if sp.issparse(y) else to_numpy(y)
        if labels.ndim > 1:
            of_rows = compute_sample_weight(class_weight, labels)
            weight = weight * (at_most_one(of_rows) if relative else of_rows)
        else:  # classes are balanced by the weight of their rows: a weight of 2 is the same as the row given twice
            classes, codes = np.unique(labels, return_inverse=True)
            given = list(class_weight.values()) if isinstance(class_weight, dict) else []
            if is_part and isinstance(class_weight, dict):
                class_weight = {label: class_weight[label] for label in classes.tolist() if label in class_weight}
            with np.errstate(divide="ignore", invalid="ignore"):  # of classes of which every row weighs nothing
                counted = None if balances_rows else weight
                of_class = compute_class_weight(class_weight, classes=classes, y=labels, sample_weight=counted)
                if relative:
                    of_class = at_most_one(of_class, given)
                weight = np.where(weight > 0, weight * of_class[codes], 0.0)
    if not (may_be_none or weight.sum() > 0):
        raise ValueError("All sample weights are zero; give at least one row a positive weight.")
    check_size(float(weight.max(initial=0.0)), is_part=is_part)
    return rows.asarray(weight)


def at_most_one(weight: np.ndarray, others: Sequence[float] = ()) -> np.ndarray:
    """Weights, divided by the largest of them and some others if that is above 1."""
    finite = weight[np.isfinite(weight)]
    return weight / max([float(finite.max(initial=1.0)), *others])


def check_size(weight: float, *, is_part: bool = False) -> None:
    """Refuse rows whose largest, or mean, weight is so large or small that sums over rows have no digits."""
    too_small = not is_part and 0.0 < weight <= 1.0 / EXTREME
    if too_small or not weight < EXTREME:
        raise ValueError(f"Rows weigh {weight:.2g}; divide their weights by the mean: it is the ratios that matter.")

"""Tables as they are kept, of numbers, dates, categories and texts, some of them missing, as rows of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from manyclass.data import as_rows, open_rows
from manyclass.data.stored_table import StoredTable
from manyclass.data.summary import is_full
from manyclass.features.gaps import Guesses
from manyclass.features.table_columns import Categories, Mixed, Numbers, Times, Words, learned
from manyclass.fit import Parametrised

SAMPLED_ROWS, GUESSED_ROWS = 1 << 10, 1 << 12
"""By which it is decided whether rows are sparse, and learned what numbers that are missing should be, at most."""
BLOCK_ROWS = 1 << 15
"""That are encoded at a time."""


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, Parametrised):
    """Columns of any kind as columns of numbers, which linear models and kernels need.

    - Numbers, truth values, dates and times (as days; also of text such as 2024-12-31T23:59) are brought to mean 0 and
      variance 1. What is missing is guessed by linear regression on the other numbers of the row, or is the mean where
      that explains little, and gets a column of its own that says so.
    - Dates and times also get the part of a day, a week and a year that is over, with its cosine and sine, if the rows
      have gone through at least one.
    - Of text and categories each value that occurs often enough gets a column of 0 and 1; all others share one, which
      also takes those that are seen later for the first time, and what is missing has one.
    - Text of which most is numbers, more different ones than the root of their rows, beside few words such as
      "unknown", becomes numbers and categories.
    - Texts of two words or more on average, more different ones than the root of the number of rows, are taken apart
      into words and pairs of neighbouring words, weighted by TF-IDF. Words are letters and digits in a row, and single
      signs of Chinese and Japanese. Where all texts have fewer than eight million characters, they are also taken apart
      into triples of neighbouring characters; and where most rows have a text that others have, too, texts are
      categories besides.

    Put in front of a model it makes a pipeline that takes frames as they are; `AutoClassifier` does so by itself.

    Parameters
    ----------
    min_frequency : int, default=2
        Rows that a category or a word has to occur in; for categories a weight of that much is enough, too.
    max_categories : int, default=None
        Most columns for categories of one column: the most frequent ones.

    Attributes
    ----------
    columns_ : list
        What each column became.
    guesses_ : object or None
        The regressions by which numbers that are missing are guessed; None where these are their mean: where none is
        missing, there is one column of numbers, or there are too many.
    sparse_output_ : bool
        Whether `transform` gives a CSR array: where that takes less than an eighth of the memory. It never does where
        ``set_output`` asks for a frame.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If X is a frame or a table of pyarrow.

    Raises
    ------
    ValueError
        If a column holds infinity, or values that are neither numbers, dates nor text; or columns differ from those
        of ``fit``.

    Examples
    --------
    >>> from manyclass import GLMClassifier
    >>> from manyclass.features import TableEncoder
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [[39, "Oslo"], [51, "Rome"], [None, "Oslo"], [28, "Rome"], [44, None], [35, "Rome"]]
    >>> model = make_pipeline(TableEncoder(), GLMClassifier()).fit(X, ["no", "yes", "no", "yes", "no", "yes"])
    >>> model[0].get_feature_names_out(["age", "city"]).tolist()
    ['age', 'missingindicator_age', 'city_Oslo', 'city_Rome', 'city_missing']
    >>> model.predict([[40, "Rome"], [40, "Oslo"], [40, "Paris"]]).tolist()[:2]
    ['yes', 'no']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_frequency": [Interval(Integral, 1, None, closed="left")],
        "max_categories": [Interval(Integral, 1, None, closed="left"), None],
    }
    _model_parts: ClassVar[tuple[type, ...]] = (Numbers, Times, Categories, Words, Mixed, Guesses)

    min_frequency: int = 2
    _: KW_ONLY
    max_categories: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what to make of each column.

        Parameters
        ----------
        X : frame of pandas or polars, table of pyarrow, or array-like of shape (n_samples, n_features)
            Or what `manyclass.data.open_rows` gives of a table that stays in its file: what to make of each column is
            learned from rows drawn at random, as many as take a 64th of its limit on memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows of weight 0 count for nothing.

        Returns
        -------
        self
        """
        self._fitted(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit`, and `transform` of the same rows."""
        return self._given(self._fitted(X, sample_weight))

    def _fitted(self, X: Any, sample_weight: Any) -> Any:
        """The table that it has been fitted to."""
        self._validate_params()
        table = _as_table(X)
        if 0 in table.shape:
            raise ValueError(
                f"X is empty, with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) "
                f"(shape={table.shape}) while a minimum of 1 is required."
            )
        weight = _check_sample_weight(sample_weight, np.empty((table.shape[0], 1)), ensure_non_negative=True)
        self.n_features_in_ = table.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            self.feature_names_in_ = np.array(table.column_names, dtype=object)
        if isinstance(table, StoredTable):
            some, counted = table.sample(weight)
        else:
            counted = np.flatnonzero(weight)
            some = table if len(counted) == len(table) else table.take(counted)
        self._learn(some, weight[counted], int(np.count_nonzero(weight)))
        return table

    def _learn(self, some: Any, weight: np.ndarray, n_rows: int) -> None:
        """From some of so many rows, whose weights are above 0."""
        times = n_rows / len(some)
        options = (weight, self.min_frequency, self.max_categories, times)
        self.columns_ = [_told(name, learned, column, *options) for name, column in _named(some)]
        if not self.n_features_out:
            raise ValueError("No column of X says anything of its rows: all are empty, or of values that differ.")
        self.guesses_ = None
        index = np.arange(0, len(some), len(some) // GUESSED_ROWS + 1)
        numbers = _numbers_of(self._parts(some.take(index)), self.columns_)
        if numbers is not None:
            self.guesses_ = Guesses.learned(numbers, weight[index], n_rows)
        few = some.take(np.arange(0, len(some), len(some) // SAMPLED_ROWS + 1))
        self.sparse_output_ = not is_full(as_rows(self._joined(few, sparse_output=True)))

    @property
    def n_features_out(self) -> int:
        """How many columns `transform` gives."""
        return sum(len(column.names("")) for column in self.columns_)

    def transform(self, X: Any) -> Any:
        """The columns of numbers.

        Parameters
        ----------
        X : as in ``fit``, or path
            Of a file with the columns of ``fit``, which stay there.

        Returns
        -------
        X_new : array, or CSR array, of shape (n_samples, n_features_out)
            float64, or float32 where no column is of numbers or times. `Rows` of a table that stays in its file, which
            are encoded whenever they are read.
        """
        check_is_fitted(self)
        X = opened_for(self, X)[0]
        table = _as_table(X)
        if table.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {table.shape[1]} features, but TableEncoder is expecting {self.n_features_in_} features as "
                "input."
            )
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            self._check_names(table.column_names)
        return self._given(table)

    @property
    def kinds(self) -> dict[str, str]:
        """Of the columns that it was fitted to, by name, as `manyclass.data.open_rows` takes them for other rows."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_).astype(str)).tolist()
        return {name: column.kind for name, column in zip(names, self.columns_, strict=True)}

    def _given(self, table: Any) -> Any:
        if isinstance(table, StoredTable):
            return table.encoded(partial(self._joined, sparse_output=self.sparse_output_))
        gives_frame = _get_output_config("transform", self)["dense"] != "default"  # which cannot be made of a CSR array
        return self._joined(table, self.sparse_output_ and not gives_frame)

    def _joined(self, table: Any, sparse_output: bool) -> Any:
        from manyclass.data.frames import joined

        # Small numbers beside an outlier of their column may be less than a float32 tells apart.
        dtype = np.float64 if any(column.numbers for column in self.columns_) else np.float32
        shape = (len(table), self.n_features_out)
        blocks = [table.slice(start, BLOCK_ROWS) for start in range(0, len(table), BLOCK_ROWS)]
        return joined(map(self._filled, blocks), shape, sparse_output, dtype)

    def _check_names(self, names: list[str]) -> None:
        known = getattr(self, "feature_names_in_", np.array(names, dtype=object)).tolist()
        if names != known:
            wrong = next(pair for pair in zip(names, known, strict=True) if pair[0] != pair[1])
            raise ValueError(
                f"The feature names should match those that were passed during fit: column {wrong[1]!r} was, where now "
                f"{wrong[0]!r} is; give the same columns in the same order."
            )

    def _parts(self, table: Any) -> list[Any]:
        """What becomes of each column; numbers that are missing are NaN."""
        named = zip(self.columns_, _named(table), strict=True)
        return [_told(name, learner.values, column) for learner, (name, column) in named]

    def _filled(self, table: Any) -> list[Any]:
        """`_parts` without NaN."""
        parts = self._parts(table)
        numbers = _numbers_of(parts, self.columns_)
        if numbers is not None:
            numbers = np.nan_to_num(numbers) if self.guesses_ is None else self.guesses_.fill(numbers)
            those = [part for part, column in zip(parts, self.columns_, strict=True) if column.numbers]
            for part, filled in zip(those, numbers.T, strict=True):
                part[:, 0] = filled
        return parts

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Such as "age", "missingindicator_age", "city_Oslo", "city_infrequent", "city_missing".

        One that is taken gets a number: "city_missing_2", where there is a city called missing.
        """
        check_is_fitted(self)
        default = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        names = default if input_features is None else input_features
        if len(names) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to number of features ({self.n_features_in_}).")
        found = dict[str, None]()
        for name, column in zip(names, self.columns_, strict=True):
            for told in column.names(name):
                numbered = (f"{told}_{number}" for number in itertools.count(2))
                found[told if told not in found else next(one for one in numbered if one not in found)] = None
        return np.array(list(found), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def opened_for(encoder: TableEncoder, X: Any, y: Any = False) -> tuple[Any, Any]:
    """X and y as they are, or of a path the columns that a fitted encoder knows, where they lie, and the labels."""
    if not isinstance(X, str | PathLike):
        return X, y
    names = getattr(encoder, "feature_names_in_", None)
    features = encoder.n_features_in_ if names is None else names.tolist()
    return open_rows(X, y, keep=True, features=features, kinds=encoder.kinds)


def _as_table(X: Any) -> Any:
    from manyclass.data.frames import as_table

    if isinstance(X, str | PathLike):
        raise ValueError(
            f"A path ({X}) does not say which of its columns are labels: give the rows that "
            "manyclass.data.open_rows(path, y, kinds={}) does."
        )
    return X if isinstance(X, StoredTable) else as_table(X)


def _numbers_of(parts: list[Any], columns: list[Any]) -> np.ndarray | None:
    """The numbers and days of each row, without what else is made of them."""
    found = [part[:, 0] for part, column in zip(parts, columns, strict=True) if column.numbers]
    return np.stack(found, axis=1) if found else None


def _named(table: Any) -> list[tuple[str, Any]]:
    return list(zip(table.column_names, table.columns, strict=True))


def _told(name: str, compute: Callable[..., Any], column: Any, *options: Any) -> Any:
    """What is computed from a column, which errors name."""
    try:
        return compute(column, *options)
    except ValueError as error:
        raise ValueError(
            f"Column {name!r} of X cannot be encoded: {error}; correct it, or leave the column out."
        ) from error

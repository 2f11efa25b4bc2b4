"""Rows of X, whatever holds them: the protocol that the rest of the package reads them by."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_namespace

from manyclass.data.columns import ADDED_AT_ONCE, pilot
from manyclass.data.gram import GramSum
from manyclass.data.memory import times_as_large
from manyclass.data.place import HERE

Array = Any

BLOCK_BYTES = 4 << 20
"""Memory of one block of rows or scores: small enough to stay in the last-level cache between the two products
of a pass, large enough that a matrix product runs at full speed (measured between 1 and 32 MiB)."""

GRAM_BLOCK_BYTES = 32 << 20
"""Memory of one block of rows in a Gram product: enough rows that adding a d×d block in float64 costs little
beside the product."""

SUMS_PRECISION = 2.0**-40
"""What float64 keeps of sums over very many rows."""

HALF = np.dtype([("half", np.uint16)], align=True)
"""float16 as compiled loops are given it: numba has no such numbers, so `data.compiled.number` reads their bits."""


class RowArrays(NamedTuple):
    """Rows for compiled loops: CSR arrays with unsigned indices, or dense rows end to end with empty `indices`.

    Numbers of `data` are read by `data.compiled.number`, as they may be float16 (as ``HALF``) or integers.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @classmethod
    def of(cls, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> RowArrays:
        """All read-only, and 64-bit `indptr`, whatever is held: for each other type, loops would be compiled anew."""
        unsigned = indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)
        views = [data.view(), unsigned, indptr.astype(np.uint64, copy=False).view()]
        for view in views:
            view.flags.writeable = False
        return cls(*views)


class Rows(ABC):
    """The rows of X − 1cᵀ, of shape (n_rows, n_features), for a shift c that is mostly zero.

    Only subclasses know what holds the rows (an array, compressed sparse rows, a generator, a file): every method means
    the same for all of them, and no caller asks. A block of rows is again `Rows`.

    A new kind of rows is one file with a subclass. Where some arrays should become such rows by themselves, it also
    takes one line in ``KINDS`` of `manyclass.data`.

    Attributes
    ----------
    xp : namespace
        The array-API namespace in which everything computed from the rows lives.
    device : device of that namespace, or None
    dtype : dtype of the products
    n_rows, n_features : int
    place : Here or Elsewhere
        Where the rows lie: sums over rows in parts (`data.parted`) are computed there, part by part.
    """

    xp: Any
    device: Any
    dtype: Any
    n_rows: int
    n_features: int
    place: Any = HERE
    shift: Array | None = None
    """c, where it is not zero."""
    block_limit: float = math.inf
    """The most memory that a block may take, in bytes."""
    most_bytes: float = math.inf
    """The most memory that all rows together may take, where something needs them at once."""

    # -- what a subclass has to define ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def row_bytes(self) -> float:
        """Memory of one row, in bytes (the mean, when sparse)."""

    @abstractmethod
    def part(self, rows: slice) -> Rows:
        """Consecutive rows, ready for computations: views where that is possible."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Rows:
        """A copy of the rows named by an integer array."""

    @abstractmethod
    def typed(self, dtype: Any) -> Rows:
        """The same rows with products in another real floating dtype of the namespace."""

    @abstractmethod
    def _with_shift(self, shift: Array) -> Rows:
        """The same rows with another shift, which is in float64."""

    def matmat(self, W: Array) -> Array:
        """X W, of shape (n_rows, n_outputs)."""
        found = self.zeros((self.n_rows, int(W.shape[1])), dtype=self.xp.result_type(self.dtype, W.dtype))
        for rows, block in self.blocks(self.rows_per_block(int(W.shape[1]))):
            found[rows, :] = block.matmat(W)
        return found

    def affine(self, W: Array, b: Array) -> Array:
        """X W + b, a new array."""
        Z = self.matmat(W)
        Z += b
        return Z

    # -- what it has to define if it holds its rows in memory; by default they are loaded as a whole for these ---------

    def _whole(self) -> Rows:
        return self.part(slice(0, self.n_rows))

    def map(self, function: Callable[[Array], Array]) -> Rows:
        """`function`, elementwise with f(0) = 0, of every number.

        Raises
        ------
        ValueError
            Where a shift would fill sparse rows, as in `scaled`.
        """
        return self._whole().map(function)

    def scaled(self, weight: Array) -> Rows:
        """diag(weight) times these rows, as a copy."""
        return self._whole().scaled(weight)

    def dense(self) -> Array:
        """The rows as one dense array; a view where they are one."""
        return self._whole().dense()

    def select(self, columns: np.ndarray) -> Rows:
        """A copy of some columns."""
        return self._whole().select(columns)

    def gram(self, weight: Array | None) -> Array:
        """Σ w x xᵀ of rows that fit into one block, dense, of shape (n_features, n_features)."""
        return self._whole().gram(weight)

    def _add_rmatmat(self, R: Array, out: Array) -> None:
        """out += Xᵀ R, for rows that fit into one block."""
        self._whole()._add_rmatmat(R, out)

    # -- what it may override -----------------------------------------------------------------------------------------

    def canonical(self) -> Rows:
        """The same rows in a layout from which subsets are fastest taken and checked."""
        return self

    def unwrapped(self) -> Any:
        """The rows as an array or a CSR matrix, whichever they are held in."""
        return self._whole().unwrapped()

    def transformed(self, function: Callable[[Any], Any]) -> Any:
        """What a function of arrays, applied row by row, makes of these; `Rows` where not all are in memory."""
        return function(self.unwrapped())

    def occurring(self, fewest_empty: float = 0.0) -> tuple[Rows, np.ndarray | None]:
        """Rows without empty columns, and the columns kept; itself and None if a smaller share than this is empty."""
        return self, None

    def arrays(self) -> RowArrays:
        """The rows for compiled loops, copied only where they are not held row by row.

        Raises
        ------
        TypeError
            Where the rows are not in memory as NumPy arrays.
        """
        raise TypeError("These rows are not NumPy arrays or CSR matrices in memory, which compiled loops need.")

    @property
    def has_arrays(self) -> bool:
        """Whether `arrays` can be called."""
        return False

    @property
    def can_be_visited(self) -> bool:
        """Whether the rows that `visits` gives have `arrays`."""
        return self.has_arrays

    def visits(self, rng: np.random.Generator | None = None) -> Iterator[tuple[slice | np.ndarray, Rows]]:
        """Pairs (which rows, those rows, with `arrays`): all at once, or in chunks, at random with `rng`."""
        yield slice(0, self.n_rows), self

    def for_moments(self) -> Rows:
        """The same rows for sums that will be subtracted: in float64 where products sum row by row, not in blocks."""
        return self

    @property
    def moments_itemsize(self) -> int:
        """Bytes per number of `for_moments`."""
        return self.itemsize

    def gram_sum(self) -> GramSum:
        """A sum of the Gram matrices of blocks of such rows."""
        return GramSum(self)

    @property
    def can_be_centred(self) -> bool:
        """Whether a shift costs no more than reading the rows."""
        return True

    def divided(self, unit: Array) -> Rows | None:
        """A copy with each column divided by a number, where dividing while reading would fill the rows; else None."""
        return None

    def holding(self, weight: Array | None) -> Array | None:
        """Σ s over the rows that store a value of each column; None where every row stores all."""
        return None

    def recipe(self) -> Rows:
        """For rows in parts: what `held` needs, without the parts."""
        return self

    def held(self, X: Any) -> Rows:
        """The rows of a part, from the array that is held there."""
        raise TypeError("These rows are in one place.")

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def seconds_waiting(self) -> float:
        """How long computations have waited for rows to be read."""
        return 0.0

    @property
    def has_row_space(self) -> bool:
        """Whether `RowSpace` can stand for these rows in fewer columns; it needs all their products in one place."""
        return self.n_rows < self.n_features and self.place.is_here

    def shifted(self, center: Array) -> Rows:
        """These rows less `center`, of shape (n_features,), without a copy of them."""
        return self._with_shift(center if self.shift is None else self.xp.astype(self.shift, self.xp.float64) + center)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    @property
    def is_numpy(self) -> bool:
        return is_numpy_namespace(self.xp)

    @property
    def itemsize(self) -> int:
        return _bits(self.xp, self.dtype) // 8

    @property
    def precision(self) -> float:
        """Distance from 1 to the next number in the dtype of the products."""
        return float(self.xp.finfo(self.dtype).eps)

    @property
    def moments_precision(self) -> float:
        """`precision` of sums of products of the rows with each other (see `for_moments`)."""
        return min(self.precision, SUMS_PRECISION) if self.moments_itemsize == 8 else self.precision

    def rows_per_block(self, n_outputs: int = 1, block_bytes: int = BLOCK_BYTES) -> int:
        """Rows for which neither the block of X nor its scores for `n_outputs` outputs outgrow `block_bytes`.

        `block_bytes` is meant for a CPU; blocks on a device are larger, as its memory is.
        """
        # Each block adds a matrix as large as the parameters to the gradient, which takes enough rows to pay.
        block_bytes = int(min(block_bytes * times_as_large(self.device), self.block_limit))
        row_of_scores = max(n_outputs * self.itemsize, 1)
        of_scores = max(block_bytes // row_of_scores, min(256, 16 * block_bytes // row_of_scores), 64)
        return int(min(max(block_bytes // max(self.row_bytes, 1), 64), of_scores, max(self.n_rows, 1)))

    def blocks(self, rows_per_block: int) -> Iterator[tuple[slice, Rows]]:
        """Pairs (slice of rows, those rows), in order."""
        return ((rows, self.part(rows)) for rows in slices(self.n_rows, rows_per_block))

    def blocks_of(self, index: np.ndarray, rows_per_block: int) -> Iterator[tuple[slice, Rows]]:
        """Pairs (slice of `index`, a copy of the rows named there), in order."""
        return ((part, self.take(index[part])) for part in slices(len(index), rows_per_block))

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """`values`, of any namespace, in that of the rows, on their device and (by default) in their dtype."""
        if is_array_api_obj(values) and array_namespace(values) is not self.xp:
            values = to_numpy(values)
        return self.xp.asarray(values, dtype=self.dtype if dtype is None else dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: Any = None) -> Array:
        return self.xp.zeros(shape, dtype=self.dtype if dtype is None else dtype, device=self.device)

    def weights(self, given: Array | None = None) -> Array:
        """The weights given, or 1 for each row."""
        return self.xp.ones(self.n_rows, dtype=self.dtype, device=self.device) if given is None else given

    def rmatmat(self, R: Array, out: Array | None = None) -> Array:
        """Xᵀ R, of shape (n_features, n_outputs), in float64 sums over blocks of rows; added to `out` if given."""
        total = self.zeros((self.n_features, int(R.shape[1])), dtype=self.xp.float64) if out is None else out
        for rows, block in self.blocks(self.rows_per_block(int(R.shape[1]))):
            block._add_rmatmat(R[rows, :], total)
        return total

    def outer(self) -> Array:
        """X Xᵀ in float64, of shape (n_rows, n_rows)."""
        whole = self.xp.astype(self.dense(), self.xp.float64)
        return whole @ whole.T

    def sandwich(self, weight: Array | None = None, center: Array | None = None) -> Array:
        """Σ w (x − c)(x − c)ᵀ in float64, of shape (n_features, n_features)."""
        whole = self if center is None else self.shifted(center)
        sums = whole.gram_sum()
        for rows, block in whole.blocks(whole.rows_per_block(1, GRAM_BLOCK_BYTES)):
            sums.add(block, None if weight is None else weight[rows])
        return sums.result()

    def mean(self, weight: Array | None = None) -> Array:
        """Weighted mean row, of shape (n_features,), in float64."""
        total, mass = self.column_sums(None, weight)
        return total / mass

    def mean_square(self, weight: Array | None = None) -> Array:
        """Weighted mean of the squares in each column, of shape (n_features,), in float64."""
        total, mass = self.column_sums(square, weight)
        return total / mass

    def column_sums(self, function: Callable[[Array], Array] | None, weight: Array | None) -> tuple[Array, float]:
        """Σ s f(x) of each column, float64, for an elementwise f with f(0) = 0, and Σ s."""
        xp = self.xp
        weight = xp.astype(self.weights(weight), self.dtype, copy=False)
        total = self.zeros((self.n_features, 1), dtype=xp.float64)
        # Short blocks: a product over rows in float32 must not lose digits before it is added in float64.
        step, short = self.rows_per_block(1), times_as_large(self.device) * ADDED_AT_ONCE
        for rows, block in self.blocks(step if self.moments_itemsize == 8 else min(step, short)):
            block = block.for_moments()
            block = block if function is None else block.map(function)
            block._add_rmatmat(weight[rows][:, None], total)
        return total[:, 0], float(xp.sum(weight, dtype=xp.float64))

    def pilot(
        self, weight: Array | None = None, far: float | None = None, *, constant: bool = False, lasting: bool = False
    ) -> Array | None:
        """A point near the mean of the rows if some column lies far from the origin; else None (see `data.columns`).

        A `lasting` one also serves other rows with the same columns, whatever these hold.
        """
        return pilot(self, weight, far, constant, lasting) if self.can_be_centred and self.n_rows else None


@cache
def _bits(xp: Any, dtype: Any) -> int:
    return int(xp.finfo(dtype).bits)


def slices(n: int, step: int) -> Iterator[slice]:
    """Of `step` numbers from 0 up to n, in order."""
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def present_rows(n_rows: int, weight: Array | None) -> np.ndarray:
    """Numbers of the rows that have weight."""
    return np.arange(n_rows) if weight is None else np.flatnonzero(to_numpy(weight) > 0)


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩ over all entries."""
    if isinstance(a, np.ndarray):  # at a third of the price, of which small fits pay many
        return float(np.vdot(a, b))
    xp = array_namespace(a, b)
    return float(xp.vecdot(xp.reshape(a, (-1,)), xp.reshape(b, (-1,))))


def square(values: Array) -> Array:
    return values * values


def add_to_diagonal(matrix: Array, values: Array | float) -> None:
    """matrix += diag(values), in place and without a second matrix of that size."""
    xp = array_namespace(matrix)
    flat = xp.reshape(matrix, (-1,), copy=False)
    flat[:: int(matrix.shape[0]) + 1] += values


def to_numpy(values: Array) -> np.ndarray:
    """A NumPy copy or view of an array of any namespace."""
    if isinstance(values, np.ndarray):
        return values
    values = values.detach() if hasattr(values, "detach") else values
    if "bfloat16" in str(getattr(values, "dtype", "")):
        values = values.float()  # NumPy has no such numbers
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)

"""A bounded sample of a stream of labelled rows, which only depends on what the rows hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.moments import AS_ADDED
from manyclass.data.rows import Rows, to_numpy
from manyclass.data.stores import stacked

ALL = 2**64 - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(eq=False)
class KeptRows:
    """The rows whose keys are smallest: a key is a hash of a row, its label and its weight.

    So every different row is as likely to be kept as any other, whatever pieces the rows came in and in which order;
    equal rows stay or go together; samples can be merged; and a row that is forgotten is found again.

    Rows are in the order in which they came, and all are here whose keys are at most `limit`.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    keys: np.ndarray
    limit: int = ALL

    @classmethod
    def of(cls, rows: Rows, y: Any, weight: Any, limit: int = ALL) -> KeptRows:
        """The rows of positive weight whose keys are at most `limit`."""
        labels = to_numpy(y.toarray() if hasattr(y, "toarray") else y)
        s = np.ones(rows.n_rows) if weight is None else to_numpy(weight).astype(np.float64)
        # So few that what is made of their bits stays in the caches.
        blocks = rows.blocks(rows.rows_per_block(1, 1 << 17))
        hashed = np.concatenate([_row_hashes(block.unwrapped()) for _, block in blocks])
        keys = _mixed(hashed + _label_hashes(labels) + _mixed(s.view(np.uint64)) * (_GOLDEN ^ np.uint64(2)))
        kept = np.flatnonzero((keys <= np.uint64(limit)) & (s > 0))
        return cls(rows.take(kept).unwrapped(), labels[kept], s[kept], keys[kept], limit)

    @property
    def is_complete(self) -> bool:
        """Whether no row was left out."""
        return self.limit == ALL

    def merge(self, other: KeptRows, capacity: int) -> KeptRows:
        """The sample of both, of at most `capacity` rows (or those equal to the one with the smallest key)."""
        joined = KeptRows(
            stacked((self.X, other.X)),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.keys, other.keys]),
        )
        limit = min(self.limit, other.limit)
        within = np.sort(joined.keys[joined.keys <= np.uint64(limit)])
        if len(within) > capacity:
            limit = max(int(within[capacity]) - 1, int(within[0]))
        chosen = joined.keys <= np.uint64(limit)
        return replace(joined if chosen.all() else joined.taken(np.flatnonzero(chosen)), limit=limit)

    def without(self, other: KeptRows) -> KeptRows:
        """The sample without rows that are in it, the last of equal ones first."""
        order = np.argsort(self.keys, kind="stable")
        ordered = self.keys[order]
        keys, times = np.unique(other.keys[other.keys <= np.uint64(self.limit)], return_counts=True)
        first, last = np.searchsorted(ordered, keys, "left"), np.searchsorted(ordered, keys, "right")
        missing = last - first < times
        if missing.any():
            row = np.flatnonzero(other.keys == keys[missing][0])[0]
            raise ValueError(f"A row with label {other.y[row].tolist()!r} was never added with this weight. {AS_ADDED}")
        gone = np.repeat(last - times, times) + np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        return self.taken(np.setdiff1d(np.arange(len(self.keys)), order[gone]))

    def taken(self, index: np.ndarray) -> KeptRows:
        from manyclass.data import as_rows

        X = as_rows(self.X).take(index).unwrapped()
        return KeptRows(X, self.y[index], self.weight[index], self.keys[index], self.limit)


def _row_hashes(X: Any) -> np.ndarray:
    """The same for dense and sparse rows of the same numbers; 0 for a row of zeros."""
    factors = _mixed(np.arange(1, int(X.shape[1]) + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    if not sp.issparse(X):
        return np.asarray(_spread(to_numpy(X)) @ factors)
    sums = np.zeros(len(X.data) + 1, dtype=np.uint64)
    np.cumsum(_spread(X.data) * factors[X.indices], out=sums[1:])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _spread(values: np.ndarray) -> np.ndarray:
    """Bits of numbers, so that those which end in zeros differ in low places as well."""
    bits: np.ndarray = np.add(values, 0.0, dtype=np.float64).view(np.uint64)  # −0 is 0
    bits ^= bits >> np.uint64(32)
    return bits


def _mixed(bits: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def _label_hashes(y: np.ndarray) -> np.ndarray:
    if y.ndim == 2:
        return _mixed(_row_hashes(y) + _GOLDEN)
    labels, codes = np.unique(y, return_inverse=True)
    texts = (str(label if labels.dtype.kind in "OSU" else float(label)) for label in labels)
    hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts]
    return np.array(hashes, dtype=np.uint64)[codes]

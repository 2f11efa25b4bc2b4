"""Second moments of rows and sums of each class: what least squares on labels needs, whatever classes are to come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from manyclass.data.labels import encode
from manyclass.data.memory import require
from manyclass.data.moments import AS_ADDED, EMPTY, Moments, MomentSums
from manyclass.data.readers.dataset import DataFileError
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, to_numpy
from manyclass.data.tensors import is_number, load_tensors, save_tensors

COPIES = 2
"""Of the sums, while those of a block are added."""


@dataclass(eq=False)
class ClassMoments:
    """Sums over labelled rows that determine least squares for every penalty, in float64.

    A class is a row of `sums`, which costs nothing for rows of other classes: thousands of them, and classes that come
    late, are as cheap as few. `partial_fit`, `forget` and `merge` are exact up to rounding.

    Attributes
    ----------
    features : Moments
        Of the rows, without targets.
    classes : ndarray of shape (n_classes,)
        Sorted labels; the names or numbers of the columns, where rows have several labels.
    counts, weights : ndarray of shape (n_classes,)
        Rows of each class, and Σ s_i over them.
    sums : array of shape (n_classes, n_features)
        Σ s_i x_i over the rows of each class.
    overlap : float
        Σ s_i min(s_i, 1), which says how many rows the weights are worth.
    multilabel : bool
    dtype : str
        The widest in which products with the rows were made.
    precision : float
        The coarsest relative precision of these products.
    about : dict
        What belongs to a file: names of features, for instance.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass import ClassMoments, GLMClassifier
    >>> X, y = np.eye(3), np.array(["a", "b", "c"])
    >>> first, second = ClassMoments.of(X[:2], y[:2]), ClassMoments.of(X[2:], y[2:])
    >>> GLMClassifier(loss="squared").merge(first.merge(second)).predict(X)
    array(['a', 'b', 'c'], dtype='<U1')
    """

    features: Moments
    classes: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    sums: Array
    overlap: float = 0.0
    multilabel: bool = False
    dtype: str = "float32"
    precision: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> ClassMoments:
        """The sums of labelled rows, in one pass.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features), or Rows
        y : array-like of shape (n_rows,), or an indicator matrix (n_rows, n_labels)
        sample_weight : array-like of shape (n_rows,), default all 1
        classes : array-like, optional
            Labels that are there whether rows have them or not; for an indicator matrix the names of its columns.

        Raises
        ------
        ValueError
            If shapes do not fit each other, labels are no classes, a weight is negative, or there is NaN.
        """
        from manyclass.data import as_rows

        rows, labels = as_rows(X), encode(y, "ClassMoments", least=1)
        multilabel = labels.is_multilabel
        found, y = to_numpy(labels.classes), to_numpy(labels.indicator if multilabel else labels.codes)
        if multilabel and classes is not None:
            found = np.asarray(classes)
        if len(y) != rows.n_rows or (multilabel and y.shape[1] != len(found)):
            raise ValueError(
                f"X has {rows.n_rows} rows and y is of shape {y.shape}; give one label row per row of X, and one class "
                "per column."
            )
        weight = np.ones(rows.n_rows) if sample_weight is None else to_numpy(sample_weight).astype(np.float64)
        if weight.shape != (rows.n_rows,) or not (weight >= 0).all():
            raise ValueError("Sample weights must be one non-negative number per row; to take rows out use forget.")
        needed, what = COPIES * 8.0 * rows.n_features**2, f"Sums of products of {rows.n_features} features"
        require(needed, None, what, "use fewer, or fit all rows at once by GLMClassifier")
        given = None if sample_weight is None else rows.asarray(weight)
        if multilabel:  # s_i in the columns of the classes of row i
            members = sp.csr_array(y.astype(np.float64) * weight[:, None])
        else:
            members = sp.csr_array((weight, y, np.arange(len(y) + 1)), shape=(len(y), len(found)))
        xp, features = rows.xp, MomentSums(rows, 0, rows.pilot(given, constant=True))
        sums = rows.zeros((len(found), rows.n_features), dtype=xp.float64)
        for part, block in rows.blocks(rows.rows_per_block(1, GRAM_BLOCK_BYTES)):
            features.add(block, None if given is None else given[part])
            present = np.unique(members[part].indices)
            few, wide = members[part][:, present].T, block.typed(xp.float64)
            if block.is_numpy:
                own: Any = few @ wide.unwrapped()
                sums[present] += own.toarray() if sp.issparse(own) else own
            else:
                sums[rows.asarray(present, xp.int64), :] += rows.asarray(few.toarray(), xp.float64) @ wide.dense()
        order = np.argsort(found, kind="stable")
        moments = cls(
            features.result()._finite(),
            found[order],
            ((y != 0).sum(axis=0) if multilabel else np.bincount(y, minlength=len(found)))[order].astype(np.int64),
            np.asarray(members.sum(axis=0)).ravel()[order],
            sums[order, :],
            float((weight * np.minimum(weight, 1.0)).sum()),
            multilabel,
            "float64" if rows.dtype == rows.xp.float64 else "float32",
            rows.precision,
        )
        if classes is not None and not multilabel:
            moments._expand(np.unique(np.asarray(classes)))
        return moments

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.features.n

    @property
    def n_features(self) -> int:
        return int(self.features.x.shape[0])

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ClassMoments:
        """Add rows, in place; parameters and errors as in `of`. Classes may be new."""
        return self.partial_merge(ClassMoments.of(X, y, sample_weight))

    def merge(self, other: ClassMoments) -> ClassMoments:
        """The sums of two disjoint sets of rows, as a new object; classes are those of both.

        Raises
        ------
        ValueError
            If features or kinds of labels differ.
        """
        return self.copy().partial_merge(other)

    def copy(self) -> ClassMoments:
        """The same sums, which changes of these leave alone."""
        return replace(self, sums=self.sums + 0.0, counts=self.counts + 0, weights=self.weights + 0.0)

    def partial_merge(self, other: ClassMoments) -> ClassMoments:
        """`merge`, in place."""
        self.check_kinds(other)
        xp = array_namespace(self.sums)
        features = self.features.merge(other.features)
        place = self._expand(other.classes)
        self.features = features
        self.counts[place] += other.counts
        self.weights[place] += other.weights
        self.sums[xp.asarray(place, device=self.sums.device), :] += other.sums
        self.overlap += other.overlap
        self.dtype, self.precision = max(self.dtype, other.dtype), max(self.precision, other.precision)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> ClassMoments:
        """Take out rows that were added before, in place; parameters as in `of`.

        A class whose last row goes is gone.

        Raises
        ------
        ValueError
            As in `of`, and if rows cannot have been there: a class would be left with less than no row, with a negative
            weight, or with a sum but no row; or the covariance would be indefinite. The sums stay as they were.
        """
        return self.forget_moments(ClassMoments.of(X, y, sample_weight))

    def forget_moments(self, part: ClassMoments) -> ClassMoments:
        """Take out rows, in place, of which the sums are known; see `forget`."""
        self.check_kinds(part)
        unknown = np.setdiff1d(part.classes, self.classes)
        if len(unknown):
            raise ValueError(f"No row of class {unknown.tolist()[0]!r} was added, so none can be forgotten.")
        left = self.features.without(part.features)
        left.check_left_of(self.features, max(self.precision, part.precision))
        place = np.searchsorted(self.classes, part.classes)
        counts, weights = self.counts[place] - part.counts, self.weights[place] - part.weights
        xp = array_namespace(self.sums)
        index = xp.asarray(place, device=self.sums.device)
        sums = xp.take(self.sums, index, axis=0) - part.sums
        heavy = max(self.features.weight, 1e-300)
        square = (self.features.pilot + self.features.x / heavy) ** 2 + xp.linalg.diagonal(self.features.xx) / heavy
        # Rounding is that of all that was ever added: features that the class had alone may hold nothing else by now.
        spent = xp.max(abs(sums), axis=1) / (float(xp.max(xp.clip(square, min=0.0))) ** 0.5 + 1e-300)
        limit = EMPTY * heavy
        gone = (counts == 0) & (part.counts > 0)
        wrong = (counts < 0) | (weights < -limit) | (gone & (np.maximum(weights, to_numpy(spent)) > limit))
        if wrong.any():
            label = part.classes[wrong].tolist()[0]
            raise ValueError(f"Class {label!r} never had these rows, with these weights. {AS_ADDED}")
        self.features = left
        self.counts[place], self.weights[place] = counts, np.where(gone, 0.0, weights)
        self.sums[index, :] = xp.where(xp.asarray(gone, device=sums.device)[:, None], 0.0 * sums, sums)
        self.overlap -= part.overlap
        if gone.any() and not self.multilabel:
            kept = np.setdiff1d(np.arange(len(self.classes)), place[gone])
            self.classes, self.counts, self.weights = self.classes[kept], self.counts[kept], self.weights[kept]
            self.sums = xp.take(self.sums, xp.asarray(kept, device=self.sums.device), axis=0)
        return self

    def moments(self, absent: float = 0.0, present: float = 1.0, *, one_column: bool = False) -> Moments:
        """Of the rows and of one column per class, with these values in it; of the second of two classes alone where
        they are `one_column`."""
        xp, f = array_namespace(self.sums), self.features
        chosen = slice(1, 2) if one_column else slice(None)
        weights = xp.asarray(self.weights[chosen], device=self.sums.device)
        cross = (self.sums[chosen, :] - weights[:, None] * f.pilot[None, :]).T
        step = present - absent
        xy, y = step * cross + absent * f.x[:, None], step * weights + absent * f.weight
        yy = float(xp.sum(present**2 * weights + absent**2 * (f.weight - weights)))
        return replace(f, xy=xy, y=y, yy=yy, target_pilot=0.0 * y)

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight tell as much, see `effective_rows`."""
        return self.features.weight**2 / max(self.overlap, 1e-300)

    def with_columns(self, order: np.ndarray) -> ClassMoments:
        """The same sums with the features in another order, as a new object."""
        f = self.features
        features = replace(f, xx=f.xx[np.ix_(order, order)], xy=f.xy[order], x=f.x[order], pilot=f.pilot[order])
        return replace(self, features=features, sums=self.sums[:, order])

    def with_text_labels(self) -> ClassMoments:
        """The same sums with labels that are text, as a new object."""
        classes = self.classes.astype(str)
        order = np.argsort(classes)
        counts, weights, sums = self.counts[order], self.weights[order], self.sums[order]
        return replace(self, classes=classes[order], counts=counts, weights=weights, sums=sums)

    # -- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, whole or not at all; one of that name is replaced."""
        arrays, numbers = self.features.parts()
        own = {name: getattr(self, name) for name in ("counts", "weights", "sums")}
        facts = {name: getattr(self, name) for name in _FACTS} | {"classes": self.classes.tolist(), "features": numbers}
        save_tensors(path, _KIND, arrays | own, facts)

    @classmethod
    def load(cls, path: str | Path) -> ClassMoments:
        """Read what `save` wrote, into NumPy arrays; nothing in the file is executed.

        Raises
        ------
        DataFileError
            If the file is no such file, was written by a newer version, or is damaged.
        """
        arrays, facts = load_tensors(path, _KIND)
        try:
            features, classes = Moments.from_parts(path, arrays, facts["features"]), np.asarray(facts["classes"])
            counts, weights, sums = (arrays[name] for name in ("counts", "weights", "sums"))
            k, d = len(classes), len(features.x)
            fits = [part.shape for part in (counts, weights, sums)] == [(k,), (k,), (k, d)]
            fits = fits and counts.dtype == np.int64 and weights.dtype == sums.dtype == np.float64
            fits = fits and bool(np.isfinite(weights).all() and np.isfinite(sums).all())
            fits = fits and counts.min(initial=0) >= 0 and classes.dtype.kind in "biufU"
            fits = fits and np.array_equal(np.unique(classes), classes) and facts["dtype"] in ("float32", "float64")
            fits = fits and is_number(facts["overlap"]) and is_number(facts["precision"])
            fits = fits and isinstance(facts["about"], dict) and isinstance(facts["multilabel"], bool)
            found = cls(features, classes, counts, weights, sums, **{name: facts[name] for name in _FACTS})
        except (KeyError, TypeError, ValueError):
            fits = False
        if not fits:
            raise DataFileError(f"{path} holds arrays that do not make moments of classes: write it again")
        return found

    # -- parts ---------------------------------------------------------------------------------------------------

    def check_kinds(self, other: ClassMoments) -> None:
        """Refuse what cannot be added to these sums, or taken from them.

        Raises
        ------
        ValueError
        """
        if self.n_features != other.n_features:
            raise ValueError(
                f"Moments of {self.n_features} features do not fit those of {other.n_features}; use the same columns."
            )
        if self.multilabel != other.multilabel:
            raise ValueError("Rows with one label each and rows with several cannot be added up; use one kind of y.")
        if len(self.classes) and len(other.classes) and _kind(self.classes) != _kind(other.classes):
            new, known = other.classes.tolist()[0], self.classes.tolist()[0]
            raise ValueError(f"Labels such as {new!r} do not go with such as {known!r}; use numbers in both, or text.")

    def _expand(self, classes: np.ndarray) -> np.ndarray:
        """Make room for classes; where they are among all."""
        union = np.union1d(self.classes, classes)
        if len(union) > len(self.classes):
            xp, place = array_namespace(self.sums), np.searchsorted(union, self.classes)
            counts, weights = np.zeros(len(union), dtype=np.int64), np.zeros(len(union))
            counts[place], weights[place] = self.counts, self.weights
            sums = xp.zeros((len(union), self.n_features), dtype=xp.float64, device=self.sums.device)
            sums[xp.asarray(place, device=self.sums.device), :] = self.sums
            self.classes, self.counts, self.weights, self.sums = union, counts, weights, sums
        return np.searchsorted(self.classes, classes)


_KIND = "moments of classes"
_FACTS = ("overlap", "multilabel", "dtype", "precision", "about")


def _kind(classes: np.ndarray) -> str:
    return "number" if classes.dtype.kind in "biuf" else "text"

"""Rows whose features are made when they are read."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from manyclass.data.design import Array, Design


class Transformer(Protocol):
    """What a `GeneratedDesign` needs of a drawn generator."""

    n_features_out: int

    def generate(self, X: Array, xp: Any) -> Array:
        """The features of a block of rows."""


class GeneratedDesign(Design):
    """φ(X), of shape (n_rows, n_features_out), never held in full: every block is made when it is asked for.

    Attributes
    ----------
    seconds : float
        Time spent on making features.
    """

    def __init__(self, base: Design, transformer: Transformer):
        self.base, self.transformer = base, transformer
        self.xp, self.device, self.dtype = base.xp, base.device, base.dtype
        self.n_rows, self.n_features = base.n_rows, int(transformer.n_features_out)
        self.is_sparse = False
        self.X = base.zeros((0, self.n_features))  # tells the namespace to those who ask for it
        self.seconds = 0.0

    def rows(self, rows: slice) -> Array:
        return self._make(self.base.rows(rows))

    def take(self, index: np.ndarray) -> Array:
        return self._make(self.base.take(index))

    def matmat(self, W: Array) -> Array:
        product = self.zeros((self.n_rows, int(W.shape[1])))
        for rows, block in self.blocks(self.rows_per_block(int(W.shape[1]))):
            product[rows, :] = block @ W
        return product

    def _make(self, block: Array) -> Array:
        started = time.perf_counter()
        made = self.transformer.generate(block, self.xp)
        if sp.issparse(made):
            made = made.toarray()
        self.seconds += time.perf_counter() - started
        return made

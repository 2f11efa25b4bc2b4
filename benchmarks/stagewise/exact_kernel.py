"""Ridge regression with a Gaussian kernel between all rows: half of the matrix in tiles, and conjugate gradients.

Rows are whole numbers of eight bits, whose products are exact and take a quarter of the time of those in float32 where
the processor multiplies bytes (PyTorch's ``_int_mm``). Cholesky's decomposition would need the whole square in memory
and, for 50 000 rows and 10 classes, ten times the arithmetic of a hundred steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

TILE, LANDMARKS = 2000, 4000
"""Rows of a tile; rows that precondition."""
Map = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


class MirrorKernel:
    """f(‖x − x'‖²/D) + f(‖x − Mx'‖²/D), D the number of features, Mx the mirror image of x, f(u) = exp(−u/s).

    Parameters
    ----------
    halves : list of int8 arrays of shape (2, n, d)
        Even and odd features of all rows; each array another bank of filters.
    unit : float
        Steps of the numbers in a standard deviation.
    bandwidth : float
        s.
    """

    def __init__(self, halves: list[np.ndarray], unit: float, bandwidth: float):
        self.halves = halves
        self.rate = np.float32(1.0 / (bandwidth * unit**2 * sum(half.shape[0] * half.shape[2] for half in halves)))
        self.squares = np.zeros(halves[0].shape[1], np.float32)
        for half in halves:
            for rows in slices(half.shape[1]):
                self.squares[rows] += np.sum(half[:, rows].astype(np.float32) ** 2, axis=(0, 2), dtype=np.float64)

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        """float32, of shape (rows, columns)."""
        even, odd = (
            _sum(_products(half[side, rows], half[side, columns]) for half in self.halves).astype(np.float32)
            for side in (0, 1)
        )
        squares = self.squares[rows][:, None] + self.squares[columns][None, :]
        total = self._gaussian(even + odd, squares)
        even -= odd
        total += self._gaussian(even, squares)
        return total

    def _gaussian(self, products: np.ndarray, squares: np.ndarray) -> np.ndarray:
        products *= 2
        products -= squares
        products *= self.rate
        return np.exp(products, out=products)


class MeanKernel:
    """The mean of several kernels."""

    def __init__(self, kernels: list[MirrorKernel]):
        self.kernels = kernels

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return _sum(kernel.tile(rows, columns) for kernel in self.kernels) / np.float32(len(self.kernels))


Kernel = MirrorKernel | MeanKernel


def memory(n: int) -> int:
    """Bytes that `fit` holds for n rows beside their features, of which it reads a few tiles at a time."""
    return 2 * n * (n + TILE) + 4 * n * LANDMARKS + 200 * TILE**2


def fit(
    kernel: Kernel,
    n: int,
    Y: np.ndarray,
    ridge: float,
    tol: float = 1e-3,
    say: Callable[[str], Any] = print,
) -> np.ndarray:
    """(K + ridge·I)⁻¹ Y for the first n rows, to residuals of `tol` times the norm of Y."""
    parts = list(slices(n))
    with one_thread_each() as each:
        pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1)]
        made = each(lambda pair: kernel.tile(parts[pair[0]], parts[pair[1]]), pairs)
        tiles = dict(zip(pairs, made, strict=True))
        say("kernel matrix")
        solve = _preconditioner(tiles, parts, n, ridge, each)
        say("preconditioner")
        X, steps, residual = _conjugate_gradients(lambda V: _times(tiles, parts, V, ridge, each), solve, Y, tol)
    say(f"{steps} steps to a residual of {residual:.1e}")
    return X


def predict(kernel: Kernel, rows: slice, coef: np.ndarray) -> np.ndarray:
    """K(rows, the first rows) coef."""

    def of(part: slice) -> np.ndarray:
        return _sum(kernel.tile(part, some) @ coef[some].astype(np.float32) for some in slices(len(coef)))

    with one_thread_each() as each:
        return np.concatenate(each(of, slices(rows.stop - rows.start, rows.start)))


def _times(tiles: dict, parts: list[slice], V: np.ndarray, ridge: float, each: Map) -> np.ndarray:
    """(K + ridge·I) V; every tile is read once for both of its places."""
    narrow = V.astype(np.float32)

    def of(i: int) -> tuple[np.ndarray, list[np.ndarray]]:
        own = _sum(tiles[i, j] @ narrow[parts[j]] for j in range(i + 1))
        return own, [tiles[i, j].T @ narrow[parts[i]] for j in range(i)]

    total = ridge * V
    for i, (own, others) in enumerate(each(of, reversed(range(len(parts))))):
        total[parts[len(parts) - 1 - i]] += own
        for j, other in enumerate(others):
            total[parts[j]] += other
    return total


def _preconditioner(tiles: dict, parts: list[slice], n: int, ridge: float, each: Map) -> Callable:
    """V ↦ (BBᵀ + level·I)⁻¹ V, BBᵀ the Nyström approximation: what is left of K is about a multiple of I."""
    m = min(LANDMARKS, n // TILE * TILE or n)
    B = np.empty((n, m), np.float32)
    for i, part in enumerate(parts):
        for j in range(-(-m // TILE)):
            B[part, parts[j]] = tiles[i, j] if i >= j else tiles[j, i].T
    core = B[:m].astype(np.float64)
    core.flat[:: m + 1] += 1e-5 * np.trace(core) / m
    root = np.linalg.cholesky(core).astype(np.float32)
    del core

    def whiten(part: slice) -> None:
        B[part] = solve_triangular(root, B[part].T, lower=True, check_finite=False).T

    each(whiten, parts)
    gram = _sum(each(lambda part: B[part].T @ B[part], parts)).astype(np.float64)
    left_over = sum(float(np.trace(tiles[i, i])) for i in range(len(parts))) - np.trace(gram)
    level = ridge + max(left_over / n, 0.0)
    gram.flat[:: m + 1] += level
    factor = cho_factor(gram, overwrite_a=True)

    def solve(V: np.ndarray) -> np.ndarray:
        inner = cho_solve(factor, _sum(each(lambda part: B[part].T @ V[part].astype(np.float32), parts)))
        return (V - np.concatenate(each(lambda part: B[part] @ inner.astype(np.float32), parts))) / level

    return solve


def _conjugate_gradients(
    times: Callable, solve: Callable, Y: np.ndarray, tol: float, max_steps: int = 200
) -> tuple[np.ndarray, int, float]:
    """Each column of Y by itself, all of them in one product."""
    X, R = np.zeros_like(Y), Y.astype(np.float64)
    size = np.linalg.norm(Y, axis=0)
    direction = Z = solve(R)
    slope = np.sum(R * Z, axis=0)
    steps, residual = 0, math.inf
    while residual > tol and steps < max_steps:
        steps += 1
        image = times(direction)
        length = slope / np.sum(direction * image, axis=0)
        X += length * direction
        R -= length * image
        residual = float(np.max(np.linalg.norm(R, axis=0) / size))
        Z = solve(R)
        slope, before = np.sum(R * Z, axis=0), slope
        direction = Z + slope / before * direction
    return X, steps, residual


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    return reduce(np.add, arrays)


def slices(n: int, first: int = 0) -> Iterator[slice]:
    return (slice(start, min(start + TILE, first + n)) for start in range(first, first + n, TILE))


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a bᵀ of whole numbers: exact, or without PyTorch to seven digits."""
    try:
        import torch
    except ImportError:
        return a.astype(np.float32) @ b.astype(np.float32).T
    return torch._int_mm(torch.from_numpy(np.array(a)), torch.from_numpy(np.array(b)).T).numpy()


@contextmanager
def one_thread_each() -> Iterator[Map]:
    """A map whose items are each the work of one thread: none waits for another."""
    n_threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or os.cpu_count() or 1
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as pool:
        yield lambda work, items: list(pool.map(work, items))

"""Loops of the curvatures that grow row by row, compiled."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def copy_upper_to_lower(M):
    """Make M symmetric, tile by tile."""
    n = M.shape[0]
    tile = 32
    for i0 in range(0, n, tile):
        for j0 in range(0, i0 + 1, tile):
            for i in range(i0, min(i0 + tile, n)):
                for j in range(j0, min(j0 + tile, i)):
                    M[i, j] = M[j, i]


@njit(cache=True)
def add_absorbed(rows, diagonal):
    """diagonal += Σ ‖w‖₁ |w| over the rows w."""
    for r in range(rows.shape[0]):
        length = 0.0
        for i in range(rows.shape[1]):
            length += abs(rows[r, i])
        if length > 0.0:
            for i in range(rows.shape[1]):
                diagonal[i] += length * abs(rows[r, i])

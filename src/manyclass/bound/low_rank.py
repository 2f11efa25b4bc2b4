"""H as low rank plus diagonal, always above the true sum (*Stochastic Bound Majorization*, section 3.2)."""

import numpy as np
import scipy.linalg

from manyclass.bound.streamed import StreamedBound
from manyclass.model import Problem


class LowRank(StreamedBound):
    """H = VᵀSV + D with `rank` directions V and a diagonal D, O(rank·d·k) memory and time a row.

    The directions of a block of rows are added exactly; of the eigenvectors of the enlarged low-rank part the `rank`
    largest are kept, and the others, w wᵀ each, go into D by w wᵀ ⪯ ‖w‖₁ diag|w|, so that H never falls below the sum
    it stands for. Of B_j of a row the leading eigenvector competes for a place in V; the rest, B', goes into D at
    once by B' ⊗ xxᵀ ⪯ diag(Σ_b |B'_ab|) ⊗ ‖x‖₁ diag|x|. With two classes or independent labels nothing is left over.

    W is √S V, of shape (≤ rank, n_features [+ 1], n_outputs).
    """

    _given = (*StreamedBound._given, "_X", "_columns")

    span = 64
    accuracy = 1e-2  # H exceeds what it bounds by far more
    compact = True

    def __init__(self, problem: Problem, rank: int):
        super().__init__(problem)
        self.rank = rank
        self.D = self.prior.copy()
        self.W = np.zeros((0, *self.D.shape))
        self._squares = np.zeros(0)  # the squared lengths of the rows of W, which are orthogonal
        self._factor()
        self._collected: LowRank | None = None

    def gram(self, X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        b, m = len(X), self.n_outputs
        self._X, self._columns = X, columns
        at = slice(None) if columns is None else columns
        inverse = 1.0 / self.D[at].T
        diagonal = (X[None] * inverse[:, None, :]) @ X.T  # (m, b, b)
        H = np.zeros((b * m, b * m))
        a = np.arange(m)
        H.reshape(b, m, b, m)[:, a, :, a] = diagonal
        if len(self.W):
            Y = np.matmul(X, self.W[:, at] * inverse.T).reshape(len(self.W), b * m)
            Y = scipy.linalg.solve_triangular(self._lower, Y, lower=True, check_finite=False)
            H -= Y.T @ Y
        return H

    def products(self, V: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = V / self.D
        if not len(self.W):
            return scaled
        flat = self._flat()
        inner = scipy.linalg.cho_solve((self._lower, True), flat @ scaled.reshape(len(V), -1).T, check_finite=False)
        return np.asarray(scaled - (inner.T @ flat).reshape(V.shape) / self.D)

    def absorb(self, C: np.ndarray, U: np.ndarray) -> None:
        self._add(self._X, self._columns, C)
        self._factor()

    def collect(self, X: np.ndarray, columns: np.ndarray | None, C: np.ndarray) -> None:
        if self._collected is None:
            self._collected = LowRank(self.problem, self.rank)
        self._collected._add(X, columns, C)

    def tidy(self) -> None:
        """Nothing to do: `_add` gives orthogonal directions, which are factored anew each time."""

    def renew(self) -> None:
        if self._collected is not None:
            self.W, self._squares, self.D = self._collected.W, self._collected._squares, self._collected.D
            self._factor()
            self.discard()

    def discard(self) -> None:
        self._collected = None

    def _flat(self) -> np.ndarray:
        return self.W.reshape(len(self.W), self.D.size)

    def _factor(self) -> None:
        flat = self._flat()
        inner = np.eye(len(flat)) + (flat / self.D.ravel()) @ flat.T
        self._lower = scipy.linalg.cholesky(inner, lower=True, check_finite=False) if len(flat) else inner

    def _add(self, X: np.ndarray, columns: np.ndarray | None, C: np.ndarray) -> None:
        at = slice(None) if columns is None else columns
        magnitude = np.abs(X)
        size = magnitude.sum(axis=1)
        if self.n_outputs == 1:
            u = C[:, 0, :]
        else:
            B = np.matmul(C.transpose(0, 2, 1), C)
            values, vectors = np.linalg.eigh(B)
            u = vectors[:, :, -1] * np.sqrt(np.maximum(values[:, -1:], 0.0))
            rest = np.abs(B - u[:, :, None] * u[:, None, :]).sum(axis=2)
            self.D[at] += magnitude.T @ (rest * size[:, None])
        r = len(self.W)
        across = (np.matmul(X, self.W[:, at]) * u).sum(axis=2)
        K = np.block([[np.diag(self._squares), across], [across.T, (u @ u.T) * (X @ X.T)]])
        values, E = np.linalg.eigh(K)
        rows = (E[:r].T @ self._flat()).reshape(-1, *self.D.shape)
        rows[:, at] += np.matmul(X.T, E[r:].T[:, :, None] * u)
        has_length = values > 1e-14 * max(float(values[-1]), 0.0)  # beyond rounding; values ascend
        first = max(len(values) - self.rank, np.count_nonzero(~has_length))
        absorbed = rows[:first].reshape(first, self.D.size)
        np.abs(absorbed, out=absorbed)
        self.D += (absorbed.sum(axis=1) @ absorbed).reshape(self.D.shape)
        # A copy, so that the memory of the absorbed rows is freed.
        self.W, self._squares = rows[first:].copy(), values[first:]

"""M = H⁻¹ as a full matrix (*Stochastic Bound Majorization*, Algorithm 2)."""

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk, dtrsm

from manyclass.bound.streamed import StreamedBound
from manyclass.curvature.partition_bound import PairSums, require_room, rows_per_block
from manyclass.model import Problem


class DenseInverse(StreamedBound):
    """M of shape (d·k, d·k), one Woodbury update of rank ≤ k − 1 a row, applied to a block of rows at once.

    With A = M (x_1 ⊗ I, ..., x_b ⊗ I) and T = I + C (gram) Cᵀ = UᵀU, the b updates together are
    M ← M − (U⁻ᵀ C Aᵀ)ᵀ (U⁻ᵀ C Aᵀ): three calls of level-3 BLAS that read and write M once a block instead of once a
    row. H itself is summed beside it, which is cheap (`PairSums`), so that `tidy` can start M afresh.
    """

    _given = (*StreamedBound._given, "_X", "_At")

    span = 160
    accuracy = 1e-4
    compact = False

    def __init__(self, problem: Problem):
        size = problem.n_outputs * (problem.rows.n_features + problem.fit_intercept)
        require_room(size)
        super().__init__(problem)
        self.span = min(self.span, max(64, size // 3))  # a small M leaves little to level-3 BLAS
        self.M = np.diag(1.0 / self.prior.ravel())
        self.sums = PairSums(self.bound, self.n_outputs, self.n_rows_of_theta, problem.xp)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._n_waiting = 0
        self._flush_at = rows_per_block(1 << 30, self.n_rows_of_theta, self.sums.n_pairs, 8)

    def gram(self, X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        assert columns is None
        d, m, b = self.n_rows_of_theta, self.n_outputs, len(X)
        # M is symmetric and feature-major, so one product of (b × d) with (d × m·d·m) applies it to all outputs.
        self._At = (X @ self.M.reshape(d, -1)).reshape(b * m, d * m)
        self._X = X
        return (X @ np.ascontiguousarray(self._At.T).reshape(d, -1)).reshape(b * m, b * m)

    def products(self, V: np.ndarray) -> np.ndarray:
        return (V.reshape(len(V), -1) @ self.M).reshape(V.shape)

    def absorb(self, C: np.ndarray, U: np.ndarray) -> None:
        from manyclass.bound.kernels import copy_upper_to_lower

        b, rank, m = C.shape
        Y = np.matmul(C, self._At.reshape(b, m, -1)).reshape(b * rank, -1)
        # In place through transposed views: BLAS reads rows as columns.
        Yt = dtrsm(1.0, U.T, Y.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        M = dsyrk(-1.0, Yt, beta=1.0, c=self.M.T, lower=1, overwrite_c=1)
        copy_upper_to_lower(M.T)
        self.M = M.T
        self.collect(self._X, None, C)

    def collect(self, X: np.ndarray, columns: np.ndarray | None, C: np.ndarray) -> None:
        self._waiting.append((X, C))
        self._n_waiting += len(X)
        if self._n_waiting >= self._flush_at:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        X = np.concatenate([X for X, _ in self._waiting])
        C = np.concatenate([C for _, C in self._waiting])
        B = np.matmul(C.transpose(0, 2, 1), C)
        self.sums.add(X, B[:, self.sums.left, self.sums.right])
        self._waiting, self._n_waiting = [], 0

    def matrix(self) -> np.ndarray:
        """H, summed without any inverse."""
        self._flush()
        return np.add(self.sums.matrix(), np.diag(self.prior.ravel()))

    def tidy(self) -> None:
        lower = scipy.linalg.cholesky(self.matrix(), lower=True, overwrite_a=True, check_finite=False)
        inverse, failed = scipy.linalg.lapack.dpotri(lower, lower=1, overwrite_c=1)
        if failed:
            raise np.linalg.LinAlgError("The summed curvature is singular; raise alpha.")
        self.M = np.ascontiguousarray(np.tril(inverse) + np.tril(inverse, -1).T)

    def renew(self) -> None:
        self.tidy()
        self.discard()

    def discard(self) -> None:
        self._waiting, self._n_waiting = [], 0
        self.sums.clear()

"""LIBLINEAR on a CSR matrix, through its own library: coefficients, seconds, and the dual value it ended at."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

SOLVERS = {"squared_hinge": 1, "hinge": 3, "crammer_singer": 4, "logistic": 7}
"""Its -s for each loss, all of them dual coordinate ascent."""


@dataclass(frozen=True)
class Fit:
    """One run.

    Attributes
    ----------
    coef : array of shape (n_outputs, n_features)
        The last column belongs to the constant feature where there is one.
    seconds : float
        Of its train() alone: building its own copy of X is left out.
    dual : float
        Σ over outputs of the dual objective, in its units: C Σ loss + ½‖w‖² is never below. Read off what it prints,
        as it does not give its dual variables away.
    epochs : int
        The largest over the outputs.
    switched : bool
        Whether it gave up after 300 epochs and went over to its primal Newton method, as -s 1 and -s 7 do by
        themselves; `dual` is then that of the epochs before.
    """

    coef: np.ndarray
    seconds: float
    dual: float
    epochs: int
    switched: bool


class Problem:
    """X and y in LIBLINEAR's own layout: 16 bytes for each non-zero."""

    def __init__(self, X: sparse.csr_matrix, y: np.ndarray, bias: float = -1.0):
        from liblinear.liblinear import problem

        self.classes, codes = np.unique(y, return_inverse=True)
        rows = sparse.csr_matrix((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
        self.problem = problem(codes.astype(np.float64), rows, bias)
        self.bias = bias

    def fit(self, solver: int, C: float, eps: float) -> Fit:
        from liblinear.liblinear import PRINT_STRING_FUN, liblinear, parameter

        printed: list[bytes] = []
        param = parameter(f"-s {solver} -c {C!r} -e {eps!r} -B {self.bias!r}")
        listen = PRINT_STRING_FUN(printed.append)
        liblinear.set_print_string_function(listen)
        start = time.process_time()
        model = liblinear.train(self.problem, param)
        seconds = time.process_time() - start
        text = b"".join(printed).decode()
        coef = self._coef(model.contents, joint=solver == SOLVERS["crammer_singer"])
        liblinear.free_and_destroy_model(model)
        values = [float(v) for v in re.findall(r"Objective value = (\S+)", text)]
        epochs = [int(v) for v in re.findall(r"#iter = (\d+)", text)]
        return Fit(coef, seconds, -sum(values), max(epochs, default=0), "Switching" in text)

    def _coef(self, model, joint: bool) -> np.ndarray:
        k = len(self.classes)
        width = 1 if k == 2 and not joint else k
        w = np.ctypeslib.as_array(model.w, (self.problem.n * width,)).reshape(self.problem.n, width).T
        order = np.array(model.label[:k])
        if width == 1:  # positive for the class it met first
            return w.copy() if order[0] == 1 else -w
        coef = np.empty_like(w)
        coef[order] = w
        return coef


def fit(X: sparse.csr_matrix, y: np.ndarray, solver: int, C: float, eps: float, bias: float = -1.0) -> Fit:
    """One run of LIBLINEAR's -s `solver`; ``bias`` as its -B."""
    return Problem(X, y, bias).fit(solver, C, eps)

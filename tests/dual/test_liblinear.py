"""The optimum is LIBLINEAR's: same objective to a relative 1e-6, and its own gap says so too."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

pytest.importorskip("liblinear", reason="LIBLINEAR comes with manyclass[bench]")

from benchmarks.dual import liblinear
from benchmarks.dual.speed import Task, estimator


def rows(name):
    X, y = load_digits(return_X_y=True) if name == "digits" else load_breast_cancer(return_X_y=True)
    return sparse.csr_matrix(X / 16 if name == "digits" else scale(X)), y


@pytest.mark.parametrize("data", ["digits", "cancer"])
@pytest.mark.parametrize("loss", liblinear.SOLVERS)
def test_same_objective_as_liblinear(loss, data):
    X, y = rows(data)
    task = Task(X, y, loss, C=0.003)  # LIBLINEAR stops after 300 epochs, so an easy one
    theirs = liblinear.fit(X, y, liblinear.SOLVERS[loss], task.C, 1e-7)
    ours = estimator(task, "auto", tol=1e-7).fit(X, y)
    coef = ours.coef_
    if len(coef) != task.n_outputs:  # one score for two classes
        coef = np.vstack([-0.5 * coef, 0.5 * coef])
    assert task.primal(coef) == pytest.approx(ours.history_[-1].objective, rel=1e-9)
    assert task.primal(coef) == pytest.approx(task.primal(theirs.coef), rel=1e-6)
    assert -1e-6 <= task.gap(theirs) <= 1e-5

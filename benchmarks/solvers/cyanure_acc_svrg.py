"""cyanure, solver="acc-svrg"."""

from benchmarks.solvers._cyanure import fit_with


def fit(X, y, alpha, record):
    fit_with(X, y, alpha, record, "acc-svrg")

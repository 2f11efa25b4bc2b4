"""cyanure, solver="qning-miso"."""

from benchmarks.solvers._cyanure import fit_with


def fit(X, y, alpha, record):
    fit_with(X, y, alpha, record, "qning-miso")

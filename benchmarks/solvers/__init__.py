"""One small file per solver, ours and peers.

Each module has ``fit(X, y, alpha, record)``, which minimises mean log loss + (alpha/2)‖W‖² with an
unpenalised intercept, at the solver's best sensible settings, until `record` stops it or it can do no better.
It calls ``record(coef, intercept)`` with W of shape (d, k) and b of shape (k,) at each iterate.
"""

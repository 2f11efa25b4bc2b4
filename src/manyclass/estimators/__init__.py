"""Thin scikit-learn classes: validate, encode labels, build the objective, call a solver, unpack the solution."""

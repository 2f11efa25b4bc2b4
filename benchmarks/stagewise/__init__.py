"""Calibrated least squares and stagewise regression on generated features, against everyone else."""

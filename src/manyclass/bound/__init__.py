"""Stochastic bound majorization, full and low rank. What is compiled is imported only where it is used."""

from manyclass.bound.dense_inverse import DenseInverse
from manyclass.bound.low_rank import LowRank
from manyclass.bound.stochastic_bound import FIRST_ETA, StochasticBound

__all__ = ["FIRST_ETA", "DenseInverse", "LowRank", "StochasticBound"]

"""Stochastic subgradient descent (Pegasos, MCID). What is compiled is imported only where it is used."""

from manyclass.subgradient.schedule import Schedule

__all__ = ["Schedule"]

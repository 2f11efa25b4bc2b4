"""Stochastic subgradient descent (Pegasos, MCID). Importing this compiles or loads numba's functions when first run."""

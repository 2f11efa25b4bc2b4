"""Bound majorization beside the methods of its paper (*Stochastic Bound Majorization*, Figures 1 to 3)."""

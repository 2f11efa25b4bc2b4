"""Everybody on everything: defaults on data that nobody tuned them on, against peers and against our own other methods.

``python -m benchmarks.battery [--quick] [--data NAME...] [--json]``
"""

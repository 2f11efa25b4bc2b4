"""Dual coordinate ascent: speed against peers, homotopy, spectra and plain gradient descent."""

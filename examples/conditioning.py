"""
Why features that go together are slow elsewhere
================================================

Gradient descent pays for the condition number of the data in iterations; a d×d factor pays for it once. Here the same
objective is minimised with the metric of nothing (``curvature="identity"``), of the Hessian's diagonal and of the
second moment, on data of growing condition number.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt

from manyclass import GLMClassifier
from manyclass.diagnostics import SpectrumDisplay

rng = np.random.default_rng(0)
n, d, k = 1000, 30, 5
rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
noise, W = rng.standard_normal((n, d)), rng.standard_normal((d, k))


def data(decay):
    """Rows whose covariance has the eigenvalues i^-decay, in no particular basis."""
    scales = np.arange(1, d + 1) ** (-decay / 2)
    y = np.argmax(noise @ (W * scales[:, None] ** 0.3) + rng.gumbel(size=(n, k)), axis=1)
    return (noise * scales) @ rotation, y


# %%

decays = [0, 1, 2]
curvatures = {"identity": "gradient", "jacobi": "quasi-newton", "kronecker": "quasi-newton"}
passes = {name: [] for name in curvatures}
for decay in decays:
    X, y = data(decay)
    for curvature, solver in curvatures.items():
        model = GLMClassifier(1e-5, solver=solver, curvature=curvature, max_iter=200)
        with warnings.catch_warnings(action="ignore"):  # gradient descent does not get there
            passes[curvature].append(model.fit(X, y).n_passes_)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for decay in decays:
    SpectrumDisplay.from_data(data(decay)[0], name=f"eigenvalues $i^{{-{decay}}}$", ax=left)
for curvature, found in passes.items():
    right.semilogy([d**decay for decay in decays], found, "o-", label=f"{curvature}, {curvatures[curvature]}")
right.set(xscale="log", xlabel="condition number of the covariance", ylim=(None, 2000))
right.set_ylabel("passes over the rows to tol, at most 200")
right.legend(fontsize="small", loc="upper left")
plt.show()

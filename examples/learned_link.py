"""
A link that is learned
======================

Softmax knows how scores become probabilities before it has seen a row. ``CalibratedLeastSquaresClassifier`` learns
it: least squares for the scores, then least squares on powers of the predictions, again and again. Where no row is
certain, however far out it lies, softmax cannot say so.
"""

import numpy as np
from matplotlib import pyplot as plt

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier

# %%
# Three classes along one direction of twenty; the labels of four rows in ten are drawn at random.

rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 20))
position = X @ rng.standard_normal(20) / 20**0.5 + 0.15 * rng.standard_normal(len(X))
y = np.where(rng.random(len(X)) < 0.4, rng.integers(0, 3, len(X)), np.digitize(position, [-0.3, 0.3]))
X_train, y_train, X_test, y_test = X[:3000], y[:3000], X[3000:], y[3000:]

# %%

models = {"softmax": GLMClassifier(1e-5), "learned link": CalibratedLeastSquaresClassifier()}
figure, grid = plt.subplots(1, 2, figsize=(8, 3.3), sharey=True, layout="constrained")
place = position[3000:]
for axes, (name, model) in zip(grid, models.items(), strict=True):
    probabilities = model.fit(X_train, y_train).predict_proba(X_test)
    brier = np.mean(np.sum((probabilities - np.eye(3)[y_test]) ** 2, axis=1))
    for j in range(3):
        axes.plot(place, probabilities[:, j], ".", markersize=1.5, alpha=0.5)
    axes.set(title=f"{name}: Brier score {brier:.3f}", xlabel="position along the direction")
grid[0].set_ylabel("predicted probabilities")
plt.show()

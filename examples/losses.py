"""
One objective, many losses
==========================

The same ``alpha`` with other losses: what changes is how rows near the border, and rows far on the wrong side, are
charged. "sparsemax" gives probabilities that are exactly zero.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_blobs

from manyclass import GLMClassifier, SDCAClassifier

X, y = make_blobs(300, centers=[[-2, 0], [1, 1.2], [1.5, -1.5]], cluster_std=1.0, random_state=0)
models = {
    "softmax": GLMClassifier(1e-3),
    "logistic": GLMClassifier(1e-3, loss="logistic"),
    "squared": GLMClassifier(1e-3, loss="squared"),
    "sparsemax": GLMClassifier(1e-3, loss="sparsemax"),
    "hinge": SDCAClassifier(loss="hinge", alpha=1e-3),
    "crammer_singer": SDCAClassifier(loss="crammer_singer", alpha=1e-3),
}

# %%
# Colours are the labels; shades the margin between the best score and the second.

span = np.linspace(-5, 5, 160)
plane = np.stack(np.meshgrid(span, span), axis=-1).reshape(-1, 2)
figure, grid = plt.subplots(2, 3, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for axes, (name, model) in zip(grid.flat, models.items(), strict=True):
    scores = np.sort(model.fit(X, y).decision_function(plane), axis=1)
    margin = np.minimum(scores[:, -1] - scores[:, -2], 2.0)
    colours = plt.get_cmap("tab10")(model.predict(plane))
    colours[:, 3] = 0.1 + 0.25 * margin
    axes.imshow(colours.reshape(160, 160, 4), extent=(-5, 5, -5, 5), origin="lower")
    axes.scatter(*X.T, c=plt.get_cmap("tab10")(y), s=6)
    axes.set_title(f"{name}: {1 - model.score(X, y):.1%} errors")
plt.show()

# %%

given = models["sparsemax"].predict_proba(plane)
print(f"sparsemax: {np.mean(given == 0):.0%} of the probabilities in the plane are exactly 0")

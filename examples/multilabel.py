"""
Several labels per row
======================

With an indicator matrix as ``y`` every label gets its own logistic model, all from one factor of the features. A
prediction set may hold several labels, and says which labels a row cannot be denied.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import average_precision_score, f1_score

from manyclass import GLMClassifierCV

# %%
# Thirty labels, from frequent to rare.

rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 60))
scores = X @ (0.5 * rng.standard_normal((60, 30))) - np.linspace(2, 9, 30)
Y = (scores + rng.logistic(size=scores.shape) > 0).astype(int)
X_train, Y_train, X_test, Y_test = X[:3000], Y[:3000], X[3000:], Y[3000:]

# %%
# One call chooses the penalty for all labels together, and keeps left-out scores for prediction sets.

model = GLMClassifierCV(cv=3, leave_one_out=True).fit(X_train, Y_train)
predicted = model.predict(X_test)
print(f"alpha {model.alpha_:.2g}, F1 over all cells {f1_score(Y_test, predicted, average='micro'):.3f}")

# %%
# How well a label is found depends on how often it is there. Sets with 90 % coverage hold more labels than a threshold
# of one half, and miss fewer.

precision = average_precision_score(Y_test, model.predict_proba(X_test), average=None)
sets = model.predict_set(X_test, coverage=0.9)
chosen = predicted.astype(bool), sets
right = [Y_test[which].mean() for which in chosen]
missed = [1 - which[Y_test.astype(bool)].mean() for which in chosen]

figure, (labels, choices) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
labels.scatter(Y_train.mean(axis=0), precision)
labels.set(xlabel="share of rows with the label", ylabel="average precision", xscale="log")
places = np.arange(2)
choices.bar(places - 0.2, right, 0.4, label="share of given labels that are right")
choices.bar(places + 0.2, missed, 0.4, label="share of true labels that are missed")
choices.set_xticks(places, ["probability > 0.5", "set, coverage 0.9"])
choices.set_ylim(0, 1.3)
choices.legend(fontsize="small")
plt.show()

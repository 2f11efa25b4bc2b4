"""
Probabilities that hold, and sets that cover
============================================

``GLMClassifierCV`` leaves each row out by one Newton step. The left-out scores serve for a temperature, and for sets of
labels that hold the true one with a given probability, without rows kept aside.
"""

import numpy as np
from matplotlib import pyplot as plt

from manyclass import GLMClassifier, GLMClassifierCV

rng = np.random.default_rng(0)
X = rng.standard_normal((5000, 60))
y = np.argmax(X @ (0.35 * rng.standard_normal((60, 12))) + rng.gumbel(size=(5000, 12)), axis=1)
X_train, y_train, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]

# %%
# A penalty that is too small makes a model sure of itself. Confidence against accuracy, in ten bins of equal size:

models = {
    "alpha=1e-7": GLMClassifier(1e-7).fit(X_train, y_train),
    "alpha chosen, temperature": GLMClassifierCV(cv=5, calibrate="temperature").fit(X_train, y_train),
}
figure, left = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, model in models.items():
    probabilities = model.predict_proba(X_test)
    confidence, correct = probabilities.max(axis=1), model.predict(X_test) == y_test
    bins = np.array_split(np.argsort(confidence), 10)
    loss = -np.mean(np.log(probabilities[np.arange(len(y_test)), y_test]))
    label = f"{name}\n{correct.mean():.1%} correct, log loss {loss:.2f}"
    left.plot([confidence[b].mean() for b in bins], [correct[b].mean() for b in bins], "o-", label=label)
left.plot([0, 1], [0, 1], color="grey", linestyle=":")
left.set(xlabel="confidence", ylabel="share correct")
left.legend(fontsize="small")
plt.show()

# %%
# Coverage asked for and found on new rows, and how many labels that takes.

model = models["alpha chosen, temperature"]
asked = np.linspace(0.5, 0.99, 12)
sets = [model.predict_set(X_test, coverage=coverage) for coverage in asked]
figure, right = plt.subplots(figsize=(5, 3.6), layout="constrained")
right.plot(asked, [chosen[np.arange(len(y_test)), y_test].mean() for chosen in sets], "o-", label="coverage found")
right.plot([0.5, 1], [0.5, 1], color="grey", linestyle=":")
right.set(xlabel="coverage asked for", ylabel="coverage found")
size = right.twinx()
size.plot(asked, [chosen.sum(axis=1).mean() for chosen in sets], "s-", color="C3", markersize=4)
size.set_ylabel("labels in a set, on average", color="C3")
plt.show()

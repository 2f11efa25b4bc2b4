"""
Classes of very unequal size
============================

``class_weight="balanced"`` multiplies the weights of rows, so that every class counts the same in the objective. It
trades errors on the frequent class for recall on the rare ones; it adds no information. Moving the intercept of a
model that was fitted without weights does nearly the same, after the fit.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score

from manyclass import GLMClassifier

shares = [0.9, 0.06, 0.03, 0.01]
X, y = make_classification(
    20_000, 20, n_informative=8, n_classes=4, n_clusters_per_class=1, weights=shares, class_sep=0.7, random_state=0
)
X_train, y_train, X_test, y_test = X[:10_000], y[:10_000], X[10_000:], y[10_000:]

# %%

plain = GLMClassifier().fit(X_train, y_train)
balanced = GLMClassifier(class_weight="balanced").fit(X_train, y_train)
moved = plain.classes_[np.argmax(plain.decision_function(X_test) - np.log(np.bincount(y_train)), axis=1)]
predictions = {
    "as it is": plain.predict(X_test),
    'class_weight="balanced"': balanced.predict(X_test),
    "intercept moved by the prior": moved,
}

# %%

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
width = 0.27
for at, (name, predicted) in enumerate(predictions.items()):
    recall = recall_score(y_test, predicted, average=None)
    both = f"{np.mean(predicted == y_test):.0%} correct, {balanced_accuracy_score(y_test, predicted):.0%} by class"
    axes.bar(np.arange(4) + (at - 1) * width, recall, width, label=f"{name}: {both}")
axes.set_xticks(range(4), [f"{share:.0%} of the rows" for share in np.bincount(y_train) / len(y_train)])
axes.set(ylabel="recall of the class", ylim=(0, 1.35))
axes.legend(fontsize="small", loc="upper right")
plt.show()

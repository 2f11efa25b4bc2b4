"""
A path of penalties for the price of a few fits
===============================================

The models of all folds go down from the largest penalty together; each starts where the two before it point to, and
the search ends when the score has turned. For the squared loss one eigendecomposition gives the whole path, with exact
leave-one-out errors.
"""

import time

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from manyclass import GLMClassifier, GLMClassifierCV
from manyclass.diagnostics import PathDisplay

X, y = load_digits(return_X_y=True)
X = X / 16

# %%

started = time.perf_counter()
GLMClassifier().fit(X, y)
one = time.perf_counter() - started

figure, grid = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
searches = {
    "softmax, 5 folds": GLMClassifierCV(alphas=20),
    "squared, leave-one-out": GLMClassifierCV(20, loss="squared"),
}
for axes, (name, search) in zip(grid, searches.items(), strict=True):
    started = time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - started
    print(f"{name}: alpha {search.alpha_:.2g} in {seconds:.2f} s; one softmax fit takes {one:.2f} s")
    PathDisplay.from_estimator(search, ax=axes)
    axes.set_title(name)
plt.show()

# %%
# Coefficients of one class along the path.

PathDisplay.from_estimator(searches["softmax, 5 folds"], kind="coefficients")
plt.show()

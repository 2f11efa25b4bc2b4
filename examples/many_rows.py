"""
More rows than are worth reading
================================

A step of ``PegasosClassifier`` costs the same however many rows there are, and so do the steps that a given error
takes. So the error is a matter of the steps taken, not of the share of the rows that was seen.
"""

import numpy as np
from matplotlib import pyplot as plt

from manyclass import GLMClassifier, PegasosClassifier

rng = np.random.default_rng(0)
n, d, k = 40_000, 30, 8
X = rng.standard_normal((n, d), dtype=np.float32)
y = np.argmax(X @ rng.standard_normal((d, k)) + 2 * rng.gumbel(size=(n, k)), axis=1)
X_test, y_test = X[-5000:], y[-5000:]

# %%

best = GLMClassifier(1e-4).fit(X[:-5000], y[:-5000])
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for n_rows in (5000, 35_000):
    steps = np.geomspace(300, min(10 * n_rows, 50_000), 7).astype(int)
    errors = []
    for n_steps in steps:
        model = PegasosClassifier(alpha=1e-4, max_iter=n_steps / n_rows, tol=0)
        errors.append(1 - model.fit(X[:n_rows], y[:n_rows]).score(X_test, y_test))
    axes.semilogx(steps, errors, "o-", label=f"{n_rows:,} rows")
axes.axhline(1 - best.score(X_test, y_test), color="grey", linestyle=":", label="the optimum of 35,000 rows")
axes.set(xlabel="steps, of one row each", ylabel="test error")
axes.legend()
plt.show()

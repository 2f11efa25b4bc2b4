"""
Columns in steps
================

In a table hardly anything is in proportion to the numbers: risk grows with age, but not by as much each year; a code is
no amount; an income has a long tail. ``ThermometerEncoder`` cuts each column into steps in front of a linear model,
which then is a sum of step functions, one of each column. Here four columns decide, each in its own way, and one says
nothing.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyclass import AutoClassifier, GLMClassifier
from manyclass.features import ThermometerEncoder

rng = np.random.default_rng(0)
n = 20_000
X = np.column_stack(
    [
        rng.uniform(18, 90, n),  # age
        rng.lognormal(10, 1, n),  # income
        rng.integers(0, 8, n),  # a code
        rng.standard_normal(n),  # in proportion
        rng.standard_normal(n),  # nothing
    ]
)
names = ["age", "income", "code", "in proportion", "nothing"]
of_code = np.array([0.0, 2.0, -1.0, 1.0, -2.0, 0.0, 1.5, -1.5])
truths = [
    lambda x: 2.0 * np.sin((x - 18.0) / 12.0),
    lambda x: 2.0 * (x > 30_000) - 3.0 * (x > 100_000),
    lambda x: of_code[x.astype(int)],
    lambda x: x,
    np.zeros_like,
]
score = sum(truth(column) for truth, column in zip(truths, X.T, strict=True))
y = rng.random(n) < 1.0 / (1.0 + np.exp(-score))
train, test = slice(0, n // 2), slice(n // 2, None)

# %%
# A linear model of the columns, and one of their steps.

plain = make_pipeline(StandardScaler(), GLMClassifier(alpha=1e-3)).fit(X[train], y[train])
stepped = make_pipeline(ThermometerEncoder(), GLMClassifier(alpha=1e-3)).fit(X[train], y[train])
best = np.mean((score[test] > 0) == y[test])
for name, model in (("columns", plain), ("steps", stepped)):
    print(f"{name}: {model.score(X[test], y[test]):.3f} right, of {best:.3f} that can be")

# %%
# Coefficients are the heights of steps, so that their sums are what the model has learned of each column. The penalty
# keeps it flat where the rows do not speak for a step.

encoder, coef = stepped[0], stepped[-1].coef_[0]
figure, axes = plt.subplots(1, len(names), figsize=(13, 3), sharey=True, layout="constrained")
for column, (axis, name, truth) in enumerate(zip(axes, names, truths, strict=True)):
    own = encoder.feature_indices_ == column
    grid = np.quantile(X[:, column], np.linspace(0.005, 0.995, 400))
    learned = (grid[:, None] > encoder.thresholds_[own]) @ coef[own]
    right = truth(grid)
    style = {"drawstyle": "steps-mid" if name == "code" else "default"}
    axis.plot(grid, right - right.mean(), color="0.6", linewidth=3, label="what decides", **style)
    axis.plot(grid, learned - learned.mean(), color="C0", label="what is learned", **style)
    axis.set_xlabel(name)
axes[1].set_xscale("log")
axes[0].set_ylabel("logit of the class")
axes[0].legend(frameon=False)
plt.show()

# %%
# ``AutoClassifier`` tries columns as they are, steps and generated features, and takes what held-out rows speak for.

auto = AutoClassifier(max_time=10, random_state=0).fit(X[train], y[train])
print(auto.why_[-1])
print(f"{auto.score(X[test], y[test]):.3f} right")

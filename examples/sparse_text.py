"""
Sparse text: three ways to the same linear model
================================================

Bags of words have more features than a d×d matrix allows, and few of them in a row. ``GLMClassifier`` then works in
the metric of the Hessian's diagonal, ``SDCAClassifier`` visits rows one by one in the dual, and ``PegasosClassifier``
takes steps whose cost does not depend on how many rows there are.
"""

import time

import numpy as np
import scipy.sparse as sp
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer

from manyclass import GLMClassifier, PegasosClassifier, SDCAClassifier

# %%
# Documents of 60 words: half of them common to all twenty topics, half from a topic's own distribution.

rng = np.random.default_rng(0)
n_rows, n_words, n_topics, length = 5000, 20_000, 20, 60
zipf = 1 / np.arange(1, n_words + 1)
common = rng.choice(n_words, (n_rows, length // 2), p=zipf / zipf.sum())
y = rng.integers(0, n_topics, n_rows)
orders = np.array([rng.permutation(n_words) for _ in range(n_topics)])
own = orders[y[:, None], rng.choice(n_words, (n_rows, length // 2), p=zipf / zipf.sum())]
own = np.where(rng.random(own.shape) < 0.25, own, common)
words = np.concatenate([common, own], axis=1)
counts = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(n_rows), length), words.ravel())), (n_rows, n_words))
X = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts)).astype(np.float32)
X_train, y_train, X_test, y_test = X[:4000], y[:4000], X[4000:], y[4000:]

# %%
# The same objective, softmax and alpha = 1e-4. The first fits on a few rows compile.

models = {kind.__name__: kind(alpha=1e-4) for kind in (GLMClassifier, SDCAClassifier, PegasosClassifier)}
found = {}
for name, model in models.items():
    clone(model).fit(X_train[:200], y_train[:200])
    started = time.perf_counter()
    model.fit(X_train, y_train)
    found[name] = time.perf_counter() - started, 1 - model.score(X_test, y_test)
    print(f"{name:18s} {found[name][0]:5.2f} s, {found[name][1]:.1%} errors. {model.status_}")

# %%

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = axes.barh(list(found), [seconds for seconds, _ in found.values()])
axes.bar_label(bars, [f"{errors:.1%} errors" for _, errors in found.values()], padding=4)
axes.set(xlabel="seconds")
axes.margins(x=0.3)
plt.show()

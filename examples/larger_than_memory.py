"""
Rows that stay in their file
============================

``fit`` takes a path. What is larger than half of ``memory_limit`` is read block by block, the next one while the last
is computed with; the model is that of memory, up to rounding.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from manyclass import GLMClassifier, PegasosClassifier

# %%
# 10 MB of float16, as embeddings are often stored.

rng = np.random.default_rng(0)
n, d, k = 40_000, 128, 10
y = rng.integers(0, k, n)
X = rng.standard_normal((n, d), dtype=np.float32) + 0.15 * rng.standard_normal((k, d), dtype=np.float32)[y]
folder = Path(tempfile.mkdtemp())
np.save(folder / "rows.npy", X.astype(np.float16))

# %%
# With a limit of 4 MB for 10 MB (a real limit is some hundred times that).

from_file = GLMClassifier().fit(folder / "rows.npy", y, memory_limit="4MB")
in_memory = GLMClassifier().fit(X.astype(np.float16), y)
print(f"largest difference of coefficients: {np.abs(from_file.coef_ - in_memory.coef_).max():.1e}")
few = PegasosClassifier(max_iter=1, tol=0).fit(folder / "rows.npy", y, memory_limit="4MB")
print(f"one pass of Pegasos over the file: {few.score(X, y):.3f} right; the optimum: {from_file.score(X, y):.3f}")

# %%

figure, axes = plt.subplots(figsize=(6, 3.3), layout="constrained")
for name, model, style in (("from the file", from_file, "-"), ("from memory", in_memory, "k.")):
    passes = [record.n_passes for record in model.history_]
    axes.semilogy(passes, [record.duality_gap for record in model.history_], style, label=name)
axes.set(xlabel="passes over the rows", ylabel="duality gap")
axes.legend()
plt.show()

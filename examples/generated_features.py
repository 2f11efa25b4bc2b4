"""
Tens of thousands of features that are never stored
===================================================

Each stage draws a block of random Fourier features, fits what the stages before it left over, and forgets the block.
Memory is that of the rows and of one block; errors fall with the number of features.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import zero_one_loss

from manyclass import GLMClassifier, StagewiseClassifier

X, y = make_classification(
    3000, 12, n_informative=8, n_redundant=0, n_classes=6, n_clusters_per_class=4, class_sep=1.6, random_state=0
)
X_train, y_train, X_test, y_test = X[:2000], y[:2000], X[2000:], y[2000:]

# %%
# Losses mean what they mean everywhere; "calibrated" learns the link, too.

sizes = [128, 256, 512, 1024]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
linear = zero_one_loss(y_test, GLMClassifier().fit(X_train, y_train).predict(X_test))
axes.axhline(100 * linear, color="grey", linestyle=":", label="a linear model")
for loss in ("squared", "calibrated"):
    errors = []
    for size in sizes:
        model = StagewiseClassifier(loss=loss, n_components=size, block_size=min(size, 256), random_state=0)
        errors.append(100 * zero_one_loss(y_test, model.fit(X_train, y_train).predict(X_test)))
    axes.plot(sizes, errors, "o-", label=f'loss="{loss}"')
axes.set(xscale="log", xlabel="generated features, in blocks of at most 256", ylabel="test errors, %", ylim=(0, None))
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend()
plt.show()

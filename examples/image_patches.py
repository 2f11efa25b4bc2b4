"""
Images: patches, PCA, and stages of generated features
======================================================

A linear model of pixels knows nothing of images. Responses of small random patches, pooled over quarters of the image
(``ImagePatches``), reduced by PCA and followed by random Fourier features in stages (``StagewiseClassifier``), make
0.54 % errors on MNIST. Here is the same pipeline on scikit-learn's 8×8 digits, which are so small that patches do
most of it.
"""

from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier, StagewiseClassifier
from manyclass.features import ImagePatches

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)

# %%
# The patches are those of the training images, whitened.

patches = ImagePatches(n_components=800, image_shape=(8, 8), patch_size=3, random_state=0)
stages = StagewiseClassifier(n_components=1024, block_size=256, loss="calibrated", max_iter=3, random_state=0)
models = {
    "pixels, linear": GLMClassifier(1e-3),
    "pixels, stages": stages,
    "patches, linear": make_pipeline(patches, GLMClassifier(1e-3)),
    "patches, PCA, stages": make_pipeline(patches, PCA(80, random_state=0), clone(stages)),
}
errors = {name: 1 - model.fit(X_train, y_train).score(X_test, y_test) for name, model in models.items()}

# %%

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = axes.barh(list(errors)[::-1], [100 * error for error in errors.values()][::-1])
axes.bar_label(bars, fmt="%.1f", padding=3)
axes.set(xlabel="test errors, %")
plt.show()

# %%
# What the best of them still gets wrong.

best = models[min(errors, key=errors.get)]
predicted = best.predict(X_test)
wrong = (predicted != y_test).nonzero()[0][:8]
figure, grid = plt.subplots(1, 8, figsize=(7, 1.4), layout="constrained")
for axes in grid:
    axes.set_axis_off()
for axes, row in zip(grid, wrong, strict=False):
    axes.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{y_test[row]} as {predicted[row]}", fontsize=9)
plt.show()

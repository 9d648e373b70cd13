"""The margin of a line, and the largest one
=========================================

The margin of a line that separates two classes is its distance from the nearest example. Of all
such lines one has the largest margin; on both of its sides there are examples at that distance.
"""

# Lecture 001: two margins side by side

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, Perceptron
from maxmargin.plotting import plot_separators

X, y = make_blobs(30, centers=[[-2, -1], [1.5, 1.5]], cluster_std=0.9, random_state=19)
models = {
    "some line": Perceptron(order="cyclic", tol=None).fit(X, y),
    "the largest margin": SVC(kernel="linear", C=np.inf).fit(X, y),
}

# %%
# Both lines have every example on its right side. The strip around each reaches as far as the
# nearest example: ``min |w . x + b| / ||w||``.

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.7), layout="compressed", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    w, b = model.coef_[0], model.intercept_[0]
    distance = np.abs(X @ w + b) / np.linalg.norm(w)
    margin = distance.min()
    plot_separators({"w . x + b = 0": model}, X, y, ax)
    for side in (-1, 1):  # the lines at that distance from the first
        level = side * margin * np.linalg.norm(w) - b
        ax.axline(level * w / (w @ w), slope=-w[0] / w[1], color="black", linestyle="--")
    nearest = np.isclose(distance, margin, rtol=1e-3)
    ax.scatter(*X[nearest].T, s=160, facecolors="none", edgecolors="black", label="nearest")
    ax.set_title(f"{name}: margin {margin:.2f}")
    ax.set_aspect("equal")
    ax.get_legend().remove()
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

# %%
# The examples that are nearest to the second line are its support vectors: it is made of them.

street = models["the largest margin"]
print(f"{len(street.support_)} support vectors, margin_ = {street.margin_:.4f}")
plt.show()

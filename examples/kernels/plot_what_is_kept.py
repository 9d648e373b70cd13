"""What is kept after training
===========================

A parametric machine keeps a few numbers and throws the examples away. Nearest neighbours keep all
examples. A kernel machine keeps those that it needs, each with a weight.
"""

# Lecture 001: parametric, non-parametric and kernel methods

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from maxmargin import SVC, LinearSVC
from maxmargin.plotting import plot_decision

X, y = make_moons(150, noise=0.35, random_state=4)
X_test, y_test = make_moons(2000, noise=0.35, random_state=5)
models = {
    "linear": LinearSVC(loss="hinge").fit(X, y),
    "nearest neighbour": KNeighborsClassifier(1).fit(X, y),
    "Gaussian kernel": SVC(C=1.0).fit(X, y),
}
kept = {
    "linear": models["linear"].coef_.size + 1,
    "nearest neighbour": X.size + len(y),
    "Gaussian kernel": models["Gaussian kernel"].support_vectors_.size
    + models["Gaussian kernel"].dual_coef_.size
    + 1,
}

# %%
# The line has no choice, the neighbours believe every example, noise and all. In the titles: errors
# on new examples, and how many numbers are kept.

axes = plt.subplots(1, 3, figsize=(8, 3.3), layout="constrained", sharey=True)[1]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plot_decision(model, X, y, ax, slack=False, grid_resolution=150)
    if ax.get_legend():
        ax.get_legend().remove()
    errors = 100 * (1 - model.score(X_test, y_test))
    ax.set_title(f"{name}\n{errors:.1f} % errors, {kept[name]} numbers")
    ax.label_outer()
plt.show()

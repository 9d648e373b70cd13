"""Exact separation may generalise badly
=====================================

A kernel machine without any slack follows every example, also those that are where they are by
chance. With slack it gives some of them up, and is better on new ones.
"""

# Lecture 003: exact separation of training data that generalises badly; overlap of classes

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import plot_decision

X, y = make_moons(80, noise=0.35, random_state=2)
new, new_y = make_moons(2000, noise=0.35, random_state=3)

# %%
# The same kernel, without slack and with it. The hard margin has every training example right.

figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.0), layout="constrained")
for ax, C in zip(axes, (np.inf, 1.0), strict=True):
    model = SVC(kernel="rbf", gamma=3.0, C=C).fit(X, y)
    plot_decision(model, X, y, ax, support=False, slack=False)
    right, kept = model.score(X, y), model.score(new, new_y)
    name = "hard margin" if np.isinf(C) else f"C = {C:g}"
    ax.set_title(f"{name}: right on {right:.0%},\nof new examples on {kept:.1%}")
    ax.get_legend().remove()
plt.show()

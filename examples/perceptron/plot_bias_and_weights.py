"""The bias moves the line, the weights turn it
============================================

``w`` is perpendicular to the line ``w . x + b = 0``, and ``|b| / ||w||`` is the line's distance
from the origin. Another ``b`` moves it along ``w``; another direction of ``w`` turns it.
"""

# Lecture 002: the bias moves the plane, the weights turn it

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin.plotting import SeparatorsDisplay

X, y = make_blobs(24, centers=[[-1.5, -1], [1.5, 1]], cluster_std=0.7, random_state=2)
w = np.array([1.0, 0.8])


def rotated(degrees):
    turn = np.deg2rad(degrees)
    return np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ w


# %%
# On the left ``b`` changes, on the right ``w``. The arrow is ``w``, from the origin.

biases, angles = [-2.0, -1.0, 0.0, 1.0, 2.0], [-50, -25, 0, 25, 50]
moved = np.tile(w, (5, 1)), np.array(biases), [f"b = {b:g}" for b in biases]
turned = np.array([rotated(a) for a in angles]), np.zeros(5), [f"w by {a}°" for a in angles]
axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)[1]
for ax, (coef, intercept, labels), title in zip(
    axes, (moved, turned), ("b moves the line", "w turns it"), strict=True
):
    SeparatorsDisplay(X, y == 1, coef, intercept, labels).plot(ax)
    for arrow in np.unique(coef, axis=0):
        ax.annotate("", arrow, (0, 0), arrowprops={"arrowstyle": "-|>", "color": "black"})
    ax.set(title=title, aspect="equal")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", edgecolor="none")

# %%
# The distances on the left, from the formula.

for b in biases:
    print(f"b = {b:g}: the line is {abs(b) / np.linalg.norm(w):.3f} from the origin")
plt.show()

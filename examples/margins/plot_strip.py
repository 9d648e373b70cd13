"""The strip around a line, and the distance of a point
====================================================

A line that separates two classes has a strip around it in which there is no example. Its half width
M is the distance to the nearest one: for a point A with the foot B on the line, the distance is
``|w . A + b| / ||w||``, and ``B = A - (w . A + b) / ||w||^2 w``.
"""

# Lecture 000: the strip of width 2M around a decision boundary; point A and its foot B

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, Perceptron
from maxmargin.plotting import plot_separators

X, y = make_blobs(40, centers=[[-1.4, -1], [1.4, 1.2]], cluster_std=0.75, random_state=0)


def draw(ax, model, name):
    """Draw the line of a machine, its strip, and the nearest example with its foot."""
    plot_separators({name: model}, X, y, ax)
    w, b = model.coef_[0], model.intercept_[0]
    unit = w / np.linalg.norm(w)
    distance = (X @ w + b) / np.linalg.norm(w)
    nearest = np.argmin(np.abs(distance))
    M, A = np.abs(distance[nearest]), X[nearest]
    B = A - distance[nearest] * unit
    along = 9 * np.array([-unit[1], unit[0]])
    corners = [B + M * unit + along, B + M * unit - along, B - M * unit - along]
    ax.fill(*np.transpose([*corners, B - M * unit + along]), color="black", alpha=0.1, zorder=0)
    for text, place in (("A", A), ("B", B)):
        ax.plot(*place, "o", color="black", markersize=5, zorder=5)
        ax.annotate(text, place, xytext=(7, 5), textcoords="offset points", weight="bold")
    ax.plot(*np.transpose([A, B]), color="black", linewidth=1.5)
    ax.set(aspect="equal", title=f"2M = {2 * M:.2f}")


# %%
# On the left the strip of a line that a perceptron has found; on the right the widest strip that
# any line has.

figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.4), layout="constrained")
draw(axes[0], Perceptron(tol=None, random_state=3).fit(X, y), "perceptron")
draw(axes[1], SVC(kernel="linear", C=np.inf).fit(X, y), "maximum margin")
plt.show()

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


A = X[np.argmax(X[:, 0])]


def draw(ax, model, name):
    """Draw the line of a machine, its strip, and the point A with its foot B."""
    plot_separators({name: model}, X, y, ax)
    w, b = model.coef_[0], model.intercept_[0]
    length = np.linalg.norm(w)
    M, B = np.abs(X @ w + b).min() / length, A - (w @ A + b) / length**2 * w
    across, along = M * w / length, 9 * np.array([-w[1], w[0]]) / length
    corners = [B + across + along, B + across - along, B - across - along, B - across + along]
    ax.fill(*np.transpose(corners), color="black", alpha=0.12, zorder=0)
    ax.plot(*np.transpose([A, B]), "o-", color="black", linewidth=1.5, markersize=5, zorder=5)
    for text, place, shift in (("A", A, (3, 6)), ("B", B, (-13, 3))):
        ax.annotate(text, place, shift, textcoords="offset points", weight="bold", fontsize=13)
    ax.set(aspect="equal", title=f"2M = {2 * M:.2f}, |AB| = {np.linalg.norm(A - B):.2f}")
    ax.legend(loc="upper left", fontsize="x-small")


# %%
# On the left the strip of a line that a perceptron has found; on the right the widest strip that
# any line has.

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.9), layout="compressed")
draw(axes[0], Perceptron(tol=None, random_state=0).fit(X, y), "perceptron")
draw(axes[1], SVC(kernel="linear", C=np.inf).fit(X, y), "maximum margin")
plt.show()

"""Separable, or not
=================

Two classes are linearly separable when some line has each of them on a side of its own. A linear
programme decides it, and either answer comes with a proof.
"""

# Lecture 000: linearly separable data, and data that are not

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, InseparableError, Perceptron, is_separable
from maxmargin.plotting import plot_decision

apart, y = make_blobs(40, centers=[[-2, -1], [2, 1]], cluster_std=0.9, random_state=1)
mixed, _ = make_blobs(40, centers=[[-1, -0.5], [1, 0.5]], cluster_std=0.9, random_state=1)
print("separable:", bool(is_separable(apart, y)), bool(is_separable(mixed, y)))

# %%
# Where a line exists, the perceptron finds one. Where none does, a point is the proof: it is a mean
# of examples of the one class, with some weights, and of the other. A line that had the classes on
# its two sides would have this point on both. (The drawn line is the best that a perceptron has met
# on its way: the pocket variant.)

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.9), layout="constrained")
plot_decision(Perceptron(tol=None).fit(apart, y), apart, y, axes[0])
pocket = Perceptron(variant="pocket", max_iter=50, random_state=0).fit(mixed, y)
plot_decision(pocket, mixed, y, axes[1])
try:
    SVC(kernel="linear", C=np.inf).fit(mixed, y)
except InseparableError as error:
    for rows, weights in (error.positive, error.negative):
        meeting = weights @ mixed[rows]
        corners = mixed[[*rows, rows[0]]]
        axes[1].plot(*corners.T, ":", color="black", linewidth=1.2)
    axes[1].plot(*meeting, "*", color="black", markersize=15, label="in both convex hulls")
axes[0].set_title("separable")
axes[1].set_title("not separable")
handles, labels = axes[1].get_legend_handles_labels()
axes[1].legend(handles[2:], labels[2:], loc="lower right", fontsize="x-small")
plt.show()

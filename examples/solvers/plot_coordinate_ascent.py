"""Coordinate ascent: a staircase
==============================

Take one variable, go to the best value that it can have while all others stay, take the next. The
path over the contours of the function is a staircase.
"""

# Lecture 000: coordinate ascent on the contours of a function

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC
from maxmargin.plotting import PathDisplay, plot_path
from maxmargin.solvers import coordinate_ascent

# %%
# A function of two variables that goes up along a ridge.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")


def F(a):
    return -(a[0] ** 2) - a[1] ** 2 + 1.3 * a[0] * a[1]


way = coordinate_ascent(F, np.array([-2.0, 1.5]))
plot_path(F, way.points, axes[0], title=f"{len(way.points) - 1} steps")

# %%
# The dual of a machine without a bias is such a function, in a box. (With a bias the sum of
# ``alpha y`` is zero, and no multiplier can move alone: see the pairs of SMO.)

X, y = [[1.0, 0.3], [0.7, 1.0]], [1, 0]
model = SVC(kernel="linear", fit_intercept=False, C=3, solver="coordinate_ascent", trace=True)
PathDisplay.from_estimator(model.fit(X, y), X, y, axes[1])
axes[1].set_title("the dual of two examples")
plt.show()

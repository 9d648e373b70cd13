"""The two ends of C
=================

``C`` is the price of slack. When it goes to zero, slack is free: the street is as wide as you like
and every example is on it. When it goes to infinity, slack is forbidden: the hard margin, if there
is one.
"""

# Lecture 000: C to 0 and C to infinity

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.plotting import StreetsDisplay

X, y = make_blobs(40, centers=[[-1.5, 0], [1.5, 1]], cluster_std=0.7, random_state=31)
machine = SVC(kernel="linear", tol=1e-6)

# %%
# Some streets. At ``C = 0`` itself there would be none: ``w = 0``, which ``SVC`` refuses.

costs = [0.003, 0.03, 0.3, np.inf]
axes = plt.subplots(2, 2, figsize=(6.8, 5.6), layout="compressed")[1]
display = StreetsDisplay.from_estimator(machine, X, y, values=costs, ax=axes)

# %%
# The margin falls with ``C``, down to that of the hard margin, and stays there from the largest
# multiplier on: with ``C`` beyond that, no multiplier is at its bound, and there is no slack.

hard = display.models[-1]
largest = np.abs(hard.dual_coef_).max()
figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
grid = np.logspace(-4, 2, 40)
margins = [machine.set_params(C=C).fit(X, y).margin_ for C in grid]
ax.loglog(grid, margins, color="C0", label="margin 1 / ||w||")
ax.axhline(hard.margin_, color="black", linestyle="--", label="that of the hard margin")
ax.axvline(largest, color="black", linestyle=":", label="largest alpha of the hard margin")
ax.set(xlabel="C", ylabel="margin")
ax.legend(edgecolor="none")
plt.show()

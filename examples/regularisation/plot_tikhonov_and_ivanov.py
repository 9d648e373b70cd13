"""A price or a bound
==================

Tikhonov puts a price on the length of the weights, ``lam ||w||^2``. Ivanov forbids weights longer
than a bound. To every price there is a bound with the same answer; the curve takes one to the
other.
"""

# Lecture 002: Tikhonov's lambda against Ivanov's bound

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LinearSVC
from maxmargin.plotting import RegularisationDisplay

X, y = make_blobs(100, centers=2, cluster_std=2.0, random_state=0)

# %%
# The curve, and two machines that were given a bound instead.

machine = LinearSVC(loss="squared_hinge", tol=1e-6)
lams = np.logspace(-3, 2, 21)
display = RegularisationDisplay.from_estimator(machine, X, y, lams=lams, norm_bounds=[0.25, 0.08])

# %%
# A machine with the price that a bound came to has the same weights.

for (lam, norm), bound in zip(display.bounds, display.asked, strict=True):
    held = LinearSVC(norm_bound=bound, tol=1e-6).fit(X, y)
    paid = LinearSVC(lam=lam, tol=1e-6).fit(X, y)
    apart = np.linalg.norm(held.coef_ - paid.coef_)
    print(f"||w|| <= {bound:g}: ||w|| = {norm:.4f}, lam = {lam:.4g}, weights {apart:.0e} apart")
plt.show()

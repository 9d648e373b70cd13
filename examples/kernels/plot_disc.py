"""A disc, cut off by a plane
==========================

No line separates a disc from what is around it. Lifted to ``(x1^2, x2^2, sqrt(2) x1 x2)`` a plane
does; and nobody has to go there, since the inner product up there is ``(x . z)^2`` down here.
"""

# Lecture 002: Russell and Norvig's disc in the plane; the disc cut by a plane in feature space

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC
from maxmargin.kernels import Polynomial, quadratic_features
from maxmargin.plotting import LiftDisplay

X = np.random.default_rng(0).uniform(-1.5, 1.5, (160, 2))
y = np.where((X**2).sum(axis=1) <= 1, "inside", "outside")

# %%
# The machine knows the kernel only. Its circle comes out as a plane in space.

model = SVC(kernel=Polynomial(degree=2, gamma=1, coef0=0), C=1e4).fit(X, y)
display = LiftDisplay.from_estimator(model, X, y)
weights = " ".join(f"{weight:.2f}" for weight in display.w / -display.b)
print(f"plane: ({weights}) . phi(x) = 1, where x1^2 + x2^2 = 1 is (1 1 0) . phi(x) = 1")

# %%
# The features and the kernel agree on every pair of examples.

phi = quadratic_features(X)
print(f"largest difference: {np.abs(phi @ phi.T - (X @ X.T) ** 2).max():.1e}")
plt.show()

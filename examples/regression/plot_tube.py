"""Support vectors of a tube
=========================

In support vector regression an example on or above the tube has a multiplier ``a > 0``, one on or
below it ``a-hat > 0``, and one inside it neither: the curve is made of the examples at the tube's
edges and outside.
"""

# Lecture 000: the tube, with a above it and a-hat below

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR
from maxmargin.plotting import plot_tube

random = np.random.default_rng(0)
X = np.sort(random.uniform(0, 6, 60))[:, None]
y = np.sin(X[:, 0]) + 0.2 * random.normal(size=60)

# %%
# A wider tube leaves more examples inside, and fewer support vectors.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.6), layout="constrained", sharey=True)
for ax, epsilon in zip(axes, (0.15, 0.4), strict=True):
    model = SVR(kernel="rbf", gamma=0.5, C=5.0, epsilon=epsilon).fit(X, y)
    plot_tube(model, X, y, ax)
    ax.set_title(f"epsilon = {epsilon}: {len(model.support_)} of {len(X)} support vectors")
    a = model.dual_coef_[0]
    print(f"sum of a {a[a > 0].sum():.6f}, of a-hat {-a[a < 0].sum():.6f}: they are equal")
plt.show()

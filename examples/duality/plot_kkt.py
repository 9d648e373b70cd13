"""A constraint that holds, and one that is idle
=============================================

Where is ``f`` highest subject to ``g >= 0``? Either at its own summit, and the constraint might as
well not be there; or on the border ``g = 0``, and there the gradients of ``f`` and ``g`` are
opposite. In both cases ``lam g = 0``: one of the two factors is zero.
"""

# Lecture 001: a constraint active and inactive (KKT)

import matplotlib.pyplot as plt

from maxmargin import SVC
from maxmargin.plotting import plot_constraint


def f(x1, x2):
    return 4 - (x1 - 0.5) ** 2 - 1.5 * (x2 - 0.4) ** 2


# %%
# The same function twice, with the border in two places.

axes = plt.subplots(1, 2, figsize=(7.6, 4.1), layout="compressed")[1]
plot_constraint(f, lambda x1, x2: 1.8 - x1 - x2, axes[0])
plot_constraint(f, lambda x1, x2: -0.3 - x1 - x2, axes[1])

# %%
# A machine has such a constraint for every example, ``y f(x) >= 1``. The examples whose constraint
# is active are the support vectors; all others have ``alpha = 0`` and might as well not be there.

X, y = [[0.0], [1.0], [3.0], [4.0], [6.0]], [0, 0, 1, 1, 1]
model = SVC(kernel="linear", C=1e6).fit(X, y)
alpha = [0.0] * len(X)
for row, value in zip(model.support_, abs(model.dual_coef_[0]), strict=True):
    alpha[row] = value
for x, value, left in zip(X, alpha, abs(model.decision_function(X)) - 1, strict=True):
    print(f"x = {x[0]:g}: alpha = {value:.3f}, y f(x) - 1 = {round(left, 3) + 0:.3f}")
plt.show()

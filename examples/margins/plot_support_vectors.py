"""The widest street stands on its support vectors
===============================================

The hard margin is a quadratic programme for ``w`` and ``b``; its solution is a line with a street.
The multipliers of its constraints say which examples hold the street where it is: only those on its
edges. Without all the others it is the same.
"""

# Lecture 000: the maximum-margin line, without support vectors; that line, with support vectors
# Lecture 003: the widest street, with the examples on its edges
# Lecture 004: the maximum-margin hyperplane

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.plotting import plot_separators, plot_street

X, y = make_blobs(40, centers=[[-1.4, -1], [1.4, 1.2]], cluster_std=0.75, random_state=0)
model = SVC(kernel="linear", C=np.inf).fit(X, y)

# %%
# On the left what the primal problem says, on the right what the dual adds: its multipliers.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.2), layout="compressed")
plot_separators({"maximum margin": model}, X, y, axes[0])
axes[0].set(aspect="equal", title="a line, from w and b")
axes[0].get_legend().remove()  # the classes are named on the right
plot_street(model, X, y, axes[1])
axes[1].set_title(f"its street, held by {len(model.support_)} of {len(X)} examples")
print("multipliers:", np.abs(model.dual_coef_).round(3), "width:", round(2 * model.margin_, 4))

# %%
# The support vectors alone make the same machine.

alone = SVC(kernel="linear", C=np.inf).fit(X[model.support_], y[model.support_])
print("with the support vectors only:", alone.coef_.round(6), alone.intercept_.round(6))
print("with all the examples:        ", model.coef_.round(6), model.intercept_.round(6))
plt.show()

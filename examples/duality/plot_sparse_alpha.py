"""Most multipliers are zero
=========================

With a penalty lambda and no bias the multipliers carry the sign of their class and are at most
``1 / (2 N lambda)`` in size. They are zero wherever the margin is above one, so a machine keeps a
few of its examples only.
"""

# Lecture 003: the dual parameters alpha are sparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import plot_street

X, y = make_moons(80, noise=0.2, random_state=0)
lam = 0.005
model = SVC(kernel="rbf", gamma=1.0, lam=lam, fit_intercept=False).fit(X, y)
alpha = np.zeros(len(X))
alpha[model.support_] = model.dual_coef_[0]
print(f"{np.sum(alpha != 0)} of {len(X)} multipliers are not zero, none above {alpha.max():.3f}")

# %%
# Above the examples, below their multipliers against the margin. Those on the edge of the street,
# at one, have any value up to the bound; those in the street are at the bound.

figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 7.2), layout="constrained")
plot_street(model, X, y, above, segments=False)
above.set_title(f"{len(model.support_)} of {len(X)} examples have a multiplier")
margin = np.where(y == 1, 1, -1) * model.decision_function(X)
bound = 1 / (2 * len(X) * lam)
for label, colour, marker in ((0, "#0072b2", "o"), (1, "#e69f00", "s")):
    own = y == label
    below.vlines(margin[own], 0, alpha[own], color=colour, linewidth=1)
    below.plot(margin[own], alpha[own], marker, color=colour, markersize=5, label=f"class {label}")
for height in (-bound, bound):
    below.axhline(height, color="black", linestyle="--", linewidth=1)
below.axvline(1, color="black", linewidth=1, linestyle=":")
below.set(xlabel="margin y f(x)", ylabel=r"$\alpha$", ylim=(-1.15 * bound, 1.15 * bound))
below.text(1.05, 0.95 * bound, r"at most $1/(2N\lambda)$", va="top")
below.legend(loc="lower right")
plt.show()

"""How far on the right side
=========================

The margins ``y f(x)`` of all examples say more than the errors: below zero an example is wrong,
below one it is inside the street. A larger C pushes training examples out of the street; those that
the machine has not seen follow up to a point.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import plot_margins

X, y = make_moons(600, noise=0.3, random_state=0)
new = {"new": (X[200:], y[200:])}
X, y = X[:200], y[:200]

# %%
# Cumulative, the height at zero is the share of errors.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.2), layout="constrained", sharey=True)
for ax, C in zip(axes, (0.1, 100.0), strict=True):
    model = SVC(C=C, gamma=2.0).fit(X, y)
    plot_margins(model, X, y, ax, others=new, cumulative=True)
    wrong = 1 - model.score(*new["new"])
    ax.set_title(f"C = {C:g}: {wrong:.1%} of new ones wrong")
plt.show()

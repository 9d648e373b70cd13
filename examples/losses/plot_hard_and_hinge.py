"""From an infinite loss to the hinge
==================================

The hard margin forbids margins below one: as a loss, they cost infinitely much. The hinge asks a
price that grows with the distance instead, and is zero in the same places.
"""

# Lecture 003: the loss that is 0 or infinite, beside the hinge; a penalty growing with distance

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator

from maxmargin.losses import Hinge, ZeroOne
from maxmargin.plotting import LossDisplay

figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.3), layout="constrained", sharey=True)

# %%
# Below the margin 1 the loss of the hard margin is above every picture.

axes[0].plot([1, 2.5], [0, 0], color="#0072b2", linewidth=3)
axes[0].plot([-2.5, 1], [3.2, 3.2], color="#0072b2", linewidth=3)
axes[0].plot([1, 1], [0, 3.2], color="#0072b2", linewidth=1, linestyle=":")
axes[0].set(xlabel="margin y f(x)", ylabel="loss", xlim=(-2.5, 2.5), title="Hard margin")
axes[0].yaxis.set_major_locator(FixedLocator([0, 1, 2, 3.2]))
axes[0].set_yticklabels(["0", "1", "2", r"$\infty$"])

# %%
# The hinge ``max(0, 1 - y f(x))`` is above the count of errors, and zero for no more margins than
# the hard margin allows: an example that is just right still pays a little.

losses = {"hinge": Hinge(), "zero-one": ZeroOne()}
LossDisplay.from_losses(losses, ax=axes[1])
axes[1].set(title="Soft margin", ylim=(-0.1, 3.4))
for ax in axes:
    ax.axvspan(1, 2.5, color="#0072b2", alpha=0.08)
    ax.text(1.75, 1.6, "outside\nthe street", ha="center", fontsize="small")
plt.show()

"""A tube instead of a parabola
============================

Least squares charges every residual, and a large one very much. The epsilon-insensitive loss
charges nothing up to epsilon, and then in proportion: residuals inside the tube cost nothing, so
that their examples play no part.
"""

# Lecture 000: quadratic error beside the epsilon-insensitive error

import matplotlib.pyplot as plt

from maxmargin.losses import EpsilonInsensitive, Squared
from maxmargin.plotting import LossDisplay

# %%
# Both over the residual, for epsilon = 0.5.

losses = {"quadratic": Squared(), "epsilon-insensitive": EpsilonInsensitive(0.5)}
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
LossDisplay.from_losses(losses, ax=ax, interval=(-2, 2))
ax.axvspan(-0.5, 0.5, color="black", alpha=0.08)
ax.text(0, 0.9, "no cost", ha="center", fontsize="small")
plt.show()

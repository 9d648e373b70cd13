"""The wider the margin, the fewer the mistakes
============================================

If some line keeps every example at a distance of at least gamma, and no example is longer than one,
a perceptron without a bias makes at most ``1 / gamma^2`` mistakes: in any order, and with any
number of examples.
"""

# Lecture 004: the margin gamma of the perceptron; at most 1 / gamma^2 mistakes

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import Perceptron
from maxmargin.plotting import plot_separators


def examples(gamma, n=150, seed=0):
    """Points in the disc of radius one, those nearer than gamma to a line through 0 left out."""
    points = np.random.default_rng(seed).uniform(-1, 1, (40 * n, 2))
    w = np.array([0.6, 0.8])
    inside = (np.hypot(*points.T) <= 1) & (np.abs(points @ w) >= gamma)
    points = points[inside][:n]
    return points, np.sign(points @ w).astype(int), w


# %%
# The examples leave a strip of half width gamma free. The perceptron stops somewhere in it.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
gamma = 0.25
X, y, w = examples(gamma)
model = Perceptron(fit_intercept=False, tol=None)
plot_separators({"where it stopped": model.fit(X, y)}, X, y, left)
for edge in (-gamma, gamma):
    left.axline(edge * w, slope=-w[0] / w[1], color="black", linestyle="--", linewidth=1)
left.annotate("", gamma * w, (0, 0), arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
left.text(0.12, 0.02, r"$\gamma$", fontsize=16)
left.get_legend().remove()
left.set(aspect="equal", title=f"blue: where it stopped, after {model.n_updates_} mistakes")

# %%
# Mistakes of twenty orders for each gamma: the bound is safe, and here far from what happens.

gammas = np.array([0.02, 0.04, 0.08, 0.16, 0.32])
for gamma in gammas:
    X, y, _ = examples(gamma)
    made = [model.set_params(random_state=k).fit(X, y).n_updates_ for k in range(20)]
    right.plot(np.full(20, gamma), made, "o", color="#0072b2", alpha=0.4, markersize=5)
right.plot([], [], "o", color="#0072b2", label="mistakes, in 20 orders")
right.plot(gammas, 1 / gammas**2, "-", color="black", label=r"the bound $1/\gamma^2$")
right.set(xscale="log", yscale="log", xlabel=r"margin $\gamma$", ylabel="mistakes")
right.set_xticks(gammas, gammas)
right.minorticks_off()
right.legend()
plt.show()

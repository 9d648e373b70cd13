"""A large margin is a reserve
===========================

Suppose that examples are not quite where they were measured. As long as each is off by less than
the margin, no example changes its side. A line with a small margin has hardly any such reserve.
"""

# Lecture 002: large against small margin

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, Perceptron
from maxmargin.plotting import plot_separators

X, y = make_blobs(40, centers=[[-1.6, -1.2], [1.6, 1.2]], cluster_std=0.75, random_state=29)
models = {
    "small margin": Perceptron(order="cyclic", tol=None).fit(X, y),
    "large margin": SVC(kernel="linear", C=np.inf).fit(X, y),
}

# %%
# The discs have the margin as their radius. No disc crosses its line.

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="compressed", sharey=True)
margins = {}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    margins[name] = np.min(np.abs(model.decision_function(X))) / np.linalg.norm(model.coef_)
    plot_separators({name: model}, X, y, ax)
    for centre in X:
        ax.add_patch(plt.Circle(centre, margins[name], color="gray", alpha=0.25, linewidth=0))
    ax.set_title(f"{name}: {margins[name]:.2f}")
    ax.set_aspect("equal")
    ax.get_legend().remove()

# %%
# Now the examples move, each by the same length in a direction of its own, two hundred times.

random = np.random.default_rng(0)
angle = random.uniform(0, 2 * np.pi, (200, len(X)))
directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
lengths = np.linspace(0, 2, 41)
figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
for (name, model), style in zip(models.items(), ("--", "-"), strict=True):
    wrong = [
        np.mean(model.predict((X + r * directions).reshape(-1, 2)).reshape(200, -1) != y)
        for r in lengths
    ]
    (line,) = ax.plot(lengths, 100 * np.array(wrong), style, label=name)
    ax.axvline(margins[name], color=line.get_color(), linestyle=":", linewidth=1)
ax.set(xlabel="how far every example moves", ylabel="errors in %", title="dotted: the margins")
ax.legend(edgecolor="none")
plt.show()

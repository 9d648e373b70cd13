"""The logistic neuron is a smooth perceptron
==========================================

A perceptron says yes or no: the step H of ``w . x``. A logistic neuron says how sure it is: the
sigmoid l of the same number. As the weights grow the sigmoid nears the step, and the smooth count
of errors nears the true one.
"""

# Lecture 000: the logistic neuron as a smooth perceptron
# Lecture 004: the step H beside the sigmoid l

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import make_blobs

from maxmargin import LogisticRegression, Perceptron

x = np.linspace(-5, 5, 401)
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.plot(x, np.heaviside(x, 1.0), color="black", linewidth=2, label="step H(x)")
for factor, colour in ((1, "#0072b2"), (3, "#e69f00"), (10, "#94a4a2")):
    label = "sigmoid l(x)" if factor == 1 else f"l({factor} x)"
    ax.plot(x, expit(factor * x), color=colour, linewidth=2, label=label)
ax.set(xlabel="x", title="A step, and sigmoids that near it")
ax.legend()

# %%
# The same line, a step on the left and a slope on the right.

X, y = make_blobs(60, centers=[[-1.5, -1], [1.5, 1]], cluster_std=1.0, random_state=2)
grid = np.stack(np.meshgrid(np.linspace(-5, 5, 120), np.linspace(-5, 5, 120)), axis=-1)
places = grid.reshape(-1, 2)
step = Perceptron(variant="averaged", random_state=0).fit(X, y).predict(places)
slope = LogisticRegression(C=1.0).fit(X, y).predict_proba(places)[:, 1]
figure, axes = plt.subplots(1, 2, figsize=(8.8, 4.0), layout="constrained")
for ax, values, title in zip(axes, (step, slope), ("perceptron", "logistic"), strict=True):
    image = ax.pcolormesh(*grid.T, values.reshape(120, 120).T, cmap="cividis", vmin=0, vmax=1)
    for label, marker in ((0, "o"), (1, "s")):
        ax.scatter(*X[y == label].T, s=18, marker=marker, color="white", edgecolors="black")
    ax.set(aspect="equal", title=f"{title}: class 1")
figure.colorbar(image, ax=axes, label="output")
plt.show()

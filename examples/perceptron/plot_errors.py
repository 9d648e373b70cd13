"""Errors do not simply fall
=========================

An update of the perceptron mends the example that caused it, or at least moves towards it, and may
spoil any number of others. The errors go up and down; what grows steadily is the agreement with a
separating line, and it is this that brings the way to its end.
"""

# Lecture 002: the decrease in error is not monotonic

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, Perceptron
from maxmargin.plotting import plot_perceptron

X, y = make_blobs(50, centers=[[-0.4, 1.2], [1.6, 2.2]], cluster_std=0.5, random_state=0)
model = Perceptron(order="shuffled", tol=None, random_state=0)
best = SVC(kernel="linear", C=np.inf).fit(X, y)
w_star = np.append(best.coef_[0], best.intercept_)

# %%
# ``steps`` goes through the updates. ``w`` has the bias as one more weight.

errors, w = [], []
for step in model.steps(X, y):
    values = X @ step.coef.ravel() + step.intercept
    errors.append(np.sum(np.where(y == 1, 1, -1) * values <= 0))
    w.append(np.append(step.coef, step.intercept))

# %%
# The projection of ``w`` on a separating ``w*`` grows with every update by no less than a fixed
# amount; the length of ``w``, in the long run, like the root of the number of updates only. The
# first cannot pass the second, so that the updates come to an end.

projection = np.array(w) @ w_star / np.linalg.norm(w_star)
axes = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")[1]
axes[0].step(range(1, len(errors)), errors[1:], where="post")
axes[0].set(xlabel="updates", title="examples wrong: up and down")
axes[1].plot(projection, "--", label="projection of w on w*")
axes[1].plot(np.linalg.norm(w, axis=1), label="length of w")
axes[1].set(xlabel="updates", title="w: steadily up")
axes[1].legend(edgecolor="none")
plot_perceptron(model, X, y)
print(f"examples wrong after each update: {' '.join(map(str, errors))}")
plt.show()

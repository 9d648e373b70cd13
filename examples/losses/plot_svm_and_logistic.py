"""Two ways to pay for a mistake
=============================

A machine with the hinge loss and logistic regression minimise the same thing up to one function:
the sum of the losses plus ``lam ||w||^2``. The hinge is exactly zero beyond the street, so that
most examples do not count in the end. The logistic loss is never zero: every example does.
"""

# Lecture 001: the losses of an SVM and of logistic regression, with the misclassification error

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LinearSVC, LogisticRegression, losses
from maxmargin.plotting import LossDisplay, plot_separators

# %%
# Divided by ``ln 2``, the logistic loss goes through the same point, 1 at the margin 0.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained")
margin = np.linspace(-2, 2.5, 901)
drawn = {
    "zero-one": losses.ZeroOne(),
    "hinge": losses.Hinge(),
    "logistic / ln 2": losses.Logistic(),
}
curves = {name: loss.value(margin) for name, loss in drawn.items()}
curves["logistic / ln 2"] /= np.log(2)
LossDisplay(margin, curves).plot(left)

# %%
# On the same data with the same ``lam`` the lines are much alike.

X, y = make_blobs(80, centers=[[-1, 0], [1.2, 0.8]], cluster_std=0.9, random_state=2)
models = {
    "hinge": LinearSVC(loss="hinge", lam=0.01).fit(X, y),
    "logistic": LogisticRegression(lam=0.01).fit(X, y),
}
plot_separators(models, X, y, right)
right.set_title("the same data, the same lam")

# %%
# Of the hinge's slopes most are zero; those of the logistic loss never are.

for name, loss in (("hinge", losses.Hinge()), ("logistic", losses.Logistic())):
    slope = loss.slope((2 * y - 1) * models[name].decision_function(X))
    print(f"{name}: {np.sum(np.abs(slope) > 1e-12)} of {len(X)} examples pull at the line")
plt.show()

"""Prone to outliers, but faster
=============================

Logistic regression is pulled by every example on the wrong side, however far; minimum
classification error (MCE) gives such examples up. A few outliers therefore spoil the first and not
the second. In return the first has a convex problem with large gradients, and gets there sooner.
"""

# Lecture 004: logistic regression is prone to outliers but faster than MCE

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import LogisticRegression, MCEClassifier

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")

# %%
# Outliers: some examples are thrown far to the wrong side, and both machines are tried on clean
# ones.

random = np.random.default_rng(0)
X, test = random.normal(size=(200, 2)), random.normal(size=(2000, 2))
counts = [0, 1, 2, 4, 8, 16]
for name, machine, style in (
    ("logistic regression", LogisticRegression(), "o-"),
    ("MCE", MCEClassifier(random_state=0, n_restarts=5), "s--"),
):
    errors = []
    for count in counts:
        Z = X.copy()
        Z[:count, 0] *= -30
        errors.append(1 - machine.fit(Z, X[:, 0] > 0).score(test, test[:, 0] > 0))
    left.plot(counts, 100 * np.array(errors), style, label=name)
left.set(xlabel="outliers among 200 examples", ylabel="errors on clean examples in %")
left.legend(edgecolor="none")

# %%
# Speed: gradient descent as the lecture writes it, from zero, with the same steps.

X, y = load_breast_cancer(return_X_y=True)
X, steps = scale(X), [1, 2, 5, 10, 20, 50, 100, 200]
given = {"solver": "gradient_descent", "step_size": 0.001}
for name, machine, style in (
    ("logistic regression", LogisticRegression(penalty=None, **given), "o-"),
    ("MCE", MCEClassifier(init="zero", n_restarts=0, **given), "s--"),
):
    errors = []
    for count in steps:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few steps do not converge
            errors.append((machine.set_params(max_iter=count).fit(X, y).predict(X) != y).sum())
    right.semilogx(steps, errors, style, label=name)
right.set(xlabel="steps of gradient descent", ylabel=f"examples wrong, of {len(X)}")
right.legend(edgecolor="none")
plt.show()

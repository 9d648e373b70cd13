"""The training error falls below its bound
========================================

AdaBoost's training error is at most the product of the normalisers, which falls exponentially as
long as the weak learner beats chance. The test error goes on falling after the training error has
reached zero.
"""

# Lecture 000: training error and its bounds; a run of AdaBoost to many rounds

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits

from maxmargin import AdaBoostClassifier, DecisionTreeClassifier
from maxmargin.plotting import plot_rounds

X, digit = load_digits(return_X_y=True)
data = {
    "breast cancer, stumps": (*load_breast_cancer(return_X_y=True), None),
    "odd digits, trees of depth 3": (X, digit % 2, DecisionTreeClassifier(max_depth=3)),
}

# %%
# Three bounds, each larger than the one before: the mean exponential loss, that of the theorem, and
# the one with the least edge gamma, which is the coarsest by far.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
for ax, (name, (X, y, weak)) in zip(axes, data.items(), strict=True):
    half = len(X) // 2
    model = AdaBoostClassifier(weak, n_estimators=300).fit(X[:half], y[:half])
    plot_rounds(model, ax, others={"test": (X[half:], y[half:])})
    ax.set_title(name)
    first = int((model.train_errors_ == 0).argmax()) + 1
    score = list(model.staged_score(X[half:], y[half:]))
    print(f"{name}: no training error from round {first} on,", end=" ")
    print(f"test error {1 - score[first - 1]:.3f} then and {1 - score[-1]:.3f} after 300")
plt.show()

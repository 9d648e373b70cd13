"""Margins go on growing
=====================

After a few rounds there is no training error left, and yet more rounds change the vote: they raise
the margins of the points that have the least. LPBoost has the largest least margin that there is,
and proves it.
"""

# Lecture 000: margins by rounds

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits

from maxmargin import AdaBoostClassifier, DecisionTreeClassifier, LPBoostClassifier
from maxmargin.plotting import plot_margins

X, y = load_breast_cancer(return_X_y=True)
stumps = AdaBoostClassifier(n_estimators=1000).fit(X[::2], y[::2])
X_digits, digit = load_digits(return_X_y=True)
tree = DecisionTreeClassifier(max_depth=4)
trees = AdaBoostClassifier(tree, n_estimators=1000).fit(X_digits[::3], digit[::3])

# %%
# Each curve is the share of training points with at most that margin. With ten classes it is the
# votes for the point's class less the most that another has.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.0), layout="constrained")
plot_margins(stumps, X[::2], y[::2], axes[0], rounds=[5, 100, 1000], cumulative=True)
plot_margins(trees, X_digits[::3], digit[::3], axes[1], rounds=[5, 100, 1000], cumulative=True)
axes[0].set_title("stumps, breast cancer")
axes[1].set_title("trees of depth 4, ten digits")
for name, model, rows, labels in (
    ("stumps", stumps, X[1::2], y[1::2]),
    ("trees", trees, X_digits[1::3], digit[1::3]),
):
    errors = [1 - score for score in model.staged_score(rows, labels)]
    said = ", ".join(f"{errors[t - 1]:.3f} after {t}" for t in (5, 100, 1000))
    print(f"{name}: training error {model.train_errors_[99]}, test error {said} rounds")

# %%
# The largest least margin, by a linear programme, with a proof that there is no larger one.

best = LPBoostClassifier(nu=0.0).fit(X[::2], y[::2])
axes[0].axvline(best.soft_margin_, linestyle="--", color="#882255")
axes[0].text(best.soft_margin_ - 0.02, 0.8, "LPBoost's least", color="#882255", ha="right")
print(best.certificate_)
plt.show()

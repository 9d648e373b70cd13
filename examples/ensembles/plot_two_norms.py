"""AdaBoost, LPBoost and the support vector machine
================================================

All three weigh one dictionary, here all stumps on the digits 3 and 8, and look for large margins.
They measure the weights differently: LPBoost by their sum (l1), the machine by their length (l2).
Each has the largest least margin in its own norm; AdaBoost comes near to LPBoost's.
"""

# Lecture 000: boosting and machines of the largest margin, side by side

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import AdaBoostClassifier, LinearSVC, LPBoostClassifier
from maxmargin.ensemble import stump_dictionary

X, digit = load_digits(return_X_y=True)
pair = (digit == 3) | (digit == 8)
X, y = X[pair], np.where(digit[pair] == 8, 1, -1)
H, tests = stump_dictionary(X)
place = {test: k for k, test in enumerate(tests)}


def in_dictionary(model):
    """Return the weights of a vote of stumps as those of the dictionary's columns."""
    a = np.zeros(len(tests))
    for stump, alpha in zip(model.estimators_, model.estimator_weights_, strict=True):
        column = place[(stump.feature_, stump.threshold_) if stump.feature_ >= 0 else tests[0]]
        a[column] += alpha * stump.labels_[1]
    return a


# %%
# LPBoost is sparse: a vertex of a linear programme. The machine uses every stump a little.

machine = LinearSVC(C=np.inf, fit_intercept=False, tol=1e-6, max_iter=-1).fit(H, y)
weights = {
    "AdaBoost": in_dictionary(AdaBoostClassifier(n_estimators=1000).fit(X, y)),
    "LPBoost": in_dictionary(LPBoostClassifier(nu=0.0).fit(X, y)),
    "SVM": machine.coef_[0],
}
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
for order, ax in zip((1, 2), axes, strict=True):
    for (name, a), colour in zip(weights.items(), ("#009e73", "#882255", "#56b4e9"), strict=True):
        margins = y * (H @ a) / np.linalg.norm(a, order)
        used = int((np.abs(a) > 1e-9).sum())
        label = f"{name}: least {margins.min():.3f}, {used} stumps"
        ax.ecdf(margins, color=colour, label=label, linewidth=2)
    ax.set(xlabel=f"margin, weights of l{order} norm one", ylabel="share of points up to it")
    ax.legend(fontsize="small", frameon=False, loc="lower right")
plt.show()

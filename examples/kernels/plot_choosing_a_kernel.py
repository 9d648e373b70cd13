"""Which kernel?
=============

A kernel is a parameter like any other: a search takes kernels in its grid, beside ``C``, and scores
each by cross-validation. What is built from kernels by sums and products is a candidate, too.
"""

# Lecture 002: how to choose the kernel and lambda

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC, GridSearchCV
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.plotting import plot_decision, plot_search

# %%
# A wave along a slope: neither straight nor round.

random = np.random.default_rng(1)
X = random.uniform(-3, 3, (220, 2))
y = (X[:, 1] + 0.4 * random.normal(size=220) > 0.7 * X[:, 0] + np.sin(2 * X[:, 0])).astype(int)
kernels = [
    Linear(),
    Polynomial(degree=2, gamma=1.0, coef0=1.0),
    Polynomial(degree=3, gamma=1.0, coef0=1.0),
    RBF(gamma=10.0),
    RBF(gamma=1.0),
    Linear() + RBF(gamma=1.0).on([0]),
]
search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "kernel": kernels}, cv=5).fit(X, y)

# %%
# The best one is a straight line plus a bend along the first feature, which is how the data were
# made. A guess at the structure is worth more than a search over a number.

axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained", width_ratios=[1.35, 1])[1]
plot_search(search, axes[0])
axes[0].set_title("mean score of five folds")
plot_decision(search.best_estimator_, X, y, axes[1], support=False, slack=False)
axes[1].set_title(f"the best: {100 * search.best_score_:.1f} %")
axes[1].get_legend().remove()
print(search.best_params_)
plt.show()

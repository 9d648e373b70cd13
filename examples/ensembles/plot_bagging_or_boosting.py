"""Bagging or boosting
===================

A dot for each data set: the test error of one learner against that of another. Of stumps boosting
makes more than bagging does, since their error is bias; of trees both take most of the variance.
"""

# Lecture 000: empirical evaluation of boosting; bagging against boosting

import matplotlib.pyplot as plt
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)

from maxmargin import AdaBoostClassifier, BaggingClassifier, DecisionTreeClassifier
from maxmargin.plotting import plot_error_pairs

data = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "moons": make_moons(600, noise=0.3, random_state=0),
    "circles": make_circles(600, noise=0.2, factor=0.5, random_state=0),
    "clusters": make_classification(600, 10, n_informative=5, random_state=0),
}


def error(model, X, y):
    """Error on every other row."""
    return 1.0 - model.fit(X[::2], y[::2]).score(X[1::2], y[1::2])


# %%
# Thirty members each. Boosted trees have depth 4: one without errors would end it in round one.

figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.6), layout="compressed")
for ax, name, depth, weak in ((axes[0], "stumps", 1, 1), (axes[1], "trees", None, 4)):
    bagged = BaggingClassifier(DecisionTreeClassifier(max_depth=depth), 30, random_state=0)
    tree = DecisionTreeClassifier(max_depth=weak, random_state=0)
    boosted = AdaBoostClassifier(tree, n_estimators=30, random_state=0)
    pairs = {d: (error(bagged, X, y), error(boosted, X, y)) for d, (X, y) in data.items()}
    plot_error_pairs(pairs, f"bagged {name}", f"boosted {name}", ax)
plt.show()

"""The regions of a vote, by rounds
================================

Stumps part the plane by lines along the axes. A vote of a few is a staircase, one of many follows
the crescents; with trees of depth two, which can say "and", it needs fewer rounds.
"""

# Lecture 000: weak hypotheses, combined

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import AdaBoostClassifier, DecisionTreeClassifier
from maxmargin.plotting import plot_decision

X, y = make_moons(200, noise=0.2, random_state=0)

# %%
# ``warm_start`` goes on from the rounds that were made: the answer is that of one fit.

axes = plt.subplots(2, 3, figsize=(9.6, 6.0), layout="constrained", sharex=True, sharey=True)[1]
for row, (name, weak) in zip(
    axes,
    {"stumps": None, "trees of depth 2": DecisionTreeClassifier(max_depth=2)}.items(),
    strict=True,
):
    model = AdaBoostClassifier(weak, warm_start=True)
    for ax, rounds in zip(row, (1, 8, 100), strict=True):
        model.set_params(n_estimators=rounds).fit(X, y)
        plot_decision(model, X, y, ax, grid_resolution=150)
        ax.set_title(f"{rounds} {name}: {model.train_errors_[-1]:.1%} wrong")
        ax.get_legend().remove()
    print(f"{name}: least margin {model.minimum_margin_:.3f}, {model.status_}")
plt.show()

"""AdaBoost on ten points, round by round
======================================

The lecture's toy example: three stumps, each trained on the mistakes of those before. Points are as
large as their weights; a cross marks the mistakes of the round. The vote of the three is right on
all points.
"""

# Lecture 000: toy example, first to third step and final hypothesis

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import AdaBoostClassifier
from maxmargin.plotting import BoostingDisplay

plus, minus = [(1, 4), (2, 2), (5, 10), (7, 8), (8, 7)], [(3, 6), (4, 5), (6, 3), (9, 9), (10, 1)]
X = np.array(plus + minus, dtype=float)
y = np.array(["+"] * 5 + ["-"] * 5)
model = AdaBoostClassifier(n_estimators=3).fit(X, y)

# %%
# Errors of 3/10, 3/14 and 3/22 give the weights 0.42, 0.65 and 0.92 in the vote. Three stumps are
# equally good in the first round: the first column, and there the lowest threshold, is taken.

for stump, error, alpha in zip(
    model.estimators_, model.estimator_errors_, model.estimator_weights_, strict=True
):
    print(f"{stump.rule:24} error {error:.4f}, alpha {alpha:.4f}")
print(f"product of Z {model.bounds().product[-1]:.4f}, training error {model.train_errors_[-1]}")

# %%
# ``animate(display)`` makes a film of the same states.

axes = plt.subplots(2, 2, figsize=(6.8, 6.4), layout="constrained", sharex=True, sharey=True)[1]
for state, ax in enumerate(axes.flat):
    BoostingDisplay.from_estimator(model, X, y, ax, state=state)
plt.show()

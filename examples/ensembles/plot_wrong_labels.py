"""Wrong labels
============

A tenth of the training labels is wrong. AdaBoost makes whatever it misclassifies heavier, without a
limit, so that wrong labels cost it more with every round. The slope of the logistic loss is at most
one: LogitBoost, by short steps, does better.
"""

# Lecture 000: boosting and wrong labels

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_gaussian_quantiles

from maxmargin import AdaBoostClassifier, LogitBoostClassifier
from maxmargin.plotting import plot_row_weights

X, clean = make_gaussian_quantiles(n_samples=3000, n_features=5, n_classes=2, random_state=0)
wrong = np.random.default_rng(0).random(600) < 0.1
y = np.where(wrong, 1 - clean[:600], clean[:600])
models = {
    "AdaBoost": AdaBoostClassifier(n_estimators=400).fit(X[:600], y),
    "LogitBoost": LogitBoostClassifier(n_estimators=400).fit(X[:600], y),
}

# %%
# On the left, how heavy single rows are in the end. On the right, errors on clean test points.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
plot_row_weights(models, wrong, axes[0])
for colour, (name, model) in zip(("#009e73", "#882255"), models.items(), strict=True):
    errors = 1 - np.array(list(model.staged_score(X[600:], clean[600:])))
    axes[1].plot(np.arange(1, len(errors) + 1), errors, color=colour, label=name)
    heaviest = 600 * model.D_[-1].max()
    print(
        f"{name}: test error {errors[-1]:.3f}, the heaviest row weighs {heaviest:.1f} of the mean"
    )
axes[1].set(
    xscale="log", xlabel="rounds", ylabel="test error", title="10 % of the labels are wrong"
)
axes[1].legend(frameon=False)
plt.show()

"""Bias and variance over x
========================

Each learner is fitted to bootstrap replicates, and predicts the points that these leave out. Where
the mean of the predictions is off the data there is bias; where the band is wide there is variance.
A line is stable and wrong, a tree is right in the mean and restless, and bagging calms it.
"""

# Lecture 000: bias and variance, measured

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import BaggingRegressor, DecisionTreeRegressor, LinearRegression, bias_variance
from maxmargin.plotting import plot_bias_variance

random = np.random.default_rng(0)
x = np.sort(random.uniform(0, 6, 100))[:, None]
y = np.sin(x[:, 0]) + 0.3 * random.normal(size=100)

# %%
# The noise of y, a variance of 0.09, is in every bias: it can be estimated from neighbours.

learners = {
    "line": LinearRegression(),
    "tree": DecisionTreeRegressor(),
    "25 bagged trees": BaggingRegressor(DecisionTreeRegressor(), 25, random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.4), layout="constrained", sharey=True)
for ax, (name, learner) in zip(axes, learners.items(), strict=True):
    found = bias_variance(learner, x, y, 60, random_state=0, noise="neighbors")
    plot_bias_variance(found, x, ax)
    total = found.totals
    ax.set_title(
        f"{name}: bias$^2$ less noise {total['squared_bias_less_noise'].value:.2f},\n"
        f"variance {total['variance'].value:.2f}"
    )
    print(found, "\n")

# %%
# By this estimate alone, bagging has no variance at all: the mean of these replicates is one number
# for each point. On new data it would be another.

found = bias_variance(DecisionTreeRegressor(), x, y, 60, random_state=0)
print(found.bagged())
plt.show()

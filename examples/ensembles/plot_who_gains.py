"""Which learners gain by bagging
==============================

Bagging takes variance away, so an unpruned tree and the nearest neighbour gain by it, while a stump
keeps its bias, and a machine that hardly varies keeps all it has.
"""

# Lecture 000: learners that gain by bagging

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, BaggingRegressor, DecisionTreeRegressor, Ridge, bias_variance
from maxmargin.plotting import plot_learners

X, y = load_diabetes(return_X_y=True)
X, y = StandardScaler().fit_transform(X), y / y.std()

# %%
# Each learner alone, and ten of it, bagged within each replicate.

learners = {
    "tree": DecisionTreeRegressor(),
    "1-NN": KNeighborsRegressor(1),
    "stump": DecisionTreeRegressor(max_depth=1),
    "ridge": Ridge(),
    "SVR": SVR(),
}
found = {}
for name, learner in learners.items():
    found[name] = bias_variance(learner, X, y, 30, random_state=0)
    bagged = BaggingRegressor(learner, 10, random_state=0)
    found[f"{name}, bagged"] = bias_variance(bagged, X, y, 15, random_state=0)
    print(found[name], found[f"{name}, bagged"], sep="\n", end="\n\n")

figure, ax = plt.subplots(figsize=(8.4, 4.6), layout="constrained")
plot_learners(found, ax)
ax.set_title("diabetes: bias and variance, alone and bagged")
plt.show()

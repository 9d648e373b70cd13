"""A walk in the space of weights
==============================

Every update of a perceptron adds an example to the weights, or takes one away. Seen from above,
over the share of examples that each ``w`` has wrong, it is a walk into the cone of weights that
separate.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from maxmargin import Perceptron
from maxmargin.plotting import WeightPathDisplay

X, y = make_blobs(60, centers=[[-0.6, 0.42], [0.6, -0.42]], cluster_std=0.4, random_state=10)

# %%
# Without an intercept there are two weights, and the picture is all there is. Directions count, not
# lengths: the regions are cones.

model = Perceptron(fit_intercept=False, tol=None)
display = WeightPathDisplay.from_estimator(model, X, y)
print(f"{len(display) - 1} updates")
plt.show()

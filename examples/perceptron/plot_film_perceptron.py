"""A film of the perceptron
========================

The line after each mistake: the ringed example was on the wrong side, and ``w`` goes towards it or
away from it. An example that has been used once is bold.
"""

# Lecture 000: perceptron learning on separable data

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from maxmargin import Perceptron
from maxmargin.plotting import PerceptronDisplay, WeightPathDisplay, animate

X, y = make_blobs(50, centers=[[-0.4, 1.2], [1.6, 2.2]], cluster_std=0.5, random_state=7)
model = Perceptron(order="shuffled", tol=None, random_state=0)
walk = PerceptronDisplay.from_estimator(model, X, y)

# %%
# The line turns with ``w`` and moves with ``b``.

film = animate(walk, max_frames=12, fps=2, hold=2, figsize=(5.3, 4.2))
film.save("perceptron.gif", dpi=60)
print(film)

# %%
# The same way as the weights go it. Inside the line that is drawn there, all examples are right.

WeightPathDisplay.from_estimator(model, X, y)
plt.show()

"""What lambda does to the street
==============================

The mean hinge loss plus ``lambda ||w||^2``: a smaller lambda allows a longer ``w``, and the street
becomes narrower. Support vectors mostly become fewer, though this is no law.
"""

# Lecture 003: panels of lambda, linear kernel; panels of lambda, squared exponential kernel

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import plot_street_path

X, y = make_moons(80, noise=0.25, random_state=0)
lams = [0.3, 0.03, 0.003, 0.0003]

# %%
# A linear kernel: lines.

axes = plt.subplots(2, 2, figsize=(8.4, 6.6), layout="compressed")[1]
plot_street_path(SVC(kernel="linear"), X, y, axes, param="lam", values=lams)
axes[0, 0].figure.suptitle("linear kernel")

# %%
# A squared exponential kernel ``exp(-gamma ||x - z||^2)``: curves, which bend more and more.

axes = plt.subplots(2, 2, figsize=(8.4, 6.6), layout="compressed")[1]
plot_street_path(SVC(kernel="rbf", gamma=1.0), X, y, axes, param="lam", values=lams)
axes[0, 0].figure.suptitle("squared exponential kernel")
plt.show()

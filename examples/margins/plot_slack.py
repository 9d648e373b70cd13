"""How much slack an example has
=============================

``xi = max(0, 1 - y f(x))`` measures how far an example is from where it should be: on its own side
and off the street. It is 0 there, below 1 on its own half of the street, 1 in the middle of it, and
more on the wrong side.
"""

# Lecture 001: slack of 0, below 1, of 1, above 1

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC
from maxmargin.plotting import plot_street

# %%
# Data made for the purpose: they are the same upside down, so that the street stands upright, and
# each class mirrors the other, so that its middle is at 0.

own = [[3, 0.6], [2.4, 2.4], [3.2, 1.9], [0.8, 1.1], [-0.9, 1.9], [0, 0.4]]
right = np.array([[x, s * height] for x, height in own for s in (-1, 1)])
right = np.vstack([[2, 0], right])
left = right * [-1, 1] + [0, 0.3] * np.sign(right[:, 1:])  # a little further out, to be seen
X, y = np.vstack([left, right]), np.repeat(["left", "right"], len(right))
model = SVC(kernel="linear", C=0.5, tol=1e-6).fit(X, y)
ax = plot_street(model, X, y)
ax.set_title(f"the sum of all slack is {model.slack_.sum():.2f}")

# %%
# A segment leads from an example to its own edge of the street: it is ``xi / ||w||`` long.

for slack in np.unique(model.slack_.round(3)):
    at = np.flatnonzero(np.isclose(model.slack_, slack, atol=1e-3) & (y == "right"))
    if len(at) and slack > 0:
        place = X[at].max(axis=0) + np.array([0.2, 0.15])
        paper = {"facecolor": "white", "pad": 1, "alpha": 0.7}
        ax.text(*place, rf"$\xi = {slack:.2f}$", bbox=paper)
plt.show()

"""A soft margin: the street and what it costs
===========================================

Where no line separates the classes, or none should, examples may be in the street or beyond it, at
a price: C times their slack, the distance from their edge of the street in units of its half width.
"""

# Lecture 003: slack variables: outside the street, inside it, on the wrong side
# Lecture 004: soft margin = margin + linear errors

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.plotting import StreetDisplay, plot_street_path

X, y = make_blobs(60, centers=[[-1.2, -0.6], [1.2, 0.8]], cluster_std=1.0, random_state=3)
model = SVC(kernel="linear", C=0.5).fit(X, y)

# %%
# Each segment is the slack of an example. All examples with slack are support vectors, and so are
# those on the edges; the others play no part.

display = StreetDisplay.from_estimator(model, X, y)
print({name: int(rows.sum()) for name, rows in display.groups().items()})
print(f"half the street {model.margin_:.3f}, slack in all {model.slack_.sum():.3f}")

# %%
# A small C makes slack cheap and the street wide, a large one the opposite.

plot_street_path(SVC(kernel="linear"), X, y, param="C", values=[0.01, 0.1, 1.0, 10.0])
plt.show()

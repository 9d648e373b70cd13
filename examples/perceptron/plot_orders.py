"""Which line? The perceptron does not care
========================================

Any line without a mistake ends the perceptron, so where it ends depends on the order in which it
sees the examples. The line with the widest street does not: it is the only one.
"""

# Lecture 000: solutions by the order of the examples are not unique; infinitely many separators
# Lecture 003: candidate lines

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC, Perceptron
from maxmargin.plotting import SeparatorsDisplay

X, y = make_blobs(50, centers=[[-1.5, -1], [1.5, 1.5]], cluster_std=0.75, random_state=0)

# %%
# Six orders of the same examples, six lines. None has a mistake; some pass so close to an example
# that a new one beside it could be on the wrong side.

display = SeparatorsDisplay.from_orders(Perceptron(tol=None), X, y, orders=6)
best = SVC(kernel="linear", C=np.inf).fit(X, y)
for w, b, label in zip(display.coef, display.intercept, display.labels, strict=True):
    nearest = np.min(np.abs(X @ w + b)) / np.linalg.norm(w)
    print(f"{label}: the nearest example is {nearest:.3f} away")
print(f"widest street: {best.margin_:.3f}")

# %%
# The black line is as far from the nearest examples as a line can be.

ax = display.ax_
w, b = best.coef_[0], best.intercept_[0]
ax.axline((0, -b / w[1]), slope=-w[0] / w[1], color="black", linewidth=3, label="widest street")
ax.legend(loc="lower right", fontsize="small")
ax.set_title("Six orders of the examples, and the widest street")
plt.show()

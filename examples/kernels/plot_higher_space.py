"""Separated in a higher space
===========================

Points on a line, one class between two parts of the other: no threshold separates them. With
``h(x) = (x, x^2)`` they lie on a parabola in the plane, and there a line does.
"""

# Lecture 004: a map to a space of higher dimension, where the classes are separable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from maxmargin import SVC
from maxmargin.kernels import Linear
from maxmargin.plotting import plot_street

x = np.array([-2.4, -2.0, -1.7, -0.8, -0.5, 0.1, 0.4, 0.9, 1.6, 2.1, 2.5])
y = (np.abs(x) < 1.2).astype(int)
lifted = np.column_stack([x, x**2])
model = SVC(kernel="linear", C=np.inf).fit(lifted, y)

# %%
# Above the plane of features with its street; below the points where they are, and the classes that
# the line above gives to every place.

size = {"figsize": (6.4, 6.2), "height_ratios": (5, 1), "layout": "constrained", "sharex": True}
figure, (above, below) = plt.subplots(2, 1, **size)
plot_street(model, lifted, y, above)
curve = np.linspace(-2.8, 2.8, 300)
above.plot(curve, curve**2, color="gray", linewidth=1, zorder=1)
above.set(xlabel="x", ylabel="x squared", aspect="auto", title="(x, x squared): a line separates")
classes = model.predict(np.column_stack([curve, curve**2]))
sides = ListedColormap(["#0072b2", "#e69f00"])
below.imshow(classes[None], extent=(-2.8, 2.8, -1, 1), aspect="auto", cmap=sides, alpha=0.25)
for label, colour, marker in ((0, "#0072b2", "o"), (1, "#e69f00", "s")):
    below.plot(x[y == label], np.zeros((y == label).sum()), marker, color=colour)
below.set(xlabel="x", yticks=[], title="x: no threshold does")

# %%
# The machine needs the products ``h(x) . h(z) = x z + x^2 z^2`` only: with this kernel it never
# sees the plane.

machine = SVC(kernel=Linear() + Linear() ** 2, C=np.inf).fit(x[:, None], y)
same = np.allclose(machine.decision_function(x[:, None]), model.decision_function(lifted))
print("the same values:", same)
plt.show()

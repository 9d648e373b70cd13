"""What w and b do to the line
===========================

``w`` is perpendicular to the line and turns it, ``b`` moves it along ``w``, and a factor on both
changes nothing: only the values away from the line become larger. That freedom is used to put the
edges of the street at the values -1 and +1.
"""

# Lecture 002: w0 moves the hyperplane, w turns it
# Lecture 004: scaling w and b does not change the hyperplane

import matplotlib.pyplot as plt
import numpy as np

LOOKS = (("#0072b2", 5), ("#e69f00", 2), ("black", 2))


def draw(ax, w, b, colour, width=2.0):
    """Draw the line, the lines of the values -1 and +1, and w from the point nearest to 0."""
    foot = -b * w / (w @ w)
    for value, style, size in ((0, "-", width), (-1, ":", 1.0), (1, ":", 1.0)):
        place, along = foot + value * w / (w @ w), np.array([-w[1], w[0]])
        ax.axline(place, place + along, color=colour, linestyle=style, linewidth=size)
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", foot + w, foot, arrowprops=look)
    ax.plot([], [], color=colour, label=f"w = ({w[0]:.1f}, {w[1]:.1f}), b = {b:g}")


# %%
# Dotted are the places where ``w . x + b`` is -1 and +1, at a distance of ``1 / ||w||`` from the
# line: twice the weights, half the street.

w = np.array([0.8, 0.6])
turned = np.array([0.1, 1.0])
changes = {
    "b moves the line": [(w, 0.0), (w, 1.0), (w, 2.0)],
    "w turns it": [(w, 1.0), (turned, 1.0)],
    "a factor leaves it": [(w, 1.0), (2 * w, 2.0)],
}
figure, axes = plt.subplots(1, 3, figsize=(7.6, 3.6), layout="compressed")
for ax, (title, lines) in zip(axes, changes.items(), strict=True):
    for (w, b), (colour, width) in zip(lines, LOOKS, strict=False):
        draw(ax, w, b, colour, width)
    ax.set(xlim=(-3.2, 2.2), ylim=(-3.2, 2.2), aspect="equal", title=title)
    ax.plot(0, 0, "+", color="black", markersize=9)
    ax.legend(loc="lower left", fontsize="x-small", framealpha=0.9)
plt.show()

"""The box of SMO
==============

Two multipliers at a time: their sum, or their difference, must stay, which leaves a line; each is
between 0 and C, which leaves a piece of it, from L to H. Along the line the dual is a parabola. Its
top is taken if it is on the piece, and otherwise the nearer end.
"""

# Lecture 000: the SMO box, for equal labels; the SMO box, for different labels

import matplotlib.pyplot as plt

from maxmargin.plotting import plot_smo_box
from maxmargin.solvers import two_variable_step

C = 1.0
steps = {
    "different": two_variable_step((1, -1), (0.2, 0.5), errors=(-0.3, 0.2), K=(1, 1, 0), C=C),
    "equal": two_variable_step((1, 1), (0.7, 0.6), errors=(0.9, -0.9), K=(1, 1, 0), C=C),
}

# %%
# On the left the labels are different and the optimum is inside; on the right they are equal, and
# the step is cut at the end H.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.4), layout="compressed")
for ax, (labels, step) in zip(axes, steps.items(), strict=True):
    plot_smo_box(step, ax)
    print(f"{labels} labels: L = {step.L:.2f}, H = {step.H:.2f}, optimum at {step.unclipped:.2f}")
plt.show()

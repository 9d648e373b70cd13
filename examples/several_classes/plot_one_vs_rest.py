"""One against the rest, and its two doubts
========================================

A machine for each class against all others; the largest value wins. But the machines are trained
apart, and nothing makes their values comparable; and each sees one class against many, so that a
small class among others can be given up altogether.
"""

# Lecture 001: one against the rest: values of machines trained apart; unbalanced classes

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.multiclass import SchemeClassifier
from maxmargin.plotting import marks, plot_decision

# %%
# Five classes in a row. The ones in the middle have others on both sides: no line parts one of them
# from the rest, and its machine does best to answer no everywhere.

centres = [[0, 0], [2, 0.4], [4, 0], [6, 0.4], [8, 0]]
X, y = make_blobs([40, 40, 40, 40, 40], centers=centres, cluster_std=0.5, random_state=0)
rest = SVC(kernel="linear", multiclass="ovr").fit(X, y)
pairs = SVC(kernel="linear").fit(X, y)

# %%
# Pairs know no such trouble.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), layout="constrained", sharey=True)
for ax, (name, model) in zip(
    axes, {"one against the rest": rest, "one against one": pairs}.items(), strict=True
):
    plot_decision(model, X, y, ax, support=False, slack=False)
    ax.set_title(f"{name}:\n{(model.predict(X) != y).sum()} of {len(X)} wrong")

# %%
# The values along the row: at a place the highest curve wins, and those of the middle classes are
# nearly flat, since their machines have nothing to go by. Between 2 and 3 it is the last digits of
# -1 that decide.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
line = np.column_stack([np.linspace(-1, 9, 300), np.full(300, 0.2)])
for k, values in enumerate(rest.decision_function(line).T):
    style = "--" if k == 3 else "-"  # which would hide that of class 2
    ax.plot(line[:, 0], values, style, color=marks.colours(5)[k], label=f"{k} or not")
ax.axhline(0, color="black", linewidth=0.8, linestyle=":")
ax.set(xlabel="feature 0", ylabel="value", ylim=(-2.5, 5), title="the values of five machines")
ax.legend(fontsize="small", edgecolor="none", ncols=2)

# %%
# Each machine has 40 examples against 160. With both sides weighed alike no machine answers no
# everywhere; but a line does not bend, and what it says yes to is half of the row.

print(f"positive answers of each machine: {(rest.decision_function(X) > 0).sum(axis=0)}")
even = SchemeClassifier(SVC(kernel="linear", class_weight="balanced"), multiclass="ovr").fit(X, y)
print(f"both sides with the same weight:  {(even.decision_function(X) > 0).sum(axis=0)}")
plt.show()

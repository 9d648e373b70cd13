"""A street that bends
===================

With a Gaussian kernel the edges of the street, ``f = -1`` and ``f = +1``, are curves. Where the
classes can be told apart, no example needs to be on the street; where they overlap, some must.
"""

# Lecture 001: RBF machine with margins, separable; RBF machine with margins, overlapping

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.kernels import RBF
from maxmargin.plotting import plot_street

# %%
# Two moons with little noise: a hard margin, ``C = inf``, allows no slack.

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="compressed")
X, y = make_moons(60, noise=0.06, random_state=1)
hard = SVC(kernel=RBF(gamma=1.0), C=np.inf).fit(X, y)
plot_street(hard, X, y, axes[0])
print(f"separable: {len(hard.support_)} of {len(X)} examples are support vectors")

# %%
# With more of it: ``C = 1`` lets examples be on the street (a dot) or on the wrong side (a cross),
# at a price that is proportional to their slack. Support vectors on an edge are ringed, those with
# slack framed.

X, y = make_moons(80, noise=0.3, random_state=0)
soft = SVC(kernel=RBF(gamma=1.0), C=1.0).fit(X, y)
plot_street(soft, X, y, axes[1])
known = axes[1].get_legend()
names = [text.get_text() for text in known.get_texts()]
look = {"ncols": 3, "fontsize": "small", "frameon": False}
figure.legend(known.legend_handles, names, loc="outside lower center", **look)
for ax, name in zip(axes, ("separable, C = inf", "overlapping, C = 1"), strict=True):
    ax.set_title(name)
    ax.get_legend().remove()
print(f"overlapping: {len(soft.support_)} of {len(X)}, {(soft.slack_ > 1).sum()} on the wrong side")
plt.show()

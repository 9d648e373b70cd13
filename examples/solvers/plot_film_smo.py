"""A film of SMO
=============

Each step of SMO moves two multipliers, as far as their box and their sum allow. The film shows what
this does to the street: the examples that have a multiplier above zero by then are ringed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import animate, plot_snapshots

X, y = make_moons(60, noise=0.15, random_state=0)
model = SVC(C=5.0, gamma=1.0, solver="smo", trace=True).fit(X, y)

# %%
# A dozen frames, from the start to the last step; the first steps do most of the work, so that the
# frames are closer together there. In a notebook ``film`` alone shows it.

frames = np.unique(np.geomspace(1, len(model.trace_), 14).round().astype(int)) - 1
film = animate(model, X, y, frames=frames, fps=2, figsize=(5.3, 4.2), grid_resolution=80)
film.save("smo.gif", dpi=60)
print(film)

# %%
# Some of them side by side. The first steps move the street most; the last ones only polish it.

axes = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")[1]
plot_snapshots(film.pictures, frames[[1, 4, 7, -1]], axes)
plt.show()

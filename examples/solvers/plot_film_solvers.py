"""A film of several solvers
=========================

One dual problem, several ways to its maximum. What they have in common is the duality gap, which
says how far from the best each one is at most: the film shows it fall.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC, compare_solvers
from maxmargin.plotting import ConvergenceDisplay, animate

X, y = make_moons(80, noise=0.2, random_state=0)
solvers = ["smo", "platt", "chunking", "projected_gradient"]
comparison = compare_solvers(SVC(C=10.0), X, y, solvers, tol=1e-3, memory=False)
print(comparison)

# %%
# Steps are not alike: one of SMO moves two multipliers, one of the projected gradient all of them,
# and chunking counts those of the problems that it solves on its way. How long they take, the table
# says.

picture = ConvergenceDisplay.from_trace(comparison)
film = animate(picture, max_frames=12, fps=2, figsize=(5.3, 4.2))
film.save("solvers.gif", dpi=60)
print(film)
plt.show()

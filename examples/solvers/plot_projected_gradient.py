"""A projection that is not one
============================

Projected gradient descent on the dual is often written so: project the gradient on the hyperplane
``y . alpha = 0``, take a step, clip to the box from 0 to C. The clipping leaves the hyperplane, and
nothing leads back. On three points it ends at twice the right ``w``.
"""

# Lecture 004: projected gradient descent for the dual, as written and as it should be

import warnings

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC
from maxmargin.plotting import AlphasDisplay
from maxmargin.solvers import ProjectedGradient

X, y = np.array([[0.0], [1.0], [1.5]]), np.array([-1, 1, 1])
methods = {
    "step, then clip": ProjectedGradient(projection="clip", step_size=0.1),
    "exact projection": ProjectedGradient(projection="exact", step_size=0.1),
}

# %%
# The nearest point of the box *and* the hyperplane is ``clip(z - t y, 0, C)``, with the number t
# that makes the sum right. With it the multipliers of the points 0 and 1 meet at 2. As written,
# that of the negative point is clipped away, the sum stays at 4, and the fit says "infeasible".

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.8), layout="constrained", sharey=True)
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is the point
        model = SVC(kernel="linear", C=10, solver=method, trace=True).fit(X, y)
    AlphasDisplay.from_estimator(model, ax=ax)
    ax.set(xlim=(0, 300), ylim=(0, 5), title=f"{name}: w = {model.coef_[0, 0]:.1f}")
    print(f"{name}: {model.certificate_.status}, y . alpha = {model.dual_coef_.sum():.2f}")
plt.show()

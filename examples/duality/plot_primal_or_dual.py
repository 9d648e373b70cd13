"""As many unknowns as features, or as examples
============================================

The weights ``w`` of a ridge regression are ``M`` unknowns, one for each feature; the coefficients
``a`` of its dual form are ``N``, one for each example. The answer is the same: ``w = X' a``. With
few features the first is cheaper, with few examples the second; with a kernel only that exists.
"""

# Lecture 001: M unknowns in the primal against N in the dual

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import Ridge

N = 300
random = np.random.default_rng(0)


def seconds(solver, X, t):
    """Return the least of five times of a fit, and its predictions."""
    taken = []
    for _ in range(5):
        start = perf_counter()
        model = Ridge(alpha=1.0, solver=solver).fit(X, t)
        taken.append(perf_counter() - start)
    return min(taken), model.predict(X)


# %%
# Three hundred examples, and more and more features.

features = [10, 30, 100, 300, 600, 1000]
times = {"primal": [], "dual": []}
for M in features:
    X, t = random.normal(size=(N, M)), random.normal(size=N)
    answers = []
    for name, taken in times.items():
        took, answer = seconds(name, X, t)
        taken.append(1000 * took)
        answers.append(answer)
    print(f"M = {M}: predictions {np.abs(np.subtract(*answers)).max():.0e} apart")

# %%
# The equations: ``M x M`` or ``N x N``. The cost of solving them grows with the cube.

axes = plt.subplots(1, 2, figsize=(7.2, 3.3), layout="constrained")[1]
axes[0].loglog(features, features, "o-", label="primal: M")
axes[0].loglog(features, [N] * len(features), "s--", label="dual: N = 300")
axes[0].set(xlabel="features M", ylabel="unknowns")
for (name, taken), style in zip(times.items(), ("o-", "s--"), strict=True):
    axes[1].loglog(features, taken, style, label=name)
axes[1].set(xlabel="features M", ylabel="time of a fit in ms")
for ax in axes:
    ax.axvline(N, color="black", linewidth=0.8, linestyle=":")
    ax.legend(edgecolor="none")
axes[1].text(N, axes[1].get_ylim()[0], " M = N", va="bottom")
plt.show()

"""How fast a feature space grows
==============================

The kernel ``(x . z + 1)^d`` on ``n`` features is an inner product of all products of up to ``d`` of
them: ``C(n + d, d)`` numbers for every example. The kernel costs the same for every ``d``.
"""

# Lecture 002: growth of the feature space, C(n + d, d)

from math import comb

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.kernels import Polynomial, explicit_features

# %%
# For ``n = 10``: 11, 66, 286, 1001. For a fixed ``n`` this grows like a power of ``d``, whose
# exponent is ``n``, and not exponentially; but that is no comfort for an ``n`` of a thousand.

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
degrees = range(1, 9)
for n, mark in ((2, "o-"), (10, "s-"), (1000, "d-")):
    ax.plot(degrees, [comb(n + d, d) for d in degrees], mark, label=f"n = {n:,} features")
for d in range(1, 5):
    there = (d, comb(10 + d, d))
    ax.annotate(f"{there[1]}", there, (-6, 7), textcoords="offset points", fontsize="small")
ax.axhline(1e9, color="black", linewidth=0.8, linestyle=":")
ax.text(8, 1.3e9, "8 GB an example", ha="right", fontsize="small")
ax.set(yscale="log", xlabel="degree d", ylabel="size of the feature space, C(n + d, d)")
ax.legend(edgecolor="none")

# %%
# Counted, not believed: the features themselves, and the kernel that they make.

X = np.random.default_rng(0).normal(size=(5, 10))
for d in range(1, 5):
    kernel = Polynomial(degree=d, gamma=1, coef0=1)
    phi = explicit_features(kernel, X)
    print(f"d = {d}: {phi.shape[1]} features, {np.abs(phi @ phi.T - kernel(X)).max():.0e} off")
plt.show()

"""Every example, or a few of them
===============================

Kernel ridge regression and support vector regression draw much the same curve, and both write it as
``f(x) = sum a_n k(x, x_n)``. The squared error gives every example a coefficient; the tube gives
one only to those on its edge or outside.
"""

# Lecture 001: kernel ridge regression, dense, beside the sparse SVR

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR, KernelRidge
from maxmargin.kernels import RBF
from maxmargin.plotting import plot_tube

random = np.random.default_rng(0)
x = np.sort(random.uniform(-3, 3, 50))
t = np.sinc(x) + 0.1 * random.normal(size=50)
X, kernel = x[:, None], RBF(gamma=1.0)

# %%
# ``a = (K + lam I)^-1 t``, and at the optimum ``lam a_n`` is the error of example n.

ridge = KernelRidge(kernel=kernel, alpha=0.1).fit(X, t)
tube = SVR(kernel=kernel, C=1.0, epsilon=0.12).fit(X, t)
a = ridge.dual_coef_
print(f"lam a against the errors: {np.abs(0.1 * a - (t - ridge.predict(X))).max():.0e} apart")

# %%
# Both curves, and below them the coefficients.

axes = plt.subplots(2, 2, figsize=(7.2, 4.8), layout="constrained", height_ratios=[1.6, 1])[1]
places = np.linspace(-3, 3, 300)
axes[0, 0].plot(places, ridge.predict(places[:, None]), color="black", linewidth=1.8)
axes[0, 0].scatter(x, t, s=30, color="#0072b2")
plot_tube(tube, X, t, axes[0, 1])
axes[0, 1].get_legend().remove()
sparse = np.zeros(len(x))
sparse[tube.support_] = tube.dual_coef_[0]
for (above, below), name, values in zip(axes.T, ("ridge", "SVR"), (a, sparse), strict=True):
    used = values != 0
    above.set(title=f"{name}: {used.sum()} of {len(x)} coefficients", xlabel="", ylabel="t")
    below.stem(x[used], values[used], basefmt=" ")
    below.axhline(0, color="black", linewidth=0.8)
    below.set(xlabel="x", ylabel="coefficient", xlim=above.get_xlim())
plt.show()

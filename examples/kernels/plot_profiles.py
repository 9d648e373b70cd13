"""How fast a kernel forgets
=========================

Kernels of a distance say how alike two points are that are so far apart. A Gaussian is flat at
zero, a Laplacian has a kink there, and functions made of them are smooth or rough accordingly.
"""

import matplotlib.pyplot as plt

from maxmargin.kernels import RBF, Laplacian, Linear, Matern, Polynomial
from maxmargin.plotting import plot_kernel_profile

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained")
plot_kernel_profile(
    [RBF(sigma=1.0), RBF(sigma=0.5), Laplacian(gamma=1.0), Matern(nu=1.5)], ax=axes[0]
)
axes[0].set_title("against the distance")

# %%
# Kernels of an inner product depend on where the two points are: here the other one is at 0.5.

kernels = [Linear(), Polynomial(degree=2, gamma=1.0), RBF(sigma=0.5)]
plot_kernel_profile(kernels, interval=(-1.5, 1.5), at=0.5, ax=axes[1])
axes[1].set_title("beside the point 0.5")
plt.show()

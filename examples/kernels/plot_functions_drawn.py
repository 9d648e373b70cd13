"""What a kernel takes for likely
==============================

As the covariance of a Gaussian process, a kernel says which functions are likely before any data
are seen. Functions drawn from it show what it stands for: how smooth, how fast, how far.
"""

# Lecture 001: functions drawn from kernels

import matplotlib.pyplot as plt

from maxmargin.kernels import RBF, Laplacian, Linear, Matern
from maxmargin.plotting import plot_kernel_samples

kernels = [
    RBF(sigma=1.0),
    RBF(sigma=0.3),
    Laplacian(gamma=1.0),
    Matern(nu=1.5, length_scale=1.0),
    Linear() + 0.5,
    RBF(sigma=0.5) + Linear(),
]

# %%
# A Gaussian kernel makes functions smooth, and its width says how fast they change; the Laplacian
# kernel makes them rough, Matern's lie in between; a linear kernel makes straight lines. A sum of
# kernels makes sums of functions.

axes = plt.subplots(2, 3, figsize=(8, 4.6), layout="constrained", sharex=True)[1]
for ax, kernel in zip(axes.flat, kernels, strict=True):
    plot_kernel_samples(kernel, ax, samples=4, grid_resolution=151)
    ax.set_title(ax.get_title(), fontsize="medium")
    ax.set(xlabel="", ylabel="")
    ax.get_legend().remove()
plt.show()

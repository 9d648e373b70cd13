"""The kernel matrix
=================

All that a kernel machine sees of its data is the matrix ``K`` of the kernel's values at every pair
of examples. Put together by class, it shows at a glance which classes a kernel finds alike.
"""

# Lecture 001: the Gram matrix of a kernel

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from maxmargin.kernels import RBF, Linear
from maxmargin.plotting import plot_kernel_matrix

iris = load_iris()
X, y = StandardScaler().fit_transform(iris.data), iris.target_names[iris.target]

# %%
# A wide Gaussian finds everything alike, a narrow one nothing but an example and itself. In between
# the classes are squares on the diagonal.

axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="compressed")[1]
kernels = Linear(), RBF(gamma=0.01), RBF(gamma=0.3), RBF(gamma=20.0)
for ax, kernel in zip(axes.flat, kernels, strict=True):
    plot_kernel_matrix(kernel, X, y, ax)
    ax.tick_params(labelsize="x-small")

# %%
# The matrix is symmetric, and none of its eigenvalues is negative: that makes a function a kernel.
# How fast they fall says how many directions a kernel really knows on these data: few if it is
# wide, nearly all if it is narrow.

for kernel in kernels[1:]:
    values = np.linalg.eigvalsh(kernel(X))[::-1].clip(0)
    most = np.searchsorted(values.cumsum() / values.sum(), 0.99) + 1
    print(f"{kernel}: {most} of {len(X)} directions hold 99 % of its trace")
plt.show()

"""Kernels made of basis functions
===============================

A kernel is an inner product of features. Choose functions ``phi_i`` and add up
``phi_i(x) phi_i(z)``: above, three families of such functions; below, the kernel that each makes,
beside a fixed point that is marked with a cross.
"""

# Lecture 001: kernels from basis functions (polynomials, Gaussians, sigmoids), k(x, 0) below

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC, check_valid
from maxmargin.kernels import GaussianBasis, PolynomialBasis, SigmoidBasis
from maxmargin.plotting import plot_basis

# %%
# Powers without a constant are all zero at 0, and so is their kernel beside it. The others are
# largest, or change most, where the point is.

plot_basis()

# %%
# Beside 0.5 the powers have something to say, too.

plot_basis(at=0.5)

# %%
# Whatever the functions are, what comes out is a kernel: no eigenvalue of its matrix is negative,
# and a machine takes it like any other.

x = np.linspace(-1, 1, 40)[:, None]
inside = (np.abs(x[:, 0]) < 0.4).astype(int)
for basis in (PolynomialBasis(), GaussianBasis(), SigmoidBasis()):
    score = SVC(kernel=basis.kernel, C=100).fit(x, inside).score(x, inside)
    print(f"{type(basis).__name__}: {100 * score:.0f} % of an interval learnt")
    print(f"  {check_valid(basis.kernel, x)}")
plt.show()

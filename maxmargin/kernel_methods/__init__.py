"""Kernel methods beside the support vector machines: the dual representation as such."""

from maxmargin.kernel_methods.gaussian_process import GaussianProcessRegressor
from maxmargin.kernel_methods.kernel_logistic import KernelLogisticRegression
from maxmargin.kernel_methods.kernel_pca import KernelPCA
from maxmargin.kernel_methods.kernel_ridge import KernelRidge
from maxmargin.kernel_methods.kernel_ridge_cv import KernelRidgeCV
from maxmargin.kernel_methods.ridge import Ridge

__all__ = [
    "GaussianProcessRegressor",
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "Ridge",
]

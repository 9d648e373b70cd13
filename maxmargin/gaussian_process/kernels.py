"""scikit-learn's kernel objects, which every estimator here takes for its ``kernel``.

A fit translates them into :mod:`maxmargin.kernels`, with their bounds and fixed hyperparameters.
"""

from sklearn.gaussian_process.kernels import (  # noqa: F401
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GenericKernelMixin,
    Hyperparameter,
    Kernel,
    KernelOperator,
    Matern,
    NormalizedKernelMixin,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    StationaryKernelMixin,
    Sum,
    WhiteKernel,
)

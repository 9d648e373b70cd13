"""Kernels, the rules that build them, and the test of their validity.

Every name in ``__all__`` that is a kernel is held to ``maxmargin.testing.check_kernel``.
"""

from maxmargin.kernels.algebra import (
    Conformal,
    Exponential,
    Mapped,
    Normalized,
    OnColumns,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Shifted,
    Sum,
)
from maxmargin.kernels.base import Input, Kernel, Validity, exp
from maxmargin.kernels.basis import Basis, GaussianBasis, PolynomialBasis, SigmoidBasis
from maxmargin.kernels.distance import (
    RBF,
    AdditiveChi2,
    Chi2,
    ExpSineSquared,
    Laplacian,
    Matern,
    RationalQuadratic,
)
from maxmargin.kernels.dot_product import Linear, Polynomial, QuadraticForm, Sigmoid
from maxmargin.kernels.features import explicit_features, polynomial_columns
from maxmargin.kernels.given import FunctionKernel, Precomputed
from maxmargin.kernels.named import as_kernel
from maxmargin.kernels.sequences import (
    BagOfWords,
    GappedKmer,
    LocalAlignment,
    Mismatch,
    Spectrum,
    Subsequence,
    Substitution,
    WeightedDegree,
    read_fasta,
    sequence_weights,
)
from maxmargin.kernels.stretched import Stretched
from maxmargin.kernels.validity import GramTest, check_valid, gram_features, quadratic_features

__all__ = [
    "RBF",
    "AdditiveChi2",
    "BagOfWords",
    "Basis",
    "Chi2",
    "Conformal",
    "ExpSineSquared",
    "Exponential",
    "FunctionKernel",
    "GappedKmer",
    "GaussianBasis",
    "GramTest",
    "Input",
    "Kernel",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "Mapped",
    "Matern",
    "Mismatch",
    "Normalized",
    "OnColumns",
    "Polynomial",
    "PolynomialBasis",
    "PolynomialOf",
    "Power",
    "Precomputed",
    "Product",
    "QuadraticForm",
    "RationalQuadratic",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "SigmoidBasis",
    "Spectrum",
    "Stretched",
    "Subsequence",
    "Substitution",
    "Sum",
    "Validity",
    "WeightedDegree",
    "as_kernel",
    "check_valid",
    "exp",
    "explicit_features",
    "gram_features",
    "polynomial_columns",
    "quadratic_features",
    "read_fasta",
    "sequence_weights",
]

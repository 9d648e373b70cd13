"""Checks for your own kernels, Gram matrices, losses, solvers and schemes: this package's pass.

``check_kernel(MyKernel())`` raises an AssertionError that says what is wrong, or returns quietly.
``all_estimators()`` lists every public estimator with small instances of it, the data that each
needs and what it cannot do: the contracts in ``tests/contracts`` run over them.
"""

from maxmargin.testing.kernels import check_gram, check_kernel
from maxmargin.testing.losses import check_loss
from maxmargin.testing.registry import Instance, Sample, all_estimators
from maxmargin.testing.schemes import check_scheme
from maxmargin.testing.solvers import check_solver, problem_bank

__all__ = [
    "Instance",
    "Sample",
    "all_estimators",
    "check_gram",
    "check_kernel",
    "check_loss",
    "check_scheme",
    "check_solver",
    "problem_bank",
]

"""Gaussian processes: the likelihood of a kernel's numbers, and its maximum."""

from maxmargin.solvers.likelihood.ascent import Ascent, AverageInformation, Optimizer, l_bfgs_b
from maxmargin.solvers.likelihood.certificate import LikelihoodCertificate
from maxmargin.solvers.likelihood.problem import Evaluation, MarginalLikelihood
from maxmargin.solvers.likelihood.starts import Search, maximise, paired_rows

__all__ = [
    "Ascent",
    "AverageInformation",
    "Evaluation",
    "LikelihoodCertificate",
    "MarginalLikelihood",
    "Optimizer",
    "Search",
    "l_bfgs_b",
    "maximise",
    "paired_rows",
]

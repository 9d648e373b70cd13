"""Methods for dual problems, risks, ridge systems, eigenvectors and perceptrons; their driver."""

from maxmargin.solvers.classical.chunking import Chunking
from maxmargin.solvers.classical.coordinate_ascent import (
    CoordinateAscent,
    Staircase,
    coordinate_ascent,
)
from maxmargin.solvers.classical.decomposition import Decomposition
from maxmargin.solvers.classical.frank_wolfe import FrankWolfe
from maxmargin.solvers.classical.platt import Platt
from maxmargin.solvers.classical.projected_conjugate_gradients import ProjectedConjugateGradients
from maxmargin.solvers.classical.projected_gradient import ProjectedGradient
from maxmargin.solvers.classical.qp import PrimalProgramme, QuadraticProgramme
from maxmargin.solvers.classical.subgradient import Subgradient
from maxmargin.solvers.classical.two_variables import TwoVariableStep, two_variable_step
from maxmargin.solvers.compare import Comparison, Result, compare_solvers
from maxmargin.solvers.driver import Choice, Measure, Method, Run, Watch, drive
from maxmargin.solvers.dual.certified import Auto, solve_certified
from maxmargin.solvers.dual.direct import RowDescent
from maxmargin.solvers.dual.method import DualMethod, DualRun
from maxmargin.solvers.dual.seeded import Seed, SeededSMO
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet
from maxmargin.solvers.logistic.newton import KernelNewton
from maxmargin.solvers.ridge.cholesky import Cholesky
from maxmargin.solvers.ridge.conjugate_gradients import PreconditionedCG
from maxmargin.solvers.ridge.path import LeaveOneOut
from maxmargin.solvers.risk.class_descent import ClassDescent
from maxmargin.solvers.risk.descent import GradientDescent
from maxmargin.solvers.risk.dual_descent import DualDescent
from maxmargin.solvers.risk.l1_descent import L1Descent
from maxmargin.solvers.risk.lbfgs import LBFGS
from maxmargin.solvers.risk.least_squares import (
    ConjugateGradients,
    Factorisation,
    NonnegativeLeastSquares,
)
from maxmargin.solvers.risk.multipliers import Multipliers
from maxmargin.solvers.risk.newton import Newton
from maxmargin.solvers.risk.pegasos import Pegasos
from maxmargin.solvers.risk.stochastic import StochasticDescent
from maxmargin.solvers.select import select_solver
from maxmargin.solvers.spectral.methods import BlockLanczos, DenseEigen

__all__ = [
    "LBFGS",
    "SMO",
    "Auto",
    "BlockLanczos",
    "Choice",
    "Cholesky",
    "Chunking",
    "ClassDescent",
    "Comparison",
    "ConjugateGradients",
    "CoordinateAscent",
    "Decomposition",
    "DenseEigen",
    "DualDescent",
    "DualMethod",
    "DualRun",
    "Factorisation",
    "FrankWolfe",
    "GradientDescent",
    "KernelNewton",
    "L1Descent",
    "LeaveOneOut",
    "Measure",
    "Method",
    "Multipliers",
    "Newton",
    "NonnegativeLeastSquares",
    "Pegasos",
    "Platt",
    "PreconditionedCG",
    "PrimalProgramme",
    "ProjectedConjugateGradients",
    "ProjectedGradient",
    "QuadraticProgramme",
    "Result",
    "RowDescent",
    "Run",
    "Seed",
    "SeededSMO",
    "Staircase",
    "StochasticDescent",
    "Subgradient",
    "TwoVariableStep",
    "Watch",
    "WorkingSet",
    "compare_solvers",
    "coordinate_ascent",
    "drive",
    "select_solver",
    "solve_certified",
    "two_variable_step",
]

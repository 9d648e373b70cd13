"""Methods for dual problems, regularised risks and the perceptron's updates, and their driver."""

from maxmargin.solvers.driver import Choice, Measure, Method, Run, Watch, drive
from maxmargin.solvers.dual.certified import Auto, choose_method, solve_certified
from maxmargin.solvers.dual.method import DualMethod, DualRun
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet
from maxmargin.solvers.risk.dual_descent import DualDescent
from maxmargin.solvers.risk.gradient_descent import GradientDescent
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

__all__ = [
    "LBFGS",
    "SMO",
    "Auto",
    "Choice",
    "ConjugateGradients",
    "DualDescent",
    "DualMethod",
    "DualRun",
    "Factorisation",
    "GradientDescent",
    "L1Descent",
    "Measure",
    "Method",
    "Multipliers",
    "Newton",
    "NonnegativeLeastSquares",
    "Pegasos",
    "Run",
    "StochasticDescent",
    "Watch",
    "WorkingSet",
    "choose_method",
    "drive",
    "select_solver",
    "solve_certified",
]

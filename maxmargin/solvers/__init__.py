"""Solvers: of dual problems, of regularised risks, and the perceptron's updates."""

from maxmargin.solvers.dual.certified import Auto, Solver, solve_certified
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet

__all__ = ["SMO", "Auto", "Solver", "WorkingSet", "solve_certified"]

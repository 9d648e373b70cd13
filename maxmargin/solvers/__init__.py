"""Solvers of the dual problems: one file per method."""

from maxmargin.solvers.certified import Auto, Solver, solve_certified
from maxmargin.solvers.smo import SMO
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["SMO", "Auto", "Solver", "WorkingSet", "solve_certified"]

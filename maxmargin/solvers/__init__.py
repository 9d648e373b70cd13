"""Solvers of the dual problems: one file per method."""

from maxmargin.solvers.certified import solve_certified
from maxmargin.solvers.smo import SMO

__all__ = ["SMO", "solve_certified"]

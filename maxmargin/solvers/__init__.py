"""Solvers: of dual problems, of regularised risks, and the perceptron's updates."""

from maxmargin.solvers.driver import Measure, Method, Run, Watch, drive
from maxmargin.solvers.dual.certified import Auto, Choice, choose_method, solve_certified
from maxmargin.solvers.dual.method import DualMethod, DualRun
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet

__all__ = [
    "SMO",
    "Auto",
    "Choice",
    "DualMethod",
    "DualRun",
    "Measure",
    "Method",
    "Run",
    "Watch",
    "WorkingSet",
    "choose_method",
    "drive",
    "solve_certified",
]

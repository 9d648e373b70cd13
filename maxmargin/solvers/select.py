"""Which method for which problem, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from maxmargin.backends.systems import DIRECT
from maxmargin.duals import DualProblem
from maxmargin.risk import L2, DirectRisk, RegularisedRisk, SoftmaxRisk
from maxmargin.solvers.classical.chunking import Chunking
from maxmargin.solvers.classical.coordinate_ascent import CoordinateAscent
from maxmargin.solvers.classical.decomposition import Decomposition
from maxmargin.solvers.classical.frank_wolfe import FrankWolfe
from maxmargin.solvers.classical.platt import Platt
from maxmargin.solvers.classical.projected_conjugate_gradients import ProjectedConjugateGradients
from maxmargin.solvers.classical.projected_gradient import ProjectedGradient
from maxmargin.solvers.classical.qp import PrimalProgramme, QuadraticProgramme
from maxmargin.solvers.classical.subgradient import Subgradient
from maxmargin.solvers.driver import ASKED, Choice, Method
from maxmargin.solvers.dual.certified import Auto
from maxmargin.solvers.dual.method import DualMethod
from maxmargin.solvers.dual.smo import SMO
from maxmargin.solvers.dual.working_set import WorkingSet
from maxmargin.solvers.logistic.newton import KernelNewton
from maxmargin.solvers.logistic.problem import LogisticProblem
from maxmargin.solvers.ridge.cholesky import Cholesky
from maxmargin.solvers.ridge.conjugate_gradients import PreconditionedCG
from maxmargin.solvers.ridge.problem import RidgeProblem
from maxmargin.solvers.risk.class_descent import ClassDescent
from maxmargin.solvers.risk.descent import GradientDescent
from maxmargin.solvers.risk.dual_descent import DualDescent
from maxmargin.solvers.risk.l1_descent import BY_MATRIX, L1Descent
from maxmargin.solvers.risk.lbfgs import LBFGS
from maxmargin.solvers.risk.multipliers import Multipliers
from maxmargin.solvers.risk.newton import Newton
from maxmargin.solvers.risk.pegasos import Pegasos
from maxmargin.solvers.risk.span import spanned
from maxmargin.solvers.risk.stochastic import StochasticDescent

FACTORISED = 500  # rows up to which Cholesky factors for every step are quicker than pivots
SOFTMAX_NEWTON = 400  # weights of all classes up to which Newton's matrix is made
_WIDE = 256  # features from which rows, where these are fewer, are visited one by one
_SMALL = 300  # rows up to which Newton's method in their span is as fast, for a smooth loss
DUAL_METHODS: dict[str, type[DualMethod]] = {  # by the names that the kernel machines have for them
    "smo": SMO,
    "working_set": WorkingSet,
    "qp": QuadraticProgramme,
    "projected_gradient": ProjectedGradient,
    "frank_wolfe": FrankWolfe,
    "platt": Platt,
    "coordinate_ascent": CoordinateAscent,
    "chunking": Chunking,
    "projected_conjugate_gradients": ProjectedConjugateGradients,
    "decomposition": Decomposition,
}
RISK_METHODS: dict[str, type[Method]] = {  # by the names that the linear machines have for them
    "newton": Newton,
    "multipliers": Multipliers,
    "dual_descent": DualDescent,
    "l1_descent": L1Descent,
    "lbfgs": LBFGS,
    "gradient_descent": GradientDescent,
    "sgd": Pegasos,
    "class_descent": ClassDescent,
    "qp": PrimalProgramme,
    "subgradient": Subgradient,
}
_NAMES = {method: name for names in (DUAL_METHODS, RISK_METHODS) for name, method in names.items()}
_NAMES[StochasticDescent] = "sgd"


@singledispatch
def select_solver(problem: Any) -> Choice:
    """Choose a method for a problem, as ``solver="auto"`` does, and say why.

    Parameters
    ----------
    problem : DualProblem, RegularisedRisk, SoftmaxRisk, DirectRisk, LogisticProblem or RidgeProblem

    Returns
    -------
    choice : Choice
        With ``method`` and ``why``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.losses import Hinge
    >>> from maxmargin.risk import RegularisedRisk
    >>> from maxmargin.solvers import select_solver
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> choice = select_solver(RegularisedRisk(Design(X), y, np.ones(2), Hinge()))
    >>> choice.method, choice.why
    (Multipliers(), 'the loss has kinks, which become smooth ones near its slopes')
    """
    raise TypeError(f"There is no method for a problem of type {type(problem).__name__}.")


@select_solver.register
def _(problem: DualProblem) -> Choice:
    return Auto().choose(problem)


@select_solver.register
def _(problem: RegularisedRisk) -> Choice:
    width, few = problem.design.width, spanned(problem)
    if problem.design.in_memory and DualDescent().accepts(problem) is None:
        if width > DIRECT and not few:
            why = f"more than {DIRECT} features: rows are faster one by one than by such systems"
            return Choice(DualDescent(), why)
        hinge, small = problem.of_margins and not problem.bent, few and problem.n <= _SMALL
        if hinge and _WIDE <= width >= problem.n and not (small and problem.loss.smooth):
            why = "no more rows than features: hinges of so few are soon settled one by one"
            return Choice(DualDescent(), why)
    return select_primal(problem)


@select_solver.register
def _(problem: SoftmaxRisk) -> Choice:
    if np.prod(problem.shape) <= SOFTMAX_NEWTON:
        return Choice(Newton(), f"no more than {SOFTMAX_NEWTON} weights: Newton's matrix is small")
    if problem.penalty == L2 and problem.n <= problem.design.width:
        why = "no more rows than features: conjugate gradients soon make a step of Newton's"
        return Choice(Newton(), why)
    return Choice(LBFGS(), f"more than {SOFTMAX_NEWTON} weights: gradients are all that is cheap")


@select_solver.register
def _(problem: DirectRisk) -> Choice:
    return Choice(ClassDescent(), "all classes in one problem: row by row, each solved exactly")


@select_solver.register
def _(problem: LogisticProblem) -> Choice:
    if problem.n <= FACTORISED and not problem.gram.on_device:
        return Choice(KernelNewton(factorised=True), f"no more than {FACTORISED} rows")
    return Choice(KernelNewton(), "a preconditioner of low rank serves all of Newton's steps")


@select_solver.register
def _(problem: RidgeProblem) -> Choice:
    refused = Cholesky().accepts(problem)
    if problem.alpha > 0 and problem.gram.on_device and problem.n > DIRECT:
        return Choice(PreconditionedCG(), "the Gram matrix is on a GPU, where products cost little")
    if refused is None or not problem.alpha > 0:
        return Choice(Cholesky(), f"the Gram matrix of {problem.n} rows has room in memory")
    return Choice(PreconditionedCG(), refused.partition(":")[0])


def select_primal(problem: RegularisedRisk) -> Choice:
    """Choose a method that works on the weights, and say why."""
    if problem.penalty.l1:
        if L1Descent().accepts(problem) is not None and LBFGS().accepts(problem) is None:
            return Choice(LBFGS(), f"an l1 penalty, and more than {BY_MATRIX} columns elsewhere")
        return Choice(L1Descent(), "an l1 penalty has a kink at zero, where coordinates may stay")
    where = ", in the span of the few rows" if spanned(problem) else ""
    if problem.loss.smooth:
        return Choice(Newton(), f"the loss is smooth: Newton's method needs few passes{where}")
    why = f"the loss has kinks, which become smooth ones near its slopes{where}"
    return Choice(Multipliers(), why)


def refusal_elsewhere(method: Method, risk: Any) -> str | None:
    """None where a method can have what it needs of the rows of a risk; else why not."""
    if risk.design.in_memory or method.by_passes:
        return None
    return (
        f"{type(method).__name__} needs single rows, and these lie in partitions of Dask "
        "collections: use solver='auto' and dual='auto' or False, which take a method that sums "
        "over rows (newton, multipliers, l1_descent, lbfgs); or partial_fit, which learns from one "
        "partition after the other."
    )


def choice_of(solver: str | Method, problem: Any, named: Mapping[str, Method]) -> Choice:
    """Return the method that was asked for, as such or by name, or the one for the problem."""
    if solver == "auto":
        return select_solver(problem)
    return Choice(named[solver] if isinstance(solver, str) else solver, ASKED)


def in_words(
    choices: Iterable[Choice], named: Mapping[str, Method] | None = None
) -> tuple[str, str]:
    """Names of the methods that were chosen for a fit, and why each of them was the first time."""
    reasons: dict[str, str] = {}
    for choice in choices:
        own = [name for name, method in (named or {}).items() if method == choice.method]
        reasons.setdefault(own[0] if own else method_name(choice.method), choice.why)
    return ", ".join(reasons), "; ".join(f"{name}: {why}" for name, why in reasons.items())


def method_name(method: Method) -> str:
    """Name that the machines have for a method; that of its class for another one."""
    return _NAMES.get(type(method), type(method).__name__)

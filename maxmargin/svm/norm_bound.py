"""Kernel machines with a bound on their norm: :mod:`maxmargin.solvers.ivanov` over dual problems.

The norm is that of the feature space, ``||w||^2 = sum_ij coef_i coef_j k(x_i, x_j)``. The variables
of a dual problem over its C are the slopes times the costs at C = 1: in the same box for every C.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.backends.threads import Workers
from maxmargin.certificate import KernelRiskCertificate
from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Definiteness, Gram
from maxmargin.solvers import Auto, solve_certified
from maxmargin.solvers.ivanov import Answer, Arrays, BoundedProblem, minimise_within, natural_cost

_FINEST = 1e-12  # KKT violation beyond which no solver is asked to go
_OUTSIDE = 1e-12  # of a box: how far rounding may bring a variable out of it


class BoundedDual(BoundedProblem):
    """The losses of a dual problem that is posed at C = 1.

    Primal are coefficients, values and bias; dual are variables, coefficients and values over C.
    """

    def __init__(
        self,
        gram: Gram,
        problem: DualProblem,
        solver: Auto,
        workers: Workers,
        number: int,
        known: tuple[float, np.ndarray] | None = None,
    ) -> None:
        assert problem.losses is not None  # of machines with a C
        self.number = number
        self.gram, self.posed, self.solver, self.workers = gram, problem, solver, workers
        self.losses, self.steps = problem.losses, 0
        self.own = problem.own_row[: len(self.losses.target)]
        target = self.losses.target
        free = problem.n_groups > 0 and not self._of_margins
        middle = float(np.median(target)) if free else 0.0
        self.nothing = self._lost(np.full(len(target), middle))
        zero = np.zeros(len(problem.rows))
        self.rest = zero, zero, np.array([middle])
        self.evaluation: Evaluation | None = None
        self.known = known  # a cost and its variables
        rows = problem.gram_row[: len(target)]
        self.first = known[0] if known else natural_cost(self.losses.cost, gram.diagonal[rows])

    @property
    def _of_margins(self) -> bool:
        return not self.posed.paired

    def _lost(self, f: np.ndarray) -> float:
        loss, target, cost = self.losses
        return float(cost @ loss.value(target * f if self._of_margins else f - target))

    def solve(self, cost: float, gap: float) -> Answer:
        """Begin from the last answer, in proportion to the costs."""
        problem = self.posed.times(cost)
        if self.known is not None:
            problem = problem.started_near(cost / self.known[0] * self.known[1])
        tol = max(gap / float(self.losses.cost.sum()), _FINEST)
        how = self.solver, tol, self.workers, self.number
        (e,), (steps,) = solve_certified(self.gram, [problem], *how)
        self.solver.monitor.finished(-1)
        self.steps, self.known, self.evaluation = self.steps + steps, (cost, e.beta), e
        primal = e.coefficients, e.decision, np.array([e.bias])
        dual = tuple(part / cost for part in (e.beta, e.coefficients, e.decision))
        return Answer(cost, primal, dual, e.certificate.status)

    @property
    def share(self) -> float:
        """What the last answer's losses have of its objective's unit: one over its cost."""
        return 1.0 / self.known[0] if self.known else 1.0

    def norm(self, primal: Arrays) -> float:
        """``||w||`` in feature space."""
        return max(float(primal[0] @ primal[1]), 0.0) ** 0.5

    def loss(self, primal: Arrays) -> float:
        """Sum of the losses."""
        return self._lost((primal[1] + primal[2])[self.own])

    def pull(self, dual: Arrays) -> tuple[float, float]:
        """``||u||`` of variables over C, and their linear term."""
        beta, problem = dual[0], self.posed
        outside = np.maximum(problem.lower - beta, beta - problem.upper).max(initial=0.0)
        if outside > _OUTSIDE * np.abs(problem.upper - problem.lower).max(initial=0.0):
            return np.inf, np.inf
        return self.norm(dual[1:]), float(problem.linear @ beta)


def within(
    gram: Gram,
    problem: DualProblem,
    norm_bound: float,
    solver: Auto,
    tol: float,
    workers: Workers,
    number: int = 0,
    known: tuple[float, np.ndarray] | None = None,
) -> tuple[Evaluation, float, int]:
    """Find the machine of the least loss with ``||w|| <= norm_bound``.

    Parameters
    ----------
    gram : Gram
    problem : DualProblem
        At C = 1; of a machine with losses and a penalty.
    norm_bound : float
    solver : Auto
    tol : float
        Duality gap over the loss.
    workers : Workers
    number : int
        Of the problem, for who looks on.
    known : tuple of (cost, variables), optional
        Of an earlier answer, to begin from.

    Returns
    -------
    evaluation : Evaluation
        With a certificate of this problem.
    cost : float
        The C that has the same answer.
    steps : int
    """
    if gram.definiteness is Definiteness.INDEFINITE:
        raise ValueError(
            f"norm_bound={norm_bound:g} bounds a norm in feature space, and {gram.kernel!r} is "
            "indefinite on these data: it has none. Use C or lam, or a valid kernel."
        )
    bounded = BoundedDual(gram, problem, solver, workers, number, known)
    found, status = minimise_within(bounded, norm_bound, tol)
    solver.monitor.finished()
    last: Any = bounded.evaluation
    cost, (coefficients, decision, bias) = found.multiplier, found.primal
    judged = found.certificate(status, found.loss)
    certificate = KernelRiskCertificate(
        **{name: getattr(judged, name) for name in vars(judged)},
        spectrum=last.certificate.spectrum,
        rounding=last.certificate.rounding * bounded.share,
    )
    beta = cost * found.dual[0]
    evaluation = replace(
        last,
        problem=problem.times(cost).renumbered(),
        beta=beta,
        solution=replace(last.solution, beta=beta),
        coefficients=coefficients,
        decision=decision,
        bias=float(bias[0]),
        squared_norm=bounded.norm(found.primal) ** 2,
        certificate=certificate,
    )
    return evaluation, cost, bounded.steps

"""Few passes over many rows: a part of them stands for how the losses of all are bent.

The part at costs ``c_i / p_i`` that stand for all, and a tilt,

    S_k(theta) = R(w) + sum_{i in part} c_i / p_i V(u_i) + tilt_k . theta

where the tilt gives S_k the gradient of the whole at ``theta_k``: its minimum is ``theta_{k+1}``.
How far it still is falls each time by as much as the part's curvature differs from that of all,
and takes one pass. Rows are drawn with a probability ``p_i`` in proportion to the share they have
in the squares of the columns: those that are alone in having something to say about a column are
all in the part.

The same part proves how far: no loss is below its tangents. With tangents at ``theta_k`` for all
other rows, and the part's losses as they are, the least value is a lower bound on the objective.

References: Shamir, Srebro and Zhang, ICML 2014 (the tilt); Drineas, Mahoney and Muthukrishnan, SIAM
J. Matrix Analysis 30, 2008 (rows by their share).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.risk import GapCertificate, LinearSolution, Look, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.newton_steps import Losses, NewtonSteps
from maxmargin.solvers.risk_solver import RiskSolver

_MANY, _SHARE = 1 << 20, 32# entries from which a part is taken, and how many there are in all
_PER_WEIGHT = 4  # rows that a part has at least for every weight
_EVEN = 0.2  # share of a part that is drawn without looking at the rows
_ROUGH = 1e-2  # relative gap to which the part alone is solved
_NEARER = 1e-2  # over its first promise, to which a surrogate is solved
_FINE = 1e-8  # over the objective, for a bound
_STEPS = 12
_UNSEEN = 1e-6  # squares of a column, over the mean, that a small sample may not have seen
_ROUNDS = 8
_DRIFT = 1e-10
_LOOKS, _SLOW = 12, 0.5  # passes, and the share of the gap that may be left by one


@dataclass(frozen=True)
class Part:
    """Some rows of a problem.

    Attributes
    ----------
    rows : int array
    own : RegularisedRisk
        Their problem, at their own costs.
    standing : RegularisedRisk
        The same at costs that stand for all rows.
    """

    rows: np.ndarray
    own: RegularisedRisk
    standing: RegularisedRisk

    @classmethod
    def of(cls, risk: RegularisedRisk) -> Part | None:
        """Draw a part of the rows; None where all are few."""
        design, n = risk.design, risk.n
        count = max(n // _SHARE, _PER_WEIGHT * design.width)
        if design.entries < _MANY or count > n // 2:
            return None
        random = np.random.default_rng(0)
        chance = _chances(risk, count, random)
        rows = np.flatnonzero(random.random(n) < chance)
        own = risk.take(rows)
        return cls(rows, own, own.with_cost(own.cost / chance[rows]))


def _chances(risk: RegularisedRisk, count: int, random: np.random.Generator) -> np.ndarray:
    """Probabilities with which rows are drawn, so many in all."""
    design = risk.design
    some = np.sort(random.choice(risk.n, count // _PER_WEIGHT, replace=False))
    squares = design.take(some).gram(risk.cost[some]).diagonal()
    least = _UNSEEN * max(float(squares.mean()), np.finfo(np.float64).tiny)
    share = risk.cost * design.squared_norms(1.0 / np.maximum(squares, least))
    sure = np.zeros(risk.n, dtype=bool)
    for _ in range(_ROUNDS):  # what is certain to be drawn leaves so much to the others
        level = (count - np.count_nonzero(sure)) / max(float(share[~sure].sum()), least)
        more = level * share > 1
        if level <= 0 or not (more & ~sure).any():
            break
        sure |= more
    chance = np.where(sure, 1.0, max(level, 0.0) * share)
    return np.where(risk.cost > 0, np.minimum(chance + _EVEN * count / risk.n, 1.0), 0.0)


class _Standing:
    """A look at all rows, and what the part makes of it."""

    def __init__(self, solver: RiskSolver, risk: RegularisedRisk, part: Part, look: Look) -> None:
        self.solver, self.risk, self.part, self.look = solver, risk, part, look
        self.objective = risk.norm(look.theta) + look.loss
        self.s = look.s[part.rows]
        self.surrogate, self.steps = self._tilted(part.standing)
        self.steps.down(self.surrogate, np.inf, 1)
        self.left = self.steps.promise  # by how much it may still fall

    def _tilted(self, risk: RegularisedRisk) -> tuple[Losses, NewtonSteps]:
        """Losses of the part, and steps on them under the pull of all other rows."""
        tilt = self.look.pull + risk.design.combination(risk.beta(self.s))
        solver = self.solver
        return Losses(risk), NewtonSteps(
            risk, self.look.theta, solver.tol, -1, solver.monitor, tilt
        )

    def next(self) -> np.ndarray:
        """Weights of the least surrogate."""
        self.steps.down(self.surrogate, _NEARER * self.left, _STEPS)
        return self.steps.theta

    def certificate(self) -> tuple[GapCertificate, np.ndarray]:
        """Gap between the objective and the bound, and the slopes of the bound."""
        look, risk, own = self.look, self.risk, self.part.own
        losses, steps = self._tilted(own)
        steps.down(losses, _FINE * self.objective, _STEPS)
        others = steps.tilt
        drift = -float(others[-1]) / own.design.constant if own.free_intercept else 0.0
        s = own.feasible(losses.slopes(steps.f), drift)
        combined = own.design.combination(own.beta(s)) - others
        nothing = np.zeros(len(combined))
        offset = look.offset + own.dual(self.s, nothing) - own.dual(s, nothing)
        bound = -0.5 * float(risk.penalised @ combined**2) - offset
        if own.free_intercept and abs(combined[-1]) > _DRIFT * float(np.abs(others).max()):
            bound = -np.inf  # the part alone cannot make up for the others
        slopes = look.s.copy()
        slopes[self.part.rows] = s
        judged = GapCertificate.of(
            self.objective, bound, risk.rounding, Status.STALLED, self.solver.tol
        )
        return judged, slopes


def by_part(
    solver: RiskSolver, risk: RegularisedRisk, part: Part, start: LinearSolution | None
) -> LinearSolution:
    """Minimise a risk by looks at all rows and steps on a part of them.

    Where looks bring it no nearer, the answer's status is "stalled" and it is the best one seen.
    """
    theta = from_part(solver, part) if start is None else start.theta
    limit = _LOOKS if solver.max_iter < 0 else max(solver.max_iter, 1)
    best, passes, status = None, 0, None
    while status is None:
        standing, passes = _Standing(solver, risk, part, risk.look(theta)), passes + 1
        best, before = standing, best
        if before is not None and standing.objective > before.objective:
            best, status = before, Status.STALLED
        elif before is not None and standing.left > _SLOW * before.left:
            status = Status.STALLED
        if _SHARE * standing.left <= solver.tol * standing.objective:
            certificate, s = standing.certificate()
            if certificate.converged:
                return LinearSolution(theta, s, passes, Status.CONVERGED, certificate)
        if passes >= limit:
            status = Status.STALLED if solver.max_iter < 0 else Status.MAX_ITER
        status = solver.monitor.stopped() or status
        if solver.monitor.due():
            over = standing.left / standing.objective
            solver.monitor.report(passes, over, solver.tol, standing.left, standing.look.s)
        if status is None:
            theta = standing.next()
    return LinearSolution(best.look.theta, best.look.s, passes, status)


def from_part(solver: RiskSolver, part: Part) -> np.ndarray:
    """Weights that a part of the rows asks for, by the same solver."""
    return replace(solver, tol=_ROUGH).solve(part.standing).theta

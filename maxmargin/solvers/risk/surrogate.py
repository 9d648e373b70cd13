"""Few passes over many rows: a part of them stands for how the losses of all are bent.

With the part at costs ``c_i / p_i`` that stand for all, and a tilt,

    S_k(theta) = R(w) + sum_{i in part} c_i / p_i V(u_i) + tilt_k . theta

where the tilt gives S_k the gradient of the whole at ``theta_k``: its minimum is ``theta_{k+1}``.
How far it still is falls each time by as much as the part's curvature differs from that of all,
and takes one pass. Rows are drawn with probabilities ``p_i`` in proportion to the share they have
in the curvature along each column: rows that are alone in having something to say about a column
are all in the part.

The same part proves how far it is. No loss is below its tangents: with tangents at ``theta_k`` for
all other rows, and the part's losses as they are, the least value is a lower bound.

References: Shamir, Srebro and Zhang, ICML 2014 (the tilt); Drineas, Mahoney and Muthukrishnan, SIAM
J. Matrix Analysis 30, 2008 (rows by their share).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.risk import GapCertificate, LinearSolution, Look, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers.risk.newton_steps import Losses, NewtonSteps
from maxmargin.solvers.risk.risk_solver import RiskSolver, report

_MANY = 1 << 20  # entries from which a part is taken
_SHARE, _PER_WEIGHT = 32, 64  # how many parts all rows would make, and a part's rows for a weight
_LEAST_SHARE = 8  # below which a part saves nothing
_FIRST = 64  # the share that a solve begins with
_ROUGH = 1e-2  # relative gap to which that is solved
_EVEN = 0.2  # more rows, drawn without looking at them
_STRAIGHT = 0.05  # curvature that a row without any counts for, over the largest: it may get some
_UNSEEN = 1e-6  # squares of a column, over the mean, that a small sample may not have seen
_NOTHING = 1e-200  # squares that are none
_ROUNDS = 8
_NEARER = 1e-2  # promise over the first one, to which a surrogate is solved
_FINE = 1e-8  # promise over the objective, to which a bound is
_STEPS = 12  # for either
_DRIFT = 1e-11  # of the part's pull on an intercept without a penalty, that may be left
_DRAWS = 2  # of parts
_LOOKS, _SLOW = 12, 0.5  # passes, and the share of what was left that one may leave


def many(risk: RegularisedRisk) -> bool:
    """Whether a part of the rows is much less than all, and enough."""
    enough = _LEAST_SHARE * _PER_WEIGHT * risk.design.width <= risk.n
    return enough and risk.design.entries >= _MANY


def from_sample(solver: RiskSolver, risk: RegularisedRisk, share: int = _FIRST) -> np.ndarray:
    """Weights that some rows ask for, by the same solver; zero where these are no better."""
    theta = _from_sample(solver, risk, share)
    if risk.primal(theta, risk.values(theta)) > risk.nothing:
        return np.zeros(risk.design.width)  # a class may have been missing, for example
    return theta


def _from_sample(solver: RiskSolver, risk: RegularisedRisk, share: int = _FIRST) -> np.ndarray:
    rows = _sample(risk.n, max(risk.n // share, _PER_WEIGHT * risk.design.width))
    part = risk.take(rows)
    mass = float(part.cost.sum())
    if not mass:
        return np.zeros(risk.design.width)
    part = part.with_cost(risk.cost.sum() / mass * part.cost)
    return replace(solver, tol=_ROUGH).solve(part).theta


def _sample(n: int, count: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


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
    def drawn(cls, risk: RegularisedRisk, look: Look, draw: int) -> Part:
        """Draw rows by what a look has found, for the so-manieth time; then they are known."""
        chance = _chances(risk, look)
        rows = np.flatnonzero(np.random.default_rng(draw).random(risk.n) < chance)
        part = risk.take(rows)
        own = part.cost / risk.factor
        known = cls(rows, part.with_cost(own), part.with_cost(own / chance[rows]))
        risk.known.part = known
        return known.times(risk.factor)

    def times(self, factor: float) -> Part:
        """Return the part at costs so many times as large."""
        return replace(self, own=self.own.times(factor), standing=self.standing.times(factor))


def _chances(risk: RegularisedRisk, look: Look) -> np.ndarray:
    """Probabilities with which rows are drawn."""
    design, count = risk.design, max(risk.n // _SHARE, _PER_WEIGHT * risk.design.width)
    curvature = risk.loss.curvature(risk.arguments(look.f))
    weight = risk.cost * (curvature + _STRAIGHT * risk.bend)
    some = _sample(risk.n, count // 4)
    squares = design.take(some).gram(weight[some]).diagonal()
    least = max(_UNSEEN * float(squares.mean()), _NOTHING)
    share = weight * design.squared_norms(1.0 / np.maximum(squares, least))
    sure = np.zeros(risk.n, dtype=bool)
    for _ in range(_ROUNDS):  # what is certain to be drawn leaves so much to the others
        level = (count - np.count_nonzero(sure)) / max(float(share[~sure].sum()), least)
        more = level * share > 1
        if level <= 0 or not (more & ~sure).any():
            break
        sure |= more
    chance = np.where(sure, 1.0, max(level, 0.0) * share) + _EVEN * count / risk.n
    return np.where(risk.cost > 0, np.minimum(chance, 1.0), 0.0)


class _Standing:
    """A look at all rows, and what a part makes of it."""

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
        steps = NewtonSteps(risk, self.look.theta, solver.tol, -1, solver.monitor, tilt)
        return Losses(risk), steps

    def nearer(self, before: _Standing) -> bool:
        """Whether this is a good step on from a look before."""
        return self.objective <= before.objective and self.left <= _SLOW * before.left

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
        s = own.feasible(steps.predicted() if steps.passes else self.s, drift)
        combined = own.design.combination(own.beta(s)) - others
        nothing = np.zeros(len(combined))
        offset = look.offset + own.dual(self.s, nothing) - own.dual(s, nothing)
        bound = -0.5 * float(risk.penalised @ combined**2) - offset
        mass = own.design.constant * float(np.abs(own.beta(s)).sum())
        if own.free_intercept and abs(combined[-1]) > _DRIFT * mass:
            bound = -np.inf  # the part alone cannot make up for the others
        slopes = look.s.copy()
        slopes[self.part.rows] = s
        judged = GapCertificate.of(
            self.objective, bound, risk.rounding, Status.STALLED, self.solver.tol
        )
        return judged, slopes


def by_part(
    solver: RiskSolver, risk: RegularisedRisk, start: LinearSolution | None
) -> LinearSolution:
    """Minimise a risk by looks at all rows and steps on a part of them.

    Where looks bring it no nearer, the answer's status is "stalled" and it is the best one seen.
    """
    theta = _from_sample(solver, risk) if start is None else start.theta
    limit = solver.max_iter if solver.max_iter >= 0 else np.inf
    part = None if risk.known.part is None else risk.known.part.times(risk.factor)
    passes, draws, best = 0, 0, None
    while True:
        look, passes = risk.look(theta), passes + 1
        if start is None and passes == 1 and risk.norm(theta) + look.loss > risk.nothing:
            theta = np.zeros(risk.design.width)
            look = risk.look(theta)
        if part is None:
            part, draws = Part.drawn(risk, look, draws), draws + 1
        standing = _Standing(solver, risk, part, look)
        if standing.left <= solver.tol * standing.objective:
            certificate, s = standing.certificate()
            if certificate.converged:
                return LinearSolution(theta, s, passes, Status.CONVERGED, certificate)
        nearer = best is None or standing.nearer(best)
        if best is None or standing.objective <= best.objective:
            best = standing
        status = solver.monitor.stopped()
        if status is None and passes >= limit:
            status = Status.MAX_ITER
        if status is None and (passes >= _LOOKS or (not nearer and draws == _DRAWS)):
            status = Status.STALLED
        if status is not None:
            return LinearSolution(best.look.theta, best.look.s, passes, status)
        if not nearer:
            part, draws = Part.drawn(risk, best.look, draws), draws + 1
            best = _Standing(solver, risk, part, best.look)
        report(solver.monitor, passes, best.left, best.objective, solver.tol)
        theta = best.next()

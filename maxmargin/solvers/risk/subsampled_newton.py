"""Subsampled Newton: few passes over many rows, a part of which stands for the curvature of all.

With the part at costs ``c_i / p_i`` that stand for all, and a tilt,

    S_k(theta) = R(w) + sum_{i in part} c_i / p_i V(u_i) + tilt_k . theta

where the tilt gives S_k the gradient of the whole at ``theta_k``: its minimum is ``theta_{k+1}``.
How far it still is falls each time by as much as the part's curvature differs from that of all,
and takes one pass. Rows are drawn with probabilities ``p_i`` in proportion to the share they have
in the curvature along each column, leverage scores of one column at a time: rows that are alone in
having something to say about a column are all in the part.

The same part proves how far it is. No loss is below its tangents: with tangents at ``theta_k`` for
all other rows, and the part's losses as they are, the least value is a lower bound.

References: Shamir, Srebro and Zhang, ICML 2014 (the tilt); Drineas, Mahoney and Muthukrishnan, SIAM
J. Matrix Analysis 30, 2008 (rows by their share).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.risk import Losses, RegularisedRisk, RiskEvaluation
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.risk.newton_steps import NewtonSteps
from maxmargin.solvers.risk.run import RiskCache, RiskMethod, RiskRun

_MANY = 1 << 20  # entries from which a part is taken
_SHARE, _PER_WEIGHT = 32, 64  # how many parts all rows would make, and a part's rows for a weight
_LEAST_SHARE = 8  # below which a part saves nothing
_FIRST = 64  # the share that a solve begins with
_ROUGH = 1e-2  # relative gap to which that is solved
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


def part_size(risk: RegularisedRisk) -> int:
    """About how many rows a part has."""
    return max(risk.n // _SHARE, _PER_WEIGHT * risk.design.width)


def from_sample(run: RiskRun[RegularisedRisk], method: RiskMethod) -> Generator[None, None, None]:
    """Take a run to the weights that some rows ask for, or to zero where these are no better."""
    risk = run.risk
    part = risk.some(max(risk.n // _FIRST, _PER_WEIGHT * risk.design.width))
    if part.total_cost:
        inner = method.begin(part, replace(run.watch, tol=_ROUGH))
        assert isinstance(inner, RiskRun)
        yield from run.follow(inner)
    if risk.norm(run.theta) + run.cache.evaluate(risk, run.theta).loss > risk.nothing:
        run.stand(np.zeros(risk.design.width))  # a class may have been missing, for example


@dataclass(frozen=True)
class Part:
    """Some rows of a problem.

    Attributes
    ----------
    rows : int array
    own : RegularisedRisk
        Their problem, at their own costs.
    standing : RegularisedRisk
        The same at costs that make up for the rows left out.
    caches : tuple of RiskCache
        Of these two problems.
    """

    rows: np.ndarray
    own: RegularisedRisk
    standing: RegularisedRisk
    caches: tuple[RiskCache, RiskCache] = field(default_factory=lambda: (RiskCache(), RiskCache()))

    @classmethod
    def drawn(cls, risk: RegularisedRisk, seen: RiskEvaluation, draw: int) -> Part:
        """Sample rows with probabilities from an evaluation of all; ``draw`` is the seed."""
        rows, part, chance = risk.drawn(seen, part_size(risk), draw)
        return cls(rows, part, part.with_cost(part.cost / chance))

    def times(self, factor: float) -> Part:
        """Return the part at costs so many times as large."""
        return replace(self, own=self.own.times(factor), standing=self.standing.times(factor))


class _Surrogate:
    """An evaluation of all rows, and what a part makes of it."""

    def __init__(
        self, risk: RegularisedRisk, part: Part, seen: RiskEvaluation, watch: Watch
    ) -> None:
        self.risk, self.part, self.seen, self.watch = risk, part, seen, watch
        self.objective = risk.norm(seen.theta) + seen.loss
        self.s = seen.slopes_of(part.rows, part.own)
        self.losses, self.steps = self._tilted(part.standing, part.caches[1])
        self.steps.descend(self.losses, np.inf, 1, watch.stopped)
        self.left = self.steps.promise  # by how much it may still fall

    def _tilted(self, risk: RegularisedRisk, cache: RiskCache) -> tuple[Losses, NewtonSteps]:
        """Losses of the part, and steps on them with the gradient of all other rows."""
        tilt = self.seen.gradient + risk.design.combination(risk.beta(self.s))
        return risk.losses(), NewtonSteps(risk, self.seen.theta, cache, tilt)

    def nearer(self, before: _Surrogate) -> bool:
        """Whether this is a good step on from an evaluation before."""
        return self.objective <= before.objective and self.left <= _SLOW * before.left

    def minimum(self) -> np.ndarray:
        """Weights where the surrogate is least."""
        self.steps.descend(self.losses, _NEARER * self.left, _STEPS, self.watch.stopped)
        return self.steps.theta

    def certificate(self) -> tuple[RiskCertificate, np.ndarray]:
        """Gap between the objective and the bound, and the slopes of the bound."""
        seen, risk, own = self.seen, self.risk, self.part.own
        losses, steps = self._tilted(own, self.part.caches[0])
        steps.descend(losses, _FINE * self.objective, _STEPS, self.watch.stopped)
        others = steps.tilt
        drift = -float(others[-1]) / own.design.constant if own.free_intercept else 0.0
        s = own.feasible(steps.predicted() if steps.model else self.s, drift)
        combined = own.design.combination(own.beta(s)) - others
        nothing = np.zeros(len(combined))
        offset = seen.offset + own.dual(self.s, nothing) - own.dual(s, nothing)
        bound = -0.5 * float(risk.penalised @ combined**2) - offset
        mass = own.design.constant * float(np.abs(own.beta(s)).sum())
        if own.free_intercept and abs(combined[-1]) > _DRIFT * mass:
            bound = -np.inf  # the part alone cannot make up for the others
        judged = RiskCertificate.of(
            self.objective, bound, risk.rounding, Status.STALLED, self.watch.tol
        )
        return judged, seen.with_slopes(self.part.rows, s)


def by_part(run: RiskRun[RegularisedRisk], method: RiskMethod) -> Generator[None, None, bool]:
    """Take a run on by evaluations of all rows and steps on a part of them, a pass for each.

    Returns whether it has converged; where evaluations bring it no nearer, it is at the best
    weights seen.
    """
    risk, watch, cache = run.risk, run.watch, run.cache
    if run.start is None:
        yield from from_sample(run, method)
    theta, draws, part = run.theta, 0, None
    best: _Surrogate | None = None
    if cache.part is not None:
        total, known = cache.part
        part = known.times(risk.total_cost / total)
    for _ in range(_LOOKS):
        seen = cache.evaluate(risk, theta)
        run.n_iter += 1
        if part is None:
            part, draws = Part.drawn(risk, seen, draws), draws + 1
            cache.part = risk.total_cost, part
        surrogate = _Surrogate(risk, part, seen, watch)
        if surrogate.left <= watch.tol * surrogate.objective:
            certificate, s = surrogate.certificate()
            if certificate.converged:
                run.stand(theta, s, certificate)
                return True
        nearer = best is None or surrogate.nearer(best)
        if best is None or surrogate.objective <= best.objective:
            best = surrogate
        run.stand(best.seen.theta, best.seen.s)
        if not nearer and draws == _DRAWS:
            return False
        yield
        if not nearer:
            part, draws = Part.drawn(risk, best.seen, draws), draws + 1
            cache.part = risk.total_cost, part
            best = _Surrogate(risk, part, best.seen, watch)
        theta = best.minimum()
    return False

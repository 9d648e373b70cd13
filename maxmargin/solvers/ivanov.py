"""Ivanov's form, least loss with a bound on the weights, through answers of Tikhonov's.

    minimise  L(w) = sum_i c_i V_i(f_i)   subject to  ||w|| <= r

Slopes ``s_i`` of the losses, those of a free intercept of sum zero, bound it from below: with
``u = sum_i c_i s_i x_i``, every w within the bound has

    L(w) >= u . w - sum_i c_i V_i*(s_i) >= D(s) = -r ||u|| - sum_i c_i V_i*(s_i)

so that ``L(w) - D(s)`` is the duality gap of this problem, whatever w and s come from. Here they
come from Tikhonov's form, the least of ``1/2 ||w||^2 + C L(w)``, whose norm grows with C: the C is
looked for whose answer is as long as the bound. Between two answers, a too short and a too long
one, the weights of the hinge lie on a line in C, and its slopes on one in 1/C, unless a row comes
to the street or leaves it between them. So the points of both lines at the bound are judged, too,
and are the answer as soon as nothing is between; what they say of C is what is tried next.

References: Ivanov, Soviet Mathematics 3, 1962; Vapnik, The Nature of Statistical Learning Theory,
1995; Hastie, Rosset, Tibshirani and Zhu, JMLR 5, 2004 (the lines).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.solution import Status

_STEP = 2.0  # of the logarithm of C, where an end is not yet known
_TRIES, _PATIENCE, _RESTARTS = 60, 4, 2  # solves; those without gain; brackets that failed
_LARGEST = 1e25  # C whose products float64 still holds
_NARROW, _NOTHING = 1e-3, 1e-14  # of the logarithm of C between two ends
_SHARE = 0.1  # of the gap that is allowed, which a solve may leave
_NO_LOSS = 1e-6  # loss, over that of zero weights, that others are not measured by
_INSIDE = 1.0 - 16.0 * np.finfo(np.float64).eps  # of the bound, that rounding does not exceed

Arrays = tuple[np.ndarray, ...]


class Answer(NamedTuple):
    """Tikhonov's answer at a cost: what is linear in the weights, and what is in the slopes."""

    cost: float
    primal: Arrays
    dual: Arrays
    status: Status


class BoundedProblem(ABC):
    """A sum of losses to be minimised under a bound on the norm.

    Attributes
    ----------
    nothing : float
        Sum of the losses of zero weights.
    rest : tuple of arrays
        Zero weights, as ``primal`` has them, with the intercept of ``nothing``.
    first : float
        The C that is tried first.
    """

    nothing: float
    rest: Arrays
    first: float

    @abstractmethod
    def solve(self, cost: float, gap: float) -> Answer:
        """Minimise ``1/2 ||w||^2 + cost L(w)``, to a gap of so much of L; begins from the last."""

    @abstractmethod
    def norm(self, primal: Arrays) -> float:
        """``||w||``."""

    @abstractmethod
    def loss(self, primal: Arrays) -> float:
        """``L(w)``."""

    @abstractmethod
    def pull(self, dual: Arrays) -> tuple[float, float]:
        """``||u||`` and ``sum_i c_i V_i*(s_i)``; infinite where the slopes are not allowed."""


@dataclass
class Bounded:
    """The best weights within a bound so far, the best slopes, and where to go on.

    Attributes
    ----------
    primal, dual : tuple of arrays
        The weights and the slopes, as the problem has them.
    cost : float
        The C of Tikhonov's answer that the weights are made of.
    loss, bound, length : float
        ``L`` of the weights, ``D`` and ``||u||`` of the slopes.
    """

    problem: BoundedProblem
    norm_bound: float
    tol: float
    primal: Arrays = ()
    dual: Arrays = ()
    cost: float = 1.0
    loss: float = np.inf
    bound: float = -np.inf
    length: float = np.inf

    @property
    def multiplier(self) -> float:
        """The C of Tikhonov's form with this answer: ``r / ||u||`` at the bound, where w = C u."""
        binds = self.problem.norm(self.primal) >= (1.0 - self.tol) * self.norm_bound
        known = 0 < self.length < np.inf and self.loss > self.least
        return self.norm_bound / self.length if binds and known else self.cost

    @property
    def least(self) -> float:
        """Loss below which the gap is not measured by it."""
        return _NO_LOSS * self.problem.nothing

    @property
    def allowed(self) -> float:
        """Gap that counts as none."""
        return self.tol * max(min(self.loss, self.problem.nothing), self.least)

    @property
    def gap(self) -> float:
        """How much better weights within the bound may be."""
        return self.loss - max(self.bound, 0.0)

    def consider(self, primal: Arrays, cost: float) -> None:
        """Take weights, or these as long as the bound, if they are better by what counts.

        They are not made longer to lose nothing: of all that lose nothing, shorter ones will do.
        """
        norm, r = self.problem.norm(primal), self.norm_bound
        choices = [primal] if norm <= _INSIDE * r else []
        if norm > 0:
            choices.append(tuple((_INSIDE * r / norm) * part for part in primal))
        for choice in choices:
            loss = self.problem.loss(choice)
            longer = choice is not primal and norm < r
            if loss < self.loss - _SHARE * self.allowed and not (longer and loss < self.least):
                self.primal, self.loss, self.cost = choice, loss, cost

    def learn(self, dual: Arrays) -> None:
        """Take slopes if they prove more."""
        length, conjugates = self.problem.pull(dual)
        bound = -self.norm_bound * length - conjugates
        if bound > self.bound:
            self.dual, self.bound, self.length = dual, bound, length

    def certificate(self, status: Status, loss: float) -> RiskCertificate:
        """Judge the weights, by their loss as recomputed."""
        problem = f"least loss with ||w|| <= {self.norm_bound:g}"
        judged = RiskCertificate.of(loss, self.bound, self.least, status, self.tol)
        return replace(judged, problem=problem)


def natural_cost(costs: np.ndarray, squared_norms: np.ndarray) -> float:
    """Return the C at which ``C c_i ||x_i||^2`` is one on average, in whatever units both are."""
    return cost_of_square(
        float((costs * squared_norms).sum()) / max(int(np.count_nonzero(costs)), 1)
    )


def cost_of_square(mean: float) -> float:
    """Return the C that makes one of a mean of costs times squared lengths."""
    return float(np.clip(1.0 / max(mean, 1.0 / _LARGEST), 1.0 / _LARGEST, _LARGEST))


def minimise_within(
    problem: BoundedProblem, norm_bound: float, tol: float
) -> tuple[Bounded, Status]:
    """Find weights of the least loss within a bound on their norm.

    Parameters
    ----------
    problem : BoundedProblem
    norm_bound : float
    tol : float
        Duality gap over the loss, or over a millionth of that of zero weights where it is less.

    Returns
    -------
    found : Bounded
    status : Status
        Converged, or why it ended before that.
    """
    found, search = Bounded(problem, norm_bound, tol), _Search(problem.first)
    status = Status.CONVERGED
    found.consider(problem.rest, search.cost)  # where they lose nothing, rounding must not decide
    for _ in range(_TRIES):
        answer = problem.solve(search.cost, search.share * found.allowed)
        found.consider(answer.primal, answer.cost)
        found.learn(answer.dual)
        found.dual = found.dual or answer.dual
        search.narrow(found, answer)
        status = answer.status
        if found.gap <= found.allowed:
            return found, Status.CONVERGED
        if status not in (Status.CONVERGED, Status.STALLED) or search.restarts > _RESTARTS:
            break
        search.advance(found, answer)
    return found, Status.STALLED if status is Status.CONVERGED else status


class _Search:
    """The costs that are tried."""

    def __init__(self, cost: float) -> None:
        self.cost, self.share = cost, _SHARE
        self.short: Answer | None = None  # the last answer that is within the bound
        self.long: Answer | None = None  # the last one that is not
        self.between = cost  # where the line from the one to the other meets the bound
        self.least, self.width, self.stale, self.restarts = np.inf, np.inf, 0, 0

    def narrow(self, found: Bounded, answer: Answer) -> None:
        """Take an answer for one end, and judge what lies on the lines between both ends."""
        problem, r = found.problem, found.norm_bound
        before = self.short
        if problem.norm(answer.primal) <= r:
            self.short = answer
        else:
            self.long = answer
        if self.short is None:
            return
        if self.long is None:
            if before is not None and before.cost < answer.cost:  # what C = inf would have
                found.learn(_between(before.dual, answer.dual, _at(0.0, before, answer)))
            return
        short, long = self.short, self.long
        t = _meets(problem, short.primal, long.primal, r)
        cost = (1.0 - t) * short.cost + t * long.cost
        found.consider(_between(short.primal, long.primal, t), cost)
        found.learn(_between(short.dual, long.dual, _at(1.0 / cost, short, long)))
        self.between = cost

    def advance(self, found: Bounded, answer: Answer) -> None:
        """Choose the cost to try next; where nothing is gained, begin anew with finer solves."""
        ends = [end.cost for end in (self.short, self.long) if end is not None]
        width = abs(float(np.log(ends[0] / ends[-1]))) if len(ends) == 2 else np.inf
        halved = np.isfinite(width) and width <= 0.5 * self.width
        gap = found.loss - found.bound
        gained = gap <= 0.5 * self.least or halved
        self.stale = 0 if gained else self.stale + 1
        self.least, self.width = min(self.least, gap), width
        wide = len(ends) == 2 and width > _NARROW
        if (self.stale >= _PATIENCE and not wide) or width <= _NOTHING:
            self.share, self.stale, self.restarts = 0.03 * self.share, 0, self.restarts + 1
            self.short = self.long = None
            self.cost = float(np.exp(np.mean(np.log(ends))))
        elif len(ends) == 2:
            self.share *= 0.7
            self.cost = self.between if halved else float(np.sqrt(ends[0] * ends[1]))
        else:
            self.cost = answer.cost * float(np.exp(self._stride(found, answer)))
            self.cost = min(self.cost, _LARGEST)

    def _stride(self, found: Bounded, answer: Answer) -> float:
        """By how much to change the logarithm of the cost where one end is not yet known."""
        norm = found.problem.norm(answer.primal)
        away = float(np.log(max(norm, np.finfo(np.float64).tiny) / found.norm_bound))
        far = max(_STEP, abs(away))  # the norm grows no faster than the cost
        if away > 0:
            return -far
        gap = found.loss - found.bound  # falls no slower than one over it
        return min(far, float(np.log(max(gap / found.allowed, 1.0))) + 0.1)


def _between(a: Arrays, b: Arrays, t: float) -> Arrays:
    return tuple((1.0 - t) * x + t * y for x, y in zip(a, b, strict=True))


def _at(lam: float, a: Answer, b: Answer) -> float:
    """Where 1/C is ``lam`` on the line from one answer to another."""
    first, last = 1.0 / a.cost, 1.0 / b.cost
    return (first - lam) / (first - last) if first != last else 0.0


def _meets(problem: BoundedProblem, short: Arrays, long: Arrays, r: float) -> float:
    """Where the line from short weights to long ones is as long as the bound."""
    first, last = problem.norm(short) ** 2, problem.norm(long) ** 2
    half = problem.norm(_between(short, long, 0.5)) ** 2
    square = 2.0 * (first + last) - 4.0 * half  # ||(1-t) a + t b||^2 = first + slope t + square t^2
    slope, missing = last - first - square, r * r - first
    root = np.sqrt(max(slope * slope + 4.0 * square * missing, 0.0))
    denominator = slope + root
    return float(np.clip(2.0 * missing / denominator, 0.0, 1.0)) if denominator > 0 else 0.0

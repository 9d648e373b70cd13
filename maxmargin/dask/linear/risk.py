"""Risks over rows in partitions: every sum by a pass, what belongs together in one.

The solvers are those of one machine. What they ask for one after the other, a loss, its gradient,
the matrix of a Newton step, is all summed in the pass that the first of them takes, and remembered
for the others (:meth:`Partitioned.look`); so is what a certificate is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.systems import DIRECT, solved
from maxmargin.certificate import RiskCertificate
from maxmargin.dask.linear import sums
from maxmargin.dask.linear.design import PartitionedDesign
from maxmargin.dask.linear.losses import PartitionedLosses, PartitionedModel
from maxmargin.dask.linear.passes import Passes, Pose
from maxmargin.dask.linear.sample import Sample
from maxmargin.dask.linear.vectors import RowVector, Values, asked, replaced
from maxmargin.risk import RegularisedRisk, RiskEvaluation, SoftmaxRisk
from maxmargin.risk.base import ClassesRisk, Risk
from maxmargin.risk.regularised import Losses, balance
from maxmargin.solution import Status
from maxmargin.solvers.risk.subsampled_newton import part_size

_KNOWN = 6  # looks, and accounts of slopes, that are remembered


class Look(NamedTuple):
    """Sums over all rows at some weights: losses, gradient, offset, matrix where it was made."""

    loss: float
    gradient: np.ndarray
    offset: float
    matrix: np.ndarray | None = None


class Account(NamedTuple):
    """What slopes prove: sums of ``beta`` on both sides, ``Z' beta``, and the conjugates."""

    plus: float
    minus: float
    combined: np.ndarray
    conjugates: float


class _Drift(NamedTuple):
    """Sum of ``beta``, and how far it may go down and up."""

    sum: float
    down: float
    up: float


@dataclass(frozen=True)
class PartitionedEvaluation(RiskEvaluation):
    """All rows as one pass has seen them; values and slopes are made where they are needed."""

    def slopes_of(self, rows: np.ndarray, part: RegularisedRisk) -> np.ndarray:
        """Slopes of some rows, whose problem is ``part``."""
        return part.slopes_at(part.values(self.theta))

    def with_slopes(self, rows: np.ndarray, s: np.ndarray) -> Any:
        """Slopes of all rows, those of some replaced."""
        return RowVector(len(self.s), replaced, self.s, rows, s)


class Partitioned(Risk):
    """What risks of one value and of several for each row have in common.

    Parameters
    ----------
    passes : Passes
    pose : Pose
    n, entries : int
        Rows that cost anything, and numbers that a pass over them reads.
    total : float
        Sum of the costs.
    sparse : bool
    sample : Sample, optional
        Some rows that are here.
    """

    design: Any
    passes: Passes
    pose: Pose
    sample: Sample | None
    curved = False  # whether a look makes the matrix of a Newton step, too

    def __init__(
        self,
        passes: Passes,
        pose: Pose,
        n: int,
        entries: int,
        total: float,
        sparse: bool,
        sample: Sample | None = None,
    ) -> None:
        design = PartitionedDesign(passes, pose, n, entries, sparse)
        self._like(pose.template, design, RowVector(n, asked, "cost"))
        self.passes, self.pose, self.sample = passes, pose, sample
        self.__dict__["total_cost"] = total
        self._known: dict[Any, tuple[Any, Any]] = {}

    @abstractmethod
    def _like(self, like: Any, design: Any, cost: Any) -> None:
        """Become a problem of the same kind as another one, of no rows."""

    def _vector(self, name: str, *parts: Any) -> Any:
        """Vector that a method of the problem of every block makes."""
        return RowVector(self.design.n, asked, name, *parts)

    def _sum(self, function: Callable, *args: Any) -> tuple:
        return self.passes.total(self.pose, function, *args)

    def _remembered(self, key: Any, of: Any, make: Callable[[], Any]) -> Any:
        """Return what is known of something, or make it; the last few are known."""
        if key not in self._known:
            while len(self._known) >= _KNOWN:
                del self._known[next(iter(self._known))]
            self._known[key] = of, make()
        return self._known[key][1]

    def heeding(self, stopped: Callable[[], Any]) -> AbstractContextManager:
        """Ask in the middle of a pass whether to stop."""
        return self.passes.heeding(stopped)

    def with_cost(self, cost: Any) -> Any:
        """Costs of single rows cannot be given: they are where the rows are."""
        raise TypeError("The costs of rows in partitions are made where these lie: use times().")

    def times(self, factor: float) -> Any:
        """Return the problem at costs so many times as large."""
        return self._posed(self.pose.times(factor), factor * self.total_cost)

    def _posed(self, pose: Pose, total: float) -> Any:
        """Return the problem of another pose of the same rows."""
        design = self.design
        kind: Any = type(self)
        size = design.n, design.entries, total, design.sparse
        other = kind(self.passes, pose, *size, self.sample)
        other.curved = self.curved
        return other

    # -- primal --------------------------------------------------------------------------------

    def look(self, theta: np.ndarray, matrix: bool = False) -> Look:
        """Sums at some weights, one pass; none where they are known."""
        key = "look", theta.tobytes()
        if matrix and key in self._known and self._known[key][1].matrix is None:
            del self._known[key]
        matrix = matrix or self.curved
        return self._remembered(key, None, lambda: Look(*self._sum(sums.looked, theta, matrix)))

    def values(self, theta: np.ndarray) -> Any:
        """``Z theta``."""
        return self.design.values(theta)

    def empirical(self, f: Any) -> float:
        """Sum of the losses at values f, each times its cost."""
        if isinstance(f, Values):
            return self.look(f.theta).loss
        return self._sum(sums.empirical, f)[0]

    def loss_gradient(self, theta: np.ndarray, f: Any = None) -> np.ndarray:
        """Gradient of the sum of the losses."""
        return self.look(theta).gradient

    def slope_along(self, f: Any, step: np.ndarray, along: Any) -> float:
        """Slope of the sum of the losses at values f along a step."""
        return float(np.vdot(self.look(f.theta).gradient, step))

    def slopes_at(self, f: Any) -> Any:
        """Slopes of the losses at values f."""
        return self._vector("slopes_at", f)

    def model(self, f: Any) -> Any:
        """Quadratic model of the losses at values f."""
        self.curved = bool(np.prod(self.shape) <= DIRECT)
        look = self.look(f.theta, self.curved)
        return PartitionedModel(self, self._vector("model", f), look.gradient, look.matrix)

    # -- dual ----------------------------------------------------------------------------------

    def beta(self, s: Any) -> Any:
        """Minus the cost times the slope along the values."""
        beta = self._vector("beta", s)
        beta.slopes = s
        return beta

    def slopes(self, beta: Any) -> Any:
        """Slopes of given ``beta``."""
        return self._vector("slopes", beta)

    def allowed(self, s: Any) -> Any:
        """Return the nearest slopes that are in the domain of the conjugates."""
        return self._vector("allowed", s)

    def account(self, s: Any) -> Account:
        """What slopes prove, one pass."""
        return self._remembered(
            ("account", id(s)), s, lambda: Account(*self._sum(sums.account_of, s))
        )

    def combined(self, s: Any) -> np.ndarray:
        """``Z' beta`` of slopes."""
        return self.account(s).combined

    def mass(self, beta: Any) -> float:
        """Sum of the sizes of ``beta``."""
        account = self.account(beta.slopes)
        return account.plus + account.minus

    def conjugates(self, s: Any, beta: Any) -> float:
        """Sum of the losses' conjugates, each times its cost; infinite outside their domain."""
        if ("account", id(s)) in self._known:
            return self.account(s).conjugates
        return self._sum(sums.conjugates, s)[0]

    @property
    def mean_square(self) -> float:
        """Cost times squared length, without what has no penalty, of a row on average."""
        return self._sum(sums.squares, self.penalised)[0] / self.design.n

    def certificate(
        self,
        theta: np.ndarray,
        s: Any,
        status: Status,
        tol: float,
        f: Any = None,
    ) -> RiskCertificate:
        """Recompute both objectives of an answer from the data."""
        f = self.values(theta) if f is None else f
        if not self.penalty.none:
            self._first_look(f, s)
        return super().certificate(theta, s, status, tol, f)

    def _first_look(self, f: Any, s: Any) -> None:
        """Find out what a certificate asks for first, in one pass."""
        if ("look", f.theta.tobytes()) not in self._known:
            self._look_and("account", Account, sums.account_of, f, s)

    def _look_and(self, name: str, kind: Callable, function: Callable, f: Any, s: Any) -> None:
        """Look at values f, and sum something of slopes in the same pass."""
        look, other = self._sum(sums.looked_with, f.theta, self.curved, function, s)
        self._remembered(("look", f.theta.tobytes()), None, lambda: Look(*look))
        self._remembered((name, id(s)), s, lambda: kind(*other))


class PartitionedRisk(Partitioned, RegularisedRisk):
    """The risk of one machine over rows in partitions."""

    def _like(self, like: RegularisedRisk, design: Any, cost: Any) -> None:
        y: Any = RowVector(design.n, asked, "y")
        penalised, penalty = like.penalised_intercept, like.penalty
        RegularisedRisk.__init__(self, design, y, cost, like.loss, penalised, penalty)
        self.__dict__["all_cost"] = True  # others are left out where they lie

    @cached_property
    def nothing(self) -> float:
        """Objective of zero weights."""
        if self.of_margins:
            return float(self.loss.value(np.zeros(1))[0]) * self.total_cost
        return self.empirical(self.design.values_of_nothing(self.shape))

    def losses(self, centre: Any = None, width: float = np.inf) -> Losses:
        """Return the losses for Newton's steps, held near some slopes."""
        return PartitionedLosses(self, centre, width)

    def same_slopes(self, slope: float) -> Any:
        """The same slope for every row."""
        return self._vector("same_slopes", slope)

    # -- a part of the rows ----------------------------------------------------------------------

    def some(self, count: int) -> RegularisedRisk:
        """Return the problem of the rows that are here, at costs for all."""
        assert self.sample is not None  # who fits has had them drawn
        part = self.sample.problem(self.pose)
        return part.times(self.total_cost / part.total_cost) if part.total_cost else part

    def evaluate(self, theta: np.ndarray) -> RiskEvaluation:
        """Read every row once; the first time, draw a part of them as well."""
        f = self.values(theta)
        s = self.slopes_at(f)
        if self.sample is None or self.sample.seen or self.penalty.none:
            look = self.look(theta)
        else:
            self.sample.seen = True
            plan = self.sample.plan(self, theta, part_size(self), 0)
            *found, rows = self._sum(sums.look_and_draw, *plan)
            look = self._remembered(("look", theta.tobytes()), None, lambda: Look(*found))
            self.sample.drawn = theta, rows
        return PartitionedEvaluation(theta, f, s, look.loss, look.gradient, look.offset)

    def drawn(
        self, seen: RiskEvaluation, count: int, seed: int
    ) -> tuple[np.ndarray, RegularisedRisk, np.ndarray]:
        """Return about so many rows, drawn by their share, their problem, and their chances."""
        assert self.sample is not None
        known, self.sample.drawn = self.sample.drawn, None
        if known is not None and np.array_equal(known[0], seen.theta):
            rows = known[1]
        else:
            plan = self.sample.plan(self, seen.theta, count, seed)
            rows = self._sum(sums.look_and_draw, *plan)[-1]
        return self.sample.part(self.pose, rows)

    # -- numbers to be met -----------------------------------------------------------------------

    def middle(self) -> float:
        """Median of the targets, nearly, each as heavy as its cost: one of them."""
        return sums.quantile(self._sum(sums.sketch_targets)[0])

    @property
    def about_middle(self) -> float:
        """Sum of the losses where every value is the median of the targets."""
        return self._sum(sums.empirical_at, self.middle())[0]

    def spreads(self, f: Any) -> tuple[float, float]:
        """How far residuals are from zero, and targets from their median, about the middle."""
        residuals, away = self._sum(sums.sketch_residuals, f, self.middle())
        largest = max(float(values[-1]) for values, _ in residuals)
        return sums.quantile(residuals) or largest, float(away) / self.design.n

    # -- dual ----------------------------------------------------------------------------------

    def _rooms(self, f: Any, s: Any) -> list[tuple[float, float]]:
        """Return how far the values of each partition may go down and up."""
        return self._sum(sums.intercept_room, f, s)[0]

    def feasible(self, s: Any, others: float = 0.0) -> Any:
        """Return slopes near these that meet the constraint of an intercept without a penalty."""
        if not self.free_intercept:
            return s
        if self.walled:
            drift, down, up = self._drift(s)
            room = down if drift + others > 0 else up
            if room > abs(drift + others):
                s = self._vector("given_way", s, (drift + others) / room)
        account = self.account(s)
        factor, positive = balance(account.plus, account.minus, others)
        return s if factor == 1.0 else self._vector("shortened", s, factor, positive)

    def _drift(self, s: Any) -> _Drift:
        return self._remembered(("drift", id(s)), s, lambda: _Drift(*self._sum(sums.drift_of, s)))

    def _first_look(self, f: Any, s: Any) -> None:
        if not (self.free_intercept and self.walled):
            super()._first_look(f, s)
        elif ("look", f.theta.tobytes()) not in self._known:
            self._look_and("drift", _Drift, sums.drift_of, f, s)


class PartitionedSoftmax(Partitioned, SoftmaxRisk):
    """The softmax risk over rows in partitions."""

    def _like(self, like: SoftmaxRisk, design: Any, cost: Any) -> None:
        y: Any = RowVector(design.n, asked, "index")
        how = like.n_classes, cost, like.penalty
        ClassesRisk.__init__(self, design, y, *how, penalised_intercept=False)

    def feasible(self, s: Any) -> Any:
        """Return slopes near these whose sum over the rows is zero, for intercepts."""
        if not self.free_intercept:
            return s
        s = self._vector("moved", s, solved(*self._sum(sums.balance_of, s)))
        return s if np.isfinite(self.account(s).conjugates) else 0.0 * s

"""The risk of one machine: losses of margins or residuals, for two classes or numbers.

With margins or residuals ``u_i`` (:mod:`maxmargin.losses`) the losses of a
:class:`~maxmargin.risk.base.Risk` are ``V_i(f_i) = V(u_i)``, ``beta_i = -c_i s_i du_i/df_i``, and
those of residuals have ``V_i*(s) = V*(s) - beta_i y_i / c_i``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.cpu.linear.losses import RowLosses, reach, slopes, slopes_and_curvatures
from maxmargin.backends.threads import StoppedError
from maxmargin.losses import Loss, MarginLoss
from maxmargin.risk.base import Risk
from maxmargin.risk.penalty import L2, Penalty
from maxmargin.risk.sampling import chances, even

_AROUND = np.linspace(-2.0, 2.0, 9)  # where a loss of margins or residuals is bent most
_DRIFT = 1e-14  # of a sum, that does not count


@dataclass(frozen=True)
class RiskEvaluation:
    """All rows as one pass at some weights sees them.

    Attributes
    ----------
    theta : array
    f : array (n,)
        Values of the rows.
    s : array (n,)
        Slopes of the losses along the margins or residuals.
    loss : float
        Sum of the losses, each times its cost.
    gradient : array
        Of this sum.
    offset : float
        What the tangents of the losses lose at weights of zero: ``gradient . w - offset`` is
        nowhere above the sum of the losses.
    """

    theta: np.ndarray
    f: np.ndarray
    s: np.ndarray
    loss: float
    gradient: np.ndarray
    offset: float

    def slopes_of(self, rows: np.ndarray, part: RegularisedRisk) -> np.ndarray:
        """Slopes of some rows, whose problem is ``part``."""
        return self.s[rows]

    def with_slopes(self, rows: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Slopes of all rows, those of some replaced."""
        slopes = self.s.copy()
        slopes[rows] = s
        return slopes

    def times(self, factor: float) -> RiskEvaluation:
        """Return it at costs so many times as large."""
        return replace(
            self,
            loss=factor * self.loss,
            gradient=factor * self.gradient,
            offset=factor * self.offset,
        )


class RowModel(NamedTuple):
    """Quadratics along the values of rows, a slope and a curvature for each, times the costs."""

    design: Design
    slope: np.ndarray
    curvature: np.ndarray

    def matrix(self, stopped: Callable[[], Any] = lambda: None) -> np.ndarray:
        """Second derivatives by the weights."""
        if stopped():
            raise StoppedError
        return self.design.gram(self.curvature)

    def product(self, step: np.ndarray) -> np.ndarray:
        """The matrix times a step, without the matrix."""
        return self.design.combination(self.curvature * self.design.values(step))

    def after(self, along: np.ndarray) -> np.ndarray:
        """Slopes where the values have changed by ``along``."""
        return self.slope + self.curvature * along


def middle_of(rooms: list[tuple[float, float]]) -> float:
    """Return the middle of what intervals have in common; zero where that is no finite interval."""
    downs, ups = zip(*rooms, strict=True)
    down, up = max(downs), min(ups)
    return 0.5 * (down + up) if -np.inf < down < up < np.inf else 0.0


class RegularisedRisk(Risk):
    """Losses of some rows plus a penalty.

    Parameters
    ----------
    design : Design
        The rows, with the intercept's column.
    y : float array (n,)
        Labels -1 and +1 for a loss of the margin, numbers for one of the residual.
    cost : float array (n,)
        Non-negative.
    loss : Loss
    penalised_intercept : bool
        Whether the intercept's weight is penalised like the others.
    penalty : Penalty

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.losses import Hinge
    >>> from maxmargin.risk import RegularisedRisk
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> risk = RegularisedRisk(Design(X), y, np.ones(2), Hinge())
    >>> risk.primal(np.array([1.0, 0.0])), risk.dual(np.array([-0.5, -0.5]))
    (0.5, 0.5)
    """

    def __init__(
        self,
        design: Design,
        y: np.ndarray,
        cost: np.ndarray,
        loss: Loss,
        penalised_intercept: bool = False,
        penalty: Penalty = L2,
    ) -> None:
        super().__init__(design, cost, penalty, penalised_intercept)
        self.y, self.loss, self.penalised_intercept = y, loss, penalised_intercept
        self.of_margins = isinstance(loss, MarginLoss)
        self.bent = loss.shape is not None and bool(loss.shape.entropy)

    @cached_property
    def nothing(self) -> float:
        """Objective of zero weights."""
        if self.of_margins:
            return float(self.loss.value(np.zeros(1))[0]) * self.total_cost
        return self.empirical(np.zeros(self.n))

    @cached_property
    def all_cost(self) -> bool:
        """Whether no row has a cost of zero."""
        return bool((self.cost > 0).all())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.design.width,)

    @property
    def max_curvature(self) -> float:
        """Curvature that the loss has where it is bent most; one where it has kinks."""
        return float(self.loss.curvature(_AROUND).max()) or 1.0

    def with_cost(self, cost: np.ndarray) -> RegularisedRisk:
        """Return the same problem with other costs."""
        return RegularisedRisk(
            self.design, self.y, cost, self.loss, self.penalised_intercept, self.penalty
        )

    def take(self, rows: np.ndarray) -> RegularisedRisk:
        """Return the problem of some of the rows."""
        return RegularisedRisk(
            self.design.take(rows),
            self.y[rows],
            self.cost[rows],
            self.loss,
            self.penalised_intercept,
            self.penalty,
        )

    def some(self, count: int) -> RegularisedRisk:
        """Return the problem of some rows, drawn without looking at them, at costs for all."""
        part = self.take(even(self.n, count))
        return part.times(self.total_cost / part.total_cost) if part.total_cost else part

    def drawn(
        self, seen: RiskEvaluation, count: int, seed: int
    ) -> tuple[np.ndarray, RegularisedRisk, np.ndarray]:
        """Return about so many rows, drawn by their share, their problem, and their chances."""
        chance = chances(self, seen.f, count)
        rows = np.flatnonzero(np.random.default_rng(seed).random(self.n) < chance)
        return rows, self.take(rows), chance[rows]

    def losses(self, centre: np.ndarray | None = None, width: float = np.inf) -> Losses:
        """Return the losses as compiled loops have them, held near some slopes."""
        return Losses(self, centre, width)

    # -- numbers to be met -----------------------------------------------------------------------

    def middle(self) -> float:
        """Median of the targets, each as heavy as its cost: one of them."""
        order = np.argsort(self.y)
        mass = np.cumsum(self.cost[order])
        return float(self.y[order[np.searchsorted(mass, 0.5 * mass[-1])]])

    @property
    def about_middle(self) -> float:
        """Sum of the losses where every value is the median of the targets."""
        return self.empirical(np.full(self.n, self.middle()))

    def spreads(self, f: np.ndarray) -> tuple[float, float]:
        """How far residuals are from zero, and targets from their median, in the middle."""
        u = np.abs(self.arguments(f))
        of_targets = float(np.abs(self.y - np.median(self.y)).mean())
        return float(np.median(u)) or float(u.max()), of_targets

    # -- primal --------------------------------------------------------------------------------

    def arguments(self, f: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """Margins or residuals of values f."""
        return self.y[part] * f if self.of_margins else f - self.y[part]

    def along_values(self, slope: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """Slopes along f from those along the margins or residuals."""
        return self.y[part] * slope if self.of_margins else slope

    def empirical(self, f: np.ndarray) -> float:
        """Sum of the losses at values f, each times its cost."""
        return float(self.cost @ self.loss.value(self.arguments(f)))

    def slopes_at(self, f: np.ndarray) -> np.ndarray:
        """Slopes of the losses along the margins or residuals of values f."""
        return self.loss.slope(self.arguments(f))

    def model(self, f: np.ndarray) -> RowModel:
        """Quadratic model of the losses at values f."""
        slope, curvature = self.loss.slope_and_curvature(self.arguments(f))
        return RowModel(self.design, self.cost * self.along_values(slope), self.cost * curvature)

    def evaluate(self, theta: np.ndarray) -> RiskEvaluation:
        """Read every row once."""
        f, s, sums = np.empty(self.n), np.empty(self.n), {}

        def slope(part: slice, values: np.ndarray) -> np.ndarray:
            f[part] = values
            u, cost = self.arguments(values, part), self.cost[part]
            s[part] = self.loss.slope(u)
            along = cost * self.along_values(s[part], part)
            sums[part.start] = float(cost @ self.loss.value(u)), float(along @ values)
            return along

        gradient = self.design.pulled(theta, slope)
        loss, linear = np.sum([sums[start] for start in sorted(sums)], axis=0)
        return RiskEvaluation(theta, f, s, float(loss), gradient, float(linear - loss))

    # -- dual ----------------------------------------------------------------------------------

    def beta(self, s: np.ndarray) -> np.ndarray:
        """``-c_i s_i du_i/df_i``."""
        return -self.cost * self.along_values(s)

    def slopes(self, beta: np.ndarray) -> np.ndarray:
        """Slopes of given ``beta``; zero where a row costs nothing."""
        cost = self.cost if self.all_cost else np.where(self.cost > 0, self.cost, np.inf)
        return -self.along_values(beta / cost)

    def same_slopes(self, slope: float) -> np.ndarray:
        """The same slope for every row."""
        return np.full(self.n, slope)

    def allowed(self, s: np.ndarray) -> np.ndarray:
        """Return the nearest slopes that are in the domain of the conjugate."""
        low, high = self.loss.slopes
        return np.maximum(np.minimum(s, high), low)  # np.clip takes longer, on few rows

    def feasible(self, s: np.ndarray, others: float = 0.0) -> np.ndarray:
        """Return slopes near these that meet the constraint of an intercept without a penalty.

        ``others`` is the sum of ``beta`` of rows that are not here.
        """
        if not self.free_intercept:
            return s
        beta = self.beta(s)
        drift = float(beta.sum()) + others
        if self.walled:  # those between two walls can give way
            room = self.room(s, beta, drift > 0)
            if room.sum() > abs(drift):
                s = self.given_way(s, drift / room.sum(), beta, room)
                beta = self.beta(s)
        factor, positive = balance(*sides(beta), others)
        return s if factor == 1.0 else self.shortened(s, factor, positive, beta)

    def intercept_shift(self, f: np.ndarray, s: np.ndarray) -> float:
        """Return how far the middle of the optimal intercepts is from that of the values f.

        With kinks in the loss all intercepts of an interval may be optimal, as all numbers between
        the two in the middle are medians: those at which every slope stays that of its loss.
        """
        shape = self.loss.shape
        pieces = self.walled and shape is not None and not (shape.quadratic or shape.entropy)
        if not (pieces and self.free_intercept and np.isfinite(self.total_cost)):
            return 0.0
        return middle_of(self._rooms(f, self.feasible(s)))

    def _rooms(self, f: np.ndarray, s: np.ndarray) -> list[tuple[float, float]]:
        """Return how far the values may go down and up, for each part of the rows."""
        return [self.intercept_room(f, s)]

    def intercept_room(self, f: np.ndarray, s: np.ndarray) -> tuple[float, float]:
        """Return how far all values may go down and up while slopes stay those of the losses."""
        shape: Any = self.loss.shape
        kink = shape.linear + shape.threshold * np.sign(s)
        down = np.where(s <= shape.low, -np.inf, np.where(s == 0, kink - shape.threshold, kink))
        up = np.where(s >= shape.high, np.inf, np.where(s == 0, kink + shape.threshold, kink))
        u = self.arguments(f)
        down, up = down - u, up - u
        if self.of_margins:  # values of negative rows go the other way
            down, up = np.where(self.y > 0, down, -up), np.where(self.y > 0, up, -down)
        paying = self.cost > 0
        return float(down[paying].max(initial=-np.inf)), float(up[paying].min(initial=np.inf))

    @property
    def walled(self) -> bool:
        """Whether slopes have a least and a largest one."""
        return self.loss.shape is not None and bool(np.isfinite(self.loss.shape.low))

    def room(self, s: np.ndarray, beta: np.ndarray, down: bool) -> np.ndarray:
        """How far ``beta`` of slopes between the two walls may still go down, or up."""
        low, high = self.loss.slopes
        walls = [-self.cost * self.along_values(np.full(self.n, end)) for end in (low, high)]
        wall = np.minimum(*walls) if down else np.maximum(*walls)
        between = (s > low) & (s < high) & (self.cost > 0)
        return np.where(between, np.abs(beta - wall), 0.0)

    def given_way(
        self,
        s: np.ndarray,
        share: float,
        beta: np.ndarray | None = None,
        room: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return slopes whose ``beta`` have gone down by a share of their room, or up."""
        beta = self.beta(s) if beta is None else beta
        room = self.room(s, beta, share > 0) if room is None else room
        return np.clip(self.slopes(beta - share * room), *self.loss.slopes)

    def shortened(
        self, s: np.ndarray, factor: float, positive: bool, beta: np.ndarray | None = None
    ) -> np.ndarray:
        """Return slopes times a factor where ``beta`` is positive, or negative."""
        beta = self.beta(s) if beta is None else beta
        return np.where(beta > 0 if positive else beta < 0, s * factor, s)

    def conjugates(self, s: np.ndarray, beta: np.ndarray) -> float:
        """Sum of the losses' conjugates, each times its cost, less that of the targets."""
        conjugate = self.loss.conjugate(s)
        if not self.all_cost:  # what costs nothing may be infinite
            conjugate = np.where(self.cost > 0, conjugate, 0.0)
        return float(self.cost @ conjugate) - (0.0 if self.of_margins else float(beta @ self.y))


def sides(beta: np.ndarray) -> tuple[float, float]:
    """Sums of what is positive and of what is negative, without its sign."""
    return float(beta[beta > 0].sum()), float(-beta[beta < 0].sum())


def balance(plus: float, minus: float, others: float = 0.0) -> tuple[float, bool]:
    """Factor for the heavier side that makes the sum zero, and whether it is the positive one."""
    drift = plus - minus + others
    mass = plus if drift > 0 else minus
    if abs(drift) <= _DRIFT * max(plus, minus) or not mass:
        return 1.0, drift > 0
    return max(1.0 - abs(drift) / mass, 0.0), drift > 0


class Losses:
    """The losses of a risk in compiled loops; with a width, held near some slopes.

    They need the conjugate of the loss as a :class:`~maxmargin.losses.Shape`.
    """

    def __init__(
        self, risk: RegularisedRisk, centre: np.ndarray | None = None, width: float = np.inf
    ) -> None:
        if risk.loss.shape is None or (risk.loss.shape.entropy and width < np.inf):
            raise ValueError(
                f"Newton's steps need the conjugate of a loss as a shape, and hold only quadratic "
                f"ones near slopes; {risk.loss!r} is not such a loss."
            )
        shape = tuple(map(float, risk.loss.shape))  # an integer would be compiled for anew
        centre = np.zeros(risk.n) if centre is None else centre
        self.design = risk.design
        self.rows = RowLosses(risk.y, risk.cost, risk.of_margins, shape, centre, 1.0 / width)

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """Slopes along the margins or residuals."""
        return slopes(self.rows, f)

    def model(self, f: np.ndarray) -> RowModel:
        """Quadratic model of the losses at values f."""
        return RowModel(self.design, *slopes_and_curvatures(self.rows, f))

    def reach(self, f: np.ndarray, along: np.ndarray, *others: float) -> tuple[float, float]:
        """How far to go along a step, and the slope there."""
        return reach(self.rows, f, along, *others)

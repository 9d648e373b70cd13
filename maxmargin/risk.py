"""Regularised risk: loss on the data plus a penalty on the weights, and how far from the least.

With values ``f = X w + b``, margins or residuals ``u`` (:mod:`maxmargin.losses`) and costs ``c_i``,

    minimise  P(w, b) = R(w) + sum_i c_i V(u_i),      R(w) = l1 ||w||_1 + l2/2 ||w||^2.

Any slopes ``s_i`` in the domain of the conjugate give ``beta_i = -c_i s_i du_i/df_i`` and

    D(s) = -R*(X' beta) - sum_i c_i V*(s_i)  [ + sum_i beta_i y_i  for residuals ]   <=  min P

where an intercept without a penalty asks for ``sum_i beta_i = 0``. ``R*`` counts what of an entry
is above l1, squared, over ``2 l2``; with l2 = 0 there must be none. ``P - D`` is the duality gap:
the certificate.
An intercept with a penalty is one more weight, on a column of a constant (LIBLINEAR's problem).
Without any penalty ``R*`` is zero at zero only, and the condition is ``Z' beta = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT, solved, solved_by_products
from maxmargin.certificate import ROUNDING, RiskCertificate
from maxmargin.losses import Loss, MarginLoss
from maxmargin.solution import Status

_AROUND = np.linspace(-2.0, 2.0, 9)  # where a loss of margins or residuals is bent most
_DRIFT = 1e-14  # of a sum, that does not count


@dataclass(frozen=True)
class Penalty:
    """What holds weights back: ``R(w) = l1 ||w||_1 + l2/2 ||w||^2``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.risk import Penalty
    >>> net = Penalty.mixed(0.5)
    >>> net, net.value(np.array([2.0, -1.0])), net.conjugate(np.array([1.5, 0.1]))
    (Penalty(l1=0.5, l2=0.5), 2.75, 1.0)
    """

    l1: float = 0.0
    l2: float = 1.0

    @classmethod
    def mixed(cls, l1_ratio: float) -> Penalty:
        """Return the elastic net: l1 for a ratio of one, l2 for zero."""
        return cls(float(l1_ratio), 1.0 - float(l1_ratio))

    @property
    def none(self) -> bool:
        """Whether nothing is held back."""
        return not self.l1 and not self.l2

    def value(self, w: np.ndarray) -> float:
        """``R(w)``."""
        quadratic = 0.5 * self.l2 * float(np.vdot(w, w)) if self.l2 else 0.0
        return quadratic + (self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0)

    def conjugate(self, v: np.ndarray) -> float:
        """``R*(v) = max_w  v . w - R(w)``, infinite where there is none."""
        over = np.maximum(np.abs(v) - self.l1, 0.0) if self.l1 else v
        if self.l2:
            return 0.5 * float(np.vdot(over, over)) / self.l2
        return np.inf if over.any() else 0.0

    def excess(self, v: np.ndarray) -> float:
        """By how much v must be divided for its conjugate to be zero; one at least."""
        largest = float(np.abs(v).max(initial=0.0))
        return max(largest / self.l1, 1.0) if self.l1 else 1.0


L1, L2, NO_PENALTY = Penalty(1.0, 0.0), Penalty(), Penalty(0.0, 0.0)


@dataclass(frozen=True)
class LinearSolution:
    """Weights (the intercept's last), the slopes that stand for the dual, and how it ended."""

    theta: np.ndarray
    s: np.ndarray
    n_iter: int
    status: Status
    certificate: RiskCertificate


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

    def times(self, factor: float) -> RiskEvaluation:
        """Return it at costs so many times as large."""
        return replace(
            self,
            loss=factor * self.loss,
            gradient=factor * self.gradient,
            offset=factor * self.offset,
        )


class RegularisedRisk:
    """A problem of this kind over some rows.

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
        self.design, self.y, self.cost, self.loss = design, y, cost, loss
        self.of_margins = isinstance(loss, MarginLoss)
        self.penalised_intercept, self.penalty = penalised_intercept, penalty
        self.penalised = np.full(design.width, 0.0 if penalty.none else 1.0)
        if design.constant and not penalised_intercept:
            self.penalised[-1] = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.design.n

    @cached_property
    def rounding(self) -> float:
        """Size below which an objective is rounding; without a penalty it may go to zero itself."""
        loss = 0.0 if self.penalty.none else self.nothing
        return max(ROUNDING * loss, np.finfo(np.float64).tiny)

    @cached_property
    def nothing(self) -> float:
        """Objective of zero weights."""
        if self.of_margins:
            return float(self.loss.value(np.zeros(1))[0]) * self.total_cost
        return self.empirical(np.zeros(self.n))

    @cached_property
    def total_cost(self) -> float:
        """Sum of the costs."""
        return float(self.cost.sum())

    @cached_property
    def all_cost(self) -> bool:
        """Whether no row has a cost of zero."""
        return bool((self.cost > 0).all())

    @property
    def free_intercept(self) -> bool:
        """Whether there is an intercept without a penalty."""
        return bool(self.design.constant) and not self.penalised[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.design.width,)

    def with_cost(self, cost: np.ndarray) -> RegularisedRisk:
        """Return the same problem with other costs."""
        return RegularisedRisk(
            self.design, self.y, cost, self.loss, self.penalised_intercept, self.penalty
        )

    def times(self, factor: float) -> RegularisedRisk:
        """Return the problem at costs so many times as large."""
        return self.with_cost(factor * self.cost)

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

    # -- primal --------------------------------------------------------------------------------

    def arguments(self, f: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """Margins or residuals of values f."""
        return self.y[part] * f if self.of_margins else f - self.y[part]

    def along_values(self, slope: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """Slopes along f from those along the margins or residuals."""
        return self.y[part] * slope if self.of_margins else slope

    def norm(self, theta: np.ndarray) -> float:
        """``R``."""
        return self.penalty.value(self.penalised * theta)

    def empirical(self, f: np.ndarray) -> float:
        """Sum of the losses at values f, each times its cost."""
        return float(self.cost @ self.loss.value(self.arguments(f)))

    def primal(self, theta: np.ndarray, f: np.ndarray | None = None) -> float:
        """``P``."""
        f = self.design.values(theta) if f is None else f
        return self.norm(theta) + self.empirical(f)

    def loss_gradient(self, theta: np.ndarray, f: np.ndarray | None = None) -> np.ndarray:
        """Gradient of the sum of the losses; where one has a kink, from the right."""
        f = self.design.values(theta) if f is None else f
        return self.design.combination(
            self.cost * self.along_values(self.loss.slope(self.arguments(f)))
        )

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

    @property
    def max_curvature(self) -> float:
        """Curvature that the loss has where it is bent most; one where it has kinks."""
        return float(self.loss.curvature(_AROUND).max()) or 1.0

    # -- dual ----------------------------------------------------------------------------------

    def beta(self, s: np.ndarray) -> np.ndarray:
        """``-c_i s_i du_i/df_i``."""
        return -self.cost * self.along_values(s)

    def slopes(self, beta: np.ndarray) -> np.ndarray:
        """Slopes of given ``beta``; zero where a row costs nothing."""
        cost = self.cost if self.all_cost else np.where(self.cost > 0, self.cost, np.inf)
        return -self.along_values(beta / cost)

    def feasible(self, s: np.ndarray, others: float = 0.0) -> np.ndarray:
        """Return slopes near these that meet the constraint of an intercept without a penalty.

        ``others`` is the sum of ``beta`` of rows that are not here.
        """
        if not self.free_intercept:
            return s
        beta = self.beta(s)
        shape, drift = self.loss.shape, float(beta.sum()) + others
        if shape is not None and np.isfinite(shape.low):  # those between two walls can give way
            ends = np.array(
                [self.along_values(np.full(self.n, e)) for e in (shape.low, shape.high)]
            )
            walls = -self.cost * ends
            wall = walls.min(axis=0) if drift > 0 else walls.max(axis=0)
            between = (s > shape.low) & (s < shape.high) & (self.cost > 0)
            room = np.where(between, np.abs(beta - wall), 0.0)
            if room.sum() > abs(drift):
                s = self.slopes(beta - drift * (room / room.sum()))
                s = np.clip(s, shape.low, shape.high)
                beta = self.beta(s)
        plus, minus = beta[beta > 0].sum(), -beta[beta < 0].sum()
        drift = plus - minus + others
        if abs(drift) <= _DRIFT * max(plus, minus):
            return s
        larger, mass = (beta > 0, plus) if drift > 0 else (beta < 0, minus)
        return np.where(larger, s * max(1.0 - abs(drift) / mass, 0.0), s) if mass else s

    def dual(self, s: np.ndarray, combined: np.ndarray | None = None) -> float:
        """``D`` at slopes that are feasible; ``combined`` is ``Z' beta`` where it is known.

        Where that is longer than the l1 penalty allows, or would like, shorter slopes are better:
        zero is in the domain.
        """
        beta = self.beta(s)
        combined = self.design.combination(beta) if combined is None else combined
        held = self.penalised * combined
        excess = self.penalty.excess(held)
        if excess > 1 and not self.penalty.l2:
            return -self._conjugates(s / excess, beta / excess)
        dual = -self.penalty.conjugate(held) - self._conjugates(s, beta)
        if excess > 1:
            dual = max(dual, -self._conjugates(s / excess, beta / excess))
        return dual

    def _conjugates(self, s: np.ndarray, beta: np.ndarray) -> float:
        """Sum of the losses' conjugates, each times its cost, less that of the targets."""
        conjugate = self.loss.conjugate(s)
        if not self.all_cost:  # what costs nothing may be infinite
            conjugate = np.where(self.cost > 0, conjugate, 0.0)
        return float(self.cost @ conjugate) - (0.0 if self.of_margins else float(beta @ self.y))

    def bound(self, theta: np.ndarray, f: np.ndarray, s: np.ndarray) -> float:
        """Lower bound on all objectives, from slopes of an answer with values f."""
        return self._free_bound(theta, f) if self.penalty.none else self.dual(self.feasible(s))

    def _free_bound(self, theta: np.ndarray, f: np.ndarray) -> float:
        """Lower bound where no weight has a penalty.

        A Newton step along the tangents of the slopes meets the condition to rounding, and what is
        left of it counts against the bound. Where it leaves the domain of the conjugate, as for
        classes that can be separated, slopes of zero remain: no loss is negative.
        """
        slope, curvature = self.loss.slope_and_curvature(self.arguments(f))
        gradient = self.design.combination(self.cost * self.along_values(slope))
        weighted = self.cost * curvature
        if self.design.width <= DIRECT:
            step = solved(self.design.gram(weighted), gradient)
        else:
            step = solved_by_products(
                lambda v: self.design.combination(weighted * self.design.values(v)), gradient
            )
        s = slope - curvature * self.along_values(self.design.values(step))
        left = float(np.linalg.norm(self.design.combination(self.beta(s))))
        return max(self.dual(s) - left * float(np.linalg.norm(theta)), self.dual(np.zeros(self.n)))

    def certificate(
        self,
        theta: np.ndarray,
        s: np.ndarray,
        status: Status,
        tol: float,
        f: np.ndarray | None = None,
    ) -> RiskCertificate:
        """Recompute both objectives of an answer from the data, or from its values f."""
        f = self.design.values(theta) if f is None else f
        primal, dual = self.primal(theta, f), self.bound(theta, f, s)
        if self.penalty.none and primal <= np.finfo(np.float64).tiny:
            return RiskCertificate.unattained(primal, status, tol)
        return RiskCertificate.of(primal, dual, self.rounding, status, tol)


def cost_per_weight(C: float, lam: float | None, weight: float) -> float:
    """Cost of a row of weight one: ``C``, or for the lambda form ``1 / (2 N lam)``.

    The lambda form minimises the mean loss plus ``lam ||w||^2``; N is the sum of the weights.
    """
    if lam is None:
        return C
    if C != 1.0:
        raise ValueError(
            f"Give C or lam, not both (lam means C = 1 / (2 N lam)); got C={C!r} and lam={lam!r}."
        )
    return 1.0 / (2.0 * weight * lam)

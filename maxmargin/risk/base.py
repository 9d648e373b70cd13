"""Regularised risk: loss on the data plus a penalty on the weights, and how far from the least.

With values ``f = Z theta`` (:class:`~maxmargin.backends.cpu.linear.Design`) and costs ``c_i``,

    minimise  P(theta) = R(w) + sum_i c_i V_i(f_i),      R(w) = l1 ||w||_1 + l2/2 ||w||^2.

Any slopes ``s_i`` in the domain of the conjugates give ``beta_i``, minus the cost times the slope
along ``f_i``, and

    D(s) = -R*(Z' beta) - sum_i c_i V_i*(s_i)   <=  min P

``R*`` counts what of an entry is above l1, squared, over ``2 l2``; with l2 = 0 there must be none.
``P - D`` is the duality gap: the certificate. An intercept without a penalty asks for
``sum_i beta_i = 0``; with one it is a weight more, on a column of a constant (LIBLINEAR's problem).
Without any penalty ``R*`` is zero at zero only, and the condition is ``Z' beta = 0``.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT, solved, solved_by_products
from maxmargin.certificate import ROUNDING, RiskCertificate
from maxmargin.risk.penalty import Penalty
from maxmargin.solution import Status

_LEFT = 1e-12  # of the condition of an intercept, that rounding leaves


@dataclass(frozen=True)
class LinearSolution:
    """Weights (the intercept's last), the slopes that stand for the dual, and how it ended.

    ``curve`` has the objective at the start and after each step, of methods that know it.
    ``f`` are the values of the rows, where they are known.
    """

    theta: np.ndarray
    s: np.ndarray
    n_iter: int
    status: Status
    certificate: RiskCertificate
    curve: list[float] | None = None
    f: np.ndarray | None = None


class LossModel(Protocol):
    """The losses of all rows as quadratics at some values: what a step of Newton's goes by."""

    @property
    def slope(self) -> np.ndarray:
        """Slopes along the values, times the costs."""

    def matrix(self, stopped: Callable[[], Any] = ...) -> np.ndarray:
        """Second derivatives by the weights; asks before every part of it whether to stop."""

    def product(self, step: np.ndarray) -> np.ndarray:
        """The matrix times a step, without the matrix."""

    def after(self, along: np.ndarray) -> np.ndarray:
        """Slopes along the values, times the costs, where these have changed by ``along``."""


class Risk(ABC):
    """A problem of this kind over some rows.

    Parameters
    ----------
    design : Design
        The rows, with the intercept's column.
    cost : float array (n,)
        Non-negative.
    penalty : Penalty
    penalised_intercept : bool
        Whether the intercept's weight is penalised like the others.

    Attributes
    ----------
    rows : int array (n,) or None
        Which rows of the data these are, where a machine does not see all of them.
    bent : bool
        Whether the losses have a curvature everywhere, and no piece that is flat or straight.
    """

    rows: np.ndarray | None = None
    bent = False

    def __init__(
        self, design: Design, cost: np.ndarray, penalty: Penalty, penalised_intercept: bool
    ) -> None:
        self.design, self.cost, self.penalty = design, cost, penalty
        self.penalised = np.full(design.width, 0.0 if penalty.none else 1.0)
        if design.constant and not penalised_intercept:
            self.penalised[-1] = 0.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.design.n

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""

    @cached_property
    def total_cost(self) -> float:
        """Sum of the costs."""
        return float(self.cost.sum())

    @property
    def free_intercept(self) -> bool:
        """Whether there is an intercept without a penalty."""
        return bool(self.design.constant) and not self.penalised[-1]

    @property
    @abstractmethod
    def nothing(self) -> float:
        """Objective of zero weights."""

    @property
    @abstractmethod
    def max_curvature(self) -> float:
        """Curvature that the loss has where it is bent most; one where it has kinks."""

    @cached_property
    def rounding(self) -> float:
        """Size below which an objective is rounding; without a penalty it may go to zero itself."""
        loss = 0.0 if self.penalty.none else self.nothing
        return max(ROUNDING * loss, np.finfo(np.float64).tiny)

    @abstractmethod
    def with_cost(self, cost: np.ndarray) -> Risk:
        """Return the same problem with other costs."""

    def times(self, factor: float) -> Any:
        """Return the problem at costs so many times as large."""
        other = self.with_cost(factor * self.cost)
        other.rows = self.rows
        return other

    def heeding(self, stopped: Callable[[], Any]) -> AbstractContextManager:
        """Ask in the middle of a pass that takes long whether to stop; then ``StoppedError``."""
        return nullcontext()

    def in_span(self) -> Any:
        """Return the same problem over coordinates in the span of the rows, with the l2 penalty."""
        design, other = self.design, copy.copy(self)
        other.design = Design(design.span.rows, design.constant, design.workers)
        other.penalised = self.penalised[-other.design.width :]
        return other

    # -- primal --------------------------------------------------------------------------------

    def values(self, theta: np.ndarray) -> np.ndarray:
        """``Z theta``."""
        return self.design.values(theta)

    def norm(self, theta: np.ndarray) -> float:
        """``R``."""
        return self.penalty.value(self.penalised * theta)

    @abstractmethod
    def empirical(self, f: np.ndarray) -> float:
        """Sum of the losses at values f, each times its cost."""

    def primal(self, theta: np.ndarray, f: np.ndarray | None = None) -> float:
        """``P``."""
        f = self.values(theta) if f is None else f
        return self.norm(theta) + self.empirical(f)

    def loss_gradient(self, theta: np.ndarray, f: np.ndarray | None = None) -> np.ndarray:
        """Gradient of the sum of the losses; where one has a kink, from the right."""
        f = self.values(theta) if f is None else f
        return -self.design.combination(self.beta(self.slopes_at(f)))

    def smooth_gradient(self, theta: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Gradient of all but the l1 penalty."""
        return self.loss_gradient(theta, f) + self.penalty.l2 * (self.penalised * theta)

    def slope_along(self, f: np.ndarray, step: np.ndarray, along: np.ndarray) -> float:
        """Slope of the sum of the losses at values f along a step, which changes them so."""
        return -float(np.vdot(self.beta(self.slopes_at(f)), along))

    @abstractmethod
    def slopes_at(self, f: np.ndarray) -> np.ndarray:
        """Slopes of the losses at values f."""

    def model(self, f: np.ndarray) -> LossModel:
        """Quadratic model of the losses at values f, of losses that are smooth."""
        raise TypeError(f"The losses of {type(self).__name__} have kinks, and no quadratic model.")

    def same_for_all(self, theta: np.ndarray) -> np.ndarray:
        """Return the weights without what changes no value and no penalty."""
        return theta

    # -- dual ----------------------------------------------------------------------------------

    @abstractmethod
    def beta(self, s: np.ndarray) -> np.ndarray:
        """Minus the cost times the slope along the values."""

    @abstractmethod
    def slopes(self, beta: np.ndarray) -> np.ndarray:
        """Slopes of given ``beta``; zero where a row costs nothing."""

    @abstractmethod
    def allowed(self, s: np.ndarray) -> np.ndarray:
        """Return the nearest slopes that are in the domain of the conjugates."""

    @abstractmethod
    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Return slopes near these that meet the constraint of an intercept without a penalty."""

    def intercept_shift(self, f: np.ndarray, s: np.ndarray) -> float:
        """Return how far the middle of the optimal intercepts is from that of the values f.

        ``s`` are the slopes of the dual. Zero where they allow one intercept, none or any.
        """
        return 0.0

    @abstractmethod
    def conjugates(self, s: np.ndarray, beta: np.ndarray) -> float:
        """Sum of the losses' conjugates, each times its cost; infinite outside their domain."""

    def combined(self, s: np.ndarray) -> np.ndarray:
        """``Z' beta`` of slopes."""
        return self.design.combination(self.beta(s))

    def dual(self, s: np.ndarray, combined: np.ndarray | None = None) -> float:
        """``D`` at slopes that are feasible; ``combined`` is ``Z' beta`` where it is known.

        Where that is longer than the l1 penalty allows, or would like, shorter slopes are better:
        zero is in the domain.
        """
        combined, beta = self.combined(s) if combined is None else combined, self.beta(s)
        held = self.penalised * combined
        excess = self.penalty.excess(held)
        if excess > 1 and not self.penalty.l2:
            return -self.conjugates(s / excess, beta / excess)
        dual = -self.penalty.conjugate(held) - self.conjugates(s, beta)
        if excess > 1:
            dual = max(dual, -self.conjugates(s / excess, beta / excess))
        return dual

    def pull(self, s: np.ndarray) -> tuple[float, float]:
        """``||Z' beta||`` of slopes near these, and the sum of their conjugates.

        Weights with ``||w|| <= r`` lose at least minus the sum of the second and r times the first
        (:mod:`maxmargin.solvers.ivanov`). Infinite where the slopes prove nothing.
        """
        s = self.feasible(self.allowed(s))
        combined, beta = self.combined(s), self.beta(s)
        left = float(np.linalg.norm(combined[..., self.penalised == 0]))
        if left > _LEFT * self.mass(beta) * abs(self.design.constant):
            return np.inf, np.inf  # an intercept of any size could gain by it
        return float(np.linalg.norm(self.penalised * combined)), self.conjugates(s, beta)

    def mass(self, beta: np.ndarray) -> float:
        """Sum of the sizes of ``beta``."""
        return float(np.abs(beta).sum())

    @property
    def mean_square(self) -> float:
        """Cost times squared length, without what has no penalty, of a row on average."""
        squares = self.cost * self.design.squared_norms(self.penalised)
        return float(squares.sum()) / max(int(np.count_nonzero(self.cost)), 1)

    def bound(self, theta: np.ndarray, f: np.ndarray, s: np.ndarray) -> float:
        """Lower bound on all objectives, from slopes of an answer with values f."""
        return self._free_bound(theta, f) if self.penalty.none else self.dual(self.feasible(s))

    def _free_bound(self, theta: np.ndarray, f: np.ndarray) -> float:
        """Lower bound where no weight has a penalty.

        A Newton step along the tangents of the slopes meets the condition to rounding, and what is
        left of it counts against the bound. Where it leaves the domain of the conjugates, as for
        classes that can be separated, slopes of zero remain: no loss is negative.
        """
        model = self.model(f)
        gradient = self.design.combination(model.slope)
        if gradient.size <= DIRECT:
            step = solved(model.matrix(), gradient.ravel())
        else:
            step = solved_by_products(
                lambda v: model.product(v.reshape(gradient.shape)).ravel(), gradient.ravel()
            )
        s = self.slopes(-model.after(-self.values(step.reshape(gradient.shape))))
        combined = self.combined(s)
        left = float(np.linalg.norm(combined)) * float(np.linalg.norm(theta))
        return max(self.dual(s, combined) - left, -self.conjugates(0.0 * s, 0.0 * s))

    def certificate(
        self,
        theta: np.ndarray,
        s: np.ndarray,
        status: Status,
        tol: float,
        f: np.ndarray | None = None,
    ) -> RiskCertificate:
        """Recompute both objectives of an answer from the data, or from its values f."""
        f = self.values(theta) if f is None else f
        primal = self.primal(theta, f)
        if self.penalty.none and primal <= np.finfo(np.float64).tiny:
            return RiskCertificate.unattained(max(primal, 0.0), status, tol)
        return RiskCertificate.of(primal, self.bound(theta, f, s), self.rounding, status, tol)


class ClassesRisk(Risk):
    """A risk with a value for every class: weights, slopes and ``beta`` have a row or column each.

    Parameters
    ----------
    design : Design
    index : int array (n,)
        Class of each row.
    n_classes : int
    cost : float array (n,)
    penalty : Penalty
    penalised_intercept : bool
    """

    def __init__(
        self,
        design: Design,
        index: np.ndarray,
        n_classes: int,
        cost: np.ndarray,
        penalty: Penalty,
        penalised_intercept: bool,
    ) -> None:
        super().__init__(design, cost, penalty, penalised_intercept)
        self.index, self.n_classes = index, n_classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.n_classes, self.design.width)

    def beta(self, s: np.ndarray) -> np.ndarray:
        """``-c_i s_ik``."""
        return -self.cost[:, None] * s

    def slopes(self, beta: np.ndarray) -> np.ndarray:
        """Slopes of given ``beta``; zero where a row costs nothing."""
        return -beta / np.where(self.cost > 0, self.cost, np.inf)[:, None]

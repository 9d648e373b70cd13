"""Losses: what a prediction costs, as a function of one number.

A classifier's loss depends on the margin ``u = y f(x)``, a regressor's on the residual
``u = f(x) - y``. Every loss has a value and a slope; most have a curvature. Of a convex one the
conjugate

    V*(s) = sup_u  s u - V(u)

makes the dual problem: with costs ``c_i``, ``sum_i c_i V(u_i)`` becomes ``- sum_i c_i V*(s_i)``
(:mod:`maxmargin.risk`). For most losses V* is a quadratic on an interval, or the entropy there,
which is all that the dual solvers need to know of them (:class:`Shape`).

Where a slope jumps, the one from the right is returned: zero at the hinge's kink, as in LIBSVM.

References: seeds 000 (perceptron criterion, epsilon-insensitive), 001 (hinge, logistic), 002
(zero-one, squared, absolute), 004 (the sigmoid of minimum classification error); Vapnik, The Nature
of Statistical Learning Theory, 1995; Juang and Katagiri, IEEE Trans. Signal Processing 40, 1992.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, xlogy

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "MarginLoss",
    "MinimumClassificationError",
    "PerceptronCriterion",
    "ResidualLoss",
    "Shape",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "ZeroOne",
]


_NEWTON_STEPS = 60  # at most as many as halving an interval takes


class Shape(NamedTuple):
    """A conjugate that is a quadratic with a kink at zero on an interval, or the entropy.

        V*(s) = linear s + threshold |s| + quadratic s^2 / 2 + entropy (p log p + (1-p) log(1-p))

    with ``p = (s - low) / (high - low)``. Outside of ``[low, high]`` it is infinite. Both ends and
    zero belong to it. A shape has an entropy or the two terms before it.
    """

    low: float
    high: float
    linear: float = 0.0
    threshold: float = 0.0
    quadratic: float = 0.0
    entropy: float = 0.0

    def best(self, u: np.ndarray, centre: np.ndarray, width: np.ndarray | float) -> np.ndarray:
        """Return the s that maximises ``s u - V*(s) - (s - centre)^2 / (2 width)``."""
        if self.entropy:
            span = self.high - self.low
            offset = self.linear - u + (self.low - centre) / width
            z = _balanced_logit(self.entropy / span, offset, span / np.asarray(width))
            return self.low + span * expit(z)
        s = centre + width * (u - self.linear)
        if self.threshold:
            s = np.sign(s) * np.maximum(np.abs(s) - width * self.threshold, 0.0)
        return np.clip(s / (1.0 + width * self.quadratic), self.low, self.high)


def _balanced_logit(rate: float, offset: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Solve ``rate z + offset + height expit(z) = 0``, by Newton's method within bounds."""
    low, high = np.broadcast_arrays(-(offset + height) / rate, -offset / rate)
    z = 0.5 * (low + high)
    for _ in range(_NEWTON_STEPS):
        p = expit(z)
        value = rate * z + offset + height * p
        low, high = np.where(value < 0, z, low), np.where(value > 0, z, high)
        z = z - value / (rate + height * p * (1.0 - p))
        z = np.where((z > low) & (z < high), z, 0.5 * (low + high))
    return z


@dataclass(frozen=True)
class Loss(ABC):
    """What a prediction costs; arrays in, arrays of the same shape out.

    Attributes
    ----------
    name : str
        As an estimator's parameter has it.
    convex : bool
    smooth : bool
        Whether the slope is continuous.
    shape : Shape or None
        The conjugate, where it is a quadratic on an interval or the entropy.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What an estimator's parameter calls it."""

    @property
    def convex(self) -> bool:
        """Whether every local minimum of a sum of these is a global one."""
        return True

    @property
    def smooth(self) -> bool:
        """Whether the slope is continuous."""
        return False

    @property
    def shape(self) -> Shape | None:
        """The conjugate, where it is a quadratic on an interval or the entropy."""
        return None

    @property
    def slopes(self) -> tuple[float, float]:
        """Between which slopes the conjugate is finite."""
        return (-np.inf, np.inf) if self.shape is None else (self.shape.low, self.shape.high)

    @abstractmethod
    def value(self, u: np.ndarray) -> np.ndarray:
        """``V(u)``."""

    @abstractmethod
    def slope(self, u: np.ndarray) -> np.ndarray:
        """``V'(u)``; at a kink, from the right."""

    @abstractmethod
    def curvature(self, u: np.ndarray) -> np.ndarray:
        """``V''(u)``; at a jump of the slope or of the curvature, from the right."""

    def slope_and_curvature(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both at once."""
        return self.slope(u), self.curvature(u)

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        """``V*(s)``; infinite where no line of slope s stays below V."""
        shape = self.shape
        if shape is None:
            raise ValueError(f"The {self.name} loss is not convex: it has no useful conjugate.")
        s = np.asarray(s, dtype=np.float64)
        inside = (s >= shape.low) & (s <= shape.high)
        known = np.where(inside, s, 0.0)
        value = known * (shape.linear + 0.5 * shape.quadratic * known)
        if shape.entropy:
            p = (known - shape.low) / (shape.high - shape.low)
            value = value + shape.entropy * (xlogy(p, p) + xlogy(1.0 - p, 1.0 - p))
        return np.where(inside, value + shape.threshold * np.abs(known), np.inf)


class MarginLoss(Loss):
    """A classifier's loss, of the margin ``y f(x)``."""


class ResidualLoss(Loss):
    """A regressor's loss, of the residual ``f(x) - y``."""


@dataclass(frozen=True)
class ZeroOne(MarginLoss):
    """Misclassification: one unless ``y f(x) > 0``.

    >>> ZeroOne().value(np.array([-1.0, 0.0, 1.0]))
    array([1., 1., 0.])
    """

    name = "zero_one"
    convex = False

    def value(self, u):  # noqa: D102
        return np.where(u > 0, 0.0, 1.0)

    def slope(self, u):  # noqa: D102
        return np.zeros_like(u)

    def curvature(self, u):  # noqa: D102
        return np.zeros_like(u)


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """``max(0, 1 - u)``: the soft margin.

    >>> Hinge().value(np.array([-1.0, 0.0, 1.0]))
    array([2., 1., 0.])
    """

    name = "hinge"
    shape = Shape(-1.0, 0.0, linear=1.0)

    def value(self, u):  # noqa: D102
        return np.maximum(0.0, 1.0 - u)

    def slope(self, u):  # noqa: D102
        return np.where(u < 1, -1.0, 0.0)

    def curvature(self, u):  # noqa: D102
        return np.zeros_like(u)


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """``max(0, 1 - u)^2``.

    >>> SquaredHinge().value(np.array([-1.0, 0.0, 1.0]))
    array([4., 1., 0.])
    """

    name = "squared_hinge"
    smooth = True
    shape = Shape(-np.inf, 0.0, linear=1.0, quadratic=0.5)

    def value(self, u):  # noqa: D102
        return np.maximum(0.0, 1.0 - u) ** 2

    def slope(self, u):  # noqa: D102
        return -2.0 * np.maximum(0.0, 1.0 - u)

    def curvature(self, u):  # noqa: D102
        return 2.0 * (u < 1)


@dataclass(frozen=True)
class PerceptronCriterion(MarginLoss):
    """``max(0, -u)``: by how much a point is on the wrong side.

    >>> PerceptronCriterion().value(np.array([-1.0, 1.0]))
    array([1., 0.])
    """

    name = "perceptron"
    shape = Shape(-1.0, 0.0)

    def value(self, u):  # noqa: D102
        return np.maximum(0.0, -u)

    def slope(self, u):  # noqa: D102
        return np.where(u < 0, -1.0, 0.0)

    def curvature(self, u):  # noqa: D102
        return np.zeros_like(u)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """``log(1 + exp(-u))``: minus the logarithm of the probability of the right class.

    >>> Logistic().value(np.array([0.0])).round(6)
    array([0.693147])
    """

    name = "logistic"
    smooth = True
    shape = Shape(-1.0, 0.0, entropy=1.0)

    def value(self, u):  # noqa: D102
        return np.logaddexp(0.0, -u)

    def slope(self, u):  # noqa: D102
        return -expit(-u)

    def curvature(self, u):  # noqa: D102
        return expit(u) * expit(-u)

    def slope_and_curvature(self, u):  # noqa: D102
        wrong = expit(-u)
        return -wrong, wrong * (1.0 - wrong)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """``exp(-u)``: what AdaBoost minimises.

    >>> Exponential().value(np.array([0.0]))
    array([1.])
    """

    name = "exponential"
    smooth = True
    slopes = (-np.inf, 0.0)

    def value(self, u):  # noqa: D102
        return np.exp(-u)

    def slope(self, u):  # noqa: D102
        return -np.exp(-u)

    def curvature(self, u):  # noqa: D102
        return np.exp(-u)

    def conjugate(self, s):  # noqa: D102
        s = np.asarray(s, dtype=np.float64)
        p = np.where(s <= 0, -s, 0.0)
        return np.where(s <= 0, xlogy(p, p) - p, np.inf)


@dataclass(frozen=True)
class MinimumClassificationError(MarginLoss):
    """``1 / (1 + exp(steepness u))``: the zero-one loss made smooth, and not convex.

    Its slope is that of the sigmoid ``l`` with the sign that lowers it: ``-l(u) (1 - l(u))`` for
    steepness one. (Seed 004 has the opposite sign.)

    >>> MinimumClassificationError().slope(np.array([0.0]))
    array([-0.25])
    """

    steepness: float = 1.0

    name = "mce"
    convex = False
    smooth = True

    def value(self, u):  # noqa: D102
        return expit(-self.steepness * u)

    def slope(self, u):  # noqa: D102
        wrong = expit(-self.steepness * u)
        return -self.steepness * wrong * (1.0 - wrong)

    def curvature(self, u):  # noqa: D102
        wrong = expit(-self.steepness * u)
        return self.steepness**2 * wrong * (1.0 - wrong) * (1.0 - 2.0 * wrong)


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """``u^2``: least squares.

    >>> Squared().slope(np.array([3.0]))
    array([6.])
    """

    name = "squared"
    smooth = True
    shape = Shape(-np.inf, np.inf, quadratic=0.5)

    def value(self, u):  # noqa: D102
        return u * u

    def slope(self, u):  # noqa: D102
        return 2.0 * u

    def curvature(self, u):  # noqa: D102
        return np.full_like(u, 2.0)


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """``max(0, |u| - epsilon)``: nothing inside the tube.

    >>> EpsilonInsensitive(0.5).value(np.array([-2.0, 0.1]))
    array([1.5, 0. ])
    """

    epsilon: float = 0.0

    name = "epsilon_insensitive"

    @property
    def shape(self):  # noqa: D102
        return Shape(-1.0, 1.0, threshold=self.epsilon)

    def value(self, u):  # noqa: D102
        return np.maximum(0.0, np.abs(u) - self.epsilon)

    def slope(self, u):  # noqa: D102
        return np.where(u >= self.epsilon, 1.0, np.where(u < -self.epsilon, -1.0, 0.0))

    def curvature(self, u):  # noqa: D102
        return np.zeros_like(u)


@dataclass(frozen=True)
class Absolute(EpsilonInsensitive):
    """``|u|``: a tube of no width.

    >>> Absolute().value(np.array([-2.0]))
    array([2.])
    """

    name = "absolute"

    def __post_init__(self) -> None:
        if self.epsilon:
            raise ValueError("The absolute loss has no tube: use EpsilonInsensitive.")


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """``max(0, |u| - epsilon)^2``.

    >>> SquaredEpsilonInsensitive(0.5).value(np.array([-2.0, 0.1]))
    array([2.25, 0.  ])
    """

    epsilon: float = 0.0

    name = "squared_epsilon_insensitive"
    smooth = True

    @property
    def shape(self):  # noqa: D102
        return Shape(-np.inf, np.inf, threshold=self.epsilon, quadratic=0.5)

    def value(self, u):  # noqa: D102
        return np.maximum(0.0, np.abs(u) - self.epsilon) ** 2

    def slope(self, u):  # noqa: D102
        return 2.0 * np.sign(u) * np.maximum(0.0, np.abs(u) - self.epsilon)

    def curvature(self, u):  # noqa: D102
        return np.where((u >= self.epsilon) | (u < -self.epsilon), 2.0, 0.0)

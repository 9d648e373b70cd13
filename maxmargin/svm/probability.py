"""Probabilities from values: a calibration, fitted to values of rows that were not learnt from.

With ``f_t`` the value of machine t, ``r_t`` the probability of its positive side if it is one of
its two, and the scheme's way to put these together (:meth:`Scheme.probabilities`):

    sigmoid      r_t = 1 / (1 + exp(A_t f_t + B_t))             Platt's; two numbers a machine
    isotonic     r_t = the nearest function of f_t that rises     needs many rows
    temperature  p   = the scheme's own model at one scale        one number in all
    consistent   as temperature, then the nearest p of which predict's class is the most probable

The targets are Platt's: as if each side had one more row, which is on the other. So no probability
is zero, and no optimum infinite. Rows count by their weights.

References: Platt, 1999; Lin, Lin and Weng, Machine Learning 68, 2007 (the sigmoid's fit); Zadrozny
and Elkan, KDD 2002 (isotonic); Guo et al., ICML 2017 (temperature).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit, logsumexp

from maxmargin.backends.cpu.sigmoid import fit_sigmoid
from maxmargin.multiclass import Scheme
from maxmargin.multiclass.coupling import SMALLEST

KINDS = ("sigmoid", "isotonic", "temperature", "consistent")
_SCALES = 12.0  # logarithm of the largest scale, over values of one, and minus the smallest's
_LEAST = 1e-5  # scale of sides, likewise
_AHEAD = 1e-12  # share by which the predicted class leads where it would only be level


class Values(NamedTuple):
    """Values that a machine has of rows which it was not fitted to, and the rows' sides.

    ``side`` is +1 or -1 and 0 for rows that the machine never sees; ``weight`` is what rows count.
    """

    value: np.ndarray
    side: np.ndarray
    weight: np.ndarray

    @property
    def seen(self) -> Values:
        """Those of the rows of the machine's own classes."""
        own = self.side != 0
        return self if own.all() else Values(*(array[own] for array in self))


def kind_of(probability: bool | str) -> str | None:
    """Name of the calibration that a machine's parameter asks for, or None."""
    if probability == "deprecated" or not probability:
        return None
    return probability if isinstance(probability, str) else "sigmoid"


class Calibration(ABC):
    """From the values of a scheme's machines, (n, machines), to class probabilities."""

    consistent = False

    @abstractmethod
    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""


@dataclass(frozen=True)
class Sigmoids(Calibration):
    """Platt's: numbers A and B for each machine."""

    scheme: Scheme
    A: np.ndarray
    B: np.ndarray

    @classmethod
    def fit(cls, scheme: Scheme, known: list[Values]) -> Sigmoids:
        """Fit the sigmoid of each machine."""
        A, B = np.array([platt(*machine.seen) for machine in known]).T
        return cls(scheme, A, B)

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        r = expit(-(self.A * values + self.B))
        return self.scheme.probabilities(np.clip(r, SMALLEST, 1 - SMALLEST))


@dataclass(frozen=True)
class Isotonic(Calibration):
    """Rising steps for each machine, with straight lines between them."""

    scheme: Scheme
    steps: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def fit(cls, scheme: Scheme, known: list[Values]) -> Isotonic:
        """Fit the steps of each machine by least squares."""
        return cls(scheme, [_steps(*machine.seen) for machine in known])

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        r = [np.interp(f, *steps) for f, steps in zip(values.T, self.steps, strict=True)]
        return self.scheme.probabilities(np.clip(r, SMALLEST, 1 - SMALLEST).T)


@dataclass(frozen=True)
class Temperature(Calibration):
    """One scale for all values: see :meth:`Scheme.tempered`."""

    scheme: Scheme
    scale: float
    consistent: bool = False

    @classmethod
    def fit(
        cls, scheme: Scheme, known: list[Values], y: np.ndarray, consistent: bool = False
    ) -> Temperature:
        """Fit the scale by maximum likelihood: of the classes, or of the sides in each machine."""
        if scheme.by_sides or scheme.n_classes == 2:
            seen = zip(*(machine.seen for machine in known), strict=True)
            scale = scale_of_sides(*(np.concatenate(arrays) for arrays in seen))
        else:
            logits = scheme.logits(np.column_stack([machine.value for machine in known]))
            scale = scale_of_classes(logits, y, known[0].weight)
        return cls(scheme, scale, consistent)

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Class probabilities, (n, classes)."""
        return self.scheme.tempered(values, self.scale)


def calibrated(kind: str, scheme: Scheme, known: list[Values], y: np.ndarray) -> Calibration:
    """Fit a calibration of some kind.

    Parameters
    ----------
    kind : {"sigmoid", "isotonic", "temperature", "consistent"}
    scheme : Scheme
    known : list of Values, one for each machine
        All of the same rows, or of those that the machine sees where that is enough
        (:func:`needs_all`).
    y : int array
        Classes of these rows.
    """
    if kind == "sigmoid":
        return Sigmoids.fit(scheme, known)
    if kind == "isotonic":
        return Isotonic.fit(scheme, known)
    return Temperature.fit(scheme, known, y, kind == "consistent")


def needs_all(kind: str | None, scheme: Scheme) -> bool:
    """Whether a calibration also wants the values of rows that a machine does not see."""
    one_scale = kind in ("temperature", "consistent") and not scheme.by_sides
    return one_scale and bool((scheme.code == 0).any())


def platt(value: np.ndarray, side: np.ndarray, weight: np.ndarray | None = None) -> tuple:
    """Fit ``P(+1 | f) = 1 / (1 + exp(A f + B))`` by maximum likelihood; returns A and B.

    Newton's method with backtracking, as Lin, Lin and Weng have it.

    Examples
    --------
    >>> import numpy as np
    >>> A, B = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> A < 0
    True
    """
    weight = np.ones(len(side)) if weight is None else weight
    target, positives, negatives = _targets(side, weight)
    start = np.log((negatives + 1) / (positives + 1))
    return fit_sigmoid(np.ascontiguousarray(value), target, weight, start, True)


def scale_of_sides(value: np.ndarray, side: np.ndarray, weight: np.ndarray) -> float:
    """Scale s of the largest likelihood under ``P(+1 | f) = 1 / (1 + exp(-s f))``.

    As if one row were on the wrong side, so that s is finite; never negative.

    Examples
    --------
    >>> import numpy as np
    >>> value, side = np.array([2.0, 2.0, 2.0]), np.array([1.0, 1.0, -1.0])
    >>> round(scale_of_sides(value, side, np.full(3, 1e6)), 3)  # exp(2 s) = 2
    0.347
    """
    if not value.any():
        return 1.0
    unit = float(np.abs(value).max())
    sure = (weight.sum() + 1) / (weight.sum() + 2)
    target = np.where(side > 0, sure, 1 - sure)
    A, _ = fit_sigmoid(np.ascontiguousarray(value / unit), target, weight, 0.0, False)
    return max(-A, _LEAST) / unit


def scale_of_classes(logits: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> float:
    """Scale s of the largest likelihood under ``softmax(s logits)``, as if one row were wrong.

    Examples
    --------
    >>> import numpy as np
    >>> logits, truth = np.array([[2.0, 0.0, 0.0]] * 4), np.array([0, 0, 1, 2])
    >>> round(scale_of_classes(logits, truth, np.full(4, 1e6)), 3)  # exp(2 s) = 2
    0.347
    """
    logits = logits - logits.mean(axis=1, keepdims=True)
    unit = float(np.abs(logits).max(initial=0.0))
    if unit == 0.0:
        return 1.0
    own = logits[np.arange(len(truth)), truth] / unit
    shrink = (weight.sum() + 1) / (weight.sum() + 2)  # as if one row were of another class
    own = (shrink - (1 - shrink) / (logits.shape[1] - 1)) * own  # logits sum to zero

    def loss(log_scale: float) -> float:
        scale = np.exp(log_scale)
        return float(weight @ (logsumexp(scale / unit * logits, axis=1) - scale * own))

    found = minimize_scalar(loss, bounds=(-_SCALES, _SCALES), options={"xatol": 1e-6})
    return float(np.exp(found.x)) / unit


def consistent(p: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Nearest probabilities, by least squares, of which those of the given classes are largest.

    Where class c of a row is not the most probable, it and those above it, the highest first,
    meet at their mean, as many as it takes. No probability changes by more than c was behind.

    Examples
    --------
    >>> import numpy as np
    >>> consistent(np.array([[0.5, 0.1, 0.4], [0.2, 0.2, 0.6]]), np.array([2, 2])).round(3)
    array([[0.45, 0.1 , 0.45],
           [0.2 , 0.2 , 0.6 ]])
    """
    p = p.copy()
    for i in np.flatnonzero(p.argmax(axis=1) != index):
        row, c = p[i], index[i]
        above = np.flatnonzero(row > row[c])
        above = above[np.argsort(-row[above], kind="stable")]
        means = (row[c] + np.cumsum(row[above])) / np.arange(2, len(above) + 2)
        lower = np.append(row[above[1:]], 0.0)
        if len(above):
            count = int(np.argmax(means >= lower)) + 1
            row[above[:count]] = means[count - 1]
            row[c] = means[count - 1]
        row[c] *= 1 + _AHEAD  # a tie would go to the first class
        row /= row.sum()
    return p


def _targets(side: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Platt's targets, and the weight of either side."""
    positive = side > 0
    positives, negatives = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    return target, positives, negatives


def _steps(value: np.ndarray, side: np.ndarray, weight: np.ndarray) -> tuple:
    """Least rising function of the values: where its steps begin and end, and their heights."""
    target, *_ = _targets(side, weight)
    found, place = np.unique(value, return_inverse=True)
    heavy = np.bincount(place, weights=weight)
    mean = np.bincount(place, weights=weight * target) / heavy
    fitted = isotonic_regression(mean, weights=heavy)
    first = fitted.blocks[:-1]
    ends = np.unique(np.concatenate([first, fitted.blocks[1:] - 1]))
    return found[ends], fitted.x[ends]

"""The hinges of several classes at once, after Crammer and Singer and after Weston and Watkins.

    minimise  1/2 sum_k ||w_k||^2 + sum_i c_i V_i(f_i),      F = X W' + b

where row i, of class y, loses by the classes that come closer to its own than one:
``r_k = max(0, 1 + f_k - f_y)`` for k other than y, and V is the largest of them (Crammer and
Singer) or their sum (Weston and Watkins). It is a :class:`~maxmargin.risk.base.Risk` with a value
for every class, and the problem of :mod:`maxmargin.duals.direct` for the linear kernel: the slopes
are what that has as variables, ``b_ik = -c_i s_ik``, of sum zero in a box, and

    V_i*(s_i) = -sum_{k not y} s_ik.

A bias is the weight of a column of a constant and counts in the norm, as there.

References: Crammer and Singer, JMLR 2, 2001; Weston and Watkins, ESANN, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.risk.base import ClassesRisk
from maxmargin.risk.penalty import L2

_OUTSIDE = 1e-9  # of a cost: how far rounding may bring a slope out of its box


@dataclass(frozen=True)
class MulticlassHinge:
    """The loss of a row by the class that comes closest, or the sum over all that come close."""

    summed: bool
    smooth: ClassVar[bool] = False
    shape: ClassVar[None] = None  # its conjugate is not that of one number


class DirectRisk(ClassesRisk):
    """Hinges of all classes plus the l2 penalty, intercepts included.

    Parameters
    ----------
    design : Design
    index : int array (n,)
        Class of each row.
    n_classes : int
    cost : float array (n,)
    summed : bool
        Weston and Watkins' sum in place of Crammer and Singer's largest.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.backends.cpu.linear import Design
    >>> from maxmargin.risk import DirectRisk
    >>> from maxmargin.solvers import ClassDescent
    >>> risk = DirectRisk(Design(np.eye(3)), np.arange(3), 3, np.ones(3), summed=False)
    >>> found = ClassDescent().solve(risk)
    >>> found.certificate.converged, found.theta.argmax(axis=1)
    (True, array([0, 1, 2]))
    """

    max_curvature = 1.0

    def __init__(
        self, design: Design, index: np.ndarray, n_classes: int, cost: np.ndarray, summed: bool
    ) -> None:
        super().__init__(design, index, n_classes, cost, L2, penalised_intercept=True)
        self.summed = summed
        self.loss = MulticlassHinge(summed)
        self._own = np.arange(design.n), index

    @property
    def most(self) -> int:
        """Largest loss of zero weights, and largest slope along the own class's value."""
        return self.n_classes - 1 if self.summed else 1

    @property
    def nothing(self) -> float:
        """Objective of zero weights."""
        return self.total_cost * self.most

    def with_cost(self, cost: np.ndarray) -> DirectRisk:
        """Return the same problem with other costs."""
        return DirectRisk(self.design, self.index, self.n_classes, cost, self.summed)

    # -- primal --------------------------------------------------------------------------------

    def _lacks(self, f: np.ndarray) -> np.ndarray:
        """``r`` of all rows and classes, (n, K)."""
        lacks = np.maximum(f + 1.0 - f[self._own][:, None], 0.0)
        lacks[self._own] = 0.0
        return lacks

    def losses_at(self, f: np.ndarray) -> np.ndarray:
        """Loss of every row at values f."""
        lacks = self._lacks(f)
        return lacks.sum(axis=1) if self.summed else lacks.max(axis=1)

    def empirical(self, f: np.ndarray) -> float:
        """Sum of the losses at values f, each times its cost."""
        return float(self.cost @ self.losses_at(f))

    def slopes_at(self, f: np.ndarray) -> np.ndarray:
        """Slopes of the losses at values f, (n, K)."""
        lacks = self._lacks(f)
        s = (lacks > 0.0) * 1.0
        if not self.summed:
            first = np.arange(len(f)), lacks.argmax(axis=1)
            kept = s[first]
            s = np.zeros_like(s)
            s[first] = kept
        s[self._own] = -s.sum(axis=1)
        return s

    # -- dual ----------------------------------------------------------------------------------

    def allowed(self, s: np.ndarray) -> np.ndarray:
        """Return slopes near these in their box and of sum zero; those of the own class follow."""
        s = np.clip(s, 0.0, 1.0)
        s[self._own] = 0.0
        total = s.sum(axis=1)
        s *= np.minimum(1.0, self.most / np.maximum(total, 1e-300))[:, None]
        s[self._own] = -s.sum(axis=1)
        return s

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Return them as they are: the intercepts have a penalty."""
        return s

    def conjugates(self, s: np.ndarray, beta: np.ndarray) -> float:
        """``sum_i c_i s_iy``, which is minus the sum over the other classes."""
        others = s.copy()
        others[self._own] = 0.0
        low, high = others.min(initial=0.0), others.max(initial=0.0)
        sums = others.sum(axis=1)
        away = np.abs(s[self._own] + sums).max(initial=0.0)  # from a sum of zero
        high = max(high, sums.max(initial=0.0) - self.most + 1.0, away + 1.0)
        if low < -_OUTSIDE or high > 1.0 + _OUTSIDE:
            return np.inf
        return -float(self.cost @ sums)

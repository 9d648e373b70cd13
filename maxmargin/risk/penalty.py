"""What holds the weights back, and the forms in which its strength is stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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


def refuse_two_forms(machine: Any) -> None:
    """Refuse a machine with ``norm_bound`` that has C or lam as well."""
    C, lam, bound = machine.C, machine.lam, machine.norm_bound
    if bound is not None and (lam is not None or C != 1.0):
        raise ValueError(
            "Give one of C, lam and norm_bound: each states how much the weights are held back; "
            f"got C={C!r}, lam={lam!r} and norm_bound={bound!r}."
        )

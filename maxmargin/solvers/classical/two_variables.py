"""The dual in two variables, solved by hand: the step that sequential minimal optimisation repeats.

All multipliers but two are held. The constraint ``sum_i y_i a_i = 0`` leaves a line in the box,

    y_1 a_1 + y_2 a_2 = zeta,    zeta = - sum of the other y_i a_i,    a_1 = y_1 (zeta - y_2 a_2)

whose ends are, for a_2,

    y_1 != y_2:   L = max(0, a_2 - a_1)         H = min(C, C + a_2 - a_1)
    y_1 == y_2:   L = max(0, a_1 + a_2 - C)     H = min(C, a_1 + a_2)

Along it the dual is a parabola of curvature ``eta = K_11 + K_22 - 2 K_12``, and with the errors
``E_i = f(x_i) - y_i`` its top is at ``a_2 + y_2 (E_1 - E_2) / eta``. That is the new a_2 where it
lies between L and H, and the nearer end where it does not.

Reference: Platt, Fast training of support vector machines using sequential minimal optimization,
1999.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Pair = tuple[float, float]
_ROUNDING = 1e-15  # of a_1 + a_2, before or after


@dataclass(frozen=True)
class TwoVariableStep:
    """One step of two multipliers, with all that it was computed from.

    Attributes
    ----------
    y : pair of float
        Labels, -1 or +1.
    before, after : pair of float
        ``(a_1, a_2)``.
    C : pair of float
        The walls of the box, ``0 <= a_1 <= C_1`` and ``0 <= a_2 <= C_2``: equal, unless rows have
        weights.
    zeta : float
        What ``y_1 a_1 + y_2 a_2`` is before and after.
    L, H : float
        The least and the largest a_2 on the line in the box.
    eta : float
        Curvature of the dual along the line.
    slope : float
        Its slope in a_2, ``y_2 (E_1 - E_2)``.
    unclipped : float
        The a_2 of the top, wherever the box ends; infinite where there is none (``eta <= 0``).
    """

    y: Pair
    before: Pair
    after: Pair
    C: Pair
    zeta: float
    L: float
    H: float
    eta: float
    slope: float
    unclipped: float

    @property
    def gain(self) -> float:
        """By how much the step has raised the dual."""
        return _gain(self.slope, self.eta, self.after[1] - self.before[1])


def two_variable_step(
    y: Pair, alpha: Pair, errors: Pair, K: tuple[float, float, float], C: float | Pair
) -> TwoVariableStep:
    """Maximise the dual over two multipliers, the others held.

    Parameters
    ----------
    y : pair of float
        Labels, -1 or +1.
    alpha : pair of float
        The multipliers, in their box.
    errors : pair of float
        ``E_i = f(x_i) - y_i``; what both have in common, such as a bias, does not matter.
    K : three floats
        ``K_11``, ``K_22`` and ``K_12``.
    C : float or pair of float
        Upper bound of both, or of each.

    Returns
    -------
    step : TwoVariableStep

    Examples
    --------
    Two points of the line, x = 0 (-) and x = 2 (+), from zero: the new multipliers are those of the
    hard margin, unless C is smaller.

    >>> from maxmargin.solvers import two_variable_step
    >>> step = two_variable_step((-1, 1), (0, 0), errors=(1, -1), K=(0, 4, 0), C=10)
    >>> step.L, step.H, step.unclipped, step.after, step.gain
    (0.0, 10.0, 0.5, (0.5, 0.5), 0.5)
    >>> two_variable_step((-1, 1), (0, 0), errors=(1, -1), K=(0, 4, 0), C=0.25).after
    (0.25, 0.25)
    """
    (y1, y2), (a1, a2) = y, alpha
    C1, C2 = walls = C if isinstance(C, tuple) else (float(C), float(C))
    if y1 != y2:
        low, high = max(0.0, a2 - a1), min(C2, C1 + a2 - a1)
    else:
        low, high = max(0.0, a1 + a2 - C1), min(C2, a1 + a2)
    eta = K[0] + K[1] - 2.0 * K[2]
    slope = y2 * (errors[0] - errors[1])
    if eta > 0:
        unclipped = a2 + slope / eta
        new2 = min(max(unclipped, low), high)
    else:  # no top: the better end
        rise, fall = (_gain(slope, eta, end - a2) for end in (high, low))
        new2 = a2 if max(rise, fall) <= 0 else high if rise >= fall else low
        unclipped = np.copysign(np.inf, new2 - a2) if new2 != a2 else a2
    zeta = y1 * a1 + y2 * a2
    new1 = a1 + y1 * y2 * (a2 - new2)  # y_1 (zeta - y_2 a_2)
    rounding = _ROUNDING * max(a1 + a2, new1 + new2)
    after = _in_box(new1, C1, rounding), _in_box(new2, C2, rounding)
    return TwoVariableStep(
        y, alpha, after, walls, zeta, float(low), float(high), eta, slope, unclipped
    )


def _in_box(a: float, C: float, rounding: float) -> float:
    """Put on its wall what is there but for rounding: "at bound" is then a comparison."""
    return 0.0 if a <= rounding else float(C) if a >= C - rounding else float(a)


def _gain(slope: float, eta: float, change: float) -> float:
    """Rise of a parabola over a change of its variable."""
    return change * (slope - 0.5 * eta * change)

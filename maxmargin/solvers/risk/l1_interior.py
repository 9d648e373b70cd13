"""Primal-dual interior points for the l1 penalty or the elastic net, and a smooth loss.

    minimise  sum_j l1 |w_j| + l2/2 w_j^2 + sum_i c_i V(u_i)

With ``w = p - m``, ``p, m >= 0``, ``q_i = c_i s_i`` and u's derivatives A, the KKT conditions are

    e = -A' q - l2 w,   p_j (l1 - e_j) = 0,   m_j (l1 + e_j) = 0,   sum_i dq_i/db = 0
    u_i = V*'(s_i) + t_i - r_i,   t_i (high - s_i) = 0,   r_i (s_i - low) = 0

where the slopes lie in ``[low, high]``. The products are made equal and driven to zero by Newton's
steps on all conditions at once. Each step solves one linear system in q and the intercept, of the
size of the rows, or of rows and columns. The number of steps hardly depends on the data, where
coordinates crawl: many more columns than rows, separable classes at a large C, columns far apart in
size. A step takes more time than a sweep over coordinates, so that these come first.

References: Mehrotra, SIAM J. Optimization 2, 1992 (the predictor and corrector); Kim, Koh, Lustig,
Boyd and Gorinevsky, IEEE J. Selected Topics in Signal Processing 1, 2007 (for the l1 penalty).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs

from maxmargin.backends.systems import DIRECT
from maxmargin.risk import RegularisedRisk, Risk

_ENTRIES = 10_000_000  # of a dense copy of the data: 80 MB
_STEPS = 60  # 57 hard problems of benchmarks/certify took 13 on average, and at most 50
_FIRST = 1e4  # p, m, t and r at first, of columns of unit size: large, for residuals to vanish
_SHORT, _CENTRAL = 0.99, 1e-3  # of the way to a bound; least product over their mean
_BACK, _TRIES = 0.7, 12  # by which a step is shortened that leaves the centre, and how often
_BLOCKED = 1e-8  # length of a step from which on rounding has won
_CORRECTED = 0.1  # length below which a corrected step is replaced by one towards the centre
_AIM = 0.3  # of the mean product: what that step aims at, at least
_NO_SPREAD = 1e-13  # of a column over its mean, that is rounding
_RIDGE = 1e-15  # over the diagonal of a scaled matrix, where it is not positive definite
_REFINED = 2  # corrections of a solution from its residual


def interior_refusal(risk: Risk) -> str | None:
    """Return None where interior points take a problem; else why not."""
    if not isinstance(risk, RegularisedRisk) or not risk.penalty.l1:
        return "Interior points take one output and a penalty with an l1 part."
    shape, n, width = risk.loss.shape, risk.n, risk.design.width
    if shape is None or not risk.loss.smooth or shape.threshold:
        return f"Interior points take smooth losses without a flat tube, not {risk.loss!r}."
    if not risk.design.in_memory or n * width > _ENTRIES or min(2 * n, n + width) > DIRECT:
        return f"Interior points factorise matrices of up to {DIRECT} rows."
    return None


class _Step(NamedTuple):
    """Changes of all variables."""

    q: np.ndarray
    intercept: float
    p: np.ndarray
    m: np.ndarray
    below: np.ndarray  # l1 - e
    above: np.ndarray  # l1 + e
    t: np.ndarray
    r: np.ndarray


class L1InteriorPoints:
    """The iterates of the interior-point method on one problem.

    Columns are centred where there is a free intercept, and divided by their sizes.

    Parameters
    ----------
    risk : RegularisedRisk
        That :func:`interior_refusal` does not refuse.
    """

    def __init__(self, risk: RegularisedRisk) -> None:
        self.risk, self.rows = risk, np.flatnonzero(risk.cost > 0)
        X, y = risk.design.X[self.rows], risk.y[self.rows]
        X = np.array(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        self.cost, self.free = risk.cost[self.rows], risk.free_intercept
        self.centre = X.mean(axis=0) if self.free else np.zeros(X.shape[1])
        X -= self.centre
        if risk.design.constant and not self.free:
            X = np.column_stack([X, np.full(len(X), risk.design.constant)])
            self.centre = np.zeros(X.shape[1])
        self.sign = y if risk.of_margins else np.ones(len(y))
        self.target = np.zeros(len(y)) if risk.of_margins else y
        size = np.sqrt((X * X).mean(axis=0))
        none = size <= _NO_SPREAD * np.abs(self.centre)
        X[:, none], size[none] = 0.0, 1.0
        self.size, self.A = size, self.sign[:, None] * X / size
        self.l1, self.l2 = risk.penalty.l1 / size, risk.penalty.l2 / size**2
        assert risk.loss.shape is not None  # interior_refusal
        self.shape = risk.loss.shape
        self.low, self.high = self.shape.low, self.shape.high
        if self.shape.entropy:  # is a barrier itself
            self.at_low = self.at_high = False
        else:
            self.at_low, self.at_high = bool(np.isfinite(self.low)), bool(np.isfinite(self.high))
        self._begin()

    def _begin(self) -> None:
        n, d = self.A.shape
        bounds = [end for end in (self.low, self.high) if np.isfinite(end)]
        inside = {0: 0.0, 1: -0.5 if np.isfinite(self.high) else 0.5, 2: 0.0}[len(bounds)]
        slope = inside + (float(np.mean(bounds)) if bounds else 0.0)
        self.q, self.intercept = self.cost * slope, 0.0
        away = self.l1 + np.abs(self.A.T @ self.q).max(initial=0.0)
        self.below, self.above = away, away.copy()
        self.p, self.m = np.full(d, _FIRST), np.full(d, _FIRST)
        self.t = np.full(n, _FIRST * self.at_high)
        self.r = np.full(n, _FIRST * self.at_low)

    @property
    def w(self) -> np.ndarray:
        """Weights of the scaled columns."""
        return self.p - self.m

    def iterates(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield weights and slopes after every step, until one is blocked by rounding."""
        for _ in range(_STEPS):
            with np.errstate(all="ignore"):  # at the end of float64 a step is not finite
                length = self._advance()
            if not length > _BLOCKED:
                return
            yield self._answer()

    def _answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights in the units of the data and slopes of all rows.

        A weight is zero where its multiplier says so: in units of the largest ones.
        """
        w, risk = self.w, self.risk
        unit = np.abs(w).max(initial=0.0)
        zero = (self.p * self.l1 < self.below * unit) & (self.m * self.l1 < self.above * unit)
        w = np.where(zero, 0.0, w) / self.size
        slopes = np.zeros(risk.n)
        slopes[self.rows] = self.q / self.cost
        if self.free:
            w = np.append(w, (self.intercept - float(self.centre @ w)) / risk.design.constant)
        return w, risk.allowed(slopes)

    def _products(self, step: _Step | None = None, length: float = 0.0) -> np.ndarray:
        """Products that are to become zero, so far along a step."""
        s = self.q / self.cost
        p, m, t, r = self.p, self.m, self.t, self.r
        below, above = self.below, self.above
        if step is not None:
            s = s + length * step.q / self.cost
            p, m, t, r = (
                old + length * new
                for old, new in zip((p, m, t, r), (step.p, step.m, step.t, step.r), strict=True)
            )
            below, above = below + length * step.below, above + length * step.above
        parts = [p * below, m * above]
        if self.at_high:
            parts.append(t * self.cost * (self.high - s))
        if self.at_low:
            parts.append(r * self.cost * (s - self.low))
        return np.concatenate(parts)

    def _longest(self, step: _Step) -> float:
        """Length of a step to the first bound, one at most."""
        s, ds = self.q / self.cost, step.q / self.cost
        pairs = [
            (self.p, step.p),
            (self.m, step.m),
            (self.below, step.below),
            (self.above, step.above),
        ]
        if self.at_high:
            pairs.append((self.t, step.t))
        if self.at_low:
            pairs.append((self.r, step.r))
        if np.isfinite(self.high):
            pairs.append((self.high - s, -ds))
        if np.isfinite(self.low):
            pairs.append((s - self.low, ds))
        fastest = max(float((-dx / x).max(initial=0.0)) for x, dx in pairs)
        return 1.0 / fastest if fastest > 1.0 else (1.0 if fastest <= 1.0 else 0.0)

    def _advance(self) -> float:
        """Take a step; returns its length."""
        solve = self._linearised()
        products = self._products()
        mean = float(products.mean())
        step = solve(0.0, 0.0, 0.0, 0.0)
        left = self._products(step, self._longest(step)).sum() / products.sum()
        share = min(max(float(left), 0.0) ** 3, 1.0)
        aim, ds = share * mean, step.q  # with c t and c r
        step = solve(
            aim - step.p * step.below,
            aim - step.m * step.above,
            aim + ds * step.t,
            aim - ds * step.r,
        )
        longest = self._longest(step)
        if longest < _CORRECTED:
            aim = max(share, _AIM) * mean
            step = solve(aim, aim, aim, aim)
            longest = self._longest(step)
        length = min(1.0, _SHORT * longest)
        for _ in range(_TRIES):
            products = self._products(step, length)
            if products.min() >= _CENTRAL * products.mean():
                break
            length *= _BACK
        if not np.isfinite(length) or not np.isfinite(step.q).all():
            return 0.0
        self.q = self.q + length * step.q
        self.intercept += length * step.intercept
        self.p, self.m = self.p + length * step.p, self.m + length * step.m
        self.below, self.above = self.below + length * step.below, self.above + length * step.above
        self.t, self.r = self.t + length * step.t, self.r + length * step.r
        return length

    def _linearised(self) -> Callable[..., _Step]:
        """Return what solves Newton's equations for given products of p, m, t and r."""
        A, c, s, w = self.A, self.cost, self.q / self.cost, self.w
        shape, span = self.shape, self.high - self.low
        if shape.entropy:
            value = shape.linear + shape.entropy / span * np.log((s - self.low) / (self.high - s))
            curvature = shape.entropy / ((s - self.low) * (self.high - s))
        else:
            value, curvature = shape.linear + shape.quadratic * s, np.full(len(s), shape.quadratic)
        to_high = self.high - s if self.at_high else np.full(len(s), np.inf)
        to_low = s - self.low if self.at_low else np.full(len(s), np.inf)
        diagonal = (curvature + self.t / to_high + self.r / to_low) / c
        e = -(A.T @ self.q) - self.l2 * w
        off_below, off_above = self.l1 - e - self.below, self.l1 + e - self.above
        give = self.p / self.below + self.m / self.above
        softness = 1.0 + self.l2 * give
        system = self._system(give / softness, diagonal)
        lack = value - (A @ w + self.sign * self.intercept - self.target)
        unbalanced = -float(self.sign @ self.q) if self.free else 0.0

        def solve(of_p: Any, of_m: Any, of_t: Any, of_r: Any) -> _Step:
            to_p = (of_p - self.p * off_below) / self.below
            to_m = (of_m - self.m * off_above) / self.above
            to_t, to_r = of_t / (c * to_high), of_r / (c * to_low)
            shift = (to_p - to_m - w) / softness
            q, intercept = system(A @ shift - (lack + to_t - to_r), unbalanced)
            turned = -(A.T @ q)
            de = turned - self.l2 * (give / softness * turned + shift)
            return _Step(
                q,
                intercept,
                to_p - self.p + self.p / self.below * de,
                to_m - self.m - self.m / self.above * de,
                off_below - de,
                off_above + de,
                to_t - self.t + self.t / to_high * (q / c),
                to_r - self.r - self.r / to_low * (q / c),
            )

        return solve

    def _system(
        self, give: np.ndarray, diagonal: np.ndarray
    ) -> Callable[[np.ndarray, float], tuple[np.ndarray, float]]:
        """Return what solves ``(A give A' + diagonal) q - sign b = right``, ``sign . q = total``.

        Of more rows than columns the matrix is nearly singular: ``sqrt(give) A' q`` are then
        variables, too, and the larger system is indefinite but not squared.
        """
        (n, d), A = self.A.shape, self.A
        if n < d:
            inverse = _positive((A * give) @ A.T + np.diag(diagonal))
        else:
            scale = 1.0 / np.sqrt(diagonal)
            B = (A * np.sqrt(give)) * scale[:, None]
            whole = np.block([[-np.eye(d), -B.T], [-B, np.eye(n)]])
            indefinite = _indefinite(whole)

            def inverse(right: np.ndarray) -> np.ndarray:
                return scale * indefinite(np.append(np.zeros(d), scale * right))[d:]

        across = inverse(self.sign) if self.free else np.zeros(n)

        def solve(right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
            q = inverse(right)
            if not self.free:
                return q, 0.0
            b = float((total - self.sign @ q) / (self.sign @ across))
            return q + b * across, b

        return solve


def _positive(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what solves with a positive matrix, scaled to a diagonal of ones."""
    scale, ridge = 1.0 / np.sqrt(np.diag(matrix)), 0.0
    matrix = scale[:, None] * matrix * scale
    failed = True
    while failed:
        factor, failed = dpotrf(matrix + ridge * np.eye(len(matrix)), lower=1)
        ridge = 10.0 * ridge or _RIDGE
        if not ridge < 1.0:  # not finite
            return lambda right: np.full(len(right), np.nan)
    return _refined(scale, matrix, lambda right: dpotrs(factor, right, lower=1)[0])


def _indefinite(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what solves with a symmetric matrix, scaled to rows of size one.

    By LU: SciPy 1.13 has no dsytrs, and dsytrf takes 0.19 s of 1,500 rows where dgetrf takes 0.06.
    """
    scale = np.ones(len(matrix))
    for _ in range(3):
        scale /= np.sqrt(np.abs(scale[:, None] * matrix * scale).max(axis=1))
    matrix = scale[:, None] * matrix * scale
    factor, pivots, _ = dgetrf(matrix)
    return _refined(scale, matrix, lambda right: dgetrs(factor, pivots, right)[0])


def _refined(
    scale: np.ndarray, matrix: np.ndarray, inverse: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what solves with a scaled matrix, corrected from the residual."""

    def solve(right: np.ndarray) -> np.ndarray:
        right = scale * right
        x = inverse(right)
        for _ in range(_REFINED):
            x = x + inverse(right - matrix @ x)
        return scale * x

    return solve

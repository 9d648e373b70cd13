"""The hard margin of linear machines, through the soft one at a cost that no row reaches.

    minimise  1/2 ||w||^2   subject to  y_i (w . x_i + b) >= 1

Any w that separates the classes is allowed once it is divided by its least margin. Any
``alpha_i >= 0``, for an intercept without a penalty with ``sum_i alpha_i y_i = 0``, bounds the
answer from below: by ``(sum_i alpha_i)^2 / (2 ||u||^2)`` with ``u = sum_i alpha_i y_i x_i``, the
best of all its multiples. The soft margin's answer at a cost C has both. Its alpha_i are at most C,
and those of the hard margin sum up to ``1 / margin^2``: a w that separates by ``gamma`` says that
``C = 1 / gamma^2`` is enough. Where no w does, :func:`~maxmargin.linear.separability.is_separable`
finds one, or proves that there is none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.certificate import RiskCertificate
from maxmargin.evaluation import InseparableError
from maxmargin.linear.separability import is_separable
from maxmargin.losses import Hinge
from maxmargin.risk import LinearSolution, RegularisedRisk
from maxmargin.solution import Status
from maxmargin.solvers import Method, Watch

_TRIES, _STEP = 20, 100.0  # costs that are tried, and how much larger the next may be
_SHARE, _FINEST = 0.1, 1e-13  # of tol, that a solve may leave; and no less
_PROBLEM = "widest street without slack"


def hinged(risk: RegularisedRisk) -> RegularisedRisk:
    """Return the soft margin's problem on the rows of a risk, at C = 1."""
    ones, rows = np.ones(risk.n), risk.rows
    hinge = RegularisedRisk(risk.design, risk.y, ones, Hinge(), risk.penalised_intercept)
    hinge.rows = rows
    return hinge


def hard_margin(risk: RegularisedRisk, method: Method, watch: Watch) -> LinearSolution:
    """Find the hard margin of the rows of a risk, or raise ``InseparableError``.

    Parameters
    ----------
    risk : RegularisedRisk
        Of two classes, with the l2 penalty; its costs and its loss do not matter.
    method : Method
        Of the soft margin's problem.
    watch : Watch
        Over each solve; its ``tol`` is that of the relative duality gap.
    """
    soft, tol, passes = hinged(risk), _SHARE * watch.tol, 0
    cost = 1.0 / max(float(risk.design.squared_norms().mean()), np.finfo(np.float64).tiny)
    found: LinearSolution = method.solve(soft.times(cost), replace(watch, tol=tol))
    best, asked = _Best(soft), False
    for _ in range(_TRIES):
        passes += found.n_iter
        best.take(found)
        status = found.status if found.status is not Status.STALLED else Status.CONVERGED
        certificate = RiskCertificate.of(best.half, best.bound, 0.0, status, watch.tol)
        if certificate.converged or status is not Status.CONVERGED:
            break
        if not np.isfinite(best.half) and not asked:
            asked = True
            best.take_weights(_separator(soft, watch))
        most = 2.0 * best.half  # 1 / margin^2
        if most < 1.5 * cost:  # no row reaches the cost: what is left is the solver's
            tol = max(_SHARE * tol, _FINEST)
        cost = min(max(most, cost), _STEP * cost)
        found = method.solve(soft.times(cost), replace(watch, tol=tol), start=found)
    theta = found.theta if best.theta is None else best.theta
    s = found.s if best.s is None else best.s
    f, certificate = soft.values(theta), replace(certificate, problem=_PROBLEM)
    return LinearSolution(theta, s, passes, certificate.status, certificate, f=f)


class _Best:
    """The shortest weights so far that meet the constraints, and the best lower bound."""

    def __init__(self, soft: RegularisedRisk) -> None:
        self.soft = soft
        self.half, self.bound = np.inf, 0.0  # 1/2 ||w||^2, and a bound on it
        self.theta: np.ndarray | None = None
        self.s: np.ndarray | None = None

    def take(self, found: LinearSolution) -> None:
        """Take what is better of a soft margin's answer."""
        self.take_weights(found.theta)
        soft, s = self.soft, self.soft.feasible(found.s)
        alpha = soft.beta(s)
        u = soft.penalised * soft.design.combination(alpha)
        length = float(u @ u)
        bound = float(np.abs(alpha).sum()) ** 2 / (2.0 * length) if length > 0 else 0.0
        if bound > self.bound:
            self.bound, self.s = bound, s

    def take_weights(self, theta: np.ndarray) -> None:
        """Take weights over their least margin, if they separate; a free intercept goes midway."""
        soft, theta = self.soft, theta.copy()
        f = soft.values(theta)
        if soft.free_intercept:
            shift = -0.5 * float(f[soft.y > 0].min() + f[soft.y < 0].max())
            theta[-1] += shift / soft.design.constant
            f = f + shift
        least = float((soft.y * f).min())
        half = soft.norm(theta) / least**2 if least > 0 else np.inf
        if half < self.half:
            self.half, self.theta = half, theta / least


def _separator(soft: RegularisedRisk, watch: Watch) -> np.ndarray:
    """Return weights that separate, or raise the proof that there are none; zero if unknown."""
    design, fit = soft.design, watch.monitor.fit
    left = None if fit.time_limit is None else max(fit.time_limit - fit.seconds, 1e-3)
    theta = np.zeros(soft.shape)
    try:
        verdict = is_separable(
            design.X, soft.y, fit_intercept=bool(design.constant), time_limit=left
        )
    except RuntimeError:  # neither is proven
        return theta
    if verdict.certificate is None:
        theta[: design.features] = verdict.coef
        if design.constant:
            theta[-1] = (verdict.intercept or 0.0) / design.constant
        return theta
    weights = verdict.certificate
    named = np.arange(soft.n) if soft.rows is None else soft.rows
    plus, minus = (np.flatnonzero((sign * soft.y > 0) & (weights > 0)) for sign in (1.0, -1.0))
    raise InseparableError(
        "The hard margin (C=inf) cannot be had: no hyperplane separates the two classes. A convex "
        f"combination of {len(plus)} row(s) of the one and one of {len(minus)} row(s) of the other "
        "coincide (this error's `positive` and `negative`). Use a finite C, or SVC with a kernel.",
        (named[plus], weights[plus]),
        (named[minus], weights[minus]),
        verdict.residual,
    )

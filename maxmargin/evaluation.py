"""From solutions to machines: an answer looked at again, in float64 from the problem itself.

For a point ``b`` of a dual problem (see :mod:`maxmargin.duals`) with gradient ``g = K b + p``, and
for the levels ``l`` that the machine takes its bias from, let ``r_t = g_t + l``. Then

    dual   = -(1/2 b' K b + p' b)
    gap    = sum_t  r_t b_t - min(r_t lower_t, r_t upper_t)   >= 0
    primal = dual + gap

and ``primal`` is exactly the machine's objective, ``1/2 ||w||^2`` plus its losses, at the ``w`` and
``b`` that are returned. When the kernel is positive semidefinite the optimum lies between the two.
A point whose sums are off by ``d`` has the objective ``dual + gap - l d``; its dual bounds nothing.
The KKT violation is LIBSVM's stopping quantity, largest over the groups: with
``v = -g``, the largest v of a variable that may still rise less the smallest of one that may still
fall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from maxmargin.backends.cpu import spread_out
from maxmargin.backends.cpu.dual.certificate import (
    RESOLVED,
    Account,
    errors,
    relative,
    terms_of,
    weigh,
)
from maxmargin.backends.cpu.dual.kkt import slack_to_violation, snap_to_bounds
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.certificate import DualCertificate
from maxmargin.duals import DualProblem, Levels
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.solution import Solution, Status

_RECOMPUTED_WHOLE, _SAMPLED = 512, 128
_NEAR, _SAFETY = 10.0, 4.0
_SOON = 5e9  # entries times features that a thread multiplies in half a second
_KNOWN = 0.1  # violation, as a share of rho, up to which rho counts as known


class InseparableError(ValueError):
    """The hard margin was asked of data that no hyperplane of the feature space separates.

    Attributes
    ----------
    positive, negative : tuple of (rows, weights)
        The witness: one convex combination of the training rows of each class; in feature space
        the two coincide. (Without an intercept the weights of both together sum to one.)
    distance : float
        Distance between the two points in feature space, zero up to rounding.
    """

    def __init__(
        self,
        message: str,
        positive: tuple[np.ndarray, np.ndarray],
        negative: tuple[np.ndarray, np.ndarray],
        distance: float,
    ) -> None:
        super().__init__(message)
        self.positive, self.negative, self.distance = positive, negative, distance

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.positive, self.negative, self.distance)


@dataclass(frozen=True)
class Evaluation:
    """A solution looked at again from the problem: its machine and its certificate.

    ``rows`` are the problem's rows of the whole Gram matrix, to which ``coefficients`` and
    ``decision`` belong. ``beta`` and ``problem`` are in the units of the certificate;
    ``coefficients``, ``bias`` and ``decision`` are those of the machine, divided by rho where the
    margin is not fixed at one. ``noise`` is the rounding of a decision value, where the margin is
    not fixed. ``solution`` is what was evaluated and ``recomputed`` its ``K coef``, both in the
    units of the solver; ``verified`` says whether the latter is more than the solver's word.
    """

    rows: np.ndarray
    solution: Solution
    recomputed: np.ndarray
    verified: bool
    problem: DualProblem
    beta: np.ndarray
    levels: Levels
    coefficients: np.ndarray
    bias: float
    decision: np.ndarray
    squared_norm: float
    noise: float
    certificate: DualCertificate

    @classmethod
    def of(
        cls,
        problem: DualProblem,
        solution: Solution,
        recomputed: np.ndarray,
        verified: bool,
        beta: np.ndarray,
        coef: np.ndarray,
        decision: np.ndarray,
        account: Account,
        tol: float,
        spectrum: Definiteness | Spectrum,
        rows: np.ndarray,
    ) -> Evaluation:
        """Evaluation of a point that is accounted for, on these rows of a matrix."""
        status = solution.status
        if status is Status.STALLED and account.violation <= tol:
            status = Status.CONVERGED  # of what a solver in float32 could not go on from
        status, unit = scaling(problem, status, account)
        if status is Status.CONVERGED:
            status = solution.status
        certificate = DualCertificate(
            primal=account.primal,
            dual=account.dual,
            gap=account.gap,
            relative_gap=account.relative_gap,
            kkt_violation=account.violation,
            infeasibility=account.infeasibility,
            status=status,
            tol=tol,
            spectrum=spectrum,
            rounding=account.rounding,
        )
        return cls(
            rows=rows,
            solution=solution,
            recomputed=recomputed,
            verified=verified,
            problem=problem,
            beta=beta,
            levels=Levels(account.bias, account.margin, account.tube),
            coefficients=coef if unit == 1.0 else coef / unit,
            bias=account.bias / unit,
            decision=decision if unit == 1.0 else decision / unit,
            squared_norm=account.squared_norm / unit / unit,
            noise=account.noise / unit,
            certificate=certificate,
        )

    @property
    def alpha(self) -> np.ndarray:
        """The lecture's multipliers: the variables without their signs."""
        return np.abs(self.beta)

    @property
    def unseen(self) -> np.ndarray:
        """Places, among the rows, where ``recomputed`` is no more than the solver's word."""
        own = self.solution.decision
        if self.solution.exact or self.solution.account is not None:
            return np.empty(0, dtype=np.int64)
        if own is None:
            return np.arange(0 if self.verified else len(self.recomputed))
        return np.flatnonzero(self.recomputed == own)

    @property
    def resolved(self) -> bool:
        """Whether a margin that is not fixed at one is larger than what is uncertain of it."""
        violation = self.certificate.kkt_violation
        return not self.problem.margin_weights.size or violation <= _KNOWN * abs(self.levels.margin)

    @property
    def margin(self) -> float:
        """``1 / ||w||``: half the width of the street; infinite for w = 0, nan without a norm."""
        if self.squared_norm == 0:
            return np.inf
        return self.squared_norm**-0.5 if self.squared_norm > 0 else np.nan


def evaluate(
    problem: DualProblem,
    solution: Solution,
    tol: float,
    spectrum: Definiteness | Spectrum,
    workers: Workers = ALONE,
    rows: np.ndarray | None = None,
) -> Evaluation:
    """Recompute gradient, levels, objectives and violation of a solution from the Gram matrix.

    The Gram matrix is that of the problem's own rows; ``rows`` is what others call them.
    """
    if not problem.hard:
        beta = solution.beta.copy()
        if snap_to_bounds(problem.variables, problem.n_groups, beta):
            solution = replace(solution, beta=beta, exact=False)
    gram, beta = problem.gram, solution.beta
    rows = np.arange(gram.n) if rows is None else rows
    coef = problem.on_rows(beta)
    unknown = solution.decision is None and solution.status.stopped and not problem.hard
    if unknown and _is_long(gram, coef, workers):
        return _unseen(problem, solution, coef, tol, spectrum, workers, rows)
    decision, verified = _decision(problem, solution, coef, tol, workers)
    recomputed = decision
    if not np.isfinite(decision).all():
        raise ValueError(
            "The dual coefficients or intercepts are not finite. The input data may contain large "
            "values and need to be preprocessed."
        )
    if problem.hard:
        hulls = _weighed(problem, beta, coef, decision)
        _refuse_touching_hulls(problem, beta, decision, hulls.size, rows)
        if not hulls.margin > 0:
            # apart, but their nearest points are not yet known well enough
            levels, rest = Levels(0.0, 1.0, 0.0), (tol, spectrum, rows)
            return _unproven(
                problem, solution, coef, decision, levels, *rest, dual=0.0, verified=True
            )
        problem = problem.normalised(hulls.margin)
        beta, coef = beta / hulls.margin, coef / hulls.margin
        decision = decision / hulls.margin
    account = _weighed(problem, beta, coef, decision)
    if problem.hard:
        account = _of_hard_margin(problem, beta, coef, decision, account)
    return Evaluation.of(
        problem, solution, recomputed, verified, beta, coef, decision, account, tol, spectrum, rows
    )


def _decision(
    problem: DualProblem,
    solution: Solution,
    coef: np.ndarray,
    tol: float,
    workers: Workers,
) -> tuple[np.ndarray, bool]:
    """``K coef`` in float64 on every row that the certificate depends on; whether it is.

    These are the rows of nonzero variables, which carry both objectives, and the rows near enough
    to the level of their group to violate a KKT condition. On the others the solver's own values
    stand: they are further from mattering than four times the largest error that those values
    have on the rows that are recomputed, a few of them spread over the rest. Who has stopped a
    solver does not want to wait: then its own values stand everywhere, unless they are soon
    recomputed.
    """
    gram, own = problem.gram, solution.decision
    if own is not None and solution.exact:
        return own.copy(), True
    if own is None or gram.n <= _RECOMPUTED_WHOLE or problem.hard or not np.isfinite(own).all():
        return gram.matvec(coef, workers=workers), True
    if solution.status.stopped and _is_long(gram, coef, workers):
        return own.copy(), False
    distance = slack_to_violation(problem.variables, problem.n_groups, solution.beta, own)
    near = np.zeros(gram.n, dtype=bool)
    near[problem.gram_row[distance < _NEAR * tol]] = True
    near[coef != 0] = True
    near[spread_out(gram.n, _SAMPLED)] = True
    decision, done = own.copy(), np.zeros(gram.n, dtype=bool)
    while (near & ~done).any():
        rows = np.flatnonzero(near & ~done)
        decision[rows] = gram.matvec(coef, rows, workers)
        done[rows] = True
        error = float(np.abs(decision - own).max())
        near[problem.gram_row[distance < _SAFETY * error]] = True
    return decision, True


def _is_long(gram: Gram, coef: np.ndarray, workers: Workers) -> bool:
    """Whether ``K coef`` would keep waiting who has stopped a solver."""
    entries = np.count_nonzero(coef) * gram.n * gram.width
    return bool(entries > _SOON * workers.count)


def _unseen(
    problem: DualProblem,
    solution: Solution,
    coef: np.ndarray,
    tol: float,
    spectrum: Definiteness | Spectrum,
    workers: Workers,
    rows: np.ndarray,
) -> Evaluation:
    """Evaluate a start that was stopped before its values were known: nothing is proven of it.

    Its levels are read from some rows, and their mean stands for the values of the others.
    """
    gram = problem.gram
    some = spread_out(gram.n, _SAMPLED)
    values = gram.matvec(coef, some, workers)
    decision = np.full(gram.n, values.mean())
    decision[some] = values
    account = _weighed(problem, solution.beta, coef, decision)
    levels = Levels(account.bias, account.margin, account.tube)
    return _unproven(problem, solution, coef, decision, levels, tol, spectrum, rows, verified=False)


def _unproven(
    problem: DualProblem,
    solution: Solution,
    coef: np.ndarray,
    decision: np.ndarray,
    levels: Levels,
    tol: float,
    spectrum: Definiteness | Spectrum,
    rows: np.ndarray,
    *,
    dual: float = -np.inf,
    verified: bool,
) -> Evaluation:
    """Evaluation of an answer of which nothing is known but a bound."""
    return Evaluation(
        rows=rows,
        solution=solution,
        recomputed=decision,
        verified=verified,
        problem=problem,
        beta=solution.beta,
        levels=levels,
        coefficients=coef,
        bias=levels.bias,
        decision=decision,
        squared_norm=float(coef @ decision),
        noise=0.0,
        certificate=DualCertificate(
            primal=np.inf,
            dual=dual,
            gap=np.inf,
            relative_gap=np.inf,
            kkt_violation=np.inf,
            infeasibility=0.0,
            status=solution.status,
            tol=tol,
            spectrum=spectrum,
        ),
    )


def _weighed(
    problem: DualProblem, beta: np.ndarray, coef: np.ndarray, decision: np.ndarray
) -> Account:
    """Account for a point of a problem."""
    return weigh(
        problem.variables,
        problem.n_groups,
        problem.readings,
        beta,
        problem.start,
        coef,
        decision,
        problem.gram.diagonal,
        problem.gram.rounding,
    )


class HardMargins(NamedTuple):
    """What the rows say of a maximum margin.

    The smallest margin, the smallest that rounding leaves room for, and the doubt that it leaves of
    the squared norm.
    """

    slackest: float
    surest: float
    doubt: float


def hard_margins(
    problem: DualProblem, beta: np.ndarray, decision: np.ndarray, bias: float, error: np.ndarray
) -> HardMargins:
    """Look at the margins of rows, whose decision values may each be off by an error."""
    error = error[problem.gram_row]
    margins = problem.label * (decision[problem.gram_row] + bias)
    counted = problem.lower < problem.upper
    return HardMargins(
        float(margins[counted].min(initial=np.inf)),
        float((margins - error)[counted].min(initial=np.inf)),
        float(np.abs(beta) @ error),
    )


def _of_hard_margin(
    problem: DualProblem,
    beta: np.ndarray,
    coef: np.ndarray,
    decision: np.ndarray,
    account: Account,
) -> Account:
    """Account for a maximum margin."""
    gram = problem.gram
    error = errors(terms_of(coef), decision, gram.diagonal, account.size, gram.rounding)
    return account_of_hard_margin(
        account, hard_margins(problem, beta, decision, account.bias, error)
    )


def account_of_hard_margin(account: Account, margins: HardMargins) -> Account:
    """Account for a maximum margin, whose primal any violated constraint makes infinite.

    The primal here is that of w scaled until no constraint is violated.
    """
    slackest, surest, doubt = margins
    half = 0.5 * account.squared_norm
    primal = half / slackest**2 if slackest > 0 else float("inf")
    highest = (half + 0.5 * doubt) / surest**2 if surest > 0 else float("inf")
    rounding = highest - primal if np.isfinite(highest) else float("inf")
    gap = max(primal - account.dual, 0.0)
    rounding += 0.5 * doubt + account.drift
    rounding += float(np.finfo(np.float64).eps) * (abs(primal) + abs(account.dual))
    return account._replace(
        primal=primal,
        gap=gap,
        rounding=rounding,
        relative_gap=relative(gap + rounding, primal, account.dual),
    )


def scaling(problem: DualProblem, status: Status, account: Account) -> tuple[Status, float]:
    """Status, and the number that brings a machine whose margin is rho to margin one.

    Where rho is zero to rounding, or for good not positive, there is no such number: trivial.
    """
    rho = account.margin
    zero = problem.margin_weights.size > 0 and abs(rho) <= account.noise
    negative = problem.scaled and rho <= 0
    known = negative and account.violation <= _KNOWN * -rho
    if status is Status.CONVERGED and (zero or known):
        status = Status.TRIVIAL
    return status, rho if problem.scaled and not zero and not negative else 1.0


def _refuse_touching_hulls(
    problem: DualProblem, beta: np.ndarray, decision: np.ndarray, size: float, rows: np.ndarray
) -> None:
    """Raise when the nearest points of the hulls coincide, to what float64 resolves.

    The distance comes from numbers of the kernel's size, so below their rounding it is zero. As
    long as the normal between the two points still separates all rows, the data are separable.
    Without a bias it is the hull of ``y phi`` and the origin, and a row at the origin is a proof.
    """
    through_origin = problem.n_groups == 1
    resolution = RESOLVED * np.finfo(np.float64).eps * size**2
    values = decision[problem.gram_row]
    squared = max(float(beta @ (problem.orientation * values)), 0.0)
    counted, label = problem.lower < problem.upper, problem.label
    lowest = values[counted & (label > 0)].min()
    highest = values[counted & (label < 0)].max()
    apart = lowest - highest if problem.n_groups == 2 else min(lowest, -highest)
    at_origin = counted & (problem.gram.diagonal[problem.gram_row] <= 0.0)
    if through_origin and at_origin.any():  # steps would go on towards it for ever
        beta, squared = np.zeros_like(beta), 0.0
        beta[np.argmax(at_origin)] = 1.0
    elif squared > resolution or apart > resolution:
        return
    sides = []
    for side in (label > 0, label < 0):
        used = np.flatnonzero(side & (beta != 0))
        sides.append((rows[problem.gram_row[used]], np.abs(beta[used])))
    distance, resolution = squared**0.5, resolution**0.5
    first, second = (len(used) for used, _ in sides)
    plane = "hyperplane through the origin" if through_origin else "hyperplane"
    met = f"A convex combination of {first} row(s) of the one and one of {second} row(s) of the "
    met += "other coincide: they are"
    if through_origin:
        met = f"The origin and a convex combination of y phi(x) over {first + second} row(s) "
        met += "coincide: they are"
    raise InseparableError(
        f"The hard margin (C=inf) cannot be had: to float64's resolution no {plane} of the "
        f"feature space separates the two classes. {met} "
        f"{distance:.2g} apart, and with kernel values of this size float64 resolves "
        f"{resolution:.2g}. The two are in this error's `positive` and `negative`. Use a finite C "
        f"or a richer kernel{', or a bias' if through_origin else ''}; if the features are far "
        "from zero or of very different scales, "
        "StandardScaler makes the resolution finer and may show a separation.",
        positive=sides[0],
        negative=sides[1],
        distance=distance,
    )

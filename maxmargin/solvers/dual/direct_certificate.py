"""Certificates of machines for several classes at once, from sums over rows wherever these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.backends.cpu.dual.direct import violations
from maxmargin.certificate import DualCertificate
from maxmargin.duals.direct import DirectProblem
from maxmargin.gram import Definiteness, Spectrum
from maxmargin.solution import Status

_EPSILON = float(np.finfo(float).eps)


class DirectSums(NamedTuple):
    """Sums and extremes over rows from which the certificate of a direct form is made.

    ``quadratic`` and ``linear`` are the two parts of the dual, ``gap`` the difference of the
    objectives, ``outside`` the largest violation of a box or of a row's sum. The others bound
    rounding: ``weights`` are ``sum_i |b_ik| s_i`` for each class, with ``s_i = sqrt(K_ii + 1)``;
    ``costs`` is the sum of ``s_i`` times the upper bound of the row's own variable, ``drift`` of
    the violated row sums times the row's largest gradient, ``amount`` of the sizes of all terms in
    the objectives, ``terms`` the number of these.
    """

    quadratic: float
    linear: float
    gap: float
    violation: float
    outside: float
    weights: np.ndarray
    costs: float
    drift: float
    amount: float
    terms: float

    @classmethod
    def of(
        cls, problem: DirectProblem, b: np.ndarray, values: np.ndarray, diagonal: np.ndarray
    ) -> DirectSums:
        """Sum over the rows of a point, given the values of the functions there."""
        dual, gap = problem.objectives(b, values)
        quadratic = 0.5 * float(np.vdot(b, values))
        sizes = np.sqrt(np.maximum(diagonal, 0.0) + float(problem.bias))
        found = violations(
            np.ascontiguousarray(values),
            np.ascontiguousarray(b),
            problem.y,
            problem.cost,
            problem.most,
        )
        low, high = problem.walls()
        outside = float(np.maximum(low - b, b - high).max(initial=0.0))
        row_sums = np.abs(b.sum(axis=1))
        gradient = np.abs(problem.gradient(values))
        return cls(
            quadratic=quadratic,
            linear=dual + quadratic,
            gap=gap,
            violation=float(found.max(initial=0.0)),
            outside=max(outside, float(row_sums.max(initial=0.0))),
            weights=(np.abs(b) * sizes[:, None]).sum(axis=0),
            costs=float(problem.most @ sizes),
            drift=float(row_sums @ gradient.max(axis=1, initial=0.0)),
            amount=float(2.0 * (np.abs(b) * gradient).sum() + problem.losses(values).sum()),
            terms=float(b.size),
        )

    @classmethod
    def merged(cls, parts: Sequence[DirectSums]) -> DirectSums:
        """Put those of several stretches of rows together."""
        worst = {"violation", "outside"}
        columns = {name: [getattr(part, name) for part in parts] for name in cls._fields}
        return cls(
            **{name: max(own) if name in worst else sum(own) for name, own in columns.items()}
        )


def certified(
    sums: DirectSums,
    roundings: float,
    status: Status,
    tol: float,
    spectrum: Definiteness | Spectrum,
) -> DualCertificate:
    """Return the certificate of sums over all rows.

    ``roundings`` bounds the error of a value ``f_k(x_i)``, in units of ``eps * weights_k * s_i``.
    Then the gap, in which a value is multiplied by its variable and by at most twice the row's
    cost, is off by no more than the first line; the sums of the objectives add the second.
    """
    largest, squares = float(sums.weights.max(initial=0.0)), float(sums.weights @ sums.weights)
    rounding = _EPSILON * roundings * (squares + 2.0 * largest * sums.costs) + sums.drift
    rounding += _EPSILON * sums.terms * sums.amount
    if sums.violation <= tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED
    dual = sums.linear - sums.quadratic
    primal = dual + sums.gap
    return DualCertificate(
        primal=primal,
        dual=dual,
        gap=sums.gap,
        relative_gap=(sums.gap + rounding) / max(abs(primal), abs(dual), np.finfo(float).tiny),
        kkt_violation=sums.violation,
        infeasibility=sums.outside,
        status=status,
        tol=tol,
        spectrum=spectrum,
        rounding=rounding,
    )

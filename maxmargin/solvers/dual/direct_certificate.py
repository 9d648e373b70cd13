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
    """What a certificate of a direct form is made of: sums and extremes over rows.

    ``quadratic`` and ``linear`` are the two parts of the dual, ``gap`` that between the objectives,
    ``outside`` by how much a variable has left its box or a row its sum. ``weights`` are
    ``sum_i |b_ik| sqrt(K_ii + 1)`` for each class, ``longest`` the largest of these roots, and
    ``reach`` what multiplies errors of the values: variables, and costs that the losses have.
    """

    quadratic: float
    linear: float
    gap: float
    violation: float
    outside: float
    weights: np.ndarray
    longest: float
    reach: float

    @classmethod
    def of(
        cls, problem: DirectProblem, b: np.ndarray, values: np.ndarray, diagonal: np.ndarray
    ) -> DirectSums:
        """Look at a point, given the values of the functions on the rows."""
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
        return cls(
            quadratic=quadratic,
            linear=dual + quadratic,
            gap=gap,
            violation=float(found.max(initial=0.0)),
            outside=max(outside, float(np.abs(b.sum(axis=1)).max(initial=0.0))),
            weights=(np.abs(b) * sizes[:, None]).sum(axis=0),
            longest=float(sizes.max(initial=0.0)),
            reach=float(np.abs(b).sum() + 2.0 * problem.most.sum()),
        )

    @classmethod
    def merged(cls, parts: Sequence[DirectSums]) -> DirectSums:
        """Put those of several stretches of rows together."""
        worst = {"violation", "outside", "longest"}
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
    """Return the certificate of sums over all rows; ``roundings`` are those of a value."""
    error = roundings * _EPSILON * float(sums.weights.max(initial=0.0))
    rounding = error * sums.longest * sums.reach
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

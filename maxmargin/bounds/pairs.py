"""A fitted SVC as its machines for two classes, with the numbers that theorems on them take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin import duals
from maxmargin.estimators.data import validate_data
from maxmargin.gram import Definiteness, Gram
from maxmargin.kernels import Input
from maxmargin.solvers import Auto, solve_certified

_AT_BOUND = 1e-6  # relative distance from C up to which a multiplier counts as C
_SAME = 1e-6  # by how much decision values of the training rows may differ
_TILE = 512
_EXACT = 1e-8  # KKT violation up to which a problem without a row is solved
_FREE = 1e-3  # share of C: a free multiplier is at least that far from 0 and C
_AT_ONCE = 256  # leave-one-out problems that are solved together


@dataclass(frozen=True)
class Pair:
    """One pair's machine, on its training rows."""

    rows: np.ndarray
    support: np.ndarray
    signed: np.ndarray
    slack: np.ndarray  # of rows
    slack_of_support: np.ndarray
    cost: np.ndarray  # of support
    bias: float | None
    primal: float
    tolerance: float

    @property
    def alpha(self) -> np.ndarray:
        """Multipliers of the rows."""
        return np.abs(self.signed)

    def refuse_weights(self) -> None:
        """Refuse rows whose cost is not C: with slack alpha is C, without support there is none."""
        beyond = self.alpha > self.cost * (1 + _AT_BOUND)
        below = (self.slack_of_support > self.tolerance) & ~self.at_bound
        idle = ~np.isin(self.rows, self.support) & (self.slack > self.tolerance)
        if beyond.any() or below.any() or idle.any():
            raise ValueError(
                "The leave-one-out bounds count every row once, and this machine was fitted with "
                "sample weights. Fit it without, with repeated rows in place of weights."
            )

    @property
    def at_bound(self) -> np.ndarray:
        """Which of them are at their cost."""
        return self.alpha >= self.cost * (1 - _AT_BOUND)

    def refuse_loose_intercept(self) -> None:
        """Refuse an intercept that the KKT conditions only bound."""
        if self.bias is not None and self.at_bound.all():
            raise ValueError(
                "The leave-one-out bounds need an intercept that is determined, and this machine "
                "has no free support vector (0 < alpha < C), so that leaving any row out can move "
                "it. Use another C, or fit_intercept=False."
            )

    def reach(self, gram: Gram, every_row: bool = False) -> np.ndarray:
        """``D_i^2`` of the support vectors (or all rows); refuses other data than it was fitted to.

        The largest squared distance to a row of the pair; without an intercept to the origin.
        """
        diagonal = gram.diagonal[self.rows]
        wanted = self.rows if every_row and self.bias is not None else self.support
        reach = []
        for part in np.split(wanted, range(_TILE, len(wanted), _TILE)):
            block = gram.block(part, self.rows)
            distances = gram.diagonal[part][:, None] + diagonal - 2 * block
            reach.append(distances.max(axis=1))
        self._refuse_other_rows(self.values(gram), float(np.abs(diagonal).max()))
        if self.bias is None:
            return diagonal if every_row else gram.diagonal[self.support]
        return np.concatenate(reach)

    def values(self, gram: Gram) -> np.ndarray:
        """Decision values on the rows of the pair."""
        signed = np.zeros(gram.n)
        signed[self.support] = self.signed
        return gram.matvec(signed, self.rows) + (self.bias or 0.0)

    def _refuse_other_rows(self, values: np.ndarray, scale: float) -> None:
        """Compare slack: of support vectors, whose side is known, and of the others on either."""
        allowed = _SAME * (1.0 + np.abs(values)) + 1e-12 * scale * self.alpha.sum()
        place = np.searchsorted(self.rows, self.support)
        shift = np.abs(1.0 - np.sign(self.signed) * values[place] - self.slack_of_support)
        sides = [np.abs(np.maximum(0.0, 1.0 - s * values) - self.slack) for s in (1.0, -1.0)]
        if (shift > allowed[place] + self.tolerance).any() or (np.minimum(*sides) > allowed).any():
            raise ValueError(
                "X must hold the rows that the machine was fitted to, in their order: on this X "
                "its values are others than at the end of the fit."
            )


def stable_without(gram: Gram, pair: Pair, rows: np.ndarray, machine: Any) -> np.ndarray:
    """Solve a pair without each of ``rows``; return whether a free support vector is left."""
    cost, place = float(pair.cost[0]), np.searchsorted(pair.rows, pair.support)
    alpha, side = np.zeros(len(pair.rows)), np.sign(pair.values(gram))
    alpha[place], side[place] = pair.alpha, np.sign(pair.signed)  # the others are beyond the margin
    stable = np.zeros(len(rows), dtype=bool)
    workers = machine._workers()
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        problems = []
        for row in some:
            kept = np.flatnonzero(pair.rows != row)
            problem = duals.c_svc(pair.rows[kept], side[kept], np.full(len(kept), cost))
            problems.append(problem.started_near((side * alpha)[kept]))
        found, _ = solve_certified(gram, problems, Auto(), min(machine.tol, _EXACT), workers)
        for k, evaluation in enumerate(found, first):
            share = evaluation.alpha / cost
            free = (share > _FREE) & (share < 1.0 - _FREE)
            stable[k] = evaluation.certificate.converged and bool(free.any())
    return stable


def pairs(machine: Any) -> Iterator[Pair]:
    """Yield the machines of an SVC, one for each task of its scheme, having checked what can be."""
    refuse_other_machines(machine)
    coefficients, intercepts = machine.dual_coef_, machine.intercept_
    if sp.issparse(coefficients):
        coefficients = coefficients.toarray()
    scheme = machine.scheme_
    expansions = scheme.expansions(coefficients, machine.n_support_)
    owner = np.repeat(np.arange(scheme.n_classes), machine.n_support_)
    certificates = machine.certificate_.parts or (machine.certificate_,)
    for k, slack in enumerate(np.atleast_2d(machine.slack_)):
        rows, used = np.flatnonzero(~np.isnan(slack)), np.flatnonzero(expansions[k])
        support = machine.support_[used].astype(np.int64)
        pair = Pair(
            rows=rows,
            support=support,
            signed=expansions[k, used],
            slack=slack[rows],
            slack_of_support=slack[support],
            cost=_cost(machine, len(rows)) * machine.class_weight_[owner[used]],
            bias=float(intercepts[k]) if machine.fit_intercept else None,
            primal=certificates[k].primal,
            tolerance=2 * certificates[k].kkt_violation + 1e-9,
        )
        pair.refuse_weights()
        yield pair


def _cost(machine: Any, n: int) -> float:
    """C of a row of weight one."""
    if machine.lam is None:
        return float(machine.C)
    if (machine.class_weight_ != 1).any():
        raise ValueError(
            "A machine with lam and class weights does not keep the C that they stand for. Fit it "
            "with C = 1 / (2 N lam), N the sum of the rows' weights, and the same class_weight."
        )
    return 1.0 / (2.0 * n * machine.lam)


def refuse_other_machines(machine: Any) -> None:
    """Refuse everything but a converged SVC with a kernel that is not known to be indefinite."""
    refuse_other_than_classifiers(machine)
    if not (hasattr(machine, "C") and hasattr(machine, "lam")):
        raise ValueError(
            "The leave-one-out bounds are for maxmargin's SVC, whose cost C of a row does not "
            f"depend on the other rows, and this is {type(machine).__name__}. (A NuSVC for two "
            "classes with slack is the SVC with C = abs(dual_coef_).max(): fit that.)"
        )
    check_is_fitted(machine, "certificate_")
    if machine.norm_bound is not None:
        raise ValueError(
            "The leave-one-out bounds hold C where a row is left out, and norm_bound does not: fit "
            "the SVC with the C that it came to, C_."
        )
    if not machine.scheme_.unanimous:
        raise ValueError(
            "The leave-one-out bounds count the rows that some machine for two is wrong about, and "
            f"{machine.scheme_!r} does not say that a row on which none is wrong goes to its class "
            "(unanimous=True). Use multiclass='ovo' or 'ovr'."
        )
    certificate = machine.certificate_
    if not certificate.converged:
        raise ValueError(
            f"The leave-one-out bounds are on the optimal machine, and this fit has not converged "
            f"({certificate.status}). Raise max_iter or time_limit, or scale the features."
        )
    if certificate.definiteness == Definiteness.INDEFINITE:
        raise ValueError(
            "The leave-one-out bounds need a convex problem, and this kernel's matrix is "
            "indefinite. Use a valid kernel: see kernel_.validity."
        )


def refuse_other_than_classifiers(machine: Any) -> None:
    """Refuse a machine that does not classify."""
    if not is_classifier(machine):
        raise ValueError(
            "The bounds are on errors of classification, and "
            f"{type(machine).__name__} is no classifier."
        )


def unproven(machine: Any) -> tuple[str, ...]:
    """Say what a bound assumes of the kernel, if that is not proven."""
    unknown = machine.certificate_.definiteness == Definiteness.UNKNOWN
    return ("the kernel is positive semidefinite, which is not proven",) if unknown else ()


def gram_of(machine: Any, X: Any) -> Gram:
    """Gram matrix of the rows that the machine was fitted to."""
    refuse_other_machines(machine)
    X = validated(machine, X)
    n = machine.shape_fit_[0]
    if _num_samples(X) != n:
        raise ValueError(
            f"X must hold the {n} rows that the machine was fitted to, got {_num_samples(X)}."
        )
    return Gram.of(X, machine.kernel_)


def validated(machine: Any, X: Any) -> Any:
    """Check X as the machine checks what it predicts."""
    if hasattr(machine, "kernel_") and machine.kernel_.input in (Input.OBJECTS, Input.SEQUENCES):
        return machine._validated_points(X, machine.kernel_)
    return validate_data(
        machine, X, reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
    )

"""One machine along a path of costs, each fit begun from the last."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.linear.risk_machine import RiskMachine, kept
from maxmargin.solvers.risk.cache import RiskCache


def C_path(
    machine: Any, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None
) -> list[Any]:
    """Fit a machine for every C of a list, in less time than each on its own.

    The data are checked once. From the lowest C to the highest, each fit begins where the one
    before has ended; the answers are those of fits of their own, to ``tol``.

    Parameters
    ----------
    machine : LinearSVC, LinearSVR or LogisticRegression
        Stays as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : iterable of float
        In any order.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    machines : list
        Fitted clones with their C, in the order of ``Cs``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.linear.path import C_path
    >>> X, y = load_iris(return_X_y=True)
    >>> machines = C_path(LinearSVC(), X, y, [1.0, 0.01])
    >>> [(model.C, round(model.score(X, y), 2)) for model in machines]
    [(1.0, 0.97), (0.01, 0.87)]
    """
    if not isinstance(machine, RiskMachine):
        raise TypeError(
            "C_path goes along the costs of LinearSVC, LinearSVR and LogisticRegression; got "
            f"{type(machine).__name__}. For kernel machines, maxmargin.selection searches C."
        )
    costs = np.array([float(C) for C in Cs])
    if np.isinf(costs).any():
        raise ValueError("A path goes along finite costs: C=inf has no penalty to weigh against.")
    at: Any = clone(machine).set_params(warm_start=True)
    for C in (costs.min(initial=1.0), costs.max(initial=1.0)):  # between the two, all are allowed
        at.set_params(C=float(C))._validate_params()
    at.C = 1.0
    problems = at._pose(X, y, sample_weight)
    caches = [RiskCache() for _ in problems]
    found: dict[int, Any] = {}
    for k in np.argsort(costs, kind="stable").tolist():
        at = copy.copy(at)
        at.C = float(costs[k])
        at._refuse_contradictions()
        at._solve(problems, caches)
        at._warn_unfinished()
        found[k] = at
    for fitted in found.values():
        fitted.warm_start = machine.warm_start
        if hasattr(fitted, "_answers"):
            fitted._answers = [kept(answer, machine.warm_start) for answer in fitted._answers]
    return [found[k] for k in range(len(costs))]

"""The dual problems of the machines: see the table at the top of :mod:`maxmargin.duals`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.duals.problem import DualProblem, Losses
from maxmargin.losses import EpsilonInsensitive, Hinge

_NONE, _ONE = np.empty(0), np.ones(1)


def c_svc(rows: np.ndarray, y: np.ndarray, C: np.ndarray, *, bias: bool = True) -> DualProblem:
    """Soft margin: ``min 1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (w . phi_i + b))``.

    Parameters
    ----------
    rows : int array (m,)
        Rows of the Gram matrix.
    y : float array (m,)
        Labels, -1 or +1.
    C : float array (m,)
        Cost of each row's slack; with ``lam`` of the lambda form ``C_i = w_i / (2 N lam)``.
    bias : bool
        Without it b = 0 and only the box remains.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import c_svc
    >>> problem = c_svc(np.arange(3), np.array([1.0, -1.0, 1.0]), C=np.ones(3))
    >>> problem.n_groups, problem.linear, problem.upper
    (1, array([-1.,  1., -1.]), array([1., 0., 1.]))
    """
    m, farthest = len(rows), y * C
    return DualProblem(
        gram_row=rows,
        orientation=np.ones(m),
        linear=-y,
        lower=np.minimum(farthest, 0.0),
        upper=np.maximum(farthest, 0.0),
        start=np.zeros(m),
        group=np.full(m, 0 if bias else -1),
        bias_weights=_ONE if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=_NONE,
        losses=Losses(Hinge(), y, C),
    )


def nu_svc(
    rows: np.ndarray, y: np.ndarray, weight: np.ndarray, nu: float, *, bias: bool = True
) -> DualProblem:
    """nu-SVC: ``min 1/2 ||w||^2 - nu N rho + sum_i w_i max(0, rho - y_i (w . phi_i + b))``.

    nu bounds the share of margin errors from above and that of support vectors from below. With a
    bias each class must be able to hold half of the mass, so ``nu <= 2 min(N+, N-) / N``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import nu_svc
    >>> problem = nu_svc(np.arange(4), np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), nu=0.5)
    >>> problem.group, problem.start
    (array([0, 0, 1, 1]), array([ 1.,  0., -1., -0.]))
    """
    total = weight.sum()
    positive, negative = weight[y > 0].sum(), weight[y < 0].sum()
    if bias and nu * total / 2 > min(positive, negative) * (1 + 1e-12):
        raise ValueError(
            f"specified nu is infeasible: nu={nu:g}, but the classes (of weight {positive:g} and "
            f"{negative:g}) allow 0 < nu <= {2 * min(positive, negative) / total:.6g}"
        )
    return _unit_sums(rows, y, weight, nu * total, bias=bias)


def hard_margin(
    rows: np.ndarray, y: np.ndarray, weight: np.ndarray, *, bias: bool = True
) -> DualProblem:
    """Hard margin, ``min 1/2 ||w||^2 subject to y_i (w . phi_i + b) >= 1``, as nearest points.

    Minimises the squared distance between a convex combination of either class (without a bias:
    between a convex combination of the ``y_i phi_i`` and the origin). Rows of weight zero take no
    part.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import hard_margin
    >>> hard_margin(np.arange(3), np.array([1.0, -1.0, -1.0]), np.ones(3)).start
    array([ 1., -1., -0.])
    """
    upper = np.where(weight > 0, np.inf, 0.0)
    problem = _unit_sums(rows, y, upper, 2.0 if bias else 1.0, bias=bias)
    return replace(problem, hard=True)


def _unit_sums(
    rows: np.ndarray, y: np.ndarray, upper: np.ndarray, total: float, *, bias: bool
) -> DualProblem:
    """Share ``total`` among the variables: half to each class, or without a bias among all."""
    m = len(rows)
    group = np.where(y > 0, 0, 1) if bias else np.zeros(m, dtype=np.int64)
    start = np.zeros(m)
    for j in range(2 if bias else 1):
        members = np.flatnonzero(group == j)
        start[members] = _filled(upper[members], total / 2 if bias else total)
    side = y if bias else np.ones(m)
    return DualProblem(
        gram_row=rows,
        orientation=y * side,
        linear=np.zeros(m),
        lower=np.where(side < 0, -upper, 0.0),
        upper=np.where(side > 0, upper, 0.0),
        start=side * start,
        group=group,
        bias_weights=np.array([0.5, 0.5]) if bias else _NONE,
        margin_weights=np.array([-0.5, 0.5]) if bias else np.array([-1.0]),
        tube_weights=_NONE,
        scaled=True,
    )


def epsilon_svr(
    rows: np.ndarray, target: np.ndarray, C: np.ndarray, epsilon: float, *, bias: bool = True
) -> DualProblem:
    """SVR: ``min 1/2 ||w||^2 + sum_i C_i max(0, |w . phi_i + b - t_i| - epsilon)``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import epsilon_svr
    >>> problem = epsilon_svr(np.arange(2), np.array([1.0, 2.0]), C=np.ones(2), epsilon=0.5)
    >>> problem.gram_row, problem.linear
    (array([0, 1, 0, 1]), array([-0.5, -1.5, -1.5, -2.5]))
    """
    m = len(rows)
    sign = np.repeat([1.0, -1.0], m)
    return DualProblem(
        gram_row=np.tile(rows, 2),
        orientation=np.ones(2 * m),
        linear=sign * epsilon - np.tile(target, 2),
        lower=np.concatenate([np.zeros(m), -C]),
        upper=np.concatenate([C, np.zeros(m)]),
        start=np.zeros(2 * m),
        group=np.full(2 * m, 0 if bias else -1),
        bias_weights=_ONE if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=_NONE,
        losses=Losses(EpsilonInsensitive(epsilon), target, C),
    )


def nu_svr(
    rows: np.ndarray, target: np.ndarray, C: np.ndarray, nu: float, *, bias: bool = True
) -> DualProblem:
    """nu-SVR: ``min 1/2 ||w||^2 + nu sum(C) e + sum_i C_i max(0, |w . phi_i + b - t_i| - e)``.

    The width e of the tube is found, not given: nu is the share of points that may leave it.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import nu_svr
    >>> nu_svr(np.arange(2), np.array([1.0, 2.0]), C=np.ones(2), nu=0.5).start
    array([ 0.5,  0. , -0.5, -0. ])
    """
    m = len(rows)
    sign = np.repeat([1.0, -1.0], m)
    half = _filled(C, nu * C.sum() / 2)
    side = sign if bias else np.ones(2 * m)
    upper = np.tile(C, 2)
    return DualProblem(
        gram_row=np.tile(rows, 2),
        orientation=sign * side,
        linear=-sign * side * np.tile(target, 2),
        lower=np.where(side < 0, -upper, 0.0),
        upper=np.where(side > 0, upper, 0.0),
        start=side * np.tile(half, 2),
        group=np.repeat([0, 1 if bias else 0], m),
        bias_weights=np.array([0.5, 0.5]) if bias else _NONE,
        margin_weights=_NONE,
        tube_weights=np.array([0.5, -0.5]) if bias else np.ones(1),
    )


def one_class(rows: np.ndarray, weight: np.ndarray, nu: float) -> DualProblem:
    """One-class SVM: ``min 1/2 ||w||^2 - nu N rho + sum_i w_i max(0, rho - w . phi_i)``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import one_class
    >>> one_class(np.arange(4), np.ones(4), nu=0.5).start
    array([1., 1., 0., 0.])
    """
    m = len(rows)
    return DualProblem(
        gram_row=rows,
        orientation=np.ones(m),
        linear=np.zeros(m),
        lower=np.zeros(m),
        upper=weight,
        start=_filled(weight, nu * weight.sum()),
        group=np.zeros(m, dtype=np.int64),
        bias_weights=_ONE,
        margin_weights=np.array([-1.0]),
        tube_weights=_NONE,
    )


def _filled(upper: np.ndarray, total: float) -> np.ndarray:
    """Distribute ``total`` over boxes ``[0, upper]``, the first ones first."""
    upper = np.minimum(upper, total)
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    return np.clip(total - before, 0.0, upper)

"""Machines with other costs of their rows: all folds of a solved problem, begun from its solution.

A fold without some of the rows is one with a cost of zero for these, and a bootstrap replicate one
with so many times the cost as a row was drawn.

A row with ``alpha_i = 0`` beyond the margin takes no part in the solution, and mostly takes none
in that of a fold. So with S the support vectors and the rows near the margin

    repeat
        solve each fold on the rows of S that it keeps     (all over one block of kernel values)
        f  =  the values of the folds' machines on all rows
        S  =  S and the rows outside that violate a fold's conditions, y f < 1 - tol
    until there is none

and f on the rows that a fold holds out is at hand. Kernel values are made once for all folds, in
float32: some digits are enough for what is learnt from these values.

Reference: DeCoste and Wagstaff, Alpha seeding for support vector machines, KDD 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual.folds import solve_folds
from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.duals import DualProblem, read_levels
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Gram
from maxmargin.solvers.driver import Watch

_NEAR = 0.1  # beyond the margin: rows that are in S from the beginning
_FINEST = 1e-4  # tol, that float32 values are good for
_NOISE = 0.02  # of a margin, that their rounding may do to a value
_SHARE = 0.5  # of the memory, for kernel values
_ROUNDS = 10
_PATIENCE = 50  # steps per variable
_SLICE = 30_000_000  # entries of a compiled call: some hundredths of a second


class LeftOut(NamedTuple):
    """The machines of some folds: fold f has ``coefficients[f]`` on ``rows``, and ``bias[f]``.

    ``values`` are those on the rows of the problem, (folds, rows), ``violation`` is the largest of
    a KKT condition that is left in one of them, and ``steps`` are those of each.
    """

    rows: np.ndarray
    coefficients: np.ndarray
    bias: np.ndarray
    values: np.ndarray
    violation: float
    steps: np.ndarray


@on_one_blas_thread
def solve_left_out(
    gram: Gram, solved: Evaluation, cost: np.ndarray, watch: Watch
) -> LeftOut | None:
    """Solve a problem at the costs of each fold.

    Parameters
    ----------
    gram : Gram
    solved : Evaluation
        Of a problem with a hinge loss for each row of it.
    cost : float array (folds, rows of the problem)
        Zero for rows that a fold holds out.
    watch : Watch
        Of which ``tol`` and ``max_iter`` are those of each fold.

    Returns
    -------
    LeftOut, or None where that is for other methods: what is no C-SVC, or more than float32, some
    rounds or the memory have room for.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import SMO, Watch, solve_certified
    >>> from maxmargin.solvers.dual.left_out import solve_left_out
    >>> gram = Gram.of(np.array([[-2.0], [-1.0], [1.0], [2.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(4), np.array([-1.0, -1.0, 1.0, 1.0]), C=np.full(4, 10.0))
    >>> (solved,), _ = solve_certified(gram, [problem], SMO(), tol=1e-3)
    >>> cost = 10.0 * np.array([[1, 0, 0, 1], [0, 1, 1, 0]])
    >>> found = solve_left_out(gram, solved, cost, Watch())
    >>> found.values.round(2)
    array([[-1. , -0.5,  0.5,  1. ],
           [-2. , -1. ,  1. ,  2. ]])
    """
    problem, rows = solved.problem, solved.rows
    if not _suits(gram, solved, watch.tol):
        return None
    label, movable = -problem.linear, problem.upper > problem.lower
    margin = label * (solved.decision + solved.bias)
    near = np.flatnonzero((solved.beta != 0) | ((margin < 1 + _NEAR) & movable))
    n_folds = len(cost)
    points, most = _points(gram, rows), _most(gram, len(rows))
    if len(near) > most:
        return None
    K = _values(gram, points, near)
    beta = np.repeat(solved.beta[None, near], n_folds, axis=0)
    level, violation = np.zeros(n_folds), np.full(n_folds, np.inf)
    values, bias = np.zeros((n_folds, len(rows))), np.zeros(n_folds)
    todo, kept = np.arange(n_folds), cost > 0
    spent, taken = 0, np.zeros(n_folds, dtype=np.int64)
    for _ in range(_ROUNDS):
        part, own = problem.restricted(near).variables, np.ascontiguousarray(cost[:, near])
        while len(todo) and not watch.stopped():
            allowed = min(max(_SLICE // len(near) // len(todo), 1), watch.left(spent))
            args = (K, near, own, todo, part, problem.n_groups, watch.tol, allowed)
            spent += solve_folds(*args, beta, level, violation, taken)
            todo = todo[violation[todo] > watch.tol]
            if not watch.left(spent):
                break
            if spent > _PATIENCE * len(near):
                return None
        for f in range(n_folds):
            bias[f] = read_levels(problem, np.full(problem.n_groups, level[f])).bias
        values = beta.astype(np.float32) @ K + bias[:, None]
        missed = (label * values < 1 - watch.tol) & kept
        missed[:, near] = False
        todo = np.flatnonzero(missed.any(axis=1))
        if not len(todo) or watch.stopped() or not watch.left(spent):
            break
        new = np.flatnonzero(missed.any(axis=0))
        if len(near) + len(new) > most:
            return None
        K = np.concatenate([K, _values(gram, points, new)])
        near, beta = np.append(near, new), np.pad(beta, ((0, 0), (0, len(new))))
    else:
        return None
    scale = float(np.abs(gram.diagonal[rows[near]]).max())
    if cpu.DEVIATION32 * scale * np.linalg.norm(beta, axis=1).max() > _NOISE:
        return None
    worst = max(violation.max(), float(np.where(missed, 1 - label * values, 0.0).max()))
    return LeftOut(rows[near], beta, bias, values, worst, taken)


def _suits(gram: Gram, solved: Evaluation, tol: float) -> bool:
    problem: DualProblem = solved.problem
    plain = problem.losses is not None and len(problem) == len(solved.rows)
    fits = not gram.on_device and gram.fits_float32 and tol >= _FINEST
    return bool(plain and fits and solved.beta.any())


def _most(gram: Gram, n: int) -> int:
    """Variables whose values with n rows and among themselves, in float32, have room."""
    return int(_SHARE * gram.memory / (4 * n * 2))


def _points(gram: Gram, rows: np.ndarray) -> cpu.Operand:
    host = gram.host
    given = host.program.is_given or host.program.calls_python
    return (host.points if given else host.float32_points()).take(rows)


def _values(gram: Gram, points: cpu.Operand, chosen: np.ndarray) -> np.ndarray:
    """Kernel values of some points with all, in float32."""
    K = np.empty((len(chosen), points.n), dtype=np.float32)
    cpu.kernel_rows(gram.program, points, chosen, points, K)
    return cpu.finite(K, gram.kernel)

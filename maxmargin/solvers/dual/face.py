"""The minimum on a face: all free variables moved at once by a Newton step.

Pairwise steps crawl where the kernel matrix is ill-conditioned, as with unscaled features and a
large C. There the set F of free variables soon stays the same, and on that face of the box the
problem is a quadratic without walls: with x the moves, H the curvature between them,

    minimise  1/2 x' H x - v_F' x    subject to  sum of x = 0 in each group,

one linear system. The step goes to its solution or to the first wall on the way, where a variable
leaves F and the next step is on a smaller face: the chunking idea with an active set.

Reference: Nocedal and Wright, Numerical Optimization, 2006, chapter 16.5 (active-set methods).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from maxmargin.duals import DualProblem

MAX_FREE = 3000
_ALWAYS = 1 << 25  # bytes that the matrices of a face may take however small the budget is
_RIDGE = 1e-13
_STEPS = 32
_FLOPS = 2 * 10**8  # for the factorisations of one descent: some milliseconds


def descend_faces(problem: DualProblem, beta: np.ndarray, v: np.ndarray) -> int:
    """Newton steps from face to face until one ends inside its own; returns their number.

    Changes ``beta`` and ``v`` in place. Does nothing on a face that is too large.
    """
    gram, free = problem.gram, face_of(problem, beta)
    if not len(free):
        return 0
    start = beta.copy()
    orientation = problem.orientation
    rows = problem.gram_row[free]
    H = orientation[free][:, None] * gram.block(rows, rows) * orientation[free]
    score, inside, steps = v[free].copy(), np.ones(len(free), dtype=bool), 0
    affordable = min(max(_FLOPS // len(free) ** 3, 2), _STEPS)
    while inside.sum() > 1 and steps < affordable:
        k = np.flatnonzero(inside)
        x = _newton(H[np.ix_(k, k)], score[k], problem.group[free[k]], problem.n_groups)
        image = H[np.ix_(k, k)] @ x
        slope, curvature = float(score[k] @ x), float(x @ image)
        if not slope > 0:
            break
        b, low, high = beta[free[k]], problem.lower[free[k]], problem.upper[free[k]]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(x > 0, (high - b) / x, (low - b) / x)
        room[x == 0] = np.inf
        wall = int(np.argmin(room))
        length = min(1.0, room[wall]) if curvature > 0 else room[wall]
        if not np.isfinite(length):
            break
        beta[free[k]] = np.clip(b + length * x, low, high)
        score -= length * (H[:, k] @ x)
        steps += 1
        if length < room[wall]:
            break
        beta[free[k[wall]]] = high[wall] if x[wall] > 0 else low[wall]
        inside[k[wall]] = False
    if steps:
        _restore_sums(problem, beta, start, free[inside])
        moved = problem.values(problem.on_rows(beta - start))
        v -= orientation * moved[problem.gram_row]
    return steps


def face_of(problem: DualProblem, beta: np.ndarray) -> np.ndarray:
    """Return the free variables; none if they are too few to move or too many to solve for.

    Too many is more than ``MAX_FREE``, or four matrices of them more than the memory.
    """
    free = np.flatnonzero(problem.is_free(beta))
    affordable = 32 * len(free) ** 2 <= max(problem.gram.memory, _ALWAYS)
    return free if 1 < len(free) <= MAX_FREE and affordable else free[:0]


def _restore_sums(
    problem: DualProblem, beta: np.ndarray, start: np.ndarray, inside: np.ndarray
) -> None:
    """Give back to each group the rounding that a long step took from its sum."""
    for j in range(problem.n_groups):
        member = problem.group == j
        members = inside[problem.group[inside] == j]
        if len(members):
            drift = float((beta - start)[member].sum())
            low, high = beta[members] - problem.lower[members], problem.upper[members]
            roomiest = members[np.argmax(np.minimum(low, high - beta[members]))]
            value = beta[roomiest] - drift
            beta[roomiest] = np.clip(value, problem.lower[roomiest], problem.upper[roomiest])


def _newton(H: np.ndarray, v: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Solve ``H x = v - level of the group`` with ``sum x = 0`` in each group.

    A ridge at the level of rounding keeps flat directions finite; a wall ends what it leaves long.
    Each variable is measured in its own curvature: one of a huge kernel value would otherwise
    have a ridge that is larger than the curvature of all others.
    """
    diagonal = H.diagonal()
    unit = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    members = (group[:, None] == np.arange(n_groups)).astype(np.float64)
    members = members[:, members.any(axis=0)]
    scaled = np.asfortranarray(unit[:, None] * H * unit)
    scaled[np.diag_indices_from(scaled)] += _RIDGE * len(H)
    right = unit[:, None] * np.column_stack([v, members])
    _, solved, failed = dposv(scaled, right, overwrite_a=True)
    if failed:
        return np.zeros(len(v))  # an indefinite kernel: leave this face to the pairwise steps
    solved = unit[:, None] * solved
    free, spread = solved[:, 0], solved[:, 1:]
    levels = np.linalg.lstsq(members.T @ spread, members.T @ free, rcond=None)[0]
    x = free - spread @ levels
    x -= members @ ((members.T @ x) / np.maximum(members.sum(axis=0), 1.0))
    return x if np.isfinite(x).all() else np.zeros(len(v))

"""Steps of two, and after every 100 of them a conjugate step along their sum.

Where the matrix is ill-conditioned, steps of two (:mod:`maxmargin.backends.cpu.dual.steps`) go the
same way over and over. Their sum d over a stretch is a direction whose product with the matrix is
known,

    K d = v before - v after,

so that the best step along it costs two products of vectors and not one row of K. Made conjugate to
the direction before it, as in the method of conjugate gradients, it goes further still. What is at
a wall that it would move through is taken out of it; the nearest wall ends the step.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.dual.steps import PAUSED, note_walls, steps_among

_STRETCH = 100  # steps between two along their sum
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def conjugate_steps(constrained, block, tol, max_steps):
    """Take steps as :func:`steps_among` does, and some along their sum.

    A step along two groups at once would not be one of either: with two there are none. Returns
    and changes what that one does. A long step multiplies the rounding of ``score``, which should
    be recomputed afterwards.
    """
    if block.rise.shape[0] > 1:
        return steps_among(constrained, block, tol, max_steps)
    score, beta = block.score, block.beta
    q = score.shape[0]
    before_beta = beta.copy()
    before_score = score.copy()
    ahead = np.zeros(q)  # the direction, and what it does to the scores
    change = np.zeros(q, dtype=np.float32)
    curvature = 0.0
    steps = 0
    while True:
        code, taken = steps_among(constrained, block, tol, min(_STRETCH, max_steps - steps))
        steps += taken
        if code != PAUSED or steps >= max_steps:
            return code, steps
        overlap = 0.0
        for t in range(q):
            overlap += (beta[t] - before_beta[t]) * change[t]
        keep = overlap / curvature if curvature > 0.0 else 0.0
        for t in range(q):
            ahead[t] = beta[t] - before_beta[t] + keep * ahead[t]
            change[t] = score[t] - before_score[t] + np.float32(keep) * change[t]
        left = _project_direction(constrained, block, ahead, change)
        slope = 0.0
        curvature = 0.0
        for t in range(q):
            slope += ahead[t] * score[t]
            curvature -= ahead[t] * change[t]
        if left != 0.0:
            curvature = 0.0  # nothing can make up for it: this direction leads off the constraint
        elif slope > 0.0 and curvature > 0.0:
            _advance(slope / curvature, block, ahead, change)
        for t in range(q):
            before_beta[t] = beta[t]
            before_score[t] = score[t]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _project_direction(constrained, block, ahead, change):
    """Take what cannot move out of a direction; the variable with most room makes up for it.

    That is where there is a constraint. It makes up for rounding, too: a direction of the last
    digits of many variables need not sum to zero at all, and may be followed very far. Returns what
    is left to make up for, where no variable has room.
    """
    beta, lower, upper = block.beta, block.lower, block.upper
    rise, fall = block.rise[0], block.fall[0]
    total = 0.0
    room = 0.0
    roomy = -1
    for t in range(ahead.shape[0]):
        if ahead[t] > 0.0 > rise[t] or ahead[t] < 0.0 < fall[t]:
            _subtract_row(np.float32(-ahead[t]), block.K[block.slot[t]], change)
            ahead[t] = 0.0
        total += ahead[t]
        if min(upper[t] - beta[t], beta[t] - lower[t]) > room:
            room = min(upper[t] - beta[t], beta[t] - lower[t])
            roomy = t
    if not constrained or total == 0.0:
        return 0.0
    if roomy < 0:
        return total
    ahead[roomy] -= total
    _subtract_row(np.float32(-total), block.K[block.slot[roomy]], change)
    return 0.0


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _subtract_row(weight, row, out):
    for t in range(out.shape[0]):
        out[t] -= weight * row[t]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _advance(step, block, ahead, change):
    """Go along a direction, up to the nearest wall."""
    score, beta, lower, upper = block.score, block.beta, block.lower, block.upper
    q = ahead.shape[0]
    nearest = -1
    for t in range(q):
        move = ahead[t]
        room = upper[t] - beta[t] if move > 0.0 else lower[t] - beta[t]
        if move != 0.0 and step * abs(move) >= abs(room):
            step = abs(room / move)
            nearest = t
    for t in range(q):
        score[t] += np.float32(step) * change[t]
        if ahead[t] == 0.0:
            continue
        beta[t] = min(max(beta[t] + step * ahead[t], lower[t]), upper[t])
        if t == nearest:
            beta[t] = upper[t] if ahead[t] > 0.0 else lower[t]
        note_walls(beta, lower, upper, t, block.rise[0], block.fall[0])

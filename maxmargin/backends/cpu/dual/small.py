"""Many small dual problems in one compiled call: steps of two, Newton steps, an account of each.

A problem of some hundred variables is solved in less time than an interpreter takes to set it up.
So a whole batch of them (pairs of classes, folds) crosses to compiled code together: for each
variable that moves, its row of the Gram matrix is made or gathered once, in float64; steps of two
(:mod:`maxmargin.backends.cpu.dual.steps`) go down to ``tol``; descents from face to face, as in
:mod:`maxmargin.solvers.dual.face`, shorten the way and end it exactly on the support set; then
``K coef`` is summed anew and everything that a certificate says is computed from it
(:mod:`maxmargin.backends.cpu.dual.certificate`).
What does not end that way is left to the solvers of larger problems, from where it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maxmargin.backends.compiled import INNER, njit
from maxmargin.backends.cpu.cholesky import cholesky, substitute
from maxmargin.backends.cpu.dual.certificate import SUMMED, Readings, weigh
from maxmargin.backends.cpu.dual.kkt import Variables, snap_to_bounds
from maxmargin.backends.cpu.dual.steps import (
    CONVERGED,
    PAUSED,
    ROWS,
    STUCK,
    Block,
    pair_steps_or_row,
    walls,
)
from maxmargin.backends.cpu.loops import exponential

LARGEST = 1000  # variables of a small problem
_WEARY, _PATIENCE = 10, 150  # steps, times the variables, up to a descent, and to giving up
_FACE = 256  # free variables up to which a descent is affordable here
_LOOSE = 100.0  # times tol: the violation at which a first one is tried
_RIDGE = 1e-13
_DESCENTS = 4, 32  # Newton steps of a descent, at least and at most,
_FLOPS = 10**8  # and in between for so many multiplications
_TAME = 1e25  # scores below which a barred variable is out of their reach


class Values(NamedTuple):
    """Where kernel values come from: a matrix of them, or dense points under a Gaussian kernel.

    Without points, ``matrix`` has the value of rows i and j at ``(row[i], column[j])``; without a
    matrix it is ``exp(rate |x_i - x_j|^2)`` of the rows of ``X``.
    """

    matrix: np.ndarray
    X: np.ndarray
    rate: float


class Batch(NamedTuple):
    """Problems as ragged arrays: the variables of problem k are ``offset[k:k+2]``.

    Variables sit on the problem's own rows; what belongs to these is at ``row_offset[k:k+2]``:
    their places ``row`` and ``column`` in the values, and the ``diagonal`` of the Gram matrix. The
    number of groups is the same for all, and positive; the readings have a row for each problem.
    ``tol`` is the violation to reach, ``allowed`` the steps for it.
    """

    offset: np.ndarray
    variables: Variables
    start: np.ndarray
    n_groups: int
    readings: Readings
    row_offset: np.ndarray
    row: np.ndarray
    column: np.ndarray
    diagonal: np.ndarray
    tol: np.ndarray
    allowed: np.ndarray


class Answers(NamedTuple):
    """What is found for each problem: ragged arrays like those of the batch, and a row of numbers.

    ``beta`` comes as the point to begin at, ``coef`` and ``steps`` as zeros. ``code`` is
    CONVERGED, PAUSED after too many steps or too much work, or STUCK where no step can be taken;
    the columns of ``account`` are the fields of Account.
    """

    beta: np.ndarray
    coef: np.ndarray
    decision: np.ndarray
    code: np.ndarray
    steps: np.ndarray
    account: np.ndarray


class Places(NamedTuple):
    """Where the rows of one problem's variables are made and kept.

    Row k of ``kept`` belongs to the variable whose ``slot`` is k, orientation folded in. Variable t
    is at ``row[t]`` and ``column[t]`` of the values; the features of its point are also column t of
    ``points``.
    """

    kept: np.ndarray
    slot: np.ndarray
    row: np.ndarray
    column: np.ndarray
    orientation: np.ndarray
    points: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def solve_some(values, batch, answers, first, last, max_entries, rounding, room):
    """Solve problems from ``first`` on; returns the first one that is not looked at.

    Comes back before ``last`` once about ``max_entries`` entries of rows were worked on, a problem
    also once it alone took so many. ``room`` is for the rows of one problem, a square or more.
    """
    done = 0
    n_groups = batch.n_groups
    for k in range(first, last):
        a, b = batch.offset[k], batch.offset[k + 1]
        c, d = batch.row_offset[k], batch.row_offset[k + 1]
        variables = Variables(
            batch.variables.gram_row[a:b],
            batch.variables.orientation[a:b],
            batch.variables.linear[a:b],
            batch.variables.lower[a:b],
            batch.variables.upper[a:b],
            batch.variables.group[a:b],
        )
        beta = answers.beta[a:b]
        diagonal = batch.diagonal[c:d]
        (slot, row, column, points), own_diagonal, tame = _begin(
            values, variables, batch.row[c:d], batch.column[c:d], diagonal
        )
        places = Places(room, slot, row, column, variables.orientation, points)
        m = beta.shape[0]
        used = np.int64(0)  # as a literal it would have code of its own
        for t in range(m):
            if beta[t] != 0.0:
                used = _fetch(values, places, used, t)
        score = _scores(variables, places, beta)
        low, high = variables.lower, variables.upper
        rise, fall = np.empty((n_groups, m)), np.empty((n_groups, m))
        walls(beta, low, high, variables.group, rise, fall)
        block = Block(room, slot, own_diagonal, score, beta, low, high, rise, fall)
        answers.code[k] = PAUSED
        entries = 0
        steps = 0
        polished = False
        goal = _LOOSE * batch.tol[k]
        weary = _WEARY * m
        while tame:
            allowed = min(weary, batch.allowed[k], _PATIENCE * m) - steps
            most = min(allowed, (max_entries - entries) // m + 1)
            found, taken, needed = pair_steps_or_row(block, goal, most)
            steps += taken
            entries += (taken + 1) * m
            if found == ROWS:
                used = _fetch(values, places, used, needed)
                entries += m * (1 + places.points.shape[0])
                continue
            answers.code[k] = found
            if found == STUCK or (found == CONVERGED and polished):
                break
            loose = found == CONVERGED and goal > batch.tol[k]
            enough = entries >= max_entries or steps >= min(batch.allowed[k], _PATIENCE * m)
            if found == PAUSED and enough:
                break
            polished = found == CONVERGED and not loose
            if _descend(places, variables, n_groups, beta, score) == 0 and polished:
                break
            walls(beta, low, high, variables.group, rise, fall)
            if loose:
                goal = batch.tol[k]
            else:
                weary = steps + _WEARY * m
        answers.steps[k] = steps
        coef = answers.coef[c:d]
        decision = answers.decision[c:d]
        snap_to_bounds(variables, n_groups, beta)
        _decide(variables, places, beta, coef, decision)
        known = weigh(
            variables,
            n_groups,
            Readings(
                batch.readings.bias_weights[k],
                batch.readings.margin_weights[k],
                batch.readings.tube_weights[k],
            ),
            beta,
            batch.start[a:b],
            coef,
            decision,
            diagonal,
            rounding,
        )
        for field, value in enumerate(known):
            answers.account[k, field] = value
        done += entries
        if done >= max_entries:
            return k + 1
    return last


@njit(**INNER)
def _begin(values, variables, row, column, diagonal):
    """Look at the variables of a problem: their places (less the room), their curvature.

    Also whether no score can become so large that a barred variable would be within its reach.
    """
    m = variables.linear.shape[0]
    slot = np.empty(m, dtype=np.int64)
    rows = np.empty(m, dtype=np.int64)
    columns = np.empty(m, dtype=np.int64)
    own_diagonal = np.empty(m)
    points = np.empty((values.X.shape[1], m))
    largest = 0.0
    extent = 0.0
    for t in range(m):
        own = variables.gram_row[t]
        slot[t] = -1
        rows[t] = row[own]
        columns[t] = column[own]
        own_diagonal[t] = diagonal[own]
        largest = max(largest, abs(diagonal[own]))
        extent += max(abs(variables.upper[t]), abs(variables.lower[t]))
        extent = max(extent, abs(variables.linear[t]))
        for f in range(points.shape[0]):
            points[f, t] = values.X[row[own], f]
    tame = extent < _TAME and largest * extent < _TAME
    return (slot, rows, columns, points), own_diagonal, tame


@njit(**INNER)
def _fetch(values, places, used, t):
    """Make the row of a variable, orientation folded in; returns how many there are then.

    Distances are sums of squared differences: exact however far the points are from zero.
    """
    out = places.kept[used]
    own = places.orientation[t]
    m = places.slot.shape[0]
    if places.points.shape[0] > 0:
        _gaussian_row(places.points, t, values.rate, out)
        for s in range(m):
            out[s] *= own * places.orientation[s]
    else:
        row = values.matrix[places.row[t]]
        for s in range(m):
            out[s] = own * places.orientation[s] * row[places.column[s]]
    places.slot[t] = used
    return used + 1


@njit(fastmath={"contract"}, **INNER)
def _gaussian_row(points, t, rate, out):
    """Write the Gaussian kernel between point t and all into the beginning of ``out``."""
    m = points.shape[1]
    for s in range(m):
        out[s] = 0.0
    for f in range(points.shape[0]):
        feature = points[f]
        own = feature[t]
        for s in range(m):
            difference = feature[s] - own
            out[s] += difference * difference
    for s in range(m):
        out[s] = exponential(rate * out[s])


@njit(**INNER)
def _decide(variables, places, beta, coef, decision):
    """Write coef, and ``K coef`` anew from the rows of the support vectors.

    Two variables on a row may cancel; coef knows.
    """
    weight = np.zeros(places.slot.shape[0])
    for t in range(weight.shape[0]):
        coef[variables.gram_row[t]] += variables.orientation[t] * beta[t]
    weighed = np.zeros(coef.shape[0], dtype=np.bool_)
    for t in range(weight.shape[0]):
        row = variables.gram_row[t]
        if places.slot[t] >= 0 and not weighed[row]:
            weight[t] = places.orientation[t] * coef[row]
            weighed[row] = True
    sums = _sums(places, weight)
    for t in range(weight.shape[0]):
        decision[variables.gram_row[t]] = places.orientation[t] * sums[t]


@njit(fastmath={"contract"}, **INNER)
def _sums(places, weight):
    """``sum_t weight_t row_t``, so many terms at a time as the bound on its rounding counts on."""
    m = weight.shape[0]
    out = np.zeros(m)
    part = np.zeros(m)
    terms = 0
    for t in range(m):
        if weight[t] == 0.0:
            continue
        row = places.kept[places.slot[t]]
        for s in range(m):
            part[s] += weight[t] * row[s]
        terms += 1
        if terms == SUMMED:
            _carry(part, out)
            terms = 0
    _carry(part, out)
    return out


@njit(**INNER)
def _carry(part, out):
    """Add a part to the whole, and empty it."""
    for s in range(out.shape[0]):
        out[s] += part[s]
        part[s] = 0.0


@njit(**INNER)
def _scores(variables, places, beta):
    """Minus the gradient."""
    score = _sums(places, beta)
    for t in range(beta.shape[0]):
        score[t] = -score[t] - variables.linear[t]
    return score


@njit(**INNER)
def _descend(places, variables, n_groups, beta, score):
    """Newton steps from face to face until one ends inside its own; returns their number.

    The method of :mod:`maxmargin.solvers.dual.face`. Changes ``beta`` and ``score`` in place; does
    nothing on a face that is too large.
    """
    m = beta.shape[0]
    free = np.empty(m, dtype=np.int64)
    count = 0
    for t in range(m):
        if variables.lower[t] < beta[t] < variables.upper[t]:
            free[count] = t
            count += 1
    if count < 2 or count > _FACE:
        return 0
    before = np.empty(m)
    for t in range(m):
        before[t] = beta[t]
    v = np.empty(count)
    inside = np.empty(count, dtype=np.int64)  # variables of the face, and their places in v
    place = np.empty(count, dtype=np.int64)
    for i in range(count):
        v[i] = score[free[i]]
        inside[i] = free[i]
        place[i] = i
    steps = 0
    affordable = min(max(_FLOPS // count**3, _DESCENTS[0]), _DESCENTS[1])
    while inside.shape[0] > 1 and steps < affordable:
        k = inside.shape[0]
        H = np.empty((k, k))
        wanted = np.empty(k)
        group = np.empty(k, dtype=np.int64)
        for i in range(k):
            row = places.kept[places.slot[inside[i]]]
            wanted[i] = v[place[i]]
            group[i] = variables.group[inside[i]]
            for j in range(k):
                H[i, j] = row[inside[j]]
        x = _newton(H, wanted, group, n_groups)
        slope = 0.0
        curvature = 0.0
        for i in range(k):
            image = 0.0
            for j in range(k):
                image += H[i, j] * x[j]
            slope += wanted[i] * x[i]
            curvature += x[i] * image
        if not slope > 0.0:
            break
        nearest = np.inf
        wall = -1
        for i in range(k):
            t = inside[i]
            limit = variables.upper[t] if x[i] > 0.0 else variables.lower[t]
            if x[i] != 0.0 and (limit - beta[t]) / x[i] < nearest:
                nearest = (limit - beta[t]) / x[i]
                wall = i
        length = min(1.0, nearest) if curvature > 0.0 else nearest
        if not length < np.inf:
            break
        for i in range(k):
            t = inside[i]
            value = beta[t] + length * x[i]
            beta[t] = min(max(value, variables.lower[t]), variables.upper[t])
        for i in range(count):
            row = places.kept[places.slot[free[i]]]
            for j in range(k):
                v[i] -= length * x[j] * row[inside[j]]
        steps += 1
        if length < nearest:
            break
        t = inside[wall]
        beta[t] = variables.upper[t] if x[wall] > 0.0 else variables.lower[t]
        for i in range(wall, k - 1):
            inside[i] = inside[i + 1]
            place[i] = place[i + 1]
        inside = inside[: k - 1]
    if steps > 0:
        _restore_sums(variables, n_groups, beta, before, inside)
        gain = 0.0  # twice the decrease of the objective
        for i in range(count):
            t = free[i]
            gain += (beta[t] - before[t]) * score[t]
        _move(places, beta, before, score)
        for i in range(count):
            t = free[i]
            gain += (beta[t] - before[t]) * score[t]
        if not gain > 0.0:  # rounding on a flat face: as it was
            _move(places, before, beta, score)
            for t in range(m):
                beta[t] = before[t]
            return 0
    return steps


@njit(fastmath={"contract"}, **INNER)
def _move(places, beta, before, score):
    """Bring the scores up to date with variables that have moved."""
    for t in range(beta.shape[0]):
        if beta[t] != before[t]:
            moved = beta[t] - before[t]
            row = places.kept[places.slot[t]]
            for s in range(beta.shape[0]):
                score[s] -= moved * row[s]


@njit(**INNER)
def _restore_sums(variables, n_groups, beta, before, inside):
    """Give back to each group the rounding that a long step took from its sum."""
    for g in range(n_groups):
        drift = 0.0
        for t in range(beta.shape[0]):
            if variables.group[t] == g:
                drift += beta[t] - before[t]
        roomiest = -1
        most = -np.inf
        for t in inside:
            room = min(beta[t] - variables.lower[t], variables.upper[t] - beta[t])
            if variables.group[t] == g and room > most:
                most = room
                roomiest = t
        if roomiest >= 0:
            value = beta[roomiest] - drift
            low, high = variables.lower[roomiest], variables.upper[roomiest]
            beta[roomiest] = min(max(value, low), high)


@njit(**INNER)
def _newton(H, v, group, n_groups):
    """Solve ``H x = v - level of the group`` with ``sum x = 0`` in each group; zero if it fails.

    As in :mod:`maxmargin.solvers.dual.face`: scaled by the diagonal, with a ridge of rounding.
    """
    k = v.shape[0]
    nothing = np.zeros(k)
    unit = np.empty(k)
    for i in range(k):
        unit[i] = 1.0 / math.sqrt(H[i, i]) if H[i, i] > 0.0 else 1.0
    factor = np.empty((k, k))
    for i in range(k):
        for j in range(i + 1):
            factor[i, j] = unit[i] * H[i, j] * unit[j]
        factor[i, i] += _RIDGE * k
    if not cholesky(factor):
        return nothing
    right = np.zeros((1 + n_groups, k))  # v, and the members of each group
    members = np.zeros(max(n_groups, 1))
    for i in range(k):
        right[0, i] = unit[i] * v[i]
        if n_groups > 0:
            right[1 + group[i], i] = unit[i]
            members[group[i]] += 1.0
    for r in range(1 + n_groups):
        substitute(factor, right[r])
        for i in range(k):
            right[r, i] *= unit[i]
    x = right[0]
    level = np.zeros(max(n_groups, 1))
    if n_groups > 0:
        A = np.zeros((n_groups, n_groups))  # sums over each group: of x, and of the spreads
        total = np.zeros(n_groups)
        for i in range(k):
            total[group[i]] += x[i]
            for r in range(n_groups):
                A[group[i], r] += right[1 + r, i]
        for g in range(n_groups):
            if members[g] == 0.0:
                A[g, g] = 1.0
        if n_groups == 1:
            level[0] = total[0] / A[0, 0]
        else:
            determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
            level[0] = (total[0] * A[1, 1] - total[1] * A[0, 1]) / determinant
            level[1] = (total[1] * A[0, 0] - total[0] * A[1, 0]) / determinant
        for i in range(k):
            for r in range(n_groups):
                x[i] -= level[r] * right[1 + r, i]
        for g in range(n_groups):
            total[g] = 0.0
        for i in range(k):
            total[group[i]] += x[i]
        for i in range(k):
            x[i] -= total[group[i]] / members[group[i]]
    for i in range(k):
        if not abs(x[i]) < np.inf:
            return nothing
    return x

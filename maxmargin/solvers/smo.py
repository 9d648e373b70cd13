"""Sequential minimal optimisation: two variables at a time, solved exactly.

The problem (see :mod:`maxmargin.duals`)

    minimise  1/2 a' Q a + p' a    subject to  lower <= a <= upper,  sum c_t a_t fixed per group

Move ``a_i`` along ``+c_i`` and ``a_j`` along ``-c_j`` by the same step: the constraint of their
group stays as it is. With ``v_t = -c_t (Q a + p)_t`` the objective changes along this line with
slope ``-(v_i - v_j)`` and curvature ``K_ii + K_jj - 2 o_i o_j K_ij``, where ``o = s c``:

    repeat
        i  =  the v that is largest among the variables that may rise, in the group where the
              largest and the smallest are furthest apart
        j  =  among those that may fall in i's group, the one with the largest decrease of the
              objective, ``(v_i - v_j)^2 / curvature``            (second order selection)
        step to the minimum on the line, or to the wall of the box before it
        v  =  v - step * o * (o_i K_i - o_j K_j)
    until  v_i - (the smallest v that may fall)  <  tol

Without any constraint one variable moves at a time, chosen by its own decrease ``v^2 / K_ii``.

Where steps of two crawl, and once at the end, the minimum on the current face is taken at one
stroke (:mod:`maxmargin.solvers.face`): the answer is exact on its support set, not only to ``tol``.

References: Platt, 1999; Keerthi et al., Neural Computation 13(3), 2001; Fan, Chen and Lin, JMLR 6,
2005 (second order selection).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from maxmargin.certificate import falling, rising
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import Gram
from maxmargin.solution import Solution, Status
from maxmargin.solvers.face import descend_faces

_CONVERGED, _PAUSED, _MISSING, _STUCK = range(4)
_SLICE_SECONDS, _FIRST_SLICE = 0.05, 10**6
_PROGRESS = 1e-12  # relative decrease of the objective below which many steps count as none
_FETCH_ROWS, _FETCH_ENTRIES = (8, 64), 1 << 17


@dataclass(frozen=True)
class SMO:
    """Solver by sequential minimal optimisation.

    Parameters
    ----------
    max_iter : int, default=-1
        Steps allowed for each problem; -1 for no limit.
    deadline : float, optional
        ``time.monotonic()`` at which to stop.
    verbose : bool or int, default=False
        Print a line per second of work and one per problem.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import SMO
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> (solution,) = SMO().solve(gram, duals.DualBatch.of([problem]), [1e-3], [0])
    >>> solution.alpha
    array([0.5, 0.5])
    """

    max_iter: int = -1
    deadline: float | None = None
    verbose: bool | int = False

    def solve(
        self, gram: Gram, batch: DualBatch, tol: Sequence[float], spent: Sequence[int]
    ) -> list[Solution]:
        """Solve every problem of the batch from its start.

        Parameters
        ----------
        gram : Gram
        batch : DualBatch
        tol : sequence of float, one per problem
            KKT violation to reach.
        spent : sequence of int, one per problem
            Steps already taken; they count towards ``max_iter``.
        """
        return [
            self._solve_one(gram, problem, float(tol[k]), int(spent[k]), f"{k + 1}/{len(batch)}")
            for k, problem in enumerate(batch)
        ]

    def _solve_one(
        self, gram: Gram, problem: DualProblem, tol: float, spent: int, label: str
    ) -> Solution:
        alpha = problem.start.copy()
        beta = problem.on_rows(alpha, gram.n)
        rows = np.unique(problem.gram_row)
        decision = np.zeros(gram.n)
        if beta.any():
            decision[rows] = gram.matvec(beta, rows)
        v = -problem.coefficient * problem.gradient(decision)
        orientation = problem.sign * problem.coefficient
        diagonal = gram.diagonal[problem.gram_row]
        may_rise = rising(problem, alpha)
        may_fall = falling(problem, alpha)
        steps, status, violation = 0, Status.CONVERGED, np.inf
        slice_steps = max(_FIRST_SLICE // len(alpha), 1)
        started = reported = now = time.monotonic()
        stall = _StallWatch(problem, len(alpha))
        next_descent, polished = 10 * len(alpha), False
        while True:
            allowed = min(slice_steps, max(next_descent - steps, 1))
            if self.max_iter >= 0:
                allowed = min(allowed, self.max_iter - spent - steps)
            if allowed <= 0:
                status = Status.MAX_ITER
                break
            before = time.monotonic()
            code, done, needed, violation = _smo_steps(
                gram.store.data,
                gram.store.slot,
                gram.store.stamp,
                gram.store.clock,
                problem.gram_row,
                orientation,
                problem.coefficient,
                problem.lower,
                problem.upper,
                problem.group,
                problem.n_groups,
                diagonal,
                alpha,
                v,
                may_rise,
                may_fall,
                tol,
                allowed,
            )
            now = time.monotonic()
            steps += done
            if code == _CONVERGED and (polished or not violation):
                break
            if code == _STUCK or stall.unchanged(alpha, v, steps):
                status = Status.STALLED
                break
            if self.deadline is not None and now > self.deadline:
                status = Status.TIME_LIMIT
                break
            if code == _MISSING:
                gram.require(self._rows_to_fetch(gram, problem, v, may_rise, may_fall, needed))
            elif now - before < _SLICE_SECONDS and allowed == slice_steps:
                slice_steps *= 2
            elif now - before > 2 * _SLICE_SECONDS:
                slice_steps = max(slice_steps // 2, 1)
            if code == _CONVERGED or (code == _PAUSED and steps >= next_descent):
                polished = code == _CONVERGED
                descend_faces(gram, problem, alpha, v)
                may_rise[:], may_fall[:] = rising(problem, alpha), falling(problem, alpha)
                next_descent = steps + 10 * len(alpha)
            if self.verbose and now - reported > 1.0:
                reported = now
                self._print(label, steps, violation, alpha, now - started)
        if self.verbose:
            self._print(label, steps, violation, alpha, now - started, status)
        return Solution(alpha, steps, status)

    def _rows_to_fetch(
        self,
        gram: Gram,
        problem: DualProblem,
        v: np.ndarray,
        may_rise: np.ndarray,
        may_fall: np.ndarray,
        needed: int,
    ) -> np.ndarray:
        """Return the missing row, and with it the most violating ones: they come next.

        A panel of rows costs little more than one, since the data are read once for all of them.
        Once the store is full only what is needed is fetched: the rest would evict rows in use.
        """
        count = min(max(_FETCH_ENTRIES // gram.n, _FETCH_ROWS[0]), _FETCH_ROWS[1])
        count = min(count, gram.store.capacity - gram.store.used, len(v)) - 1
        rows = [needed]
        if count > 1:
            absent = gram.store.slot[problem.gram_row] < 0
            half = count // 2
            highest = np.where(may_rise & absent, v, -np.inf)
            lowest = np.where(may_fall & absent, -v, -np.inf)
            for score in (highest, lowest):
                best = np.argpartition(-score, half - 1)[:half]
                rows.extend(problem.gram_row[best[np.isfinite(score[best])]])
        return np.unique(np.array(rows, dtype=np.int64))

    def _print(
        self,
        label: str,
        steps: int,
        violation: float,
        alpha: np.ndarray,
        seconds: float,
        status: Status | None = None,
    ) -> None:
        end = "" if status is None else f", {status}"
        print(
            f"[SMO] problem {label}: {steps} steps, KKT violation {violation:.3g}, "
            f"{np.count_nonzero(alpha)} nonzero, {seconds:.1f} s{end}",
            flush=True,
        )


class _StallWatch:
    """Notices when many steps in a row have not changed the objective in float64."""

    def __init__(self, problem: DualProblem, m: int) -> None:
        self.problem = problem
        self.patience = 10_000 + 20 * m
        self.checked = 0
        self.best: float | None = None

    def unchanged(self, alpha: np.ndarray, v: np.ndarray, steps: int) -> bool:
        if steps - self.checked < self.patience:
            return False
        self.checked = steps
        gradient = -self.problem.coefficient * v
        quadratic = 0.5 * float(alpha @ (gradient - self.problem.linear))
        linear = float(alpha @ self.problem.linear)
        value, scale = quadratic + linear, abs(quadratic) + abs(linear)
        if self.best is None or value < self.best - _PROGRESS * scale:
            self.best = value
            return False
        return True


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _smo_steps(
    K,
    slot,
    stamp,
    clock,
    gram_row,
    orientation,
    coefficient,
    lower,
    upper,
    group,
    n_groups,
    diagonal,
    alpha,
    v,
    may_rise,
    may_fall,
    tol,
    max_steps,
):
    """Take up to ``max_steps`` steps; returns ``(code, steps taken, missing row, violation)``.

    Changes ``alpha``, ``v``, ``may_rise``, ``may_fall`` and the store's ``stamp`` and ``clock`` in
    place. Comes back early when a row of K is not resident, to be called again with it.
    """
    m = alpha.shape[0]
    tiny = 1e-12
    violation = 0.0
    highest = np.empty(max(n_groups, 1))
    lowest = np.empty(max(n_groups, 1))
    first = np.empty(max(n_groups, 1), dtype=np.int64)
    for taken in range(max_steps):
        i = -1
        j = -1
        if n_groups == 0:
            best = 0.0
            violation = 0.0
            for t in range(m):
                if (v[t] > 0.0 and may_rise[t]) or (v[t] < 0.0 and may_fall[t]):
                    violation = max(violation, abs(v[t]))
                    gain = v[t] * v[t] / max(diagonal[t], tiny)
                    if gain > best:
                        best = gain
                        i = t
            if violation < tol:
                return _CONVERGED, taken, -1, violation
            if i < 0:
                return _STUCK, taken, -1, violation
        else:
            for g in range(n_groups):
                highest[g] = -np.inf
                lowest[g] = np.inf
                first[g] = -1
            for t in range(m):
                g = group[t]
                if may_rise[t] and v[t] > highest[g]:
                    highest[g] = v[t]
                    first[g] = t
                if may_fall[t] and v[t] < lowest[g]:
                    lowest[g] = v[t]
            widest = 0
            for g in range(1, n_groups):
                if highest[g] - lowest[g] > highest[widest] - lowest[widest]:
                    widest = g
            violation = highest[widest] - lowest[widest]
            if violation < tol:
                return _CONVERGED, taken, -1, max(violation, 0.0)
            i = first[widest]
            if i < 0 or violation != violation:
                return _STUCK, taken, -1, violation
        row_i = slot[gram_row[i]]
        if row_i < 0:
            return _MISSING, taken, gram_row[i], violation
        Ki = K[row_i]
        clock[0] += 1
        stamp[row_i] = clock[0]
        if n_groups == 0:
            before_i = alpha[i]
            if v[i] > 0.0:
                room = upper[i] - alpha[i]
                step = min(v[i] / max(diagonal[i], tiny), room)
                alpha[i] = upper[i] if step == room else alpha[i] + step
            else:
                room = alpha[i] - lower[i]
                step = -min(-v[i] / max(diagonal[i], tiny), room)
                alpha[i] = lower[i] if -step == room else alpha[i] + step
            if alpha[i] == before_i:
                return _STUCK, taken, -1, violation
            may_rise[i] = alpha[i] < upper[i]
            may_fall[i] = alpha[i] > lower[i]
            pull = step * orientation[i]
            for t in range(m):
                v[t] -= pull * orientation[t] * Ki[gram_row[t]]
            continue
        best = 0.0
        for t in range(m):
            if may_fall[t] and group[t] == group[i]:
                slope = v[i] - v[t]
                if slope > 0.0:
                    bend = 2.0 * orientation[i] * orientation[t] * Ki[gram_row[t]]
                    gain = slope * slope / max(diagonal[i] + diagonal[t] - bend, tiny)
                    if gain > best:
                        best = gain
                        j = t
        if j < 0:
            return _STUCK, taken, -1, violation
        row_j = slot[gram_row[j]]
        if row_j < 0:
            return _MISSING, taken, gram_row[j], violation
        Kj = K[row_j]
        stamp[row_j] = clock[0]
        bend = 2.0 * orientation[i] * orientation[j] * Ki[gram_row[j]]
        step = (v[i] - v[j]) / max(diagonal[i] + diagonal[j] - bend, tiny)
        room_i = upper[i] - alpha[i] if coefficient[i] > 0.0 else alpha[i] - lower[i]
        room_j = alpha[j] - lower[j] if coefficient[j] > 0.0 else upper[j] - alpha[j]
        step = min(step, min(room_i, room_j))
        before_i, before_j = alpha[i], alpha[j]
        # a wall that is reached is reached exactly: "at bound" is then a comparison, not a guess
        if coefficient[i] > 0.0:
            alpha[i] = upper[i] if step == room_i else alpha[i] + step
        else:
            alpha[i] = lower[i] if step == room_i else alpha[i] - step
        if coefficient[j] > 0.0:
            alpha[j] = lower[j] if step == room_j else alpha[j] - step
        else:
            alpha[j] = upper[j] if step == room_j else alpha[j] + step
        if alpha[i] == before_i and alpha[j] == before_j:
            return _STUCK, taken, -1, violation
        for t in (i, j):
            below = alpha[t] < upper[t]
            above = alpha[t] > lower[t]
            may_rise[t] = below if coefficient[t] > 0.0 else above
            may_fall[t] = above if coefficient[t] > 0.0 else below
        pull_i = step * orientation[i]
        pull_j = step * orientation[j]
        for t in range(m):
            row = gram_row[t]
            v[t] -= orientation[t] * (pull_i * Ki[row] - pull_j * Kj[row])
    return _PAUSED, max_steps, -1, violation

"""One dual problem along a path of rising costs, over a Gram matrix that is already there.

A search solves the same problem (see :mod:`maxmargin.duals`) for one C after the other. Between two
of them only the upper walls move, from u to ``r u``, and a good start is known:

    a -> r a    where most support vectors are at their wall: there they stay
    a -> a      where most are free: a solution with none at its wall stays the solution

The kernel values are there too, in float32. The rows that a problem needs are copied next to each
other once, when their variables first violate a KKT condition. Where steps of two crawl, which a
large C and an ill-conditioned matrix make them, they go on among the variables that can still be
part of a violation. Near the end the set F of free variables is changed by what one linear system,
``K_FF x = v_F - level``, says of it, until it says nothing more:

    out of F    what x moves beyond a wall
    into F      what is at a wall and on the wrong side of the level

(the primal-dual active set method; given up where it does not settle quickly).

``v = -c (Q a + p)`` is kept in float64, and cleared of the steps' float32 rounding where that comes
near ``tol``. There is no certificate here: the machine that a search ends with has one.

References: DeCoste and Wagstaff, KDD 2000 (alpha seeding); Joachims, 1999 (shrinking);
Hintermueller, Ito and Kunisch, SIAM J. Optim. 13(3), 2002 (the active set).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.backends.cpu_steps import BARRED, CONVERGED, PAUSED, pair_steps, single_steps
from maxmargin.certificate import falling, rising
from maxmargin.duals import DualProblem

_PATIENCE = 2  # steps per variable, before those that cannot matter are set aside
_INSIDE = 8  # steps per variable that is left, before all are looked at again
_ROUNDS = 200  # looks at all variables, before a problem is given up
_FACES_BELOW, _FACES_FREE = 0.6, 2048  # violation and free variables up to which faces are changed
_FACES, _SETTLING, _FEW, _RIDGE = 8, 0.7, 5, float(np.finfo(np.float32).eps)
_NEAR = 0.7
_AFFORDED = 40_000  # cubes of the number of free variables for a step that was taken
_ROUNDING = 0.5 * float(np.finfo(np.float32).eps)
_DRIFT = 0.1  # part of tol that the rounding of v may have
_TIGHTEN = 0.1  # variables with a row are solved to this part of the whole problem's violation
_JOINING = 64  # variables that get a row at a time, or a quarter of those that have one
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


class UnsettledError(ArithmeticError):
    """With float32 kernel values a problem does not come to its tolerance."""


class CPath:
    """The solutions of one problem for rising costs, each begun from the last.

    Parameters
    ----------
    K : float32 array (n, n)
        Kernel values.
    problem : DualProblem
        The problem for the lowest cost, over rows of K, with one equality constraint or none.
    tol : float
        KKT violation to reach.
    buffer : float32 array of at least m * m entries
        For the rows of the m variables; not to be shared by threads.

    Attributes
    ----------
    level : float
        Level of the last solution, from which its bias is read.
    steps : int
        Steps taken so far.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import duals
    >>> from maxmargin.selection.path import CPath
    >>> K = np.array([[1, -1], [-1, 1]], dtype=np.float32)  # the linear kernel of -1 and 1
    >>> rows, y = np.arange(2), np.array([-1.0, 1.0])
    >>> problems = [duals.c_svc(rows, y, np.full(2, C)) for C in (0.1, 10.0)]
    >>> path = CPath(K, problems[0], tol=1e-3, buffer=np.empty(4, dtype=np.float32))
    >>> [path.solve(problem).tolist() for problem in problems]
    [[0.1, 0.1], [0.5, 0.5]]
    """

    def __init__(self, K: np.ndarray, problem: DualProblem, tol: float, buffer: np.ndarray) -> None:
        m = len(problem.sign)
        self.problem, self.tol = problem, tol
        self.constrained = problem.n_groups > 0
        self.rows = buffer[: m * m].reshape(m, m)
        self.slot = np.full(m, -1)
        orientation = (problem.sign * problem.coefficient).astype(np.float32)
        turned = (orientation != orientation[0]).any()
        self.source = (
            K,
            problem.gram_row,
            _runs(problem.gram_row),
            orientation if turned else orientation[:0],
            self.rows,
            self.slot,
            np.zeros(1, dtype=np.int64),
        )
        self.diagonal = K[problem.gram_row, problem.gram_row]
        self.scale = float(self.diagonal.max())
        self.alpha = problem.start.copy()
        self.v = -problem.coefficient * problem.linear
        self.cleared_alpha, self.cleared_v = self.alpha.copy(), self.v.copy()
        self.inside = np.empty(0, dtype=np.float32)
        self.drift = self.level = self.violation = 0.0
        self.steps = 0

    def solve(self, problem: DualProblem) -> np.ndarray:
        """Return ``alpha`` for another cost, not lower than the last."""
        self._raise_walls(problem)
        if self._settle(_PATIENCE * len(self.alpha)):
            return self.alpha.copy()
        faces_below, begun = _FACES_BELOW, self.steps - _PATIENCE * len(self.alpha)
        for _ in range(_ROUNDS):
            self._clear()
            if self.violation <= self.tol:
                return self.alpha.copy()
            affordable = (_AFFORDED * (self.steps - begun)) ** (1 / 3)
            if self.violation <= faces_below and self._free() <= affordable:
                if self._change_faces():
                    continue
                faces_below = 0.4 * self.violation
            self._go_on_inside()
        raise UnsettledError

    def _free(self) -> int:
        inside = (self.alpha > self.problem.lower) & (self.alpha < self.problem.upper)
        return np.count_nonzero(inside)

    def _raise_walls(self, problem: DualProblem) -> None:
        """Take the new walls, and begin from the last solution or from a multiple of it."""
        before, self.problem = self.problem, problem
        ratio = multiple(before, self.alpha, problem)
        if ratio == 1.0:
            return
        base = -problem.coefficient * problem.linear
        for alpha, v in ((self.alpha, self.v), (self.cleared_alpha, self.cleared_v)):
            at_wall = alpha == before.upper
            alpha *= ratio
            alpha[at_wall] = problem.upper[at_wall]
            v -= base
            v *= ratio
            v += base
        self.drift *= ratio

    def _settle(self, allowed: int) -> bool:
        """Take steps with all variables, rows joining as they are needed; whether that sufficed."""
        problem = self.problem
        while allowed > 0:
            code, steps, self.level, self.violation = _settle(
                *self.source,
                self.diagonal,
                self.v,
                self.alpha,
                problem.lower,
                problem.upper,
                problem.coefficient,
                self.constrained,
                self.tol,
                allowed,
            )
            allowed -= steps
            self._count(steps)
            if code == CONVERGED and self.drift > _DRIFT * self.tol:
                self._clear()
            elif code != PAUSED or self.violation <= self.tol:
                break
        return self.violation <= self.tol

    def _go_on_inside(self) -> None:
        """Take steps among the variables that can be part of a violation, the others left alone."""
        problem, v = self.problem, self.v
        rises, falls = rising(problem, self.alpha), falling(problem, self.alpha)
        highest = v[rises].max(initial=-np.inf) if self.constrained else 0.0
        lowest = v[falls].min(initial=np.inf) if self.constrained else 0.0
        slack = _NEAR * (highest - lowest)
        chosen = np.flatnonzero(
            (rises & falls) | (rises & (v > lowest + slack)) | (falls & (v < highest - slack))
        )
        q = len(chosen)
        if self.inside.size < q * q:
            self.inside = np.empty(q * q, dtype=np.float32)
        K = self.inside[: q * q].reshape(q, q)
        _fetch(*self.source, chosen)
        _gather(self.rows, self.slot, chosen, K)
        alpha = self.alpha[chosen]
        advance = pair_steps if self.constrained else single_steps
        _, steps = advance(
            K,
            np.arange(q),
            self.diagonal[chosen],
            (v[chosen] - self.level).astype(np.float32),
            alpha,
            problem.lower[chosen],
            problem.upper[chosen],
            problem.coefficient[chosen],
            np.where(rises[chosen], np.float32(0), -BARRED)[None],
            np.where(falls[chosen], np.float32(0), BARRED)[None],
            np.float32(max(0.5 * self.tol, _TIGHTEN * self.violation)),
            _INSIDE * q,
        )
        import os

        if os.environ.get("LOG"):
            print("      inside", q, steps, "%.3g" % self.violation)
        if not steps:
            raise UnsettledError
        self.alpha[chosen] = alpha
        self._count(steps)

    def _change_faces(self) -> bool:
        """Change the set of free variables by linear systems; whether it settled.

        If it does not, everything is as it was.
        """
        problem, c = self.problem, self.problem.coefficient
        before = self.alpha.copy(), self.v.copy(), self.level, self.violation
        free = np.flatnonzero(rising(problem, self.alpha) & falling(problem, self.alpha))
        changes, missing = np.inf, 0.0
        for _ in range(_FACES):
            if not 1 < len(free) <= _FACES_FREE:
                break
            _fetch(*self.source, free)
            x, level = self._newton(free, missing)
            self.alpha[free] += c[free] * x
            self._clear()
            wrong = rising(problem, self.alpha) & (self.v > level + 0.5 * self.tol)
            wrong |= falling(problem, self.alpha) & (self.v < level - 0.5 * self.tol)
            wrong[free] = False
            reached = np.clip(self.alpha[free], problem.lower[free], problem.upper[free])
            beyond = self.alpha[free] != reached
            changed = np.count_nonzero(beyond) + np.count_nonzero(wrong)
            import os

            if os.environ.get("LOG"):
                print(
                    "      face",
                    "%.3g" % before[-1],
                    len(free),
                    np.count_nonzero(beyond),
                    np.count_nonzero(wrong),
                    "%.3g" % self.violation,
                    "x %.3g" % abs(x).max(),
                    "missing",
                    missing,
                )
            if not changed and self.violation < before[-1]:
                return True
            if not (changed < _SETTLING * changes or changed <= _FEW):
                break
            changes = changed
            self.alpha[free] = reached
            self._clear()
            missing = float(c @ (before[0] - self.alpha)) if self.constrained else 0.0
            free = np.concatenate([free[~beyond], np.flatnonzero(wrong)])
        self.alpha[:], self.v[:], self.level, self.violation = before
        self.cleared_alpha[:], self.cleared_v[:] = before[:2]
        return False

    def _newton(self, free: np.ndarray, missing: float) -> tuple[np.ndarray, float]:
        """Moves ``x`` of the free variables with ``K x = v - level`` and ``sum x = missing``."""
        H = np.empty((len(free), len(free)))
        _gather(self.rows, self.slot, free, H)
        H[np.diag_indices_from(H)] += _RIDGE * len(free) ** 0.5 * self.diagonal[free].max()
        sides = np.column_stack([self.v[free], np.ones(len(free))])
        try:
            solved = cho_solve(cho_factor(H, overwrite_a=True, check_finite=False), sides)
        except LinAlgError:
            return np.zeros(len(free)), self.level
        if not self.constrained:
            return solved[:, 0], 0.0
        level = float((solved[:, 0].sum() - missing) / solved[:, 1].sum())
        return solved[:, 0] - level * solved[:, 1], level

    def _count(self, steps: int) -> None:
        """Every step rounds each v by as much as the largest alpha times a kernel value."""
        self.steps += steps
        largest = float(self.alpha.max()) * self.scale
        self.drift = float(np.hypot(self.drift, _ROUNDING * largest * steps**0.5))

    def _clear(self) -> None:
        """Recompute v in float64, from what has moved since the last time, and look at it."""
        problem = self.problem
        moved = np.flatnonzero(self.alpha != self.cleared_alpha)
        change = problem.coefficient[moved] * (self.alpha[moved] - self.cleared_alpha[moved])
        _subtract(self.rows, self.slot[moved], change, self.cleared_v)
        self.cleared_alpha[:], self.v[:] = self.alpha, self.cleared_v
        self.drift = 0.0
        self.level, self.violation = _look(
            self.alpha,
            self.v,
            problem.lower,
            problem.upper,
            problem.coefficient,
            self.constrained,
        )


def multiple(before: DualProblem, alpha: np.ndarray, problem: DualProblem) -> float:
    """Which multiple of a solution begins the same problem with higher walls."""
    at_wall = (alpha == before.upper) & (before.upper > 0)
    if 2 * np.count_nonzero(at_wall) <= np.count_nonzero(alpha):
        return 1.0
    return float((problem.upper[at_wall] / before.upper[at_wall]).min())


def _runs(rows: np.ndarray) -> np.ndarray:
    """Cut row numbers into stretches of consecutive ones: ``(first, last + 1)`` of each."""
    ends = np.concatenate([np.flatnonzero(np.diff(rows) != 1), [len(rows) - 1]])
    starts = np.concatenate([[0], ends[:-1] + 1])
    return np.column_stack([rows[starts], rows[ends] + 1])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _look(alpha, v, lower, upper, coefficient, constrained):
    """Level and violation; without a free variable the level is in the middle of what may be."""
    highest = -np.inf
    lowest = np.inf
    total = 0.0
    free = 0
    for t in range(v.shape[0]):
        below = alpha[t] < upper[t]
        above = alpha[t] > lower[t]
        if below if coefficient[t] > 0.0 else above:
            highest = max(highest, v[t])
        if above if coefficient[t] > 0.0 else below:
            lowest = min(lowest, v[t])
        if below and above:
            total += v[t]
            free += 1
    if not constrained:
        return 0.0, max(highest, -lowest, 0.0)
    if highest == -np.inf or lowest == np.inf:
        end = lowest if highest == -np.inf else highest
        return end if np.isfinite(end) else 0.0, 0.0
    return total / free if free else 0.5 * (highest + lowest), highest - lowest


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _fetch(K, gram_row, runs, orientation, rows, slot, used, index):
    """Copy the rows of those variables that have none yet; changes ``rows, slot, used``."""
    for t in index:
        if slot[t] < 0:
            slot[t] = used[0]
            used[0] += 1
            out = rows[slot[t]]
            source = K[gram_row[t]]
            first = 0
            for k in range(runs.shape[0]):
                last = first + runs[k, 1] - runs[k, 0]
                out[first:last] = source[runs[k, 0] : runs[k, 1]]
                first = last
            for s in range(orientation.shape[0]):
                out[s] *= orientation[t] * orientation[s]


@njit(cache=True, nogil=True)
def _gather(rows, slot, index, out):
    """Write the values among some variables into ``out``."""
    for i in range(index.shape[0]):
        row = rows[slot[index[i]]]
        for j in range(index.shape[0]):
            out[i, j] = row[index[j]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _subtract(rows, slots, weights, out):
    """Subtract ``sum_k weights[k] rows[slots[k]]`` from ``out``."""
    width = 2048  # entries that stay in the first-level cache
    for first in range(0, out.shape[0], width):
        part = out[first : first + width]
        for k in range(slots.shape[0]):
            row = rows[slots[k], first : first + width]
            weight = weights[k]
            for t in range(part.shape[0]):
                part[t] -= weight * row[t]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _settle(
    K,
    gram_row,
    runs,
    orientation,
    rows,
    slot,
    used,
    diagonal,
    v,
    alpha,
    lower,
    upper,
    coefficient,
    constrained,
    tol,
    allowed,
):
    """Take up to so many steps; returns ``(code, steps, level, violation)``.

    Changes ``v``, ``alpha`` and what :func:`_fetch` does. Only variables that violate get a row.
    """
    m = v.shape[0]
    zero = np.float32(0.0)
    score = np.empty(m, dtype=np.float32)
    begun = np.empty(m, dtype=np.float32)
    rise = np.empty((1, m), dtype=np.float32)
    fall = np.empty((1, m), dtype=np.float32)
    excess = np.empty(m, dtype=np.float32)
    level, violation = _look(alpha, v, lower, upper, coefficient, constrained)
    if violation <= tol:
        return CONVERGED, 0, level, violation
    for t in range(m):
        begun[t] = v[t] - level
        score[t] = begun[t]
    steps = 0
    code = CONVERGED
    while code == CONVERGED and steps < allowed:
        highest = -BARRED
        lowest = BARRED
        for t in range(m):
            below = alpha[t] < upper[t]
            above = alpha[t] > lower[t]
            rises = below if coefficient[t] > 0.0 else above
            falls = above if coefficient[t] > 0.0 else below
            rise[0, t] = zero if rises else -BARRED
            fall[0, t] = zero if falls else BARRED
            highest = max(highest, score[t] + rise[0, t])
            lowest = min(lowest, score[t] + fall[0, t])
        if not constrained:
            highest = zero
            lowest = zero
        violation = 0.0
        waiting = 0
        for t in range(m):
            worst = max(score[t] + rise[0, t] - lowest, highest - (score[t] + fall[0, t]))
            violation = max(violation, worst)
            excess[t] = worst if slot[t] < 0 else zero
            waiting += excess[t] > tol
        if violation <= 0.9 * tol:
            break
        count = min(max(_JOINING, used[0] // 4), waiting)
        if count:
            least = max(np.partition(excess, m - count)[m - count], np.float32(tol))
            worst_ones = np.flatnonzero(excess >= least)
            spread = np.arange(count) * len(worst_ones) // count  # many are alike at the beginning
            joining = worst_ones[spread]
            _fetch(K, gram_row, runs, orientation, rows, slot, used, joining)
        for t in range(m):
            if slot[t] < 0:
                rise[0, t] = -BARRED
                fall[0, t] = BARRED
        wanted = np.float32(max(0.5 * tol, _TIGHTEN * violation))
        if constrained:
            code, taken = pair_steps(
                rows,
                slot,
                diagonal,
                score,
                alpha,
                lower,
                upper,
                coefficient,
                rise,
                fall,
                wanted,
                allowed - steps,
            )
        else:
            code, taken = single_steps(
                rows,
                slot,
                diagonal,
                score,
                alpha,
                lower,
                upper,
                coefficient,
                rise,
                fall,
                wanted,
                allowed - steps,
            )
        steps += taken
        if not taken and not count:
            break
    for t in range(m):
        v[t] += np.float64(score[t]) - np.float64(begun[t])
    level, violation = _look(alpha, v, lower, upper, coefficient, constrained)
    return code, steps, level, violation

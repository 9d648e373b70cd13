"""One dual problem along a path of rising costs, over a Gram matrix that is already there.

A search solves the same problem (see :mod:`maxmargin.duals`) for one C after the other. Between two
of them only the walls away from zero move, from u to ``r u``, and a good start is known:

    b -> r b    where most support vectors are at their wall: there they stay
    b -> b      where most are free: a solution with none at its wall stays the solution

From there SMO's steps of two go on. Where they crawl, which a large C and an ill-conditioned matrix
make them, they are confined to the variables that matter now; and near the end the set F of free
variables is changed by what one linear system, ``K_FF x = v_F - level``, says of it, until it says
nothing more:

    out of F    what x moves beyond a wall
    into F      what is at a wall and on the wrong side of the level

(the primal-dual active set method; given up where it does not settle quickly).

Kernel values are float32; ``v = -(K b + p)`` is kept in float64, and cleared of the rounding of
the steps where that comes near ``tol``. There is no certificate here: the machine that a search
ends with has one.

References: DeCoste and Wagstaff, KDD 2000 (beta seeding); Joachims, 1999 (shrinking);
Hintermueller, Ito and Kunisch, SIAM J. Optim. 13(3), 2002 (the active set).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu import add_rows
from maxmargin.backends.cpu.momentum import conjugate_pair_steps
from maxmargin.backends.cpu.steps import BARRED, pair_steps, single_steps
from maxmargin.backends.threads import StoppedError
from maxmargin.duals import DualProblem

_PATIENCE = 0.7  # steps per variable, before those that do not matter now are set aside
_INSIDE = 12  # steps per variable that is left, before all are looked at again
_NEAR = 0.3  # share of the violation from which on a variable at a wall matters
_KEPT = 0.8  # share of the last ones that must still matter for their values to be used again
_TIGHTEN = 0.1  # those that matter are solved to this part of the violation
SMALL = 1000  # variables below which a solution is made exact: it costs next to nothing
_ROUNDS = 200  # looks at all variables, before a problem is given up
_FACES_BELOW, _FACES_FREE = 0.6, 2048  # violation and free variables up to which faces are changed
_AFFORDED = 50_000  # the cube of the free variables, for a step of two taken so far
_FACES, _SETTLING, _FEW = 8, 0.7, 5  # systems; how fast the changes must fall, or how few they are
_BORDER = 1 / 16  # share of a factored set that may change before it is factored anew
_EPSILON = float(np.finfo(np.float32).eps)
_DRIFT = 0.1  # part of tol that the rounding of v may have
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}


class UnsettledError(ArithmeticError):
    """With float32 kernel values a problem does not come to its tolerance."""


class CPath:
    """The solutions of one problem for rising costs, each begun from the last.

    Parameters
    ----------
    K : float32 array (n, m)
        Kernel values of all rows with the row of each of the m variables.
    problem : DualProblem
        The problem for the lowest cost, with one equality constraint or none.
    tol : float
        KKT violation to reach.
    stopped : callable, optional
        Whether someone wants the work to end: then :class:`StoppedError` is raised.

    Attributes
    ----------
    level : float
        Level of the last solution, from which its bias is read.
    scale : float
        Largest kernel value of a point with itself.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import duals
    >>> from maxmargin.solvers.dual.path import CPath
    >>> K = np.array([[1, -1], [-1, 1]], dtype=np.float32)  # the linear kernel of -1 and 1
    >>> rows, y = np.arange(2), np.array([-1.0, 1.0])
    >>> problems = [duals.c_svc(rows, y, np.full(2, C)) for C in (0.1, 10.0)]
    >>> path = CPath(K, problems[0], tol=1e-3)
    >>> [path.solve(problem).round(3).tolist() for problem in problems]
    [[-0.1, 0.1], [-0.5, 0.5]]
    """

    def __init__(
        self,
        K: np.ndarray,
        problem: DualProblem,
        tol: float,
        stopped: Callable[[], Any] | None = None,
    ) -> None:
        self.stopped = stopped
        self.problem, self.tol = problem, tol
        self.constrained = problem.n_groups > 0
        self.K, self.slot = K, problem.gram_row
        self.diagonal = K[self.slot, np.arange(len(self.slot))]
        orientation = problem.orientation.astype(np.float32)
        if (orientation != orientation[0]).any():
            self.K = orientation[:, None] * K[self.slot] * orientation
            self.slot = np.arange(len(orientation))
        self.scale = float(self.diagonal.max())
        self.beta = problem.start.copy()
        self.v = -problem.linear
        self.cleared_beta, self.cleared_v = self.beta.copy(), self.v.copy()
        self.inside = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        self.drift = self.level = self.violation = 0.0
        self.steps = 0

    def solve(self, problem: DualProblem) -> np.ndarray:
        """Return ``beta`` for another cost, not lower than the last."""
        self._raise_walls(problem)
        self.steps = 0
        if not self._settle():
            self._insist()
        if len(self.beta) < SMALL:
            self._clear()
            self._change_faces()
        if _snap(self.beta, problem.lower, problem.upper):
            self._look()
        return self.beta.copy()

    def _insist(self) -> None:
        """Go on by other means until the problem is solved."""
        faces_below = _FACES_BELOW
        for _ in range(_ROUNDS):
            if self.stopped is not None and self.stopped():
                raise StoppedError
            self._clear()
            if self.violation <= self.tol:
                return
            if self.violation <= faces_below and self._affordable():
                if self._change_faces():
                    continue
                faces_below = 0.4 * self.violation
            self._go_on_inside()
        raise UnsettledError

    def _raise_walls(self, problem: DualProblem) -> None:
        """Take the new walls, and begin from the last solution or from a multiple of it."""
        before, self.problem = self.problem, problem
        ratio = warm_start_ratio(before, self.beta, problem)
        if ratio > 1.0:
            walls = before.lower, before.upper, problem.lower, problem.upper
            for beta, v in ((self.beta, self.v), (self.cleared_beta, self.cleared_v)):
                _scale(beta, v, problem.linear, *walls, ratio)
            self.drift *= ratio

    def _settle(self) -> bool:
        """Take steps with all variables, for a while; whether that sufficed."""
        problem = self.problem
        allowed = int(_PATIENCE * len(self.beta))
        while self.steps < allowed:
            steps, self.level, self.violation = _settle(
                self.K,
                self.slot,
                self.diagonal,
                self.v,
                self.beta,
                problem.lower,
                problem.upper,
                self.constrained,
                self.tol,
                allowed - self.steps,
            )
            self._count(steps)
            if self.drift > _DRIFT * self.tol:
                self._clear()
            if self.violation <= self.tol or not steps:
                break
        return self.violation <= self.tol

    def _go_on_inside(self) -> None:
        """Take steps among the variables that matter now, the others left as they are."""
        problem, v = self.problem, self.v
        rises, falls = problem.may_rise(self.beta), problem.may_fall(self.beta)
        highest = lowest = 0.0
        if self.constrained:
            highest, lowest = v[rises].max(), v[falls].min()
        far = _NEAR * self.violation
        matters = rises & falls
        matters |= rises & (v > lowest + far)
        matters |= falls & (v < highest - far)
        chosen, K = self._among(matters)
        q = len(chosen)
        beta = self.beta[chosen]
        _, steps = conjugate_pair_steps(
            self.constrained,
            K,
            np.arange(q),
            self.diagonal[chosen],
            (v[chosen] - self.level).astype(np.float32),
            beta,
            problem.lower[chosen],
            problem.upper[chosen],
            np.where(rises[chosen], np.float32(0), -BARRED)[None],
            np.where(falls[chosen], np.float32(0), BARRED)[None],
            np.float32(max(0.5 * self.tol, _TIGHTEN * self.violation)),
            _INSIDE * q,
        )
        if not steps:
            raise UnsettledError
        self.beta[chosen] = beta
        self._count(steps)

    def _among(self, matters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variables that matter, with kernel values among them; a few more if those are there."""
        q, (last, K) = int(np.count_nonzero(matters)), self.inside
        if q < _KEPT * len(last) or np.count_nonzero(matters[last]) < q:
            last = np.flatnonzero(matters)
            K = np.empty(q * q, dtype=np.float32) if K.size < q * q else K
            _gather(self.K, self.slot, last, K[: q * q].reshape(q, q))
            self.inside = last, K
        return last, K[: len(last) ** 2].reshape(len(last), -1)

    def _affordable(self) -> bool:
        """Whether a linear system of the free variables costs no more than the steps so far."""
        problem = self.problem
        free = int(np.count_nonzero(problem.is_free(self.beta)))
        return 1 < free <= _FACES_FREE and free**3 <= _AFFORDED * self.steps

    def _change_faces(self) -> bool:
        """Change the set of free variables by linear systems; whether it settled.

        If it does not, everything is as it was.
        """
        problem = self.problem
        before = self.beta.copy(), self.v.copy(), self.level, self.violation
        free = np.flatnonzero(problem.is_free(self.beta))
        self.ridge = _EPSILON * len(free) ** 0.5 * self.scale
        self.factor = np.empty(0, dtype=np.int64), None
        changes: float = np.inf
        missing = 0.0
        for _ in range(_FACES):
            if not 1 < len(free) <= _FACES_FREE:
                break
            x, level = self._newton(free, missing)
            self.beta[free] += x
            self._clear()
            wrong = problem.may_rise(self.beta) & (self.v > level + 0.5 * self.tol)
            wrong |= problem.may_fall(self.beta) & (self.v < level - 0.5 * self.tol)
            wrong[free] = False
            reached = np.clip(self.beta[free], problem.lower[free], problem.upper[free])
            beyond = self.beta[free] != reached
            changed = int(np.count_nonzero(beyond) + np.count_nonzero(wrong))
            if not changed and self.violation < before[-1]:
                return True
            if not (changed < _SETTLING * changes or changed <= _FEW):
                break
            changes = changed
            self.beta[free] = reached
            self._clear()
            missing = float((before[0] - self.beta).sum()) if self.constrained else 0.0
            free = np.concatenate([free[~beyond], np.flatnonzero(wrong)])
        self.beta[:], self.v[:], self.level, self.violation = before
        self.cleared_beta[:], self.cleared_v[:] = before[:2]
        return False

    def _newton(self, free: np.ndarray, missing: float) -> tuple[np.ndarray, float]:
        """Moves ``x`` of the free variables with ``K x = v - level`` and ``sum x = missing``."""
        sides = np.column_stack([self.v[free], np.ones(len(free))])
        try:
            alone, spread = self._solved(free, sides).T
        except LinAlgError:
            return np.zeros(len(free)), self.level
        if not self.constrained:
            return alone, 0.0
        level = float((alone.sum() - missing) / spread.sum())
        return alone - level * spread, level

    def _solved(self, free: np.ndarray, sides: np.ndarray) -> np.ndarray:
        """Solve ``K_FF x = sides``, from the last factor if F has hardly changed since.

        With that of a set G, x on F is the solution of the bordered system

            K_GG x + K_GA z + E_R w = sides,   K_AG x + K_AA z = sides,   x_R = 0

        for A = F \\ G and R = G \\ F. A ridge of the size of the values' rounding keeps the
        matrix positive.
        """
        base, factor = self.factor
        if factor is None:
            return self._factored(free, sides)
        place = np.full(len(self.beta), -1)
        place[base] = np.arange(len(base))
        known = place[free] >= 0
        kept, added = place[free[known]], free[~known]
        removed = np.setdiff1d(np.arange(len(base)), kept)
        border = len(added) + len(removed)
        if border > _BORDER * len(base):
            return self._factored(free, sides)
        right = np.zeros((len(base), sides.shape[1] + border))
        right[kept, : sides.shape[1]] = sides[known]
        edge = right[:, sides.shape[1] :]
        edge[:, : len(added)] = self.K[self.slot[added]][:, base].T
        edge[removed, np.arange(len(added), border)] = 1.0
        corner = np.zeros((border, border))
        corner[: len(added), : len(added)] = self._face(added)
        below = np.zeros((border, sides.shape[1]))
        below[: len(added)] = sides[~known]
        solved, _ = dpotrs(factor, right)
        x, across = np.hsplit(solved, [sides.shape[1]])
        z = np.linalg.solve(corner - edge.T @ across, below - edge.T @ x)
        x = x - across @ z
        out = np.empty_like(sides)
        out[known], out[~known] = x[kept], z[: len(added)]
        return out

    def _factored(self, free: np.ndarray, sides: np.ndarray) -> np.ndarray:
        """Solve ``K_FF x = sides`` by a factor that is kept."""
        face = self._face(free).T  # in the order of columns: no copy is made
        factor, failed = dpotrf(face, overwrite_a=True)
        if failed:
            raise LinAlgError("The face is not positive.")
        self.factor = free, factor
        return dpotrs(factor, sides)[0]

    def _face(self, index: np.ndarray) -> np.ndarray:
        """Kernel values among some variables in float64, with their ridge."""
        H = np.empty((len(index), len(index)))
        _gather(self.K, self.slot, index, H)
        H[np.diag_indices_from(H)] += self.ridge
        return H

    def _count(self, steps: int) -> None:
        """Each step rounds every v, by its own size or by that of what is added to it."""
        self.steps += steps
        largest = max(float(np.abs(self.beta).max()) * self.scale, float(np.abs(self.v).max()))
        self.drift = float(np.hypot(self.drift, 0.5 * _EPSILON * largest * steps**0.5))

    def _clear(self) -> None:
        """Recompute v in float64, from what has moved since the last time, and look at it."""
        moved = np.flatnonzero(self.beta != self.cleared_beta)
        change = self.cleared_beta[moved] - self.beta[moved]
        add_rows(self.K, self.slot[moved], change, 0, len(self.v), self.cleared_v)
        self.cleared_beta[:], self.v[:] = self.beta, self.cleared_v
        self.drift = 0.0
        self._look()

    def _look(self) -> None:
        problem = self.problem
        self.level, self.violation = _look(
            self.beta,
            self.v,
            problem.lower,
            problem.upper,
            self.constrained,
        )


def warm_start_ratio(before: DualProblem, beta: np.ndarray, problem: DualProblem) -> float:
    """Factor by which to scale a solution when the cost grows."""
    return _ratio(beta, before.lower, before.upper, problem.lower, problem.upper)


@njit(cache=True, nogil=True)
def _ratio(beta, before_lower, before_upper, lower, upper):
    """Return how much further the walls are, or one if most of the nonzero variables are free."""
    ratio = np.inf
    nonzero = 0
    at_wall = 0
    for t in range(beta.shape[0]):
        if beta[t] != 0.0:
            nonzero += 1
            if beta[t] == before_upper[t]:
                at_wall += 1
                ratio = min(ratio, upper[t] / before_upper[t])
            elif beta[t] == before_lower[t]:
                at_wall += 1
                ratio = min(ratio, lower[t] / before_lower[t])
    return ratio if 2 * at_wall > nonzero else 1.0


@njit(cache=True, nogil=True)
def _scale(beta, v, linear, before_lower, before_upper, lower, upper, ratio):
    """Multiply ``beta``, and what it adds to ``v``; what is at its wall stays there."""
    for t in range(beta.shape[0]):
        if beta[t] == before_upper[t]:
            beta[t] = upper[t]
        elif beta[t] == before_lower[t]:
            beta[t] = lower[t]
        else:
            beta[t] *= ratio
        v[t] = ratio * (v[t] + linear[t]) - linear[t]


@njit(cache=True, nogil=True)
def _snap(beta, lower, upper):
    """Put variables to a wall from which only rounding keeps them; returns how many."""
    count = 0
    for t in range(beta.shape[0]):
        near = 1e-10 * (upper[t] - lower[t])
        if lower[t] < beta[t] < upper[t]:
            if beta[t] - lower[t] <= near:
                beta[t] = lower[t]
                count += 1
            elif upper[t] - beta[t] <= near:
                beta[t] = upper[t]
                count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _look(beta, v, lower, upper, constrained):
    """Level and violation; without a free variable the level is in the middle of what may be."""
    highest = -np.inf
    lowest = np.inf
    total = 0.0
    free = 0
    for t in range(v.shape[0]):
        below = beta[t] < upper[t]
        above = beta[t] > lower[t]
        if below:
            highest = max(highest, v[t])
        if above:
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
def _settle(K, slot, diagonal, v, beta, lower, upper, constrained, tol, allowed):
    """Take up to so many steps; returns ``(steps, level, violation)``, changes ``v, beta``."""
    m = v.shape[0]
    level, violation = _look(beta, v, lower, upper, constrained)
    if violation <= tol:
        return 0, level, violation
    score = np.empty(m, dtype=np.float32)
    rise = np.empty((1, m), dtype=np.float32)
    fall = np.empty((1, m), dtype=np.float32)
    for t in range(m):
        score[t] = v[t] - level
        v[t] -= np.float64(score[t])
        rise[0, t] = np.float32(0.0) if beta[t] < upper[t] else -BARRED
        fall[0, t] = np.float32(0.0) if beta[t] > lower[t] else BARRED
    wanted = np.float32(0.9 * tol)
    if constrained:
        _, steps = pair_steps(
            K, slot, diagonal, score, beta, lower, upper, rise, fall, wanted, allowed
        )
    else:
        _, steps = single_steps(
            K, slot, diagonal, score, beta, lower, upper, rise, fall, wanted, allowed
        )
    for t in range(m):
        v[t] += np.float64(score[t])
    level, violation = _look(beta, v, lower, upper, constrained)
    return steps, level, violation


@njit(cache=True, nogil=True)
def _gather(K, slot, index, out):
    """Write the values among some variables into ``out``."""
    for i in range(index.shape[0]):
        row = K[slot[index[i]]]
        for j in range(index.shape[0]):
            out[i, j] = row[index[j]]

"""Sequential minimal optimisation: two variables at a time, solved exactly.

The problem (see :mod:`maxmargin.duals`)

    minimise  1/2 b' K b + p' b    subject to  lower <= b <= upper,  sum of b fixed per group

Let ``b_i`` rise and ``b_j`` fall by the same step: the constraint of their group stays as it is.
With ``v = -(K b + p)`` the objective changes along this line with slope ``-(v_i - v_j)`` and
curvature ``K_ii + K_jj - 2 K_ij``:

    repeat
        i  =  the v that is largest among the variables that may rise, in the group where the
              largest and the smallest are furthest apart
        j  =  among those that may fall in i's group, the one with the largest decrease of the
              objective, ``(v_i - v_j)^2 / curvature``            (second order selection)
        step to the minimum on the line, or to the wall of the box before it
        v  =  v - step * (K_i - K_j)
    until  v_i - (the smallest v that may fall)  <  tol

Where steps crawl and the K_ii differ by far, the largest v is that of an outlying row again and
again, which can move by next to nothing; every other step then begins with the i of the largest
``(v_i - smallest v)^2 / K_ii``. Variables at a wall that cannot be part of a violating pair are set
aside now and then (shrinking). Without any constraint one variable moves at a time, chosen by its
own decrease ``v^2 / K_ii``.

Where steps of two crawl, and once at the end, the minimum on the current face is taken at one
stroke (:mod:`maxmargin.solvers.dual.face`): the answer is exact on its support set, not only to
``tol``. Where they still crawl, all variables near their level are solved for at once
(:mod:`maxmargin.solvers.dual.near_level`).

References: Platt, 1999; Keerthi et al., Neural Computation 13(3), 2001; Fan, Chen and Lin, JMLR 6,
2005 (second order selection).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from maxmargin.backends.cpu.dual.kkt import levels_and_violation
from maxmargin.backends.cpu.dual.smo import smo_steps
from maxmargin.backends.cpu.dual.steps import CONVERGED, PAUSED, ROWS, STUCK
from maxmargin.backends.interior_point import MOST_STEPS
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.duals import DualProblem
from maxmargin.kernels.base import Validity
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import NO_LIMIT, Measure, Watch
from maxmargin.solvers.dual.face import descend_faces
from maxmargin.solvers.dual.method import DualMethod, DualRun
from maxmargin.solvers.dual.near_level import NearLevel, Pace

_SLICE_SECONDS, _FIRST_SLICE = 0.05, 10**6
_PROGRESS = 1e-12  # of objective or gap: a decrease that is none after many steps
_GROWTH = 1.05  # of that decrease from look to look: some 500 looks at most
_ENTRIES = 2  # of the working-set engine's steps, that take as long as one here
_EVEN = 100.0  # times the smallest diagonal value, up to which all count as alike
_SHRINK_AFTER, _WORTH_SHRINKING = 1000, 0.7
_FETCH_ROWS, _FETCH_ENTRIES = (8, 64), 1 << 17


@dataclass(frozen=True)
class SMO(DualMethod):
    """Sequential minimal optimisation.

    Parameters
    ----------
    shrinking : bool, default=True
        Set variables aside that are at a wall and far from leaving it, and look at them again when
        the others are solved. Faster where many steps are needed; the answer is the same.
    selection : {"second_order", "first_order"}, default="second_order"
        How j is chosen: by the decrease of the objective, or as the smallest v of i's group, so
        that the pair is the one that violates the KKT conditions most (Keerthi et al.). The first
        order looks at no kernel values to choose, and mostly needs more steps.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers import SMO
    >>> gram = Gram.of(np.array([[-1.0], [1.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> SMO().solve(problem.over(gram)).beta
    array([-0.5,  0.5])
    """

    shrinking: bool = True
    selection: str = "second_order"

    def __post_init__(self) -> None:
        if self.selection not in ("second_order", "first_order"):
            raise ValueError(
                f"selection must be 'second_order' or 'first_order'; got {self.selection!r}."
            )

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> SMORun:
        """Begin at the problem's start."""
        return SMORun(problem, watch, self, pace or Pace())


class SMORun(DualRun):
    """SMO at work: ``whole`` has all variables, ``state`` those that are not set aside."""

    def __init__(self, problem: DualProblem, watch: Watch, method: SMO, pace: Pace) -> None:
        self.problem, self.watch, self.method, self.pace = problem, watch, method, pace
        self.whole = self.state = _State.begin(problem)
        self.violation = np.inf
        self.moved: np.ndarray | None = None

    @property
    def variables(self) -> np.ndarray:
        """The signed variables; those set aside are where they were."""
        return self.state.spread_over(self.whole.beta)

    @property
    def working_set(self) -> np.ndarray | None:
        """The variables that the last steps have moved, while someone records them."""
        return self.moved

    def measure(self) -> Measure:
        """Look at all variables, also at those that are set aside."""
        self.state = self.whole.absorb(self.state)
        gap, (value, _) = self.whole.gap(), self.whole.objective()
        return self.measured(self.whole.violation(), -value, gap)

    def solution(self, status: Status) -> Solution:
        """Return the variables as they are."""
        return Solution(self.whole.absorb(self.state).beta, self.n_iter, status)

    def steps(self) -> Generator[None, None, None]:
        """Steps of two; where they crawl, faces, and Newton's steps."""
        whole, gram, pace = self.whole, self.problem.gram.host, self.pace
        size, tol = len(self.problem), self.watch.tol
        slice_steps = max(_FIRST_SLICE // size, 1)
        stall, proven = _StallWatch(size), gram.kernel.validity is Validity.VALID
        newton = NearLevel(self.problem, Workers(1, self.watch.stopped))
        uneven = bool(whole.diagonal.max() > _EVEN * whole.diagonal.min())
        scaled = False
        next_descent, polished = (2 if uneven else 10) * size, False
        next_shrinking = max(size, _SHRINK_AFTER) if self.method.shrinking else NO_LIMIT
        tracing = self.watch.monitor.trace is not None
        second_order = self.method.selection == "second_order"
        while True:
            # looks come at step counts and not at times, so that a fit goes the same way twice
            until = max(min(next_descent, next_shrinking) - self.n_iter, 1)
            allowed = min(slice_steps, until, self.allowed)
            start = self.variables.copy() if tracing else None
            before = time.monotonic()
            code, done, needed, self.violation = self.state.advance(
                tol, allowed, self.n_iter if scaled else -1, second_order
            )
            took = time.monotonic() - before
            self.n_iter += done
            if tracing:
                self.moved = np.flatnonzero(self.variables != start)
            pace.spent += _ENTRIES * done * len(self.state.beta)
            if code == CONVERGED and self.state is not whole:
                self.state = whole.absorb(self.state)  # what was set aside may violate by now
                next_shrinking = self.n_iter + max(size, _SHRINK_AFTER)
                continue
            if code == CONVERGED and (polished or not self.violation):
                return
            if stall.due(self.n_iter):
                self.state = whole.absorb(self.state)
                self.state.renew()
            weary = code == PAUSED and self.n_iter >= next_descent
            looked = self.state is whole and (weary or stall.due(self.n_iter))
            if looked and proven and not whole.possible():
                code = STUCK
            stuck = code == STUCK or stall.unchanged(self.state, self.n_iter)
            if stuck or (proven and pace.hopeless):
                self.status = Status.STALLED
                return
            if code == ROWS:
                gram.require(self.state.rows_to_fetch(needed))
            elif took < _SLICE_SECONDS and allowed == slice_steps:
                slice_steps *= 2
            elif took > 2 * _SLICE_SECONDS:
                slice_steps = max(slice_steps // 2, 1)
            if code == CONVERGED or weary:
                polished = code == CONVERGED
                self.state.descend()
                next_descent = self.n_iter + 10 * size
            if weary:
                tired = pace.tired(self.violation)
                scaled = scaled or (tired and uneven)
                if tired and self.watch.left(self.n_iter) >= MOST_STEPS:
                    self.state = whole.absorb(self.state)
                    self.n_iter += whole.newton(newton, pace, tol)
                    next_descent = self.n_iter if pace.newton else next_descent
            if code == PAUSED and self.n_iter >= next_shrinking:
                next_shrinking += max(size, _SHRINK_AFTER)
                if gram.resident or self.state is whole:
                    # looking again costs products with rows that moved: cheap while resident
                    self.state = whole.absorb(self.state).shrunk(self.violation)
            yield


@dataclass
class _State:
    """Where a solve is: ``beta``, the scores ``v`` and what each variable may do.

    A *shrunk* state holds the variables at ``index`` of the whole one. The others are at a wall and
    far from leaving it; they wait until the smaller problem is solved.
    """

    problem: DualProblem
    beta: np.ndarray
    v: np.ndarray
    diagonal: np.ndarray
    index: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.n_groups = self.problem.n_groups
        self._look()

    def _look(self) -> None:
        self.may_rise = self.problem.may_rise(self.beta)
        self.may_fall = self.problem.may_fall(self.beta)

    @classmethod
    def begin(cls, problem: DualProblem) -> _State:
        """Begin at the problem's start, with its gradient."""
        v = problem.scores(problem.decision_at_start())
        return cls(problem, problem.start.copy(), v, problem.gram.diagonal[problem.gram_row])

    def advance(
        self, tol: float, steps: int, turn: int = -1, second_order: bool = True
    ) -> tuple[int, int, int, float]:
        """Take up to so many steps; see :func:`smo_steps`."""
        problem, store = self.problem, self.problem.gram.host.store
        return smo_steps(
            store.data,
            store.slot,
            store.stamp,
            store.clock,
            problem.gram_row,
            problem.orientation,
            problem.lower,
            problem.upper,
            problem.group,
            self.n_groups,
            self.diagonal,
            self.beta,
            self.v,
            self.may_rise,
            self.may_fall,
            turn,
            second_order,
            tol,
            steps,
        )

    def renew(self) -> None:
        """Compute the scores anew: steps add their rounding to them, one after the other."""
        self.v = self.problem.scores(self.problem.decision(self.beta))

    def objective(self) -> tuple[float, float]:
        """Value of the dual, as minimised, and the size of its terms."""
        quadratic = -0.5 * float(self.beta @ (self.v + self.problem.linear))
        linear = float(self.beta @ self.problem.linear)
        return quadratic + linear, abs(quadratic) + abs(linear)

    def possible(self) -> bool:
        """Whether the objective is one that a positive semidefinite kernel allows.

        It is nowhere below that of a machine with w = 0. With huge kernel values the matrix as
        rounded can be indefinite, and steps then go down for ever.
        """
        problem, (value, size) = self.problem, self.objective()
        furthest = np.where(problem.linear < 0, problem.upper, problem.lower)
        slopes = problem.linear != 0
        return value >= 2.0 * float(problem.linear[slopes] @ furthest[slopes]) - 1e-6 * size

    def descend(self) -> None:
        """Take Newton steps on the face of the free variables."""
        descend_faces(self.problem, self.beta, self.v)
        self._look()

    def newton(self, near_level: NearLevel, pace: Pace, tol: float) -> int:
        """Solve for all variables near their level, if that costs no more than steps have."""
        try:
            if not pace.crawls(near_level.cost(self.beta, self.score(), pace.budget)):
                return 0
            decision = self.problem.decision(self.beta)
            self.beta, violation, steps = near_level.descend(self.beta, decision, tol)
        except StoppedError:
            return 0
        pace.judge(violation, steps)
        self.renew()
        self._look()
        return steps

    def shrunk(self, violation: float) -> _State:
        """Return a state of the variables that can still be part of a violating pair."""
        v, keep = self.v, np.zeros(len(self.v), dtype=bool)
        for j in range(self.n_groups):
            member = self.problem.group == j
            highest = v[member & self.may_rise].max(initial=-np.inf)
            lowest = v[member & self.may_fall].min(initial=np.inf)
            keep |= member & ((self.may_rise & (v > lowest)) | (self.may_fall & (v < highest)))
        if not self.n_groups:
            keep = (self.may_rise & (v > -violation)) | (self.may_fall & (v < violation))
        if keep.sum() > _WORTH_SHRINKING * len(v):
            return self
        index = np.flatnonzero(keep)
        problem = self.problem.restricted(index)
        return _State(problem, self.beta[index], v[index], self.diagonal[index], index)

    def violation(self) -> float:
        """Largest violation of a pair, or of one variable where there is no constraint."""
        return float(self._levels_and_violation()[1])

    def spread_over(self, beta: np.ndarray) -> np.ndarray:
        """Return these variables among all, given where the others are."""
        if self.index is None:
            return self.beta
        beta = beta.copy()
        beta[self.index] = self.beta
        return beta

    def gap(self) -> float:
        """Duality gap at the levels of the groups."""
        return self.problem.gap(self.beta, self.score())

    def score(self) -> np.ndarray:
        """``v`` less the levels of the groups."""
        return self.v - self._levels_and_violation()[0][self.problem.group]

    def _levels_and_violation(self) -> tuple[np.ndarray, float]:
        given = self.problem.variables, self.n_groups, self.beta, self.v
        return levels_and_violation(*given)

    def absorb(self, part: _State) -> _State:
        """Take a shrunk state's progress into this whole one, and return it."""
        if part.index is None:
            return self
        before = self.beta[part.index]
        waiting = np.ones(len(self.beta), dtype=bool)
        waiting[part.index] = False
        self.beta[part.index], self.v[part.index] = part.beta, part.v
        others = self.problem.restricted(np.flatnonzero(waiting))
        moved = part.problem.on_rows(part.beta - before)
        if moved.any() and len(others):
            self.v[waiting] -= others.orientation * others.values(moved)[others.gram_row]
        self._look()
        return self

    def rows_to_fetch(self, needed: int) -> np.ndarray:
        """Return the missing row, and with it the most violating ones: they come next.

        A panel of rows costs little more than one, since the data are read once for all of them.
        Once the store is full only what is needed is fetched: the rest would evict rows in use.
        """
        gram = self.problem.gram.host
        count = min(max(_FETCH_ENTRIES // gram.n, _FETCH_ROWS[0]), _FETCH_ROWS[1])
        count = min(count, gram.store.capacity - gram.store.used, len(self.v)) - 1
        rows = [needed]
        if count > 1:
            absent = gram.store.slot[self.problem.gram_row] < 0
            half = count // 2
            highest = np.where(self.may_rise & absent, self.v, -np.inf)
            lowest = np.where(self.may_fall & absent, -self.v, -np.inf)
            for score in (highest, lowest):
                best = np.argpartition(-score, half - 1)[:half]
                rows.extend(self.problem.gram_row[best[np.isfinite(score[best])]])
        return np.unique(np.array(rows, dtype=np.int64))


class _StallWatch:
    """Notices when many steps in a row have not changed the objective in float64.

    What counts as a change grows a little with every look, so that no solve crawls for ever. One
    that is nothing beside the gap is none: with huge kernel values steps are tiny, but not zero.
    """

    def __init__(self, size: int) -> None:
        self.patience = 10_000 + 20 * size
        self.checked, self.least = 0, _PROGRESS
        self.best: float | None = None

    def due(self, steps: int) -> bool:
        """Whether it is time to look; the state looked at must be the whole one."""
        return steps - self.checked >= self.patience

    def unchanged(self, state: _State, steps: int) -> bool:
        """Whether the objective has stayed what it was when last looked at."""
        if not self.due(steps):
            return False
        self.checked = steps
        value, size = state.objective()
        enough = max(self.least * size, _PROGRESS * np.nan_to_num(state.gap(), posinf=0.0))
        if self.best is None or value < self.best - enough:
            self.best, self.least = value, _GROWTH * self.least
            return False
        return True

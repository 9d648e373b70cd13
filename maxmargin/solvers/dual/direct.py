"""Machines for several classes at once: rows in turn, and conjugate gradients on the face.

The problem is that of :mod:`maxmargin.duals.direct`. A *working set* of rows has its block of the
Gram matrix at hand:

    repeat
        the set  =  the rows whose variables are not all zero, and those that violate most
        repeat on the set
            solve each row exactly, given the others           (block coordinate descent)
            on the face that this ends on, the variables off their walls, take steps of the
                conjugate gradient method, and project the point that they lead to
        f  =  f + K (what has changed)                          (all rows)
    until no row violates its conditions by more than tol

Rows alone crawl: all of them push at the same few directions of the kernel's spectrum. Conjugate
gradients alone take as many turns as there are walls to meet. Together neither happens, and the
gradients are cheap: a row has few classes in play, so that a step multiplies, for each class, only
the block of the rows that have it in play.

References: Crammer and Singer, JMLR 2, 2001 (rows); Moré and Toraldo, SIAM Journal on Optimization
1(1), 1991 (conjugate gradients and projections in turns).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maxmargin.backends.cpu.dual.direct import (
    add_changes,
    project_rows,
    row_steps,
    square_of,
    violations,
)
from maxmargin.certificate import DualCertificate
from maxmargin.duals.direct import DirectProblem
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_FIRST = 1024  # rows of the first set
_INNER = 0.2  # of the violation, to which a set is solved
_ROUNDS = 200  # of rows and gradients on one set
_GRADIENTS = 100  # steps on a face at most
_ENOUGH = 0.3  # of the residual, that these leave
_LEFT = 0.1  # share of the rows that may leave their box before the point is projected
_HALVINGS = 6
_REPAIRS = 4  # times that a method may go on from what its certificate refuses
_EPSILON = float(np.finfo(float).eps)
_PASSES = 6  # over the rows, before gradients are worth their blocks


@dataclass(frozen=True)
class DirectSolution:
    """A feasible point ``b``, (rows, classes), and how the method left it."""

    b: np.ndarray
    n_iter: int
    status: Status


@dataclass(frozen=True)
class RowDescent(Method[DirectProblem, DirectSolution]):
    """Block coordinate descent over the rows, with conjugate gradients on the faces."""

    def accepts(self, problem: DirectProblem) -> str | None:
        """Take every problem of this kind."""
        if isinstance(problem, DirectProblem):
            return None
        return "RowDescent solves machines for several classes at once (crammer_singer) only."

    def begin(self, problem: DirectProblem, watch: Watch) -> RowDescentRun:
        """Begin at the problem's start."""
        return RowDescentRun(problem, watch)


class RowDescentRun(Run):
    """The method at work: ``b`` and the values of the functions, both (rows, classes)."""

    words: ClassVar[str] = "KKT violation {violation:.2g}, gap {gap:.2g}"

    def __init__(self, problem: DirectProblem, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        n, n_classes = len(problem.y), problem.n_classes
        self.b = np.zeros((n, n_classes)) if problem.start is None else problem.start.copy()
        self.values = np.zeros((n, n_classes))
        self._rows, self._block = np.empty(0, dtype=np.intp), np.empty((0, 0))
        self._update(self.b)

    @property
    def variables(self) -> np.ndarray:
        """All variables, row after row."""
        return self.b.ravel()

    def measure(self) -> Measure:
        """Violation, both objectives and their gap."""
        dual, gap = self.problem.objectives(self.b, self.values)
        violation = float(self._violations().max(initial=0.0))
        return Measure(violation, dual + gap, dual, gap)

    def solution(self, status: Status) -> DirectSolution:
        """Return the variables as they are."""
        return DirectSolution(self.b, self.n_iter, status)

    def steps(self) -> Generator[None, None, None]:
        """Sets of rows, each solved to a part of the violation."""
        problem, tol = self.problem, self.watch.tol
        most = max(int((problem.gram.memory / 16) ** 0.5), 64)
        rng = np.random.default_rng(self.watch.seed)
        taking_part = np.flatnonzero(problem.cost > 0)
        chosen = np.sort(rng.permutation(taking_part)[: min(_FIRST, most)])
        stalled = 0
        while True:
            violation = self._violations()
            worst = float(violation.max(initial=0.0))
            if worst <= tol:
                return
            if self.n_iter or self.b.any():
                chosen = self._choose(violation, len(chosen), most)
            before = self.b[chosen].copy()
            self._solve(chosen, max(_INNER * worst, 0.3 * tol))
            change = np.zeros_like(self.b)
            change[chosen] = self.b[chosen] - before
            if not change.any():
                stalled += 1
                if stalled > 2:
                    self.status = Status.STALLED
                    return
            self._update(change)
            yield

    def _choose(self, violation: np.ndarray, last: int, most: int) -> np.ndarray:
        """Rows in play, and as many of the worst of the others as the last set had."""
        in_play = (self.b != 0.0).any(axis=1)
        order = np.argsort(-violation, kind="stable")
        others = order[~in_play[order] & (violation[order] > self.watch.tol)]
        rows = np.flatnonzero(in_play)
        if len(rows) > most // 2:
            rows = order[in_play[order]][: max(most // 2, most - len(others))]
        others = others[: min(max(last, _FIRST), most - len(rows))]
        return np.sort(np.concatenate([rows, others]))

    def _violations(self) -> np.ndarray:
        problem = self.problem
        return violations(self.values, self.b, problem.y, problem.cost, problem.most)

    def _update(self, change: np.ndarray) -> None:
        """Add what a change of the variables does to the values on all rows."""
        if change.any():
            workers = self.watch.workers
            self.values += self.problem.gram.matmat(change, workers=workers)
            if self.problem.bias:
                self.values += change.sum(axis=0)

    def _solve(self, rows: np.ndarray, tol: float) -> None:
        """Solve for the variables of some rows, the others fixed."""
        problem = self.problem
        self._renew_block(rows)
        own = replace(problem, y=problem.y[rows], cost=problem.cost[rows], start=None, matrix=None)
        part = _Part(own, self._block, self.b[rows], np.ascontiguousarray(self.values[rows].T))
        for _ in range(_ROUNDS):
            self.n_iter += part.descend(0.5 * tol)
            self.b[rows] = part.b
            if part.violation() <= tol:
                break
            part.follow_gradients(0.3 * tol)
            self.b[rows] = part.b
            if self.watch.stopped() is not None or not self.watch.left(self.n_iter):
                break

    def _renew_block(self, rows: np.ndarray) -> None:
        """Set the block of the kernel's values among some rows: most were in the last one."""
        gram, old = self.problem.gram, self._rows
        kept = np.isin(rows, old)
        if not kept.any():
            block = gram.block(rows, rows)
            block += float(self.problem.bias)
        else:
            block, new = np.empty((len(rows), len(rows))), np.flatnonzero(~kept)
            places, before = np.flatnonzero(kept), np.searchsorted(old, rows[kept])
            block[np.ix_(places, places)] = self._block[np.ix_(before, before)]
            if len(new):
                block[new] = gram.block(rows[new], rows) + float(self.problem.bias)
                block[:, new] = block[new].T
        self._rows, self._block = rows, block


@dataclass
class _Part:
    """The problem on the rows of a set: their block of the matrix, bias included, variables (q,
    classes) and values (classes, q).
    """

    problem: DirectProblem
    K: np.ndarray
    b: np.ndarray
    values: np.ndarray

    def descend(self, tol: float) -> int:
        """Pass over the rows some times; returns how often one moved."""
        own = self.problem
        return row_steps(self.K, self.values, self.b, own.y, own.cost, own.most, tol, _PASSES)

    def violation(self) -> float:
        """The largest of a row."""
        own, values = self.problem, np.ascontiguousarray(self.values.T)
        return float(violations(values, self.b, own.y, own.cost, own.most).max(initial=0.0))

    def follow_gradients(self, tol: float) -> None:
        """Minimise on the face, and take the nearest feasible point if it is better."""
        low, high = self.problem.walls()
        free = (self.b > low) & (self.b < high)
        free &= (free.sum(axis=1) > 1)[:, None]
        if free.any():
            gradient = self.problem.gradient(self.values.T)
            face = _Face(self.K, free, gradient, low - self.b, high - self.b)
            face.minimise(tol)
            self._take(face, gradient)

    def _take(self, face: _Face, gradient: np.ndarray) -> None:
        """Move to the projection of the face's minimum, or of a point before it."""
        own, rows = self.problem, np.flatnonzero(face.free.any(axis=1))
        for step in (*(0.5**k for k in range(_HALVINGS)), face.inside):
            new = self.b.copy()
            new.T[face.free.T] += step * face.move
            project_rows(new, rows, own.y, own.cost, own.most)
            change = new - self.b
            moved = np.zeros_like(self.values)
            add_changes(self.K, change, moved)
            gain = np.vdot(change, gradient) + 0.5 * float(np.vdot(change.T, moved))
            if gain < 0.0:
                self.b = new
                self.values += moved
                return


class _Face:
    """The variables off their walls, class by class, moving with their rows' sums fixed.

    ``low`` and ``high`` are how far each may move.
    """

    def __init__(
        self,
        K: np.ndarray,
        free: np.ndarray,
        gradient: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> None:
        self.free = free
        self.row, self.count = np.nonzero(free.T)[1], np.maximum(free.sum(axis=1), 1)
        members = [np.flatnonzero(column) for column in free.T]
        self.ends = np.cumsum([0] + [len(rows) for rows in members])
        self.blocks = [square_of(K, rows) for rows in members]
        self.gradient, self.low, self.high = (each.T[free.T] for each in (gradient, low, high))
        self.move = np.zeros(len(self.row))

    @property
    def inside(self) -> float:
        """The part of the move up to the first wall."""
        wall = np.where(self.move < 0.0, self.low, self.high)
        moving = self.move != 0.0
        return min(1.0, float((wall[moving] / self.move[moving]).min(initial=1.0)))

    def _times(self, d: np.ndarray) -> np.ndarray:
        d = d.astype(np.float32)
        parts = zip(self.blocks, self.ends[:-1], self.ends[1:], strict=True)
        return np.concatenate([block @ d[start:stop] for block, start, stop in parts])

    def _level(self, g: np.ndarray) -> np.ndarray:
        """Take the mean over each row's variables off: what is left keeps their sums."""
        sums = np.bincount(self.row, weights=g, minlength=len(self.count))
        return g - (sums / self.count)[self.row]

    def minimise(self, tol: float) -> None:
        """Conjugate gradients until enough of the residual is gone, or too many have left."""
        residual = -self._level(self.gradient)
        direction, square = residual.copy(), float(residual @ residual)
        goal = max(tol, _ENOUGH * float(np.abs(residual).max(initial=0.0)))
        rows = len(np.unique(self.row))
        for _ in range(_GRADIENTS):
            product = self._level(self._times(direction))
            curvature = float(direction @ product)
            if curvature <= 0.0 or square == 0.0:
                return
            size = square / curvature
            self.move += size * direction
            residual -= size * product
            if np.abs(residual).max() <= goal:
                return
            outside = (self.move < self.low) | (self.move > self.high)
            if outside.any() and len(np.unique(self.row[outside])) > _LEFT * rows:
                return
            square, last = float(residual @ residual), square
            direction = residual + square / last * direction


# -- certificates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DirectEvaluation:
    """A solution looked at again in float64: variables, values on the rows, and certificate."""

    problem: DirectProblem
    b: np.ndarray
    values: np.ndarray
    n_iter: int
    certificate: DualCertificate


def solve_directly(
    problem: DirectProblem, method: Method[DirectProblem, DirectSolution], watch: Watch
) -> DirectEvaluation:
    """Solve a problem to its certificate: where that is not good enough, the method goes on."""
    spent = 0
    for k in range(_REPAIRS):
        solution = method.solve(problem, replace(watch, spent=spent))
        spent += solution.n_iter
        evaluation = _evaluate(problem, solution, spent, watch)
        believed = solution.status is Status.CONVERGED
        if evaluation.certificate.converged or not believed or k == _REPAIRS - 1:
            break
        problem = replace(problem, start=solution.b)
    return evaluation


def _evaluate(
    problem: DirectProblem, solution: DirectSolution, steps: int, watch: Watch
) -> DirectEvaluation:
    gram, b = problem.gram, solution.b
    values = problem.values(b, gram.matmat(b, workers=watch.workers))
    dual, gap = problem.objectives(b, values)
    sizes = np.sqrt(np.maximum(gram.diagonal, 0.0) + float(problem.bias))
    weights = (np.abs(b) * sizes[:, None]).sum(axis=0)
    # errors of the values times what multiplies them: variables, and costs that the losses have
    reach = np.abs(b).sum() + 2.0 * float(problem.most.sum())
    error = (gram.rounding + len(b) ** 0.5) * _EPSILON * float(weights.max(initial=0.0))
    rounding = error * float(sizes.max(initial=0.0)) * reach
    found = violations(values, b, problem.y, problem.cost, problem.most)
    violation = float(found.max(initial=0.0))
    low, high = problem.walls()
    outside = float(np.maximum(low - b, b - high).max(initial=0.0))
    infeasibility = max(outside, float(np.abs(b.sum(axis=1)).max(initial=0.0)))
    status = solution.status
    if violation <= watch.tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED
    primal = dual + gap
    certificate = DualCertificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=(gap + rounding) / max(abs(primal), abs(dual), np.finfo(float).tiny),
        kkt_violation=violation,
        infeasibility=infeasibility,
        status=status,
        tol=watch.tol,
        spectrum=gram.spectrum,
        rounding=rounding,
    )
    return DirectEvaluation(problem, b, values, steps, certificate)

"""Machines for several classes at once: rows in turn, and conjugate gradients on the face.

The problem is that of :mod:`maxmargin.duals.direct`. A *working set* of rows has its block of the
Gram matrix at hand, and of its variables some are *in play*: those that are not zero, and the few
of each row that come next.

    repeat
        the set  =  the rows whose variables are not all zero, and those that violate most
        repeat on the set
            for each class, the block of the rows that have it in play
            repeat on what is in play
                solve each row exactly, given the others       (block coordinate descent)
                on the face that this ends on, the variables off their walls, take steps of the
                    conjugate gradient method, and project the point that they lead to
            f  =  f + K (what has changed)                      (rows of the set)
        f  =  f + K (what has changed)                          (all other rows)
    until no row violates its conditions by more than tol

Rows alone crawl: all of them push at the same few directions of the kernel's spectrum. Conjugate
gradients alone take as many turns as there are walls to meet. Together neither happens, and both
are cheap: a row has few classes in play, so that a step reads, for each class, only the rows that
have it in play, which stay in the cache. Blocks and sums are float32; f is float64, and computed
anew where what float32 has added may be wrong by as much as the violation.

References: Crammer and Singer, JMLR 2, 2001 (rows); Moré and Toraldo, SIAM Journal on Optimization
1(1), 1991 (conjugate gradients and projections in turns).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual.direct import (
    Pairs,
    add_changes,
    gradient_step,
    level,
    pair_steps,
    pairs_in_play,
    project_pairs,
    squares_of,
    triangle_products,
    triangles_of,
    violations,
)
from maxmargin.backends.interior_point import Blocks, minimise
from maxmargin.backends.threads import Workers, on_one_blas_thread
from maxmargin.certificate import DualCertificate
from maxmargin.duals.direct import DirectProblem
from maxmargin.gram import RowStore
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.dual.direct_certificate import DirectSums, certified

_FIRST = 1024  # rows of the first set
_INNER, _LAST = 0.2, 0.6  # of the violation, to which a set is solved, but not below that of tol
_CHOICES = 20  # of pairs in play, for one set
_PATIENCE = 5000  # passes over the rows, in which the gap has to halve
_ROUNDS = 50  # of rows and gradients on these
_STALL_SETS, _PROGRESS = 10, 1e-13  # sets without so much of the objective's size
_GRADIENTS = 100  # steps on a face at most
_ENOUGH = 0.3  # of the residual, that these leave
_LEFT = 0.1  # share of the rows that may leave their box before the point is projected
_HALVINGS = 6
_SQUARES = 3  # entries of the classes' squares, times those of the block, at most
_NEARBY, _JOINING = 0.1, 2  # how near to violating, and how many, join a row's pairs
_REPAIRS = 4  # times that a method may go on from what its certificate refuses
_DEVIATIONS = 8  # that rounding may be wrong by, at worst
_FEW, _CRAWLING, _NEWTON = 400, 200, 3  # rows, passes over them, and times: for interior points
_BELOW = 0.3  # of tol, to which these solve
_KEPT = 0.4  # of the memory, for rows
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

    solves_for = "multipliers"
    words: ClassVar[str] = "KKT violation {violation:.2g}, gap {gap:.2g}"
    b: np.ndarray
    values: np.ndarray
    _noise: float  # that the values are wrong by

    def __init__(self, problem: DirectProblem, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        n, n_classes = len(problem.y), problem.n_classes
        self.b = np.zeros((n, n_classes)) if problem.start is None else problem.start.copy()
        self._kernel = _KernelValues(problem, watch.workers)
        self._renew()

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
        most = max(int((problem.gram.memory / 32) ** 0.5), 64)
        rng = np.random.default_rng(self.watch.seed)
        taking_part = np.flatnonzero(problem.cost > 0)
        chosen = np.sort(rng.permutation(taking_part)[: min(_FIRST, most)])
        idle, best, renewed = 0, -np.inf, np.inf
        least, fell, patience = np.inf, 0, _PATIENCE * max(len(taking_part), 1)
        newton = _NEWTON if len(taking_part) <= _FEW else 0
        while True:
            violation = self._violations()
            worst = float(violation.max(initial=0.0))
            if worst <= tol and _DEVIATIONS * self._noise <= tol:
                return
            hopeless = idle == _STALL_SETS
            if worst <= _DEVIATIONS * self._noise:
                self._renew()
                renewed, before = float(self._violations().max(initial=0.0)), renewed
                if renewed <= 0.5 * before:
                    continue
                hopeless = True
            if hopeless and self._kernel.dtype is np.float64:
                self.status = Status.STALLED
                return
            if hopeless:  # in float32
                self._kernel, idle = _KernelValues(problem, self.watch.workers, np.float64), 0
                self._renew()
                continue
            if self.n_iter > _CRAWLING * len(taking_part) and newton:
                newton -= 1
                if self._solve_all(taking_part):
                    continue
            if self.n_iter or self.b.any():
                chosen = self._choose(violation, len(chosen), most)
            self._solve(chosen, max(_INNER * worst, _LAST * tol))
            dual, size = problem.dual(self.b, self.values)
            idle = 0 if dual > best + _PROGRESS * size else idle + 1
            best = max(best, dual)
            gap = problem.objectives(self.b, self.values)[1]
            if gap < 0.5 * least:
                least, fell = gap, self.n_iter
            elif self.n_iter - fell > patience:
                idle, fell = _STALL_SETS, self.n_iter
            yield

    def _solve_all(self, rows: np.ndarray) -> bool:
        """Solve for all variables by interior points; returns whether that is an improvement."""
        problem, K = self.problem, self.problem.n_classes
        H = problem.gram.block(rows, rows).astype(np.float64) + float(problem.bias)
        before, (low, high) = problem.dual(self.b, self.values)[0], problem.walls()
        found = minimise(
            Blocks(H, K, self.watch.workers),
            -problem.gradient(self.values)[rows].T.ravel(),
            self.b[rows].T.ravel(),
            low[rows].T.ravel(),
            high[rows].T.ravel(),
            np.tile(np.eye(len(rows)), (K, 1)),
            _BELOW * self.watch.tol,
            self.watch.workers,
        )
        if found is None:
            return False
        kept, b = (self.b, self.values, self._noise), np.zeros_like(self.b)
        b[rows] = found.x.reshape(K, -1).T
        start = problem.started_near(b).start
        assert start is not None
        self.b = start
        self._renew()
        self.n_iter += found.steps * len(rows)
        if problem.dual(self.b, self.values)[0] > before:
            return True
        self.b, self.values, self._noise = kept
        return False

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

    def _renew(self) -> None:
        """Compute the values on all rows in float64; ``noise`` is what they are wrong by later."""
        problem, self._noise = self.problem, 0.0
        self.values = np.zeros_like(self.b)
        if self.b.any():
            self.values += problem.values(
                self.b, problem.gram.matmat(self.b, workers=self.watch.workers)
            )

    def _solve(self, rows: np.ndarray, tol: float) -> None:
        """Solve for the variables of some rows, the others fixed."""
        part = _Part(self.problem, self._kernel, rows, self.b, self.values)
        for _ in range(_CHOICES):
            marked, violation = part.choose()
            if violation <= tol:
                break
            play = _InPlay(part, marked)
            self.n_iter += play.solve(tol, self.watch)
            part.take(marked, play.b)
            if self.watch.stopped() is not None or not self.watch.left(self.n_iter):
                break
        change = part.b - self.b[rows]
        moved = change.any(axis=1)
        self.b[rows] = part.b
        others = np.ones(len(self.b), dtype=bool)
        others[rows] = False
        self._noise += self._kernel.add(rows[moved], change[moved], self.values, others)
        self.values[rows] = part.values.T


class _KernelValues:
    """What the method reads of the Gram matrix: squares, and what a change does to all rows.

    In float32 where that can hold the values: a change is then wrong in proportion to itself, and
    by how much is said. Rows that cost more to make than to keep are kept, as far as memory goes.
    """

    def __init__(self, problem: DirectProblem, workers: Workers, dtype: type = np.float32) -> None:
        self.gram, self.bias, self.workers = problem.gram, problem.bias, workers
        self.dtype = dtype if self.gram.fits_float32 else np.float64
        self.on_host = not self.gram.on_device and self.dtype is np.float32
        self.store = RowStore(self.gram.n, 0, np.float32)
        if self.on_host:
            host = self.gram.host
            points = host.float32_points()
            self.points = points.gathered() if host.float32_bytes else points
            if not points.is_cheap:
                room = _KEPT * self.gram.memory // (4 * self.gram.n)
                self.store = host.float32_rows(int(min(room, self.gram.n)))
        self._rooms: list[np.ndarray] = [np.empty(0, dtype=self.dtype) for _ in range(3)]

    def room(self, which: int, size: int) -> np.ndarray:
        """So many numbers of any value, until the next call: new memory is slow to touch."""
        if len(self._rooms[which]) < size:
            self._rooms[which] = np.empty(size + size // 4, dtype=self.dtype)
        return self._rooms[which][:size]

    def square(self, rows: np.ndarray) -> np.ndarray:
        """Values among some rows, without the bias; they last until the next call."""
        if self.on_host:
            K = self.room(0, len(rows) ** 2).reshape(len(rows), len(rows))
            cpu.kernel_square(self.gram.program, self.points, rows, K, self.workers)
            cpu.finite(K[:1], self.gram.kernel)
            return K
        return self.gram.block(rows, rows).astype(self.dtype, copy=False)

    def add(
        self, rows: np.ndarray, change: np.ndarray, values: np.ndarray, where: np.ndarray
    ) -> float:
        """Add what a change of some rows does to the values on others; returns the error's size.

        ``where`` marks these others. Values elsewhere may change to anything.
        """
        store, used, program = self.store, self.store.used, self.gram.program
        new = store.missing(rows)[: store.capacity - used]
        if len(new):
            slots = np.arange(used, used + len(new))
            store.place(new, slots)
            cpu.kernel_rows(program, self.points, new, self.points, store.data, self.workers, slots)
        kept = store.slot[rows] >= 0
        if kept.any():
            weights = np.zeros((change.shape[1], store.used), dtype=np.float32)
            weights[:, store.slot[rows[kept]]] = change[kept].T

            def add(span: tuple[int, int]) -> None:
                values[slice(*span)] += (weights @ store.data[: store.used, slice(*span)]).T

            self.workers.map(add, cpu.spans(self.gram.n, self.workers.count))
        if not kept.all() and where.any():
            rest, others = rows[~kept], np.flatnonzero(where)
            if self.on_host:
                sums = np.zeros((change.shape[1], len(others)))
                right = self.points.take(others).gathered()
                given = program, self.points, rest, change[~kept].T, right, sums
                cpu.accumulate(*given, self.workers)
                values[others] += sums.T
            else:
                weights = np.zeros_like(values)
                weights[rest] = change[~kept]
                values[others] += self.gram.matmat(weights, others, self.workers)
        if self.bias:
            values += change.sum(axis=0)
        size = float(np.abs(self.gram.diagonal).max()) if self.dtype is np.float32 else 0.0
        return cpu.DEVIATION32 * size * float(np.linalg.norm(change))


class _Part:
    """The problem on the rows of a set: their block of the matrix and what the bias adds to it,
    variables (q, classes) and values (classes, q).
    """

    def __init__(
        self,
        problem: DirectProblem,
        kernel: _KernelValues,
        rows: np.ndarray,
        b: np.ndarray,
        values: np.ndarray,
    ) -> None:
        self.problem = replace(
            problem, y=problem.y[rows], cost=problem.cost[rows], start=None, matrix=None
        )
        self.K, self.room = kernel.square(rows), kernel.room
        self.bias = self.K.dtype.type(problem.bias)
        self.b, self.values = b[rows], np.ascontiguousarray(values[rows].T)

    def choose(self) -> tuple[np.ndarray, float]:
        """Mark the pairs to solve for, (q, classes); returns them and the violation of all."""
        own, marked = self.problem, np.empty(self.b.shape, dtype=bool)
        given = self.values, self.b, own.y, own.cost, own.most
        found = pairs_in_play(*given, _NEARBY, _JOINING, marked)
        while (marked.sum(axis=0) ** 2).sum() > _SQUARES * self.K.size:
            rows = np.flatnonzero(marked.any(axis=1))
            rows = rows[np.argsort(-found[rows], kind="stable")]
            marked[rows[(len(rows) + 1) // 2 :]] = False  # the others wait
        return marked, float(found.max(initial=0.0))

    def take(self, marked: np.ndarray, new: np.ndarray) -> None:
        """Set the pairs to what was found for them, and bring the values of all up to date."""
        b = self.b.copy()
        b.T[marked.T] = new
        moved = np.zeros(self.values.shape, dtype=self.K.dtype)
        add_changes(self.K, self.bias, b - self.b, moved)
        self.b = b
        self.values += moved


class _InPlay:
    """The problem on some pairs of row and class, the others fixed; one array over all of them."""

    def __init__(self, part: _Part, marked: np.ndarray) -> None:
        self.part, own = part, part.problem
        label, self.row = np.nonzero(marked.T)
        ends = np.cumsum([0, *marked.sum(axis=0)])
        starts = np.cumsum([0, *np.diff(ends) ** 2])
        self.squares = part.room(1, starts[-1])
        squares_of(part.K, part.bias, self.row, ends, starts, self.squares)
        rows = np.flatnonzero(marked.any(axis=1))
        entry = np.argsort(self.row, kind="stable")
        first = np.cumsum([0, *marked[rows].sum(axis=1)])
        is_own = own.y[self.row] == label
        mine = np.flatnonzero(is_own[entry]) - first[:-1]
        diagonal = np.diagonal(part.K)[rows].astype(np.float64)
        curvature = np.maximum(diagonal + part.bias, 1e-12)
        cost, most = own.cost[rows], own.most[rows]
        self.pairs = Pairs(ends, starts, label, entry, first, mine, cost, most, curvature)
        self.b, self.values = part.b.T[marked.T], part.values[marked.T]
        self.linear = 1.0 - is_own
        self.low = np.where(is_own, 0.0, -own.cost[self.row])
        self.high = np.where(is_own, own.most[self.row], 0.0)
        self.moved = np.empty(len(self.b), dtype=part.K.dtype)

    def solve(self, tol: float, watch: Watch) -> int:
        """Rows in turn and gradients in turns; returns the number of rows' steps."""
        total = 0
        for _ in range(_ROUNDS):
            given = self.squares, self.pairs, self.values, self.moved, self.b
            steps, violation = pair_steps(*given, 0.5 * tol, _PASSES)
            total += steps
            if violation <= tol or watch.stopped() is not None:
                break
            self.follow_gradients(0.3 * tol)
        return total

    def follow_gradients(self, tol: float) -> None:
        """Minimise on the face, and take the nearest feasible point if it is better."""
        free = (self.b > self.low) & (self.b < self.high)
        free &= np.bincount(self.row, weights=free)[self.row] > 1
        chosen = np.flatnonzero(free)
        if not len(chosen):
            return
        face = _Face(self, chosen)
        face.minimise(tol)
        gradient = self.values + self.linear
        for step in (*(0.5**k for k in range(_HALVINGS)), face.inside):
            new = self.b.copy()
            new[chosen] += step * face.move
            project_pairs(self.squares, self.pairs, self.b, new, self.moved)
            change = new - self.b
            if change @ gradient + 0.5 * float(change @ self.moved) < 0.0:
                self.b = new
                self.values += self.moved
                return


class _Face:
    """Variables off their walls, class by class, moving with their rows' sums fixed.

    ``low`` and ``high`` are how far each may move.
    """

    def __init__(self, play: _InPlay, chosen: np.ndarray) -> None:
        self.row = play.row[chosen]
        self.ends = np.searchsorted(chosen, play.pairs.ends)
        sizes = np.diff(self.ends)
        self.starts = np.cumsum([0, *(sizes * (sizes + 1) // 2)])
        self.triangles = play.part.room(2, self.starts[-1])
        given = chosen, self.ends, self.starts
        triangles_of(play.squares, play.pairs, *given, self.triangles)
        counts = np.bincount(self.row)
        self.share, self.n_rows = 1.0 / np.maximum(counts, 1), np.count_nonzero(counts)
        self.gradient = (play.values + play.linear)[chosen]
        self.low, self.high = ((each - play.b)[chosen] for each in (play.low, play.high))
        self.move = np.zeros(len(chosen))

    @property
    def inside(self) -> float:
        """The part of the move up to the first wall."""
        wall = np.where(self.move < 0.0, self.low, self.high)
        moving = self.move != 0.0
        return min(1.0, float((wall[moving] / self.move[moving]).min(initial=1.0)))

    def minimise(self, tol: float) -> None:
        """Conjugate gradients until enough of the residual is gone, or too many have left."""
        sums = np.empty(len(self.share))
        residual = -self.gradient
        level(residual, self.row, self.share, sums)
        goal = max(tol, _ENOUGH * float(np.abs(residual).max(initial=0.0)))
        direction, room = residual.copy(), int(_LEFT * self.n_rows)
        narrow, out = np.empty((2, len(residual)), dtype=self.triangles.dtype)
        for _ in range(_GRADIENTS):
            narrow[:], out[:] = direction, 0.0
            triangle_products(self.triangles, self.ends, self.starts, narrow, out)
            state = out.astype(np.float64), residual, direction, self.move, self.low, self.high
            if not gradient_step(*state, self.row, self.share, sums, goal, room):
                return


# -- certificates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DirectEvaluation:
    """A solution looked at again in float64: variables, values on the rows, and certificate."""

    problem: DirectProblem
    b: np.ndarray
    values: np.ndarray
    n_iter: int
    certificate: DualCertificate


@on_one_blas_thread
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
    problem.gram.forget()
    return evaluation


def _evaluate(
    problem: DirectProblem, solution: DirectSolution, steps: int, watch: Watch
) -> DirectEvaluation:
    gram, b = problem.gram, solution.b
    values = problem.values(b, gram.matmat(b, workers=watch.workers))
    sums = DirectSums.of(problem, b, values, gram.diagonal)
    # a sum of m products is off by at most m roundings of half eps, in whatever order it is made
    roundings = gram.rounding + 0.5 * np.count_nonzero(b.any(axis=1)) + 2.0
    certificate = certified(sums, roundings, solution.status, watch.tol, gram.spectrum)
    return DirectEvaluation(problem, b, values, steps, certificate)

"""A batch of small problems, solved and accounted for together in compiled code.

For problems of fewer than 1,000 variables the interpreter, not arithmetic, is what takes time.
:mod:`maxmargin.backends.cpu.small` takes many of them at once; here they are laid side by side, the
kernel values among their rows are made, and threads share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu import small as cpu_small
from maxmargin.backends.cpu.certificate import Account, Readings
from maxmargin.backends.cpu.small import Answers, Batch, Values
from maxmargin.backends.cpu.steps import CONVERGED, PAUSED, Variables
from maxmargin.backends.threads import ALONE, StoppedError, Workers
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import HostGram
from maxmargin.progress import Monitor, Progress
from maxmargin.solution import Solution, Status
from maxmargin.solvers.dual.method import DualRun

_WHOLE = 2048  # rows up to which the whole matrix is made for problems on parts of it,
_WORTH = 0.25  # if they are over so much of it between them
_CHEAP, _FEATURES = 24, 512  # up to which rows are rather made again than shared, and at all
_SLICE = 30_000_000  # entries of a compiled call: some hundredths of a second
_APART = 200_000  # entries of blocks from which threads gain more than they cost
_SHARES = 8  # for each thread, so that none waits long for another


class Task(NamedTuple):
    """A problem over its own rows of a Gram matrix, and what is asked of a solver.

    ``number`` is the problem's in the fit, ``begin`` the feasible point to begin at, ``tol`` the
    KKT violation to reach and ``allowed`` the steps that this may take, negative for any number.
    """

    problem: DualProblem
    rows: np.ndarray
    number: int
    begin: np.ndarray
    tol: float
    allowed: int


class Answer(NamedTuple):
    """The solution of one problem, and what its evaluation is made of."""

    solution: Solution
    coef: np.ndarray
    decision: np.ndarray
    account: Account


@dataclass(frozen=True)
class SmallBatch:
    """Solver of many small problems at a time, each solved and accounted for.

    Parameters
    ----------
    monitor : Monitor
        Is told of the progress, and asked when to stop.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.dual.small import SmallBatch, Task
    >>> gram = Gram.of(np.array([[-1.0], [1.0], [2.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> task = Task(problem, np.array([0, 2]), 0, problem.start, tol=1e-3, allowed=-1)
    >>> (answer,) = SmallBatch().solve(gram, [task])
    >>> answer.solution.beta.round(6), round(answer.account.bias, 6)
    (array([-0.222222,  0.222222]), -0.333333)
    """

    monitor: Monitor = field(default_factory=Monitor)

    @staticmethod
    def takes(gram: HostGram, problem: DualProblem, threads: int) -> bool:
        """Whether a problem is for this solver: small, soft, with a constraint, and has room.

        A kernel that calls Python functions is asked for as few rows as possible by others.
        """
        size = len(problem)
        room = 16 * threads * size * size <= gram.memory
        soft = not problem.hard and problem.n_groups > 0
        return size < cpu_small.LARGEST and room and soft and not gram.program.calls_python

    def solve(
        self, gram: HostGram, tasks: Sequence[Task], workers: Workers = ALONE
    ) -> list[Answer | None]:
        """Solve problems that are alike in their groups and readings.

        Returns an answer for each, None for one that was not begun before a stop.
        """
        batch, found = _side_by_side(gram, tasks)
        entries = np.diff(batch.row_offset) ** 2
        apart = Workers(workers.count if entries.sum() >= _APART else 1, self.monitor.stopped)
        looked_at, rounding = np.zeros(len(tasks), dtype=bool), gram.rounding

        def solve(span: tuple[int, int]) -> None:
            k, last = span
            size = int(np.diff(batch.offset[k : last + 1]).max())
            block_size = 0 if shared is not None else int(entries[k:last].max())
            with _lent(size**2) as room, _lent(block_size) as block:
                while k < last:
                    first, end, values = k, last, shared
                    if values is None:
                        end, values = k + 1, _matrix(_block(gram, tasks[k].rows, block))
                    k = cpu_small.solve_some(
                        values, batch, found, first, end, _SLICE, rounding, room.reshape(size, size)
                    )
                    looked_at[first:k] = True
                    self.monitor.finished(k - first)
                    if self.monitor.due():
                        self._report(tasks[k - 1], batch, found, k - 1)
                    if self.monitor.stopped():
                        return

        try:
            shared = _shared(gram, len(tasks), int(entries.sum()), apart)
            if shared is None:
                within = np.concatenate([np.arange(len(task.rows)) for task in tasks])
                batch = batch._replace(row=within, column=within)
            elif len(shared.matrix):
                batch = batch._replace(row=gram.store.slot[batch.row])
            apart.map(solve, _shares(entries, apart.count))
        except StoppedError:
            pass  # what was not looked at has no answer
        return [
            _answer(task, batch, found, k) if seen else None
            for k, (task, seen) in enumerate(zip(tasks, looked_at.tolist(), strict=True))
        ]

    def _report(self, task: Task, batch: Batch, found: Answers, k: int) -> None:
        answer = _answer(task, batch, found, k)
        account = answer.account
        self.monitor.report(
            lambda: Progress(
                task.number,
                "SmallBatch",
                answer.solution.n_iter,
                account.violation,
                task.tol,
                account.primal,
                account.dual,
                account.gap,
                answer.solution.beta.copy(),
                words=DualRun.words,
            )
        )


def _side_by_side(gram: HostGram, tasks: Sequence[Task]) -> tuple[Batch, Answers]:
    """Lay problems out for compiled code, with room for their answers."""
    problems, count = [task.problem for task in tasks], len(tasks)
    laid = DualBatch.of(problems)
    rows = np.concatenate([task.rows for task in tasks])
    batch = Batch(
        laid.offset,
        Variables(**{name: laid.arrays[name] for name in Variables._fields}),
        laid.arrays["start"],
        problems[0].n_groups,
        Readings(*(np.array([getattr(p, name) for p in problems]) for name in Readings._fields)),
        np.concatenate([[0], np.cumsum([len(task.rows) for task in tasks])]),
        rows,
        rows,
        gram.diagonal[rows],
        np.array([task.tol for task in tasks]),
        np.array([task.allowed if task.allowed >= 0 else 1 << 62 for task in tasks]),
    )
    on_rows = np.zeros((2, len(rows)))
    found = Answers(
        np.concatenate([task.begin for task in tasks]),
        on_rows[0],
        on_rows[1],
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.empty((count, len(Account._fields))),
    )
    return batch, found


def _answer(task: Task, batch: Batch, found: Answers, k: int) -> Answer:
    """Take the answer to one problem out."""
    own = slice(batch.offset[k], batch.offset[k + 1])
    on = slice(batch.row_offset[k], batch.row_offset[k + 1])
    code, steps = int(found.code[k]), int(found.steps[k])
    status = Status.CONVERGED if code == CONVERGED else Status.STALLED
    if code == PAUSED and 0 <= task.allowed <= steps:
        status = Status.MAX_ITER
    solution = Solution(found.beta[own], steps, status)
    account = Account(*found.account[k].tolist())
    return Answer(solution, found.coef[on], found.decision[on], account)


def _shared(gram: HostGram, problems: int, entries: int, workers: Workers) -> Values | None:
    """Values that serve so many problems of so many entries together, if there are such.

    Rows of the Gaussian kernel are made as they are needed, unless problems that share them are
    better served by the whole matrix.
    """
    rate, points = gram.program.gaussian_rate, gram.points.primitives
    there = gram.resident and gram.is_there
    shared = problems > 1 and gram.n <= _WHOLE and entries >= _WORTH * gram.n**2
    whole = there or (gram.resident and shared)
    dense = not there and isinstance(points[0], cpu.DenseVectors) if points else False
    if rate is not None and dense and points[0].width <= (_CHEAP if whole else _FEATURES):
        X = points[0].raw(slice(None)).astype(np.float64, copy=False)
        return Values(_read_only(np.empty((0, 0))), _read_only(X), rate)
    return _matrix(gram.filled(workers).data) if whole else None


def _matrix(values: np.ndarray) -> Values:
    return Values(_read_only(values), _read_only(np.empty((0, 0))), 0.0)


def _lent(count: int) -> AbstractContextManager[np.ndarray]:
    return cpu.rooms.lent(count, np.float64)


def _block(gram: HostGram, rows: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Kernel values among some rows, in the room that is given."""
    values = room[: len(rows) ** 2].reshape(len(rows), len(rows))
    everything = len(rows) == gram.n
    cpu.kernel_square(gram.program, gram.points, None if everything else rows, values)
    return values if gram.is_tame else cpu.finite(values, gram.kernel)


def _read_only(array: np.ndarray) -> np.ndarray:
    """View of an array that is only read: a user's may be so, and code is compiled for one kind."""
    view = array.view()
    view.flags.writeable = False
    return view


def _shares(entries: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Cut the problems into stretches of about the same work."""
    if threads == 1:
        return [(0, len(entries))]
    done = np.cumsum(entries)
    marks = np.arange(1, _SHARES * threads + 1) * done[-1] // (_SHARES * threads)
    ends = np.unique((np.searchsorted(done, marks) + 1).clip(max=len(entries))).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))

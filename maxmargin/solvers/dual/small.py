"""A batch of small problems, solved and accounted for together in compiled code.

For problems of fewer than 1,000 variables the interpreter, not arithmetic, is what takes time.
:mod:`maxmargin.backends.cpu.dual.small` takes many of them at once; here they are laid side by
side, the kernel values among their rows are made, and threads share them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import numpy as np

from maxmargin.backends import cpu
from maxmargin.backends.cpu.dual import small as cpu_small
from maxmargin.backends.cpu.dual.certificate import Account, Readings
from maxmargin.backends.cpu.dual.kkt import Variables
from maxmargin.backends.cpu.dual.small import Answers, Batch, Values
from maxmargin.backends.cpu.dual.steps import CONVERGED, PAUSED
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.duals.problem import offsets
from maxmargin.gram import HostGram
from maxmargin.solution import Solution, Status
from maxmargin.solvers.driver import Measure, Watch
from maxmargin.solvers.dual.method import BatchMethod, DualRun
from maxmargin.solvers.dual.near_level import Pace

_WHOLE = 2048  # rows up to which the whole matrix is made for problems on parts of it,
_WORTH = 0.25  # if they are over so much of it between them
_CHEAP, _FEATURES = 24, 512  # up to which rows are rather made again than shared, and at all
_SLICE = 30_000_000  # entries of a compiled call: some hundredths of a second
_APART = 200_000  # entries of blocks from which threads gain more than they cost
_SHARES = 8  # for each thread, so that none waits long for another


@dataclass(frozen=True)
class SmallBatch(BatchMethod):
    """Steps of two and Newton steps on many small problems at a time, each accounted for.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.dual.small import SmallBatch
    >>> gram = Gram.of(np.array([[-1.0], [1.0], [2.0]]), Linear())
    >>> problem = duals.c_svc(np.array([0, 2]), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> solution = SmallBatch().solve(problem.over(gram))
    >>> solution.beta.round(6), round(solution.account.bias, 6)
    (array([-0.222222,  0.222222]), -0.333333)
    """

    def accepts(self, problem: DualProblem) -> str | None:
        """Take what is small, soft, and has a constraint and room.

        A kernel that calls Python functions is asked for as few rows as possible by others.
        """
        size = len(problem)
        if size >= cpu_small.LARGEST:
            return f"A batch is for problems of fewer than {cpu_small.LARGEST} variables."
        if problem.hard or not problem.n_groups:
            return "A batch has neither the hard margin nor problems without a constraint."
        gram = problem.gram
        if gram.on_device or gram.program.calls_python or 16 * size * size > gram.memory:
            return "A batch wants kernel values made on the host, and room for them."
        return None

    def begin(self, problem: DualProblem, watch: Watch, pace: Pace | None = None) -> DualRun:
        """Begin with one problem, as with several."""
        return SmallBatchRun(problem, watch)

    def solve_all(
        self, problems: Sequence[DualProblem], watches: Sequence[Watch]
    ) -> list[Solution]:
        """Solve every problem from its start, together with those that are alike."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for k, problem in enumerate(problems):
            shape = problem.n_groups, *(weights.size for weights in problem.readings)
            alike.setdefault(shape, []).append(k)
        solutions: dict[int, Solution] = {}
        for part in alike.values():
            some = _solve_alike([problems[k] for k in part], [watches[k] for k in part])
            solutions.update(zip(part, some, strict=True))
        return [solutions[k] for k in range(len(problems))]


class SmallBatchRun(DualRun):
    """A batch of one at work: all is done in a single step."""

    answer: Solution | None = None

    def __init__(self, problem: DualProblem, watch: Watch, answer: Solution | None = None) -> None:
        super().__init__(problem, watch)
        if answer is not None:
            self._take(answer)

    def _take(self, answer: Solution) -> None:
        self.answer, self.beta = answer, answer.beta
        self.n_iter, self.status = answer.n_iter, answer.status

    def steps(self) -> Generator[None, None, None]:
        """Solve, and account for it."""
        (answer,) = _solve_alike([self.problem], [self.watch])
        self._take(answer)
        yield

    def measure(self) -> Measure:
        """What the account says."""
        account = None if self.answer is None else self.answer.account
        if account is None:
            return Measure(np.inf)
        return Measure(account.violation, account.primal, account.dual, account.gap)

    def solution(self, status: Status) -> Solution:
        """Return the answer, or the start where there is none."""
        return Solution(self.beta, 0, status) if self.answer is None else self.answer


def _solve_alike(problems: list[DualProblem], watches: list[Watch]) -> list[Solution]:
    """Solve problems with the same number of groups and readings, over one Gram matrix."""
    gram, monitor = problems[0].gram.host, watches[0].monitor.fit
    batch, found = _side_by_side(gram, problems, watches)
    sizes = batch.row_offset[1:] - batch.row_offset[:-1]
    entries = sizes**2
    total = int(entries.sum())
    room = gram.memory // (16 * int(sizes.max()) ** 2)
    threads = min(watches[0].workers.count, max(room, 1)) if total >= _APART else 1
    apart = Workers(threads, monitor.stopped)
    looked_at, rounding = np.zeros(len(problems), dtype=bool), gram.rounding

    def solve(span: tuple[int, int]) -> None:
        k, last = span
        size = int((batch.offset[k + 1 : last + 1] - batch.offset[k:last]).max())
        block_size = 0 if shared is not None else int(entries[k:last].max())
        with _lent(size**2) as room, _lent(block_size) as block:
            while k < last:
                first, end, values = k, last, shared
                if values is None:
                    end, values = k + 1, _matrix(_block(gram, problems[k].rows, block))
                k = cpu_small.solve_some(
                    values, batch, found, first, end, _SLICE, rounding, room.reshape(size, size)
                )
                looked_at[first:k] = True
                monitor.finished(k - first)
                if monitor.due():
                    answer = _solution(watches[k - 1], batch, found, k - 1)
                    run = SmallBatchRun(problems[k - 1], watches[k - 1], answer)
                    monitor.report(partial(run.progress, watches[k - 1]))
                if monitor.stopped():
                    return

    try:
        shared = _shared(gram, len(problems), total, apart)
        if shared is None:
            within = np.concatenate([np.arange(size) for size in sizes])
            batch = batch._replace(row=within, column=within)
        elif len(shared.matrix):
            batch = batch._replace(row=gram.store.slot[batch.row])
        apart.map(solve, _shares(entries, apart.count))
    except StoppedError:
        pass  # what was not looked at has no answer
    why = monitor.stopped() or Status.INTERRUPTED
    return [
        _solution(watch, batch, found, k) if seen else Solution(problem.start, 0, why)
        for k, (problem, watch, seen) in enumerate(
            zip(problems, watches, looked_at.tolist(), strict=True)
        )
    ]


def _side_by_side(
    gram: HostGram, problems: Sequence[DualProblem], watches: Sequence[Watch]
) -> tuple[Batch, Answers]:
    """Lay problems out for compiled code, with room for their answers."""
    laid, count = DualBatch.of(problems), len(problems)
    rows_of = [problem.rows for problem in problems]
    rows = np.concatenate(rows_of)
    arrays = laid.arrays | {"gram_row": np.concatenate([p.own_row for p in problems])}
    batch = Batch(
        laid.offset,
        Variables(*(arrays[name] for name in Variables._fields)),
        arrays["start"],
        problems[0].n_groups,
        Readings(*map(np.array, zip(*(problem.readings for problem in problems), strict=True))),
        offsets([len(some) for some in rows_of]),
        rows,
        rows,
        gram.diagonal[rows],
        np.array([watch.tol for watch in watches]),
        np.array([watch.left(0) for watch in watches]),
    )
    on_rows = np.zeros((2, len(rows)))
    found = Answers(
        arrays["start"].copy(),
        on_rows[0],
        on_rows[1],
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.empty((count, len(Account._fields))),
    )
    return batch, found


def _solution(watch: Watch, batch: Batch, found: Answers, k: int) -> Solution:
    """Take the answer to one problem out."""
    own = slice(batch.offset[k], batch.offset[k + 1])
    on = slice(batch.row_offset[k], batch.row_offset[k + 1])
    code, steps = int(found.code[k]), int(found.steps[k])
    status = Status.CONVERGED if code == CONVERGED else Status.STALLED
    if code == PAUSED and watch.left(0) <= steps:
        status = Status.MAX_ITER
    account = Account(*found.account[k].tolist())
    return Solution(found.beta[own], steps, status, found.decision[on], account=account)


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

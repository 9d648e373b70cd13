"""A batch of small problems, solved and accounted for together in compiled code.

For problems of fewer than 1,000 variables the interpreter, not arithmetic, is what takes time.
:mod:`maxmargin.backends.cpu_small` takes many of them at once; here they are laid side by side, the
kernel values among their rows are made, and threads share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from maxmargin.backends import cpu, cpu_small
from maxmargin.backends.cpu_certificate import Account, Readings
from maxmargin.backends.cpu_small import Answers, Batch
from maxmargin.backends.cpu_steps import CONVERGED, STUCK, Variables
from maxmargin.backends.threads import ALONE, StoppedError, Workers
from maxmargin.duals import DualBatch, DualProblem
from maxmargin.gram import Gram
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Solution, Status

_WHOLE = 2048  # rows up to which the whole matrix is made for problems on parts of it,
_WORTH = 0.25  # if they are over so much of it between them
_SLICE = 30_000_000  # entries of a compiled call: some hundredths of a second
_APART = 200_000  # entries of blocks from which threads gain more than they cost
_SHARES = 8  # for each thread, so that none waits long for another


class Answer(NamedTuple):
    """The solution of one problem, and what its evaluation is made of."""

    solution: Solution
    beta: np.ndarray
    decision: np.ndarray
    account: Account


@dataclass(frozen=True)
class SmallBatch:
    """Solver of many small problems at a time, each solved and accounted for.

    Parameters
    ----------
    max_iter : int, default=-1
        Steps of two allowed for each problem; -1 for no limit.
    monitor : Monitor
        Is told of the progress, and asked when to stop.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.small import SmallBatch
    >>> gram = Gram.of(np.array([[-1.0], [1.0], [2.0]]), Linear())
    >>> problem = duals.c_svc(np.arange(2), np.array([-1.0, 1.0]), C=np.full(2, 10.0))
    >>> rows = np.array([0, 2])
    >>> (answer,) = SmallBatch().solve(gram, [problem], [rows], [0], tol=1e-3)
    >>> answer.solution.alpha.round(6), round(answer.account.bias, 6)
    (array([0.222222, 0.222222]), -0.333333)
    """

    max_iter: int = -1
    monitor: Monitor = field(default_factory=Monitor)

    @staticmethod
    def takes(gram: Gram, problem: DualProblem, threads: int) -> bool:
        """Whether a problem is for this solver: small, with a soft margin, and room for its rows.

        A kernel that calls Python functions is asked for as few rows as possible by others.
        """
        size = len(problem.sign)
        room = 16 * threads * size * size <= gram.memory
        return (
            size < cpu_small.LARGEST and room and not problem.hard and not gram.program.calls_python
        )

    def solve(
        self,
        gram: Gram,
        problems: Sequence[DualProblem],
        rows: Sequence[np.ndarray],
        numbers: Sequence[int],
        tol: float,
        workers: Workers = ALONE,
    ) -> list[Answer | None]:
        """Solve problems from their starts, each over its own rows of the Gram matrix.

        Parameters
        ----------
        gram : Gram
        problems : sequence of DualProblem
            Over their own rows, and alike in their groups and readings.
        rows : sequence of int arrays
            The rows of the matrix that these are.
        numbers : sequence of int
            The problems' numbers in the fit, for reports.
        tol : float
            KKT violation to reach.
        workers : Workers

        Returns
        -------
        answers : list of Answer, None for a problem that was not begun before a stop
        """
        batch, found = _side_by_side(problems, rows)
        entries = np.diff(batch.row_offset) ** 2
        apart = Workers(workers.count if entries.sum() >= _APART else 1, self.monitor.stopped)
        looked_at = np.zeros(len(problems), dtype=bool)
        rounding = gram.rounding
        limit = self.max_iter if self.max_iter >= 0 else 1 << 62

        def solve(span: tuple[int, int]) -> None:
            k, last = span
            size = int(np.diff(batch.offset[k : last + 1]).max())
            block_size = 0 if matrix is not None else int(entries[k:last].max())
            with _lent(size**2) as room, _lent(block_size) as block:
                while k < last:
                    first, end, K = k, last, matrix
                    if K is None:
                        end, K = k + 1, _block(gram, rows[k], block)
                    k = cpu_small.solve_some(
                        K,
                        batch,
                        found,
                        first,
                        end,
                        tol,
                        limit,
                        _SLICE,
                        rounding,
                        room.reshape(size, size),
                    )
                    looked_at[first:k] = True
                    self.monitor.finished(k - first)
                    if self.monitor.due():
                        self._report(batch, found, k - 1, numbers[k - 1], tol)
                    if self.monitor.stopped():
                        return

        try:
            matrix = None
            if _whole_pays(gram, len(problems), int(entries.sum())):
                store = gram.filled(apart)
                matrix, taken = _read_only(store.data), batch.rows
                batch = batch._replace(rows=store.slot[taken], columns=taken)
            else:
                within = [np.arange(len(own)) for own in rows]
                batch = batch._replace(rows=np.concatenate(within), columns=np.concatenate(within))
            apart.map(solve, _shares(entries, apart.count))
        except StoppedError:
            pass  # what was not looked at has no answer
        return self._answers(problems, batch, found, looked_at)

    def _report(self, batch: Batch, found: Answers, k: int, number: int, tol: float) -> None:
        alpha = found.alpha[batch.offset[k] : batch.offset[k + 1]].copy()
        account = Account(*found.account[k].tolist())
        monitor = ProblemMonitor(self.monitor, number)
        monitor.report(int(found.steps[k]), account.violation, tol, account.gap, alpha)

    def _answers(
        self, problems: Sequence[DualProblem], batch: Batch, found: Answers, looked_at: np.ndarray
    ) -> list[Answer | None]:
        """Take the answers apart again."""
        offset, row_offset = batch.offset.tolist(), batch.row_offset.tolist()
        code, steps, account = found.code.tolist(), found.steps.tolist(), found.account.tolist()
        answers: list[Answer | None] = []
        for k, seen in enumerate(looked_at.tolist()):
            if not seen:
                answers.append(None)
                continue
            own, on = slice(*offset[k : k + 2]), slice(*row_offset[k : k + 2])
            status = Status.CONVERGED if code[k] == CONVERGED else Status.STALLED
            if code[k] not in (CONVERGED, STUCK) and 0 <= self.max_iter <= steps[k]:
                status = Status.MAX_ITER
            solution = Solution(found.alpha[own], steps[k], status)
            answers.append(
                Answer(solution, found.beta[on], found.decision[on], Account(*account[k]))
            )
        return answers


def _side_by_side(
    problems: Sequence[DualProblem], rows: Sequence[np.ndarray]
) -> tuple[Batch, Answers]:
    """Lay problems out for compiled code, with room for their answers."""
    laid, count = DualBatch.of(problems), len(problems)
    row_offset = np.concatenate([[0], np.cumsum([len(own) for own in rows])])
    taken = np.concatenate(rows)
    batch = Batch(
        laid.offset,
        Variables(**{name: laid.arrays[name] for name in Variables._fields}),
        laid.arrays["start"],
        problems[0].n_groups,
        Readings(*(np.array([getattr(p, name) for p in problems]) for name in Readings._fields)),
        row_offset,
        taken,
        taken,
    )
    on_rows = np.zeros((2, len(taken)))
    found = Answers(
        batch.start.copy(),
        on_rows[0],
        on_rows[1],
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.empty((count, len(Account._fields))),
    )
    return batch, found


def _whole_pays(gram: Gram, problems: int, entries: int) -> bool:
    """Whether problems of so many entries are better served by the whole matrix."""
    if not gram.resident:
        return False
    several = problems > 1 and entries >= _WORTH * gram.n**2
    return gram.is_there or (gram.n <= _WHOLE and several)


def _lent(count: int) -> AbstractContextManager[np.ndarray]:
    return cpu.rooms.lent(count, np.float64)


def _block(gram: Gram, rows: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Kernel values among some rows, in the room that is given."""
    values = room[: len(rows) ** 2].reshape(len(rows), len(rows))
    everything = len(rows) == gram.n
    cpu.kernel_square(gram.program, gram.points, None if everything else rows, values)
    return _read_only(values if gram.is_tame else cpu.finite(values, gram.kernel))


def _read_only(matrix: np.ndarray) -> np.ndarray:
    """View of a matrix that is only read: a user's may be so, and code is compiled for one kind."""
    view = matrix.view()
    view.flags.writeable = False
    return view


def _shares(entries: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Cut the problems into stretches of about the same work."""
    if threads == 1:
        return [(0, len(entries))]
    done = np.cumsum(entries)
    marks = np.arange(1, _SHARES * threads + 1) * done[-1] // (_SHARES * threads)
    ends = np.unique(np.searchsorted(done, marks) + 1).clip(max=len(entries)).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))

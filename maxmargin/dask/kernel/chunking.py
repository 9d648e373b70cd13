"""The lecture's chunking as a distributed algorithm: candidates in one place, tests in all.

    every partition solves its own problem, and sends its support vectors
    repeat
        one worker solves the problems of all candidates
        every partition tests its rows against the KKT conditions of that answer
        those that violate them most become candidates
    until nobody violates by more than tol

Of few rows all are candidates from the beginning.

A partition's own problem is that of all rows as it can know it: its costs are as many times as
large as all rows weigh more than its own. Values on candidates come from who solved for them, in
float64; on all others from the kernel expansion, in float64, and in later rounds from what has
changed in it. So the last test is the certificate of the whole problem.

References: Vapnik, Estimation of dependences based on empirical data, 1982 (chunking); Graf et al.,
Parallel support vector machines: the cascade SVM, NIPS 17, 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask.delayed import Delayed

from maxmargin import memory
from maxmargin.backends.threads import StoppedError
from maxmargin.certificate import DualCertificate
from maxmargin.dask.kernel import parts
from maxmargin.dask.kernel.candidates import Candidates
from maxmargin.dask.kernel.forms import Form
from maxmargin.dask.kernel.saved import SavedFit
from maxmargin.dask.monitors import Caller
from maxmargin.dask.rows import Partitions
from maxmargin.progress import Monitor, Progress
from maxmargin.solution import Status

_LOOSE = 100.0  # times tol, that a partition's own problem is solved to,
_LOOSEST = 0.1  # but at most, in the units of a margin
_INNER = 0.8  # of tol, that candidates are solved to: the others need some room, too
_FINEST = 1e-3  # of tol, that they are solved to where a margin is to be known better than that
_REACH = 0.03  # of the violation, by which rows may be right and still become candidates
_FEW = 1 << 13  # rows that are candidates from the beginning: more solves would take longer
_MOST = 4096  # rows that become candidates in a round, or as many as there are
_LEAST = 2  # of a partition
_IDLE = 3  # rounds without a new candidate
_COPIES = 3.0  # of the candidates, that a worker has while it solves for them


def _never() -> None:
    """Nobody stops it."""


@dataclass
class Round:
    """An answer that was tested: tasks that have it, and what is known of it."""

    answer: Delayed
    message: Delayed
    tested: list[Delayed]
    summary: parts.Summary
    look: Any


@dataclass
class Outcome:
    """What a fit has come to."""

    support: Candidates
    known: parts.Known
    judged: list[tuple[DualCertificate, Any]]
    summary: parts.Summary
    steps: np.ndarray
    chosen: list[Any]


@dataclass
class Chunking:
    """A fit by chunking over partitions.

    ``known`` are rows to begin with, for each partition, in place of its own problem; ``saved`` is
    the file that holds where it is.
    """

    rows: Partitions
    form: Form
    tol: float
    max_iter: int
    n_jobs: int | None
    monitor: Monitor
    known: list[parts.Known] | None = None
    saved: SavedFit | None = None
    steps: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    chosen: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster = self.rows.cluster
        self.offsets = [int(offset) for offset in self.rows.offsets]
        self.steps = np.zeros(self.form.n_tasks, dtype=np.int64)
        self.shared = self.cluster.share(self.form)
        self.monitor.interval = 0.0  # rounds are few: who listens is told of each

    # -- the loop ------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Solve, test and add candidates until nobody violates, or someone stops it."""
        new = self._first()
        last: Round | None = None
        goal, idle = self.tol, 0
        while True:
            inner = _INNER * max(goal, _FINEST * self.tol) * 0.5**idle
            try:
                last = self._round(new, last, inner)
            except StoppedError:
                if last is None:
                    last = self._round(new, None, inner)
                break
            self._tell(last)
            violation, goals = self._judged(last)
            if (violation <= goals).all() or self._ended(last):
                break
            goal = float(goals[violation > goals].min())
            if self.saved is not None and self.saved.due(self.monitor.seconds):
                self.saved.write(self._known(last))
            try:
                new, count = self._pick(last, goal, float(violation.max()))
            except StoppedError:
                break
            if not count:
                idle += 1
                if idle == _IDLE or Status.STALLED in last.summary.solved.status:
                    break
        return self._outcome(last)

    def _first(self) -> list[Delayed]:
        """Candidates to begin with; where someone stops that, those that are found at once."""
        new = self._begun()
        try:
            self._weigh(new)
        except StoppedError:
            self.cluster.give_up(new)
            new = self._begun()
            self._weigh(new)
        return new

    def _begun(self) -> list[Delayed]:
        """Partitions' own support vectors, or what is known, or all rows."""
        if self.known is not None:
            each = self.offsets, self.known
            new = self.rows.map(parts.known_rows, self.shared, each=each, name="known")
        elif self.rows.n <= _FEW and _COPIES * self.rows.nbytes <= self.cluster.budget():
            new = self.rows.map(parts.all_rows, self.shared, each=(self.offsets,), name="rows")
        else:
            total = sum(s.weight for s in self.rows.summaries)
            shares = [max(s.weight / total, 1e-12) for s in self.rows.summaries]
            order = self._order(min(_LOOSE * self.tol, max(_LOOSEST, self.tol)))
            new = self.rows.map(
                parts.begun, self.shared, order, each=(self.offsets, shares), name="own"
            )
        return self.cluster.keep(new)

    def _order(self, tol: float) -> parts.Order:
        most, steps = self.max_iter, int(self.steps.max(initial=0))
        left = most if most < 0 else max(most - steps, 0)
        limit, stopped = self.monitor.time_limit, self._heeded()
        seconds = None if limit is None else limit - self.monitor.seconds
        if stopped is None:
            seconds = 0.0
        near = self.known is not None
        return parts.Order(tol, left, seconds, self.n_jobs, near, Caller(stopped))

    def _heeded(self) -> Callable[[], Any] | None:
        """Who is asked whether to stop; nobody once it was said, so that it comes to an end."""
        return self.monitor.stopped if self.monitor.stopped() is None else None

    def _round(self, new: list[Delayed], last: Round | None, inner: float) -> Round:
        """Solve for the candidates, and test all rows."""
        cluster, before = self.cluster, None if last is None else last.answer
        stopped = self._heeded()
        answer = cluster.task(
            parts.solved, self.shared, new, before, self._order(inner), name="solve"
        )
        message = cluster.task(parts.message_of, answer, self.shared, name="message")
        summary = cluster.task(parts.summary_of, answer, message, name="summary")
        earlier = [None] * len(self.offsets) if last is None else last.tested
        tests = self.rows.map(
            parts.tested, message, self.shared, each=(self.offsets, earlier), name="test"
        )
        answer, message, summary, *tests = cluster.keep([answer, message, summary, *tests])
        looks = [cluster.task(parts.look_of, test, name="look") for test in tests]
        look = cluster.total(looks, self.form.merged)
        try:
            known, seen = cluster.run([summary, look], stopped or _never)
        except StoppedError:
            cluster.give_up([answer, message, *tests])
            raise
        self.steps = self.steps + np.array(known.solved.steps)
        self.chosen += known.solved.chosen
        cluster.distribution.bytes_between += known.message_bytes * cluster.n_workers
        return Round(answer, message, tests, known, seen)

    def _judged(self, last: Round) -> tuple[np.ndarray, np.ndarray]:
        """Violation that each task has, and may have."""
        return self.form.violation(last.look), self.form.goals(last.look, self.tol)

    def _ended(self, last: Round) -> bool:
        """Whether there is no more to be had: no time, no steps."""
        if self.monitor.stopped() is not None:
            return True
        statuses = last.summary.solved.status
        return any(status.stopped or status is Status.MAX_ITER for status in statuses)

    def _pick(self, last: Round, goal: float, violation: float) -> tuple[list[Delayed], int]:
        """Let partitions choose new candidates; returns them and their number."""
        count = len(self.offsets)
        most = max(_MOST, last.summary.n)
        limit = max(-(-2 * most // count), _LEAST)
        levels = self.form.levels(last.look)
        new = [
            self.cluster.task(
                parts.picked,
                block,
                offset,
                test,
                levels,
                last.message,
                0.5 * goal - _REACH * min(violation, 1e300),
                limit,
                self.shared,
                name="pick",
            )
            for block, offset, test in zip(self.rows.blocks, self.offsets, last.tested, strict=True)
        ]
        new = self.cluster.keep(new)
        return new, self._weigh(new, last)

    def _weigh(self, new: list[Delayed], last: Round | None = None) -> int:
        """Count new candidates, and refuse more of them than a worker has room for."""
        sizes = self.cluster.run(
            [self.cluster.task(parts.size_of, part, name="count") for part in new],
            self._heeded() or _never,
        )
        count, nbytes = (int(sum(column)) for column in zip(*sizes, strict=True))
        self.cluster.distribution.bytes_between += nbytes
        known = 0 if last is None else last.summary.n
        needed = _COPIES * nbytes / max(count, 1) * (count + known)
        room = self.cluster.budget()
        if needed > room:
            raise MemoryError(
                f"{known + count:,} of {self.rows.n:,} rows may become support vectors, which one "
                f"worker solves for: that takes about {memory.megabytes(needed)}, and "
                f"{memory.megabytes(room)} may be taken on each (half of its memory limit, or "
                "maxmargin.memory-per-worker of Dask's configuration). Give workers more memory, "
                "or take the other road, which needs no support vectors: a linear machine on "
                'features of the kernel, SVC(approximation="nystroem") or '
                "Nystroem(n_components=500) before LinearSVC, on the same collections."
            )
        return count

    def _tell(self, last: Round) -> None:
        """Tell who listens how far it is."""
        distribution, violation = self.cluster.distribution, self.form.violation(last.look)
        self.monitor.report(
            lambda: Progress(
                problem=0,
                method="Chunking",
                steps=int(self.steps.sum()),
                violation=float(violation.max()),
                tol=self.tol,
                words=f"KKT violation {{violation:.2g}}, {last.summary.n} candidates, "
                f"{distribution.rounds} rounds",
            )
        )

    # -- the end -------------------------------------------------------------------------------

    def _known(self, last: Round) -> parts.Known:
        """Return the variables of an answer."""
        task = self.cluster.task(parts.known_of, last.answer, self.shared, name="known")
        return self.cluster.run([task])[0]

    def _support(self, last: Round) -> Delayed:
        return self.cluster.task(parts.support_of, last.answer, self.shared, name="support")

    def _outcome(self, last: Round) -> Outcome:
        """Certify the last answer, from sums over all rows, and bring its support vectors here."""
        levels, summary = self.form.levels(last.look), last.summary
        gaps = [
            self.cluster.task(
                parts.gaps_of,
                block,
                test,
                levels,
                summary.accuracy,
                last.message,
                self.shared,
                name="gap",
            )
            for block, test in zip(self.rows.blocks, last.tested, strict=True)
        ]
        total = self.cluster.total(gaps, self.form.added)
        known = self.cluster.task(parts.known_of, last.answer, self.shared, name="known")
        found, support, variables = self.cluster.run([total, self._support(last), known])
        reason = self.monitor.stopped()
        status = [
            Status.CONVERGED
            if own <= goal
            else reason or (Status.STALLED if left is Status.CONVERGED else left)
            for own, goal, left in zip(*self._judged(last), summary.solved.status, strict=True)
        ]
        judged = self.form.judged(last.look, found, status, self.tol, summary.spectrum)
        return Outcome(support, variables, judged, summary, self.steps, self.chosen)

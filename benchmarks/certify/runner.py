"""Many problems in several processes; one that hangs or dies is a verdict, too."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.certify.judge import KILLED, Verdict

_PATIENCE = 10.0  # times as long by the clock, for a process that waits and computes nothing
_COMPILING = 20  # problems of a process, before which code may be compiled that is not yet cached
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Task = tuple[int, str]  # seed and family


def _work(pipe: Connection) -> None:
    """Judge problems until there are no more."""
    from benchmarks.certify.families import problem
    from benchmarks.certify.judge import judge

    while (task := pipe.recv()) is not None:
        seed, family = task
        try:
            verdict = judge(problem(seed, family), seed, family)
        except Exception as error:  # no problem could be made of the seed
            verdict = Verdict(seed, family, "crash", text=f"no problem: {error!r}")
        pipe.send(verdict)


class _Worker:
    """A process, the problem that it is at, and since when."""

    def __init__(self, context: Any) -> None:
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.task: Task | None = None
        self.done = 0

    def give(self, task: Task | None) -> None:
        """Hand over a problem, or the end."""
        self.task, self.own, self.clock = task, self._seconds(), time.monotonic()
        self.done += 1
        self.pipe.send(task)

    def _seconds(self) -> float:
        """CPU time of the process; by the clock where the system does not tell."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
            fields = stat.rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, AttributeError):
            return time.monotonic()

    def overdue(self) -> bool:
        """Whether the problem has taken too long; the first of a process may have to compile."""
        allowed = KILLED * (1 if self.done > _COMPILING else _PATIENCE / 2)
        waited = time.monotonic() - self.clock > _PATIENCE * KILLED
        return self.task is not None and (waited or self._seconds() - self.own > allowed)

    def ended(self, kind: str, text: str) -> Verdict:
        """End the process; returns the verdict on its problem."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        assert self.task is not None
        return Verdict(*self.task, kind, KILLED, text=text)


def run(
    tasks: Iterable[Task],
    jobs: int,
    max_seconds: float = float("inf"),
    report: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Judge problems in ``jobs`` processes; ends early, by Ctrl-C too, with what there is."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    context, stop = mp.get_context("spawn"), time.monotonic() + max_seconds
    left: Iterator[Task] = iter(tasks)
    verdicts: list[Verdict] = []
    workers: list[_Worker] = []

    def note(verdict: Verdict) -> None:
        verdicts.append(verdict)
        report(verdict)

    def begin(worker: _Worker) -> None:
        if (task := next(left, None)) is None:
            worker.give(None)
            workers.remove(worker)
        else:
            worker.give(task)

    try:
        for _ in range(jobs):
            workers.append(_Worker(context))
            begin(workers[-1])
        while workers and time.monotonic() < stop:
            ready = wait([worker.pipe for worker in workers], timeout=1.0)
            for worker in list(workers):
                if worker.pipe in ready:
                    try:
                        note(worker.pipe.recv())
                        begin(worker)
                        continue
                    except (EOFError, OSError):
                        note(worker.ended("crash", f"the process died at {worker.task}"))
                elif worker.overdue():
                    note(worker.ended("slow", f"killed at {worker.task}"))
                else:
                    continue
                workers.remove(worker)
                workers.append(_Worker(context))
                begin(workers[-1])
    except KeyboardInterrupt:
        pass
    for worker in workers:
        worker.process.kill()
    return verdicts

"""Linear machines on two workers: parts of :mod:`dask`.

``linear`` and ``hinge``: 581,012 rows of covtype in 16 partitions that workers keep, against the
fit in memory by two threads, in turns. ``dask_ml``: its logistic regression on the same collection,
each of its solvers at its loosest tolerance that comes as near as 1e-4 to our objective, or for as
long as two minutes. ``disk``:
made up rows in Zarr files, which the workers read in every pass because they may keep next to
nothing; the same files are read, and nothing done with them, for comparison.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask_cluster import cluster, covtype, in_partitions
from harness import in_turns, median, number, seconds, table

from maxmargin import LinearSVC, LogisticRegression
from maxmargin.losses import Logistic

PARTITIONS = 16
ROWS = 30_000_000  # on disk
NEAR = 1e-4  # of our objective
LIMIT = 120.0  # seconds for each of the others
TRIES = {"lbfgs": (1e-4, 1e-6), "newton": (1e-4,), "gradient_descent": (1e-4,), "admm": (1e-4,)}
CHUNK, COLUMNS = 500_000, 20  # rows of a file, and columns


def kept(folder: Path | None) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Rows and labels, in memory and kept by the workers."""
    X, y = covtype(folder)
    return X, y, *in_partitions(X, y, PARTITIONS)


def against_memory(folder: Path | None, repeats: int, machines: dict[str, Any]) -> list[list[str]]:
    """Fits of machines in memory and on the cluster, and how many times as long these take."""
    lines = []
    with cluster():
        X, y, lazy, labels = kept(folder)
        for name, machine in machines.items():
            works: dict[str, Callable[[], object]] = {
                "memory": lambda m=machine: m.set_params(n_jobs=2).fit(X, y),
                "dask": lambda m=machine: m.fit(lazy, labels),
            }
            for work in works.values():
                work()  # compiles
            taken = {side: median(own) for side, own in in_turns(works, repeats).items()}
            there = machine.fit(lazy, labels)
            primal, rounds = there.certificate_.primal, there.distribution_.rounds
            gap = there.certificate_.relative_gap
            here = machine.fit(X, y).certificate_.primal
            lines.append(
                [
                    name,
                    number(taken["memory"]),
                    number(taken["dask"]),
                    number(taken["dask"] / taken["memory"]),
                    str(rounds),
                    number(gap),
                    number((primal - here) / here),
                ]
            )
    return lines


def objective(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Logistic regression's at C = 1."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    signs = np.where(y == y.max(), 1.0, -1.0)
    return float(0.5 * w @ w + Logistic().value(signs * (X @ w + b)).sum())


class TooLongError(Exception):
    """The time that somebody was given is over."""


def within(limit: float, work: Callable[[], object]) -> float | None:
    """Seconds that a call takes; None where it is stopped because it takes too long."""

    def stop(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return seconds(work)
    except TooLongError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def against_dask_ml(folder: Path | None) -> list[list[str]]:
    """Our time and that of dask-ml's solvers, each at its loosest tolerance that is good enough."""
    from dask_ml.linear_model import LogisticRegression as Theirs

    lines = []
    with cluster() as client:
        X, y, lazy, labels = kept(folder)
        positive = (labels == y.max()).astype(int).persist()
        ours = LogisticRegression()
        ours.fit(lazy, labels)
        mine = seconds(lambda: ours.fit(lazy, labels))
        best = objective(ours, X, y)
        lines.append(["maxmargin", number(mine), "0", "1"])
        for solver, tolerances in TRIES.items():
            for tol in tolerances:
                model = Theirs(solver=solver, tol=tol, C=1.0, max_iter=200)
                taken = within(LIMIT, lambda m=model, X=lazy, y=positive: m.fit(X, y))
                away = np.inf if taken is None else objective(model, X, y) / best - 1.0
                if away <= NEAR or taken is None:
                    break
            line = [f"dask-ml, {solver}, tol={tol:g}"]
            if taken is None:
                lines.append([*line, f"> {LIMIT:g}", "", f"> {number(LIMIT / mine)}"])
                client.restart()
                X, y, lazy, labels = kept(folder)
                positive = (labels == y.max()).astype(int).persist()
            else:
                ratio = number(taken / mine) if away <= NEAR else "not there"
                lines.append([*line, number(taken), number(away), ratio])
            print(*lines[-1], flush=True)
    return lines


def written(folder: Path, rows: int) -> tuple[str, str]:
    """Make up rows in files of a fixed size, once."""
    import zarr

    X, y = str(folder / "X"), str(folder / "y")
    data = zarr.create_array(X, shape=(rows, COLUMNS), chunks=(CHUNK, COLUMNS), dtype="float64")
    labels = zarr.create_array(y, shape=(rows,), chunks=(CHUNK,), dtype="int8")
    weights = np.linspace(-1.0, 1.0, COLUMNS)
    for begin in range(0, rows, CHUNK):
        random = np.random.default_rng(begin)
        part = random.standard_normal((min(CHUNK, rows - begin), COLUMNS))
        data[begin : begin + CHUNK] = part
        chance = 1.0 / (1.0 + np.exp(-(part @ weights)))
        labels[begin : begin + CHUNK] = random.random(len(part)) < chance
    return X, y


def peak() -> float:
    """Most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def spent() -> float:
    """CPU seconds of this process."""
    times = os.times()
    return times.user + times.system


def from_disk(rows: int, repeats: int) -> list[list[str]]:
    """A pass of a fit over files that nobody keeps, against reading them."""
    folder = Path(tempfile.mkdtemp(prefix="maxmargin"))
    try:
        paths = written(folder, rows)
        with (
            cluster(memory="1GB") as client,
            dask.config.set({"maxmargin.memory-per-worker": "50MB"}),
        ):
            X, y = (da.from_zarr(path) for path in paths)
            model = LogisticRegression()

            def read() -> None:
                dask.compute(*[dask.delayed(np.size)(part) for part in X.to_delayed().ravel()])

            def cpu() -> float:
                return sum(client.run(spent).values())

            model.fit(X[:CHUNK], y[:CHUNK])  # compiles
            taken = in_turns({"read": read, "fit": lambda: model.fit(X, y)}, repeats)
            clocks = [cpu()]
            for work in (read, lambda: model.fit(X, y)):
                work()
                clocks.append(cpu())
            rounds = model.distribution_.rounds
            once, each = median(taken["read"]), median(taken["fit"]) / rounds
            of_read, of_pass = clocks[1] - clocks[0], (clocks[2] - clocks[1]) / rounds
            most = max(client.run(peak).values())
            return [
                [
                    f"{rows:,}",
                    number(once),
                    number(each),
                    number(once / each),
                    number(of_read / of_pass),
                    str(rounds),
                    number(most),
                    number(model.certificate_.relative_gap),
                ]
            ]
    finally:
        shutil.rmtree(folder)


MACHINES = {"LinearSVC()": LinearSVC(), "LogisticRegression()": LogisticRegression()}
HINGE = {"LinearSVC(loss='hinge')": LinearSVC(loss="hinge")}
IN_MEMORY = ["machine", "memory, s", "dask, s", "ratio", "rounds", "gap", "objective, relative"]
FROM_DISK = ["rows", "read, s", "pass, s", "read / pass", "of CPU", "passes", "peak, GB", "gap"]
THEIRS = ["", "seconds", "above our objective", "ratio"]
PARTS = {
    "linear": (lambda folder: against_memory(folder, 7, MACHINES), partial(table, IN_MEMORY)),
    "hinge": (lambda folder: against_memory(folder, 1, HINGE), partial(table, IN_MEMORY)),
    "dask_ml": (against_dask_ml, partial(table, THEIRS)),
    "disk": (lambda folder: from_disk(ROWS, 1), partial(table, FROM_DISK)),
}

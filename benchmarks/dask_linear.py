"""Linear machines on Dask collections: against memory, against dask-ml, and from disk.

    pip install -e ".[bench,dask]" dask-ml zarr
    python benchmarks/dask_linear.py --data FOLDER [--only covtype,hinge,dask_ml,disk] [--repeats 3]

A ``LocalCluster`` of two workers with one thread each; everything that is compared runs in one run
and takes turns. ``covtype``: 581,012 rows of 54 standardised columns, class 2 against the rest, in
16 partitions that the workers keep, against the fit in memory with two threads. ``dask_ml``: its
logistic regression on the same collection, stopped as soon as its objective is as good as ours to
1e-4 (its loosest tolerance that is; the fastest of its solvers that get there). ``disk``: made up
rows in Zarr files, which the workers read in every pass because they may keep next to nothing; the
same files are read, and nothing done with them, for comparison.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from data import add_option, load
from distributed import Client, LocalCluster, wait
from harness import chosen, in_turns, median, number, seconds, table

from maxmargin import LinearSVC, LogisticRegression
from maxmargin.losses import Logistic

PARTITIONS, WORKERS = 16, 2
NEAR = 1e-4  # of our objective
TRIES = {"lbfgs": (1e-4, 1e-6), "newton": (1e-4,), "gradient_descent": (1e-4,), "admm": (1e-4,)}
CHUNK, COLUMNS = 500_000, 20  # rows of a file, and columns


@contextmanager
def cluster(memory_limit: str = "8GB") -> Iterator[Client]:
    """Two workers with one thread each."""
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory_limit,
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def covtype(folder: Path | None) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Rows and labels, in memory and kept by the workers."""
    data = load("covtype", folder)
    rows = -(-len(data.y) // PARTITIONS)
    X, y = np.ascontiguousarray(data.X), np.asarray(data.y)
    lazy = da.from_array(X, chunks=(rows, -1)).persist(), da.from_array(y, chunks=rows).persist()
    wait(lazy)
    return X, y, *lazy


def against_memory(folder: Path | None, repeats: int, machines: dict[str, Any]) -> list[list[str]]:
    """Fits of machines in memory and on the cluster, and how many times as long these take."""
    lines = []
    with cluster():
        X, y, lazy, labels = covtype(folder)
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


def against_dask_ml(folder: Path | None, limit: float = 120.0) -> list[list[str]]:
    """Our time and that of dask-ml's solvers, each at its loosest tolerance that is good enough."""
    from dask_ml.linear_model import LogisticRegression as Theirs

    lines = []
    with cluster():
        X, y, lazy, labels = covtype(folder)
        ours = LogisticRegression()
        ours.fit(lazy, labels)
        mine = seconds(lambda: ours.fit(lazy, labels))
        best = objective(ours, X, y)
        lines.append(["maxmargin", number(mine), "0", "1"])
        for solver, tolerances in TRIES.items():
            for tol in tolerances:
                model = Theirs(solver=solver, tol=tol, C=1.0, max_iter=200)
                taken = seconds(lambda m=model: m.fit(lazy, (labels == y.max()).astype(int)))
                away = objective(model, X, y) / best - 1.0
                if away <= NEAR or taken > limit:
                    break
            ratio = number(taken / mine) if away <= NEAR else "not there"
            lines.append([f"dask-ml, {solver}", number(taken), number(away), ratio])
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
            cluster("1GB") as client,
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
PARTS: dict[str, Callable[[argparse.Namespace], str]] = {
    "covtype": lambda how: table(IN_MEMORY, against_memory(how.data, how.repeats, MACHINES)),
    "hinge": lambda how: table(IN_MEMORY, against_memory(how.data, how.repeats, HINGE)),
    "dask_ml": lambda how: table(
        ["", "seconds", "above our objective", "ratio"], against_dask_ml(how.data)
    ),
    "disk": lambda how: table(
        ["rows", "read, s", "pass, s", "read / pass", "of CPU", "passes", "peak, GB", "gap"],
        from_disk(how.rows, how.repeats),
    ),
}


def main() -> None:
    """Measure what is asked for, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_option(parser)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=30_000_000, help="of the files")
    how = parser.parse_args()
    for name in chosen(how.only, PARTS, parser):
        print(f"\n{name}\n\n{PARTS[name](how)}", flush=True)


if __name__ == "__main__":
    main()

"""How far it scales, on paper and in simulation: a part of :mod:`dask`.

A fit is passes over partitions. A pass on W workers costs

    t_round + P t_task + ceil(P / W) (t_part + entries of a partition / speed)
            + hops (t_hop + bytes of a result / bandwidth)

with P partitions, hops = ceil(log_16 P) levels of the reduction. ``P t_task`` is the scheduler's,
one task after the other, however many workers there are: what does not scale. A linear machine is
some passes of this kind; a kernel machine, round after round, has its partitions solved, the
candidates solved together by one worker (``a S^p`` seconds for S of them), and all rows tested
against them.

The constants are fitted to runs here (``fitted``), the model is then checked against other runs
(``checked``), and drawn to 1,000 workers with the bandwidth of a 10 Gb/s network. Where workers are
not equally fast a pass takes as long as the slowest: the simulation plays a scheduler that hands
out one task after the other to workers whose speeds differ.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dask_cluster import cluster, covtype, in_partitions
from harness import HERE, number, table

from maxmargin import SVC, LogisticRegression
from maxmargin.dask import Cluster

FAN_IN = 16  # of the reductions
NETWORK = 1.25e9  # bytes a second of the network on paper, 10 Gb/s
COUNTS = (2, 8, 32, 128)  # partitions whose rounds are timed
LINEAR_FIT = [(120_000, 8), (240_000, 16), (480_000, 8)]  # rows and partitions that are fitted,
LINEAR_CHECK = [(180_000, 16), (360_000, 32), (580_000, 16)]  # and others
KERNEL_FIT, KERNEL_CHECK = (4_000, 8_000, 16_000), (6_000, 12_000, 24_000)
WORKERS = (1, 3, 10, 30, 100, 300, 1000)
SPREAD = 0.2  # of the logarithm of a worker's speed, in the simulation


@dataclass
class Constants:
    """What the model is made of; seconds, entries a second, bytes a second."""

    t_round: float
    t_task: float
    t_part: float = 0.0
    speed: float = 1e9  # entries of X a second and pass, by one thread
    t_hop: float = 0.005
    bandwidth: float = NETWORK
    passes: float = 5.0
    local: tuple[float, float] = (1e-6, 1.8)  # seconds of a partition's own problem, a m^p
    together: tuple[float, float] = (1e-6, 1.8)  # of all candidates
    test_speed: float = 1e10  # rows x candidates x columns a second, by one thread
    kernel_rounds: float = 3.0

    def linear_pass(self, n: float, d: int, P: int, W: int, numbers: int, busy: int = 1) -> float:
        """Seconds of one pass; ``busy`` processes share what the scheduler runs on."""
        hops = max(math.ceil(math.log(P, FAN_IN)), 1)
        work = math.ceil(P / W) * (self.t_part + n / P * d / self.speed)
        send = hops * (self.t_hop + 8 * numbers / self.bandwidth)
        scheduler = P * self.t_task
        return self.t_round + send + (scheduler + work if busy > 1 else max(scheduler, work))

    def linear(self, n: float, d: int, P: int, W: int, busy: int = 1) -> float:
        """Seconds of a fit whose passes reduce d numbers."""
        return self.passes * self.linear_pass(n, d, P, W, d, busy)

    def kernel(self, n: float, d: int, P: int, W: int, share: float, busy: int = 1) -> float:
        """Seconds of a fit of which ``share`` of the rows are support vectors."""
        S, (a, p), (b, q) = share * n, self.local, self.together
        alone = math.ceil(P / W) * a * (n / P) ** p
        tests = math.ceil(P / W) * (n / P) * S * d / self.test_speed
        rounds = self.t_round + P * self.t_task + 8 * S * d / self.bandwidth
        return alone + b * S**q + self.kernel_rounds * (rounds + tests)


def simulated(constants: Constants, n: float, d: int, P: int, W: int, seed: int = 0) -> float:
    """Seconds of a pass, played: a scheduler that serves one task after the other."""
    random = np.random.default_rng(seed)
    speeds = constants.speed * np.exp(SPREAD * random.standard_normal(W))
    free = [(0.0, w) for w in range(W)]
    heapq.heapify(free)
    clock, ends = 0.0, []
    for _ in range(P):
        clock += constants.t_task
        at, w = heapq.heappop(free)
        end = max(at, clock) + constants.t_part + n / P * d / speeds[w]
        heapq.heappush(free, (end, w))
        ends.append(end)
    level, hop = sorted(ends), constants.t_hop + 8 * d / constants.bandwidth
    while len(level) > 1:
        groups = [level[k : k + FAN_IN] for k in range(0, len(level), FAN_IN)]
        level = [max(group) + hop for group in groups]
    return constants.t_round + level[0]


# -- runs here -----------------------------------------------------------------------------------


def _nothing(block: Any) -> float:
    return float(np.shape(block)[0])


def rounds() -> list[tuple[int, float]]:
    """Seconds of rounds over partitions that have nothing to do."""
    found = []
    with cluster():
        for count in COUNTS:
            X, _ = in_partitions(np.zeros((count, 2)), np.zeros(count), count)
            parts, where, times = list(X.to_delayed().ravel()), Cluster.active(), []
            for _ in range(6):
                began = time.perf_counter()
                where.run([where.total([where.task(_nothing, part) for part in parts], sum)])
                times.append(time.perf_counter() - began)
            found.append((count, float(np.median(times))))
    return found


def linear_runs(folder: Path | None, sizes: list[tuple[int, int]]) -> list[dict]:
    """Fits of a linear machine: rows, partitions, seconds, rounds."""
    found = []
    with cluster():
        X, y = covtype(folder)
        for n, count in sizes:
            points, labels = in_partitions(X[:n], y[:n], count)
            times = []
            for _ in range(3):
                began = time.perf_counter()
                model = LogisticRegression().fit(points, labels)
                times.append(time.perf_counter() - began)
            passes = model.distribution_.rounds
            found.append({"n": n, "P": count, "seconds": min(times), "passes": passes})
    return found


def kernel_runs(folder: Path | None, sizes: tuple[int, ...]) -> list[dict]:
    """Fits of a kernel machine, and of its parts."""
    found = []
    with cluster():
        for n in sizes:
            X, y = covtype(folder, n)
            began = time.perf_counter()
            alone = SVC(n_jobs=1).fit(X, y)
            in_one = time.perf_counter() - began
            points, labels = in_partitions(X, y, 4)
            began = time.perf_counter()
            model = SVC().fit(points, labels)
            took = time.perf_counter() - began
            found.append(
                {
                    "n": n,
                    "alone": in_one,
                    "seconds": took,
                    "support": len(alone.support_),
                    "rounds": model.distribution_.rounds,
                }
            )
    return found


def _power(sizes: list[float], seconds: list[float]) -> tuple[float, float]:
    """``a m^p`` through some times, by least squares of the logarithms."""
    p, log_a = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(np.exp(log_a)), float(p)


def fitted(idle: list, linear: list[dict], kernel: list[dict], d: int) -> Constants:
    """Constants that explain some runs."""
    t_task, t_round = np.polyfit([c for c, _ in idle], [s for _, s in idle], 1)
    found = Constants(max(float(t_round), 1e-3), float(t_task), t_hop=0.0)
    found.passes = float(np.median([run["passes"] for run in linear]))
    rows = [[run["n"] * d / 2, -(-run["P"] // 2)] for run in linear]
    left = [
        run["seconds"] / found.passes - found.t_round - run["P"] * found.t_task for run in linear
    ]
    (slow, t_part), *_ = np.linalg.lstsq(np.array(rows), np.array(left), rcond=None)
    if slow <= 0 or t_part < 0:
        slow, t_part = max(float(np.mean(left) / np.mean([r[0] for r in rows])), 1e-12), 0.0
    found.speed, found.t_part = 1.0 / float(slow), float(t_part)
    found.local = found.together = _power(
        [run["n"] for run in kernel], [run["alone"] for run in kernel]
    )
    found.kernel_rounds = float(np.median([run["rounds"] for run in kernel]))
    share = [run["support"] / run["n"] for run in kernel]
    tests = [
        max(
            run["seconds"]
            - 2 * found.local[0] * (run["n"] / 4) ** found.local[1]
            - found.together[0] * run["support"] ** found.together[1]
            - found.kernel_rounds * (found.t_round + 4 * found.t_task),
            0.05 * run["seconds"],
        )
        for run in kernel
    ]
    work = [
        found.kernel_rounds * run["n"] / 2 * s * run["n"] * d
        for run, s in zip(kernel, share, strict=True)
    ]
    found.test_speed = float(np.exp(np.mean(np.log(np.array(work) / np.array(tests)))))
    return found


def checked(constants: Constants, linear: list[dict], kernel: list[dict], d: int) -> list[list]:
    """What the model says of runs that it was not fitted to: name, seconds said and taken."""
    found: list[list] = []
    for run in linear:
        said = constants.linear(run["n"], d, run["P"], 2, busy=2)
        found.append([f"linear, {run['n']:,} rows, {run['P']} partitions", said, run["seconds"]])
    for run in kernel:
        share = run["support"] / run["n"]
        said = constants.kernel(run["n"], d, 4, 2, share, busy=2)
        found.append([f"kernel, {run['n']:,} rows, {run['support']:,} SV", said, run["seconds"]])
    return found


def scaling(folder: Path | None) -> dict:
    """Fit the model to some runs, check it against others, and say what it says of clusters."""
    d = 54
    idle = rounds()
    linear, kernel = linear_runs(folder, LINEAR_FIT), kernel_runs(folder, KERNEL_FIT)
    constants = fitted(idle, linear, kernel, d)
    others = linear_runs(folder, LINEAR_CHECK), kernel_runs(folder, KERNEL_CHECK)
    found = {
        "idle": idle,
        "fitted_to": [linear, kernel],
        "constants": asdict(constants),
        "checked": checked(constants, *others, d),
        "on_paper": on_paper(constants),
    }
    draw(found["on_paper"], HERE / "results" / "dask-scaling.svg")
    return found


def on_paper(constants: Constants) -> dict[str, list]:
    """Seconds on W workers: 10^9 rows for a linear machine, 10^8 for kernel machines."""
    big = Constants(**{**asdict(constants), "bandwidth": NETWORK, "t_hop": 0.005})
    found: dict[str, list] = {}
    for n in (1e7, 1e8, 1e9):
        found[f"linear, {n:.0e} rows x 54"] = [
            [W, big.linear(n, 54, _parts(n, 54, W), W)] for W in WORKERS
        ]
        found[f"simulated, {n:.0e} rows x 54"] = [
            [W, big.passes * simulated(big, n, 54, _parts(n, 54, W), W)] for W in WORKERS
        ]
    for n, share in ((1e6, 0.1), (1e7, 0.01), (1e8, 0.001), (1e8, 0.01)):
        found[f"kernel, {n:.0e} rows, {share:g} support vectors"] = [
            [W, big.kernel(n, 54, _parts(n, 54, W), W, share)] for W in WORKERS
        ]
    return found


def _parts(n: float, d: int, W: int) -> int:
    """Partitions of about 100 MB, four for each worker at least."""
    return max(int(n * d * 8 / 1e8), 4 * W)


def draw(curves: dict[str, list], path: Path) -> None:
    """Draw seconds against workers."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "maxmargin", "font.size": 8})
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("linear", "kernel"), strict=True):
        for name, points in curves.items():
            if name.startswith(kind) or (kind == "linear" and name.startswith("simulated")):
                style = ":" if name.startswith("simulated") else "-"
                axes.loglog(*np.array(points).T, style, marker="o", ms=3, label=name)
        axes.set_xlabel("workers of one thread")
        axes.set_ylabel("seconds")
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def report(found: dict) -> str:
    """Write constants, checks and what the model says."""
    constants = found["constants"]
    named = [
        ["a round", f"{1e3 * constants['t_round']:.1f} ms"],
        ["a task, of the scheduler's time", f"{1e3 * constants['t_task']:.2f} ms"],
        ["a partition's task, besides its rows", f"{1e3 * constants['t_part']:.1f} ms"],
        ["entries a second, thread and pass", f"{constants['speed']:.2g}"],
        ["a problem of m rows", "{:.2g} m^{:.2f} s".format(*constants["together"])],
        ["rows x candidates x columns a second, tested", f"{constants['test_speed']:.2g}"],
    ]
    checks = [[n, number(s), number(t), number(s / t)] for n, s, t in found["checked"]]
    paper = [[name, *[number(s) for _, s in row]] for name, row in found["on_paper"].items()]
    return "\n\n".join(
        [
            table(["constant", "fitted"], named),
            "Other runs than those it was fitted to, two workers:",
            table(["run", "seconds said", "seconds taken", "ratio"], checks),
            "On paper, seconds by the number of workers (10 Gb/s):",
            table(["", *map(str, WORKERS)], paper),
            "![Seconds against workers](dask-scaling.svg)",
        ]
    )


PARTS = {"scaling": (scaling, report)}

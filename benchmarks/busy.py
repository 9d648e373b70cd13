"""CPU time of every fit on a busy computer, against one thread on an idle one.

    python benchmarks/busy.py [--rows 1000,8000,50000] [--only LinearRegression,SVC]

Every estimator is fitted at its default settings, alone and beside one spinning process per core.
The figure is the CPU seconds of all its threads over those with ``n_jobs=1`` alone: threads that
wait for a core by spinning show up here, and nowhere on an idle computer. To reach: at most 1.3.
A fit that takes more than ``--limit`` seconds alone is left out. Without ``--only`` the table is
written to ``results/busy.md``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from maxmargin.testing import all_estimators

HERE = Path(__file__).resolve().parent
ENOUGH, REPEATS = 1.0, 7  # repeat until so many CPU seconds are spent, or so many times
COLUMNS = 20


def estimators() -> dict[str, object]:
    """Return an instance of each class, at default settings where it has them for every one."""
    found = {}
    for instance in all_estimators():
        if instance.first and instance.data in ("numbers", "counts"):
            cls = type(instance.estimator)
            try:
                found[cls.__name__] = cls(), instance.target
            except TypeError:  # an estimator around another
                found[cls.__name__] = instance.make(), instance.target
    return found


def cpu_seconds(name: str, rows: int, n_jobs: int | None) -> float:
    """Return the least CPU time of some fits."""
    model, target = estimators()[name]
    if n_jobs is not None and "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, COLUMNS))
    value = X[:, 0] + X[:, 1] ** 2 + random.normal(size=rows)
    y = value if target in ("number", "numbers") else (value > 1.0).astype(int)
    warnings.simplefilter("ignore")
    model.fit(X[:200], y[:200])  # loads compiled code
    spent: list[float] = []
    while len(spent) < REPEATS and sum(spent) < ENOUGH:
        start = time.process_time()
        model.fit(X, y)
        spent.append(time.process_time() - start)
    return min(spent)


def measured(name: str, rows: int, n_jobs: int | None, limit: float) -> float | None:
    """Measure in a process of its own; None where it takes too long."""
    command = [sys.executable, __file__, "--child", name, str(rows), str(n_jobs or "")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure all estimators and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,8000,50000")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of one measurement")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, rows, n_jobs = options.child
        print(cpu_seconds(name, int(rows), int(n_jobs) if n_jobs else None))
        return
    names = options.only.split(",") if options.only else [*estimators()]
    lines = ["| estimator | rows | n_jobs=1, idle: CPU s | idle | busy |", "|---|---|---|---|---|"]
    worst = 0.0
    for rows in map(int, options.rows.split(",")):
        for name in names:
            alone = measured(name, rows, 1, options.limit)
            if alone is None:
                continue
            idle = measured(name, rows, None, 4 * options.limit)
            spinning = [
                subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(os.cpu_count() or 1)
            ]
            try:
                busy = measured(name, rows, None, 4 * options.limit)
            finally:
                for process in spinning:
                    process.kill()
                    process.wait()
            ratios = [np.inf if cpu is None else cpu / alone for cpu in (idle, busy)]
            worst = max(worst, *ratios)
            lines.append(f"| {name} | {rows} | {alone:.4f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
            print(lines[-1], flush=True)
    lines.append(f"\nThe worst ratio is {worst:.2f}.")
    print(lines[-1])
    if not options.only:
        (HERE / "results" / "busy.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

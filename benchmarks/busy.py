"""CPU time of every fit on a busy computer, against one thread on an idle one.

    python benchmarks/busy.py [--rows 1000,8000,50000] [--only LinearRegression,SVC]

Every estimator is fitted at its default settings, alone and beside one spinning process per core.
The figure is the CPU seconds of all its threads over those with ``n_jobs=1`` alone: threads that
wait for a core by spinning show up here, and nowhere on an idle computer. To reach: at most 1.3.
All three are measured in one process, after a fit that loads compiled code; what takes more than
``--limit`` seconds alone, or is refused for its memory, is left out. Without ``--only`` the table
is written to ``results/busy.md``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.testing import all_estimators

HERE = Path(__file__).resolve().parent
ENOUGH, REPEATS = 1.0, 50  # repeat until so many CPU seconds are spent, or so many times
COLUMNS = 20
HEAD = """# CPU time on a busy computer

`python benchmarks/busy.py`: see the top of [busy.py](../busy.py). Ratios to `n_jobs=1` on an idle
computer; to reach: at most 1.3.
"""


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


def sample(target: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of noise and what some of their columns decide."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, COLUMNS))
    value = X[:, 0] + X[:, 1] ** 2 + random.normal(size=rows)
    return X, value if target in ("number", "numbers") else (value > 1.0).astype(int)


def cpu_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the least CPU time of some fits, with that of all threads."""
    spent: list[float] = []
    while len(spent) < REPEATS and sum(spent) < ENOUGH:
        start = time.process_time()
        model.fit(X, y)
        spent.append(time.process_time() - start)
    return min(spent)


@contextmanager
def spinning() -> Iterator[None]:
    """Keep every core busy with a process of its own."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(name: str, rows: int) -> None:
    """Print the CPU seconds with ``n_jobs=1``, with the defaults, and with these beside others."""
    model, target = estimators()[name]
    X, y = sample(target, rows)
    warnings.simplefilter("ignore")
    model.fit(X, y)  # loads compiled code
    alone = clone(model)
    if "n_jobs" in model.get_params():
        alone.set_params(n_jobs=1)
    print(cpu_seconds(alone, X, y), flush=True)
    print(cpu_seconds(model, X, y), flush=True)
    with spinning():
        print(cpu_seconds(model, X, y), flush=True)


def measured(name: str, rows: int, limit: float) -> list[float] | None:
    """Measure in a process of its own; None where that takes too long, or the fit is refused."""
    command = [sys.executable, __file__, "--child", name, str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        if not select([child.stdout], [], [], limit)[0]:
            child.kill()
            return None
        found = [float(line) for line in child.stdout]
    return found if child.returncode == 0 else None


def main() -> None:
    """Measure all estimators and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,8000,50000")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds until the first figure")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure(options.child[0], int(options.child[1]))
        return
    names = options.only.split(",") if options.only else [*estimators()]
    lines = ["| estimator | rows | n_jobs=1, idle: CPU s | idle | busy |", "|---|--:|--:|--:|--:|"]
    worst, left_out = 0.0, []
    for rows in map(int, options.rows.split(",")):
        for name in names:
            found = measured(name, rows, options.limit)
            if found is None:
                left_out.append(f"{name} ({rows})")
                continue
            alone, *others = found
            ratios = [seconds / alone for seconds in others]
            worst = max(worst, *ratios)
            lines.append(f"| {name} | {rows} | {alone:.4f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
            print(lines[-1], flush=True)
    end = [
        f"The worst ratio is {worst:.2f}.",
        f"More than {options.limit:g} s, or refused: {', '.join(left_out) or 'none'}.",
    ]
    print("\n".join(end))
    if not options.only:
        text = "\n".join([HEAD, *lines, "", *end])
        (HERE / "results" / "busy.md").write_text(f"{text}\n")


if __name__ == "__main__":
    main()

"""What a quadratic programme costs: the primal against features, the dual against rows.

    python benchmarks/qp.py --data FOLDER [--most 3600] [--only primal,wide,rows,dual,sets]

The lecture says O(M^3) for the primal (M features) and O(N^3) for the dual (N rows), and that
both are infeasible in memory for large data. ``primal``: PrimalProgramme on 2,000 rows of Gaussian
noise with M features; ``wide``: on 300 rows; ``rows``: N rows of 50 features; ``dual``:
QuadraticProgramme with the RBF kernel on N rows of 10 features. Each is a child process of its own
with one thread: CPU seconds of the solve, steps, peak memory beyond what the imports take.
Exponents are slopes of least squares of log seconds a step, and of log memory, on the upper half of
the sizes. ``sets``: seconds to the same tolerance beside the other solvers, on real data.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from data import add_option, load

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
SIZES = {
    "primal": [50, 100, 200, 400, 800, 1200],
    "wide": [300, 600, 1200, 2400, 4800],
    "rows": [1000, 2000, 4000, 8000, 16_000, 32_000],
    "dual": [150, 300, 600, 1200, 2400, 3600],
}
SETS = {"usps": 0.005, "satimage": 0.05}
SOLVERS = ["auto", "smo", "qp", "projected_gradient", "frank_wolfe"]
ROWS, LIMIT = 2000, 60.0


def peak() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_solve(kind: str, size: int) -> dict:
    """Solve one programme, in a process that does nothing else."""
    from maxmargin import Gram, duals
    from maxmargin.backends.cpu.linear import Design
    from maxmargin.kernels import RBF
    from maxmargin.losses import Hinge
    from maxmargin.risk import RegularisedRisk
    from maxmargin.solvers import PrimalProgramme, QuadraticProgramme, Watch

    random = np.random.default_rng(0)
    rows = {"primal": 2000, "wide": 300}.get(kind, size)
    features = {"rows": 50, "dual": 10}.get(kind, size)

    def posed(rows: int, features: int):
        X = random.normal(size=(rows, features))
        y = np.where(X[:, 0] + 0.5 * random.normal(size=rows) > 0, 1.0, -1.0)
        if kind == "dual":
            gram = Gram.of(X, RBF(0.1))
            return QuadraticProgramme(), duals.c_svc(np.arange(rows), y, np.ones(rows)).over(gram)
        return PrimalProgramme(), RegularisedRisk(Design(X), y, np.full(rows, 0.01), Hinge())

    method, small = posed(20, min(features, 10))
    method.solve(small)  # imports and compiles
    method, problem = posed(rows, features)
    before, began = peak(), time.process_time()
    solution = method.solve(problem, Watch(1e-3))
    return {
        "seconds": time.process_time() - began,
        "steps": solution.n_iter,
        "memory": peak() - before,
        "status": solution.status,
    }


def one_fit(name: str, solver: str, folder: str, rows: int) -> dict:
    """Fit a machine to real data, in a process that does nothing else."""
    import warnings

    from maxmargin import SVC

    warnings.simplefilter("ignore")
    data = load(name, Path(folder), rows, "standardised")
    first = np.unique(data.y)[0]
    options = {"gamma": SETS[name], "C": 10.0, "tol": 1e-2, "solver": solver, "n_jobs": 1}
    SVC(**options, time_limit=1.0).fit(data.X[:60], data.y[:60] == data.y[0])
    before, began = peak(), time.process_time()
    model = SVC(**options, time_limit=LIMIT).fit(data.X, data.y == first)
    return {
        "seconds": time.process_time() - began,
        "steps": int(model.n_iter_.sum()),
        "memory": peak() - before,
        "status": str(model.certificate_.status),
        "gap": model.certificate_.relative_gap,
    }


def in_child(*arguments: object) -> dict:
    """Run this file in a process of its own."""
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD}
    )
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope on logarithmic axes, over the upper half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--most", type=int, default=3600, help="rows of the dual")
    parser.add_argument("--only", default="primal,wide,rows,dual,sets")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        kind, *rest = given.child
        found = (
            one_fit(*rest[:3], int(rest[3])) if kind == "sets" else one_solve(kind, int(rest[0]))
        )
        print(json.dumps(found))
        return
    for kind in given.only.split(","):
        if kind == "sets":
            for name in SETS:
                for solver in SOLVERS:
                    found = in_child("sets", name, solver, given.data, ROWS)
                    print(name, ROWS, solver, found, flush=True)
            continue
        sizes = [size for size in SIZES[kind] if kind != "dual" or size <= given.most]
        found = []
        for size in sizes:
            found.append(in_child(kind, size))
            print(kind, size, found[-1], flush=True)
        seconds = exponent(sizes, [one["seconds"] / one["steps"] for one in found])
        memory = exponent(sizes, [max(one["memory"], 1e-3) for one in found])
        print(f"{kind}: seconds a step ~ size^{seconds:.2f}, memory ~ size^{memory:.2f}")


if __name__ == "__main__":
    main()

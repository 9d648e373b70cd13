"""Gaussian process regression beside scikit-learn's: RBF plus white noise, several restarts.

    python benchmarks/gp.py --data FOLDER [--rows 3000] [--restarts 10] [--only gp_kin40k,abalone]

Both begin at ``1.0 * RBF(length_scale=1) + WhiteKernel(1)`` with the same bounds, and draw as many
more starts. Standardised data; each side in a process of its own, one after the other; likelihoods
are compared before a time is believed. CPU seconds of all threads stand beside wall seconds, since
they mean more on a machine that others use. At 3,000 rows scikit-learn takes ten minutes and more
for a data set, at 1,000 one: ``--rows 1000`` is the quick run. Results go to ``results/gp.json``
and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from data import add_option, load
from harness import RESULTS, Records, chosen, environment, in_words, number, run_once, table
from libraries import OURS, SKLEARN

SETS = (
    "gp_kin40k",
    "gp_protein",
    "california_housing",
    "abalone",
    "winequality_white",
    "bike_sharing_hour",
    "gp_pol",
)
TEST, LIMIT = 1000, 4 * 3600.0
EQUAL = 1e-6  # nats for each row, by which likelihoods may differ


def ours(restarts: int, seed: int):
    """Our process; its gamma has the bounds of a length scale."""
    from maxmargin import GaussianProcessRegressor
    from maxmargin.kernels import RBF

    kernel = 1.0 * RBF(gamma=0.5)
    return GaussianProcessRegressor(
        kernel, noise_level=1.0, n_restarts_optimizer=restarts, random_state=seed
    )


def scikit_learn(restarts: int, seed: int):
    """Return the peer's process."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    class Counted(GaussianProcessRegressor):
        """Counts how often the likelihood is evaluated."""

        n_evaluations = 0

        def log_marginal_likelihood(self, *args, **options):
            type(self).n_evaluations += 1
            return super().log_marginal_likelihood(*args, **options)

    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(1.0)
    return Counted(kernel, n_restarts_optimizer=restarts, random_state=seed)


SIDES = {OURS: ours, SKLEARN: scikit_learn}


def one_fit(side: str, name: str, folder: str, rows: str, restarts: str, seed: str) -> None:
    """Fit once and print what came of it: the child process."""
    warnings.simplefilter("ignore")
    data = load(name, Path(folder), int(rows), "standardised", new=TEST)
    SIDES[side](0, 0).fit(data.X[:100], data.y[:100])  # loads or compiles the code
    model = SIDES[side](int(restarts), int(seed))
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(data.X, data.y)
    answer = {"seconds": time.perf_counter() - wall, "CPU": time.process_time() - cpu}
    mean, deviation = model.predict(data.X_new, return_std=True)
    error = (mean - data.y_new) / deviation
    answer |= {
        "rows": len(data.y),
        "likelihood": float(model.log_marginal_likelihood_value_),
        "error": float(np.sqrt(np.mean((mean - data.y_new) ** 2))),
        "inside": float(np.mean(np.abs(error) < 1.96)),
    }
    if side == OURS:
        answer |= {"how": model.certificate_.solver, "status": str(model.certificate_.status)}
    else:
        answer["evaluations"] = model.n_evaluations
    print(json.dumps(answer))


def measured(name: str, options: argparse.Namespace) -> dict:
    """Both sides on one data set, in turns."""
    record: dict = {}
    for seed in range(options.seeds):
        for side in SIDES:
            if side == SKLEARN and seed:
                continue  # takes long, and its starts are as good as any
            command = [__file__, "--child", side, name, str(options.data), str(options.rows)]
            command += [str(options.restarts), str(seed)]
            record[f"{side} {seed}"] = run_once(command, LIMIT)
            print(name, side, seed, record[f"{side} {seed}"], flush=True)
    return record


def report(records: Records) -> str:
    """The table."""
    head = ["data", "rows", "starts", "maxmargin: seconds, CPU", "scikit-learn: seconds, CPU"]
    head += ["ratio of CPU", "likelihood: ours, theirs", "no lower", "error", "in 95 %"]
    lines = []
    for key, record in records.items():
        if key == "machine" or "CPU" not in record[f"{SKLEARN} 0"]:
            continue
        name, rows, restarts = key.split(" ")
        peer = record[f"{SKLEARN} 0"]
        for side, own in record.items():
            if not side.startswith(OURS) or "CPU" not in own:
                continue
            good = own["likelihood"] >= peer["likelihood"] - EQUAL * own["rows"]
            lines.append(
                [
                    name,
                    rows,
                    str(int(restarts) + 1),
                    f"{number(own['seconds'])}, {number(own['CPU'])}",
                    f"{number(peer['seconds'])}, {number(peer['CPU'])}",
                    number(peer["CPU"] / own["CPU"]),
                    f"{own['likelihood']:.4f}, {peer['likelihood']:.4f}",
                    "yes" if good else "NO",
                    f"{own['error']:.4f}, {peer['error']:.4f}",
                    f"{100 * own['inside']:.1f} %, {100 * peer['inside']:.1f} %",
                ]
            )
    parts = ["# Gaussian processes", "`python benchmarks/gp.py --data FOLDER`"]
    said = f"{in_words(records['machine'])} Threads: {records['machine']['threads']}."
    parts += [said, table(head, lines)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the table."""
    if sys.argv[1:2] == ["--child"]:
        one_fit(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1, help="runs of ours with other starts")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = Records(options.output / "gp.json")
    records["machine"] = environment() | {"threads": os.environ.get("OPENBLAS_NUM_THREADS", "all")}
    for name in chosen(options.only, SETS, parser):
        records[f"{name} {options.rows} {options.restarts}"] = measured(name, options)
        records.save()
    records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()

"""Kernel PCA beside scikit-learn's; kernel logistic regression beside the support vector machine.

    python benchmarks/kernel_methods.py --data FOLDER [--only components,neighbours]

``components``: KernelPCA with the RBF kernel, 10 components and all of them, each fit in a process
of its own with one thread: CPU seconds, memory, and how far the components of new rows differ from
scikit-learn's, which for 10 takes its dense solver unless told to take ARPACK. Rows that take it
more than 4 GB are measured for ours alone, within 1 GB.
``neighbours``: KernelLogisticRegression and SVC at the same C and gamma: coefficients, errors, log
loss (of SVC with ``probability=True``), CPU seconds. Results go to
``results/kernel_methods.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from data import add_option, load
from harness import RESULTS, Records, chosen, environment, in_words, number, run_once, table
from libraries import OURS, SKLEARN
from sklearn.decomposition import KernelPCA as Reference
from sklearn.metrics import log_loss

from maxmargin import SVC, KernelLogisticRegression, KernelPCA

CASES = (  # data, gamma, rows, components
    ("mnist", 0.02, 5000, 10),
    ("mnist", 0.02, 5000, None),
    ("gp_protein", 0.5, 5000, 10),
    ("gp_protein", 0.5, 20_000, 10),
)
THEIRS = 14_000  # rows that scikit-learn has room for in 4 GB
SETS = {"usps": 0.005, "letter": 0.1, "satimage": 0.05, "gp_protein": 0.5}
REPEATS, LIMIT = 2, 600.0
ARPACK = f"{SKLEARN}, arpack"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def one_fit(side: str, folder: str, name: str, gamma: str, rows: str, count: str) -> None:
    """Fit once and print what came of it: the child process of ``components``."""
    data = load(
        name, Path(folder), int(rows), "standardised" if name != "mnist" else "usual", new=200
    )
    options = {"n_components": None if count == "None" else int(count), "kernel": "rbf"}
    options |= {"gamma": float(gamma), "n_jobs": 1, "random_state": 0}
    model = Reference(eigen_solver="arpack" if side == ARPACK else "auto", **options)
    if side == OURS:
        model = KernelPCA(cache_size=1000 if int(rows) > THEIRS else 3500, **options)
    model.fit(data.X[:200])
    began = time.process_time()
    model.fit(data.X)
    taken = time.process_time() - began
    answer = {
        "seconds": taken,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "eigenvalues": model.eigenvalues_[:10].tolist(),
        "components": model.transform(data.X_new)[:, :10].tolist(),
        "solver": model.certificate_.solver if side == OURS else "",
        "residual": model.certificate_.residual if side == OURS else None,
    }
    print(json.dumps(answer))


def components(folder: Path | None) -> list[dict]:
    """KernelPCA beside scikit-learn's, in turns; the best of two."""
    found = []
    for name, gamma, rows, count in CASES:
        peers = (SKLEARN, *((ARPACK,) if count else ())) if rows <= THEIRS else ()
        sides = (*peers, OURS)
        repeats = REPEATS if count is not None and rows <= THEIRS else 1
        runs: dict[str, list[dict]] = {side: [] for side in sides}
        for _ in range(repeats):
            for side in sides:
                about = [str(folder), name, str(gamma), str(rows), str(count)]
                child = [__file__, "--child", side, *about]
                runs[side].append(run_once(child, LIMIT, ONE_THREAD))
        best = {
            side: min(own, key=lambda run: run.get("seconds", np.inf)) for side, own in runs.items()
        }
        row = {"data": name, "rows": rows, "components": count or "all"}
        for side in sides:
            row[side] = best[side].get("seconds")
            row[f"{side}, GB"] = best[side].get("GB")
        ours = best[OURS]
        row |= {"solver": ours.get("solver"), "residual": ours.get("residual")}
        if peers:
            theirs = min((best[peer] for peer in peers), key=lambda run: run["seconds"])
            row["ratio"] = theirs["seconds"] / row[OURS]
            row["difference"] = float(
                np.abs(np.array(ours["components"]) - np.array(theirs["components"])).max()
            )
        found.append(row)
        print(row, flush=True)
    return found


def neighbours(folder: Path | None, rows: int = 2000) -> list[dict]:
    """Kernel logistic regression and the support vector machine at the same C and gamma."""
    found = []
    for name, gamma in SETS.items():
        regression = name.startswith("gp_")
        data = load(name, folder, rows, "standardised", new=1000)
        y, y_new = (data.y > 0, data.y_new > 0) if regression else (data.y, data.y_new)
        for C in (1.0, 100.0):
            options = {"C": C, "gamma": gamma, "n_jobs": 1}
            machines = {
                "KernelLogisticRegression": KernelLogisticRegression(**options),
                "SVC": SVC(probability=True, random_state=0, **options),
            }
            for machine, model in machines.items():
                model.fit(data.X[:300], y[:300])
                began = time.process_time()
                model.fit(data.X, y)
                fitted = time.process_time() - began
                P = model.predict_proba(data.X_new)
                row = {"data": name, "C": C, "machine": machine, "rows": len(y)}
                row |= {"coefficients": len(model.support_), "fit": fitted}
                row["error"] = float(1 - model.score(data.X_new, y_new))
                row["log loss"] = log_loss(y_new, P, labels=model.classes_)
                found.append(row)
                print(row, flush=True)
    return found


PARTS = {"components": components, "neighbours": neighbours}
HEADS = {
    "components": "## KernelPCA: CPU seconds of a fit on one thread",
    "neighbours": "## Kernel logistic regression beside the support vector machine",
}


def report(records: Records) -> str:
    """The tables."""
    parts = ["# Kernel PCA and kernel logistic regression"]
    parts += ["`python benchmarks/kernel_methods.py --data FOLDER`", in_words(records["machine"])]
    for name, head in HEADS.items():
        rows = records.get(name, [])
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines = [[_cell(row.get(key)) for key in columns] for row in rows]
        parts += [head, table(columns, lines)] if rows else []
    return "\n\n".join(parts) + "\n"


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else str("-" if value is None else value)


def main() -> None:
    """Measure, and write the tables."""
    if sys.argv[1:2] == ["--child"]:
        one_fit(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = Records(options.output / "kernel_methods.json")
    records["machine"] = environment()
    for name in chosen(options.only, PARTS, parser):
        records[name] = PARTS[name](options.data)
        records.save()
    records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()

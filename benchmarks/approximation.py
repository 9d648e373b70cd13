"""``SVC(approximation=...)`` on more and more rows of covtype, beside the exact machine.

    python benchmarks/approximation.py --data FOLDER [--rows 20000,500000] [--components 100,300]

Each fit is a process of its own with one thread: seconds and memory of a fit, relative error of the
kernel, errors on held-out rows. Data are float32, so that features are. Exact fits end at 50,000
rows. Results go to ``results/approximation.md``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from data import add_option, load
from harness import RESULTS, environment, in_words, table

from maxmargin import SVC, Nystroem, RandomFourier

MAPS = {"nystroem": Nystroem, "random_fourier": RandomFourier}
NEW, EXACT = 10_000, 50_000


def one_fit(folder: str, rows: str, name: str, components: str) -> None:
    """Fit once and print what came of it: the child process."""
    data = load("covtype", Path(folder), int(rows), "standardised", new=NEW)
    X = data.X.astype(np.float32)
    options = {"C": 1.0, "gamma": 0.05, "n_jobs": 1}
    if name != "none":
        options["approximation"] = MAPS[name](n_components=int(components), random_state=0)
    SVC(**options).fit(X[:2000], data.y[:2000])
    began = time.perf_counter()
    model = SVC(**options).fit(X, data.y)
    fit = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = time.perf_counter()
    score = model.score(data.X_new.astype(np.float32), data.y_new)
    predict = time.perf_counter() - began
    error = getattr(model.certificate_, "approximation_error", 0.0)
    gap = model.certificate_.relative_gap
    found = {"fit": fit, "predict": predict, "GB": peak, "error": error}
    print(json.dumps({**found, "wrong": 1 - score, "gap": gap}))


def main() -> None:
    """Measure all pairs of rows and components."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--rows", default="20000,50000,200000,500000")
    parser.add_argument("--components", default="100,300")
    options = parser.parse_args()
    lines = []
    for rows in map(int, options.rows.split(",")):
        cases = [("none", 0)] if rows <= EXACT else []
        cases += [(name, m) for m in map(int, options.components.split(",")) for name in MAPS]
        for name, components in cases:
            child = [__file__, "--child", str(options.data), str(rows), name, str(components)]
            done = subprocess.run([sys.executable, *child], capture_output=True, text=True)
            if done.returncode:
                print(done.stderr[-2000:], file=sys.stderr)
                continue
            r = json.loads(done.stdout.splitlines()[-1])
            machine = "exact" if name == "none" else f"{name}, {components}"
            line = [f"{rows:,}", machine, f"{r['fit']:.1f}", f"{r['predict']:.2f}"]
            line += [f"{r['GB']:.2f}", f"{r['error']:.2g}", f"{100 * r['wrong']:.2f} %"]
            lines.append([*line, f"{r['gap']:.1g}"])
            print(lines[-1], flush=True)
    head = ["rows", "machine", "fit, s", "predict 10,000, s", "peak, GB"]
    head += ["kernel error", "held-out errors", "relative gap"]
    text = f"# SVC(approximation=...) on covtype\n\n{in_words(environment())}\n\n"
    text += "RBF(0.05) on standardised columns, C = 1, two classes, one thread, float32 data.\n\n"
    (RESULTS / "approximation.md").write_text(text + table(head, lines) + "\n")


if __name__ == "__main__":
    if "--child" in sys.argv:
        one_fit(*sys.argv[2:])
    else:
        main()

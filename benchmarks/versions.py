"""Two versions of the package against each other: seconds and peak memory of the same fits.

    git worktree add ../before COMMIT
    python benchmarks/versions.py --data FOLDER --before ../before [--gpu] [--only a9a]

Every fit is a process of its own, with the package of one of the two trees; they take turns, and
the best of the repeats is compared. A process fits twice, for the first fit may compile. Seconds
are CPU time of all threads; on a GPU, of the clock. Peak memory is that of the process. Results go
to ``results/versions.json`` and, as a table, ``.md``, merged by fit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from pathlib import Path

from data import add_option, available, load
from harness import (
    CPU,
    HERE,
    RESULTS,
    WALL,
    Records,
    chosen,
    environment,
    in_words,
    run_once,
    table,
)
from harness import seconds as timed

LIMIT = 300.0  # seconds of a process
FITS: dict[str, tuple[str, str, int, dict, dict]] = {  # data, machine, rows, parameters, loading
    "a9a": ("a9a", "SVC", 20_000, {"C": 10.0, "gamma": 0.05}, {}),
    "covtype": ("covtype", "SVC", 20_000, {"C": 10.0, "gamma": 10.0}, {}),
    "usps": ("usps", "SVC", 7_291, {"C": 10.0, "gamma": 1 / 128}, {}),
    "letter": ("letter", "SVC", 10_000, {"C": 16.0, "gamma": 0.5}, {}),
    "magic04 C=1000": ("magic04", "SVC", 6_000, {"C": 1000.0}, {"scaling": "standardised"}),
    "htru2 nu": ("htru2", "NuSVC", 8_000, {"nu": 0.05}, {"scaling": "standardised"}),
    "kin40k": ("gp_kin40k", "SVR", 10_000, {"C": 10.0}, {"scaling": "standardised"}),
    "one class": ("magic04", "OneClassSVM", 10_000, {"nu": 0.1}, {"scaling": "standardised"}),
    "linear": ("covtype", "LinearSVC", 200_000, {}, {}),
    "linear hinge": ("covtype", "LinearSVC", 100_000, {"loss": "hinge"}, {}),
    "logistic": ("covtype", "LogisticRegression", 200_000, {}, {}),
    "linear SVR": ("gp_protein", "LinearSVR", 40_000, {}, {"scaling": "standardised"}),
    "a9a sparse": ("a9a", "LinearSVC", 32_000, {}, {"sparse": True}),
    "search": (
        "a9a",
        "SVCSearchCV",
        5_000,
        {"param_grid": {"C": [1, 10], "gamma": [0.1]}},
        {},
    ),
}
GPU = {
    "covtype GPU": (
        *("covtype", "SVC", 464_809),
        *({"C": 10.0, "gamma": 10.0, "device": "cuda"}, {"dtype": "float32"}),
    ),
    "mnist GPU": (
        *("mnist", "SVC", 60_000),
        *({"C": 10.0, "gamma": 0.02, "device": "cuda"}, {"dtype": "float32"}),
    ),
}


def one_fit(name: str, folder: str) -> None:
    """Fit twice and print what came of it: the child process."""
    import maxmargin

    source, machine, rows, parameters, how = (FITS | GPU)[name]
    data = load(source, Path(folder), rows, **how)
    model = getattr(maxmargin, machine)(**parameters)
    clock = WALL if "device" in parameters else CPU
    taken = [timed(lambda: model.fit(data.X, data.y), clock) for _ in range(2)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": taken[1], "GB": peak, "path": maxmargin.__file__}))


def main() -> None:
    """Measure what can be, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_option(parser)
    parser.add_argument("--before", type=Path, help="folder of the older tree")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gpu", action="store_true", help="also measure on a GPU")
    parser.add_argument("--only", default="", help="names of fits, with commas between them")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return one_fit(*options.child)
    trees = {"before": options.before.resolve(), "after": HERE.parent}
    records = Records(RESULTS / "versions.json")
    fits = FITS | (GPU if options.gpu else {})
    for name in chosen(options.only, fits, parser):
        if available(fits[name][0], options.data):
            best = in_turn(name, trees, options.data, options.repeats)
            if len(best) == len(trees):
                where = in_words(environment())
                records[name] = {**best, "repeats": options.repeats, "machine": where}
                records.save()
            print(name, best, flush=True)
    records.write(report(records))


def in_turn(name: str, trees: dict[str, Path], folder: Path, repeats: int) -> dict[str, dict]:
    """Least seconds and memory of each tree."""
    best: dict[str, dict] = {}
    for _ in range(repeats):
        for side, tree in trees.items():
            os.environ["PYTHONPATH"] = str(tree)
            found = run_once([__file__, "--child", name, str(folder)], LIMIT)
            if "seconds" not in found:
                print(name, side, found, file=sys.stderr)
                continue
            if not Path(found["path"]).is_relative_to(tree):
                raise RuntimeError(f"{found['path']} is not of {tree}.")
            known = best.get(side, found)
            best[side] = {k: min(known[k], found[k]) for k in ("seconds", "GB")}
    return best


def report(records: Records) -> str:
    """The table."""
    lines = []
    for name, record in records.items():
        _, machine, rows, *_ = (FITS | GPU)[name]
        old, new = record["before"], record["after"]
        line = [name, machine, f"{rows:,}"]
        for unit in ("seconds", "GB"):
            line += [f"{old[unit]:.3g}", f"{new[unit]:.3g}", f"{new[unit] / old[unit]:.2f}"]
        lines.append(line)
    head = ["fit", "machine", "rows", "before (s)", "after (s)", "ratio"]
    head += ["before (GB)", "after (GB)", "ratio"]
    parts = ["# Before and after", "`python benchmarks/versions.py --data FOLDER --before TREE`"]
    parts += sorted({record["machine"] for record in records.values()})
    return "\n\n".join([*parts, table(head, lines)]) + "\n"


if __name__ == "__main__":
    main()

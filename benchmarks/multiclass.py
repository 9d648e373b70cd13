"""Ways to many classes: accuracy, time, support vectors and ties, beside scikit-learn's wrappers.

Every fit has a process of its own, and a limit. What was measured is kept, so that a run that was
stopped goes on, and ``--sets`` and ``--schemes`` measure a part of it, again with ``--again``.

    python benchmarks/multiclass.py --data FOLDER --sets letter,usps --schemes ovo,dag --again

All machines: RBF, gamma 1 over the features times their variance ("scale"), C = 10, tol = 1e-3,
columns standardised. Both clocks are recorded, that of the wall and CPU seconds of all threads;
``--clock`` says which is reported.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import data
import numpy as np
from harness import (
    RESULTS,
    Records,
    chosen,
    environment,
    geometric_mean,
    in_words,
    number,
    run_once,
    table,
)

ROWS = {"satimage": None, "pendigits": None, "usps": None, "letter": 5000, "mnist": 4000}
OPTIONS = {"C": 10.0, "tol": 1e-3}
ENOUGH, REPEATS = 10.0, 5  # seconds and times that a work is measured
OURS, PEER = "maxmargin", "scikit-learn"
CODES = {f"ecoc {kind}": kind for kind in ("exhaustive", "dense", "sparse", "bch")}
SCHEMES = ["ovo", "dag", "ovr", "ovr votes", *CODES, "crammer_singer", "weston_watkins"]
PEERS = {  # by the scheme of ours that they are compared with
    "ovo": "SVC",
    "ovr": "OneVsRestClassifier",
    "ovo wrapper": "OneVsOneClassifier",
    "ecoc dense": "OutputCodeClassifier",
}


def ours(scheme: str, n_classes: int, gamma: float):
    """Our machine with a scheme."""
    from maxmargin import SVC
    from maxmargin.multiclass import ErrorCorrectingCode, OneVsRest

    multiclass = scheme
    if scheme == "ovr votes":
        multiclass = OneVsRest(n_classes, decoding="votes")
    if scheme in CODES:
        multiclass = ErrorCorrectingCode(n_classes, CODES[scheme])
    return SVC(multiclass=multiclass, gamma=gamma, **OPTIONS)


def theirs(scheme: str, n_classes: int, gamma: float):
    """scikit-learn's machine; a code with as many tasks as ours."""
    from sklearn import multiclass
    from sklearn.svm import SVC

    from maxmargin.multiclass import ErrorCorrectingCode

    machine = SVC(gamma=gamma, **OPTIONS)
    if scheme == "ovo":
        return machine
    options = {}
    if scheme == "ecoc dense":
        tasks = len(ErrorCorrectingCode(n_classes, "dense").code)
        options = {"code_size": tasks / n_classes, "random_state": 0}
    return getattr(multiclass, PEERS[scheme])(machine, **options)


def clocked(work: Callable[[], object]) -> dict:
    """Least wall and CPU seconds of a work, done some times."""
    wall, cpu = [], []
    while not wall or (len(wall) < REPEATS and sum(wall) < ENOUGH):
        began = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - began[0])
        cpu.append(time.process_time() - began[1])
    return {"wall": min(wall), "cpu": min(cpu)}


def measured(side: str, name: str, scheme: str, folder: Path) -> dict:
    """One machine on one data set."""
    rows = ROWS[name]
    # of a file without a test part, what the subset leaves; standardised by the training rows
    found = data.load(name, folder, rows, "standardised", new=None if rows is None else 5000)
    n_classes = len(np.unique(found.y))
    gamma = 1.0 / (found.X.shape[1] * found.X.var())  # the same in every part of the data
    machine = (ours if side == OURS else theirs)(scheme, n_classes, gamma)
    if side == OURS:  # loads what is compiled
        every = np.concatenate([np.flatnonzero(found.y == k)[:8] for k in np.unique(found.y)])
        machine.fit(found.X[every], found.y[every]).predict(found.X_new[:10])
    record = {"rows": len(found.y), "test": len(found.y_new), "classes": n_classes}
    record["fit"] = clocked(lambda: machine.fit(found.X, found.y))
    record["predict"] = clocked(lambda: machine.predict(found.X_new))
    record["accuracy"] = float(machine.score(found.X_new, found.y_new))
    if side == OURS:
        record["status"] = str(machine.certificate_.status)
        record["support"] = len(machine.support_)
        record["machines"], record["asked"] = len(machine.intercept_), machine.scheme_.n_asked
        values = machine.set_params(decision_function_shape="ovo").decision_function(found.X_new)
        record["ties"] = float(machine.scheme_.ambiguous(values).mean())
    return record


def works(sets: list[str], schemes: list[str]) -> list[tuple[str, str, str]]:
    """What there is to measure: side, data set, scheme; ours and the peer one after the other."""
    found = []
    for name in sets:
        for scheme in [*schemes, *(["ovo wrapper"] if "ovo" in schemes else [])]:
            if scheme == "ecoc exhaustive" and name != "satimage":  # 511 machines, and more
                continue
            if scheme == "ecoc bch" and name == "satimage":  # a code for many classes
                continue
            found += [(OURS, name, scheme)] if scheme in SCHEMES else []
            found += [(PEER, name, scheme)] if scheme in PEERS else []
    return found


# -- the report --------------------------------------------------------------------------------


def report(records: Records, clock: str) -> str:
    """All tables."""
    about = records["machine"]
    parts = [
        "# Ways to many classes",
        "`python benchmarks/multiclass.py --data FOLDER`. RBF, gamma = scale, C = 10, tol = 1e-3, "
        "columns standardised. The test part is the file's own, or rows that were left out. Times "
        f"are the least of up to {REPEATS}, in {'wall' if clock == 'wall' else 'CPU'} seconds"
        + ("" if clock == "wall" else " of all threads, on a machine that others used")
        + ". *Ties* are test rows with more than one best class, which the scheme's rule decides.",
        in_words(about),
    ]
    for name in ROWS:
        own = {
            scheme: records[key]
            for scheme in SCHEMES
            if (key := f"{OURS} {name} {scheme}") in records and "fit" in records[key]
        }
        if own:
            parts += _of_data(name, own, clock)
    parts += _peers(records, clock)
    parts += _graph(records, clock)
    return "\n\n".join(parts) + "\n"


def _of_data(name: str, own: dict[str, dict], clock: str) -> list[str]:
    first = next(iter(own.values()))
    base = own["ovo"]["fit"][clock] if "ovo" in own else None
    lines = [
        [
            scheme,
            number(record["accuracy"], ".4f"),
            number(record["fit"][clock]),
            number(record["fit"][clock] / base if base else None, ".1f"),
            number(record["predict"][clock]),
            str(record["support"]),
            f"{record['asked']} of {record['machines']}",
            number(100 * record["ties"], ".1f"),
        ]
        for scheme, record in own.items()
    ]
    size = f"{first['rows']:,} rows to learn from, {first['test']:,} to test"
    head = ["scheme", "accuracy", "fit", "over ovo", "predict", "support vectors", "machines asked"]
    said = f"## {name}: {size}, {first['classes']} classes"
    return [said, table([*head, "ties, %"], lines)]


def _peers(records: Records, clock: str) -> list[str]:
    lines, ratios = [], []
    for name in ROWS:
        for scheme, peer in PEERS.items():
            mine = records.get(f"{OURS} {name} {'ovo' if scheme == 'ovo wrapper' else scheme}", {})
            theirs = records.get(f"{PEER} {name} {scheme}", {})
            if "fit" not in mine or not theirs:
                continue
            if "error" in theirs:
                lines.append([name, peer, theirs["error"], *[number(None)] * 4])
                continue
            ratio = theirs["fit"][clock] / mine["fit"][clock]
            ratios.append(ratio)
            lines.append(
                [
                    name,
                    peer,
                    number(theirs["fit"][clock]),
                    number(ratio, ".1f"),
                    number(theirs["predict"][clock] / mine["predict"][clock], ".1f"),
                    number(theirs["accuracy"], ".4f"),
                    number(mine["accuracy"], ".4f"),
                ]
            )
    if not lines:
        return []
    head = ["data", "peer", "its fit", "fit, times as long as ours", "predict, likewise"]
    said = [
        "## Beside scikit-learn's",
        "Each wrapper around scikit-learn's SVC, beside our scheme of the same kind; its code has "
        "as many tasks as our dense one.",
        table([*head, "its accuracy", "ours"], lines),
    ]
    return said + ([f"Geometric mean of the fits: {geometric_mean(ratios):.1f}."] if ratios else [])


def _graph(records: Records, clock: str) -> list[str]:
    lines = []
    for name in ROWS:
        pairs, graph = (records.get(f"{OURS} {name} {scheme}", {}) for scheme in ("ovo", "dag"))
        if "fit" in pairs and "fit" in graph:
            times = [record["predict"][clock] for record in (pairs, graph)]
            asked = pairs["asked"] / graph["asked"]
            lines.append([name, number(asked, ".1f"), *map(number, [*times, times[0] / times[1]])])
    head = ["data", "machines, times fewer", "predict by pairs", "by the graph", "ratio"]
    return ["## The graph beside all pairs", table(head, lines)] if lines else []


def main() -> None:
    """Measure what is not known yet, and write the tables."""
    if sys.argv[1:2] == ["--child"]:
        side, name, scheme, folder = sys.argv[2:]
        print(json.dumps(measured(side, name, scheme, Path(folder))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data.add_option(parser)
    parser.add_argument("--sets", default="", help="data sets, with commas")
    parser.add_argument("--schemes", default="", help="schemes, with commas")
    parser.add_argument("--again", action="store_true", help="measure what is known, too")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a process")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = Records(options.output / "multiclass.json")
    sets = chosen(options.sets, ROWS, parser)
    for side, name, scheme in works(sets, chosen(options.schemes, SCHEMES, parser)):
        key = f"{side} {name} {scheme}"
        if options.again or "fit" not in records.get(key, {}):
            child = [__file__, "--child", side, name, scheme, str(options.data)]
            records[key] = run_once(child, options.limit)
            records["machine"] = environment()
            records.save()
            print(key, records[key], flush=True)
    records.write(report(records, options.clock))
    print(report(records, options.clock))


if __name__ == "__main__":
    main()

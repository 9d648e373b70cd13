"""Every solver on the same problems, to the same duality gap: time and memory against rows.

    python benchmarks/solvers.py --data FOLDER [--only covtype,a9a] [--limit 20] [--page FILE]

Problems are dual ones (``DUAL_METHODS``) and risks (``RISK_METHODS``) of real data, with more and
more rows; ``maxmargin.compare_solvers`` runs each solver on one thread to a relative gap of 1e-3,
for ``--limit`` seconds at most. Times are CPU seconds, which mean more on a machine that others
use, too. A solver that has not reached the gap, or refused, is not tried with more rows. Results go
to ``results/solvers.json`` and ``.md``; ``--page`` puts the tables into a page of the
documentation, between its two marks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from data import add_option, load
from harness import DASH, RESULTS, Records, chosen, environment, in_words, number, table

from maxmargin import Gram, compare_solvers, duals
from maxmargin.backends.cpu.linear import Design
from maxmargin.kernels import RBF
from maxmargin.losses import Hinge, Logistic
from maxmargin.memory import megabytes
from maxmargin.risk import RegularisedRisk
from maxmargin.solvers.compare import REFUSED
from maxmargin.solvers.select import DUAL_METHODS, RISK_METHODS

GAP = 1e-3
MARKS = "<!-- measured: begin -->", "<!-- measured: end -->"


def _kernel(name: str, gamma: float, C: float, bias: bool = True) -> Callable:
    def posed(folder: Path | None, rows: int) -> object:
        data = load(name, folder, rows, "standardised", labels="signs")
        gram, n = Gram.of(data.X, RBF(gamma)), len(data.y)
        cost = np.full(n, C)
        return duals.c_svc(np.arange(n), data.y.astype(float), cost, bias=bias).over(gram)

    return posed


def _linear(name: str, loss: object) -> Callable:
    def posed(folder: Path | None, rows: int) -> object:
        data = load(name, folder, rows, sparse=name == "a9a", labels="signs")
        return RegularisedRisk(Design(data.X), data.y.astype(float), np.ones(len(data.y)), loss)

    return posed


CASES: dict[str, tuple[str, Callable, tuple[int, ...], dict]] = {
    "covtype": (
        "C-SVC with an intercept: covtype (54 features), RBF kernel, gamma = 0.02, C = 1",
        _kernel("covtype", 0.02, 1.0),
        (250, 500, 1000, 2000, 4000, 8000, 16_000),
        DUAL_METHODS,
    ),
    "magic04": (
        "C-SVC without an intercept: MAGIC (10 features), RBF kernel, gamma = 0.1, C = 10",
        _kernel("magic04", 0.1, 10.0, bias=False),
        (250, 500, 1000, 2000, 4000, 8000, 16_000),
        DUAL_METHODS,
    ),
    "a9a": (
        "Hinge loss: a9a (123 features, sparse), C = 1",
        _linear("a9a", Hinge()),
        (500, 2000, 8000, 32_000),
        RISK_METHODS,
    ),
    "logistic": (
        "Logistic loss: a9a (123 features, sparse), C = 1",
        _linear("a9a", Logistic()),
        (500, 2000, 8000, 32_000),
        RISK_METHODS,
    ),
}


def measured(
    posed: Callable, sizes: tuple, methods: dict, folder: Path | None, limit: float
) -> list[dict]:
    """One record for each solver and size that was tried."""
    found, left = [], list(methods)
    for rows in sizes:
        if not left:
            break
        try:
            comparison = compare_solvers(
                posed(folder, rows), solvers=left, tol=GAP, time_limit=limit, trace=False
            )
        except ValueError as error:  # all of them refuse
            found += [
                {"solver": name, "rows": rows, "status": REFUSED, "why": str(error)}
                for name in left
            ]
            break
        print(f"{rows} rows, {comparison}\n", flush=True)
        found += [{"rows": rows, **asdict(result)} for result in comparison]
        left = [name for name in left if comparison[name].reached]
    return found


def _cell(record: dict | None, limit: float) -> str:
    """Time and memory; how far it came; or a dash where it was not tried."""
    if record is None or record["status"] == REFUSED:
        return DASH
    if not record["reached"]:
        short = f"gap {record['relative_gap']:.0e}"
        return f"{short} after {limit:g} s" if record["status"] == "time_limit" else short
    late = "at most " * (record["status"] == "time_limit")  # its own rule had not ended it yet
    return f"{late}{number(record['cpu_seconds'], '.2g')} s, {megabytes(record['peak_bytes'])}"


def tables(records: Records) -> str:
    """A table for each case: solvers by rows."""
    parts = []
    for name, (head, _, sizes, methods) in CASES.items():
        if name not in records:
            continue
        limit, rows = records[name]["limit"], records[name]["cells"]
        cells = {(row["solver"], row["rows"]): row for row in rows}
        known = [m for m in methods if any(row["solver"] == m for row in rows)]
        taken = [m for m in known if any(r["solver"] == m and r["status"] != REFUSED for r in rows)]
        lines = [
            [f"`{method}`", *(_cell(cells.get((method, n)), limit) for n in sizes)]
            for method in taken
        ]
        parts += [f"**{head}**", table(["solver", *(f"{n:,} rows" for n in sizes)], lines)]
        why = {row["solver"]: row["why"] for row in rows if row["status"] == REFUSED}
        parts += ["\n".join(f"- `{m}` refuses: {why[m]}" for m in why)] if why else []
    return "\n\n".join(parts)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of every run")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help="page to put the tables into")
    options = parser.parse_args()
    records = Records(options.output / "solvers.json")
    records["machine"] = environment()
    for name in chosen(options.only, CASES, parser):
        _, posed, sizes, methods = CASES[name]
        cells = measured(posed, sizes, methods, options.data, options.limit)
        records[name] = {"limit": options.limit, "cells": cells}
        records.save()
    said = f"CPU seconds on one thread and memory, to a relative gap of {GAP:g}. "
    said += in_words(records["machine"])
    head = "# Solvers against each other\n\n`python benchmarks/solvers.py --data FOLDER`"
    records.write(f"{head}\n\n{said}\n\n{tables(records)}\n")
    if options.page is not None:
        before, _, rest = options.page.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        text = f"{before}{MARKS[0]}\n{said}\n\n{tables(records)}\n{MARKS[1]}{after}"
        options.page.write_text(text)
    print(tables(records))


if __name__ == "__main__":
    main()

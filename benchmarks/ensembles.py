"""Ensembles beside scikit-learn's: speed, errors, bias and variance.

    python benchmarks/ensembles.py --data FOLDER [--only PART,PART...] [--list]

Each module of ``MODULES`` has ``PARTS``: names with a function that measures, given the folder of
the data, and one that writes a report of what it returned. Times are CPU times on one thread for
either side (``OPENBLAS_NUM_THREADS=1``), taken in turns, the best of several. Results go to
``results/ensembles.json`` and ``.md``; parts that are not asked for stay as they were.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from importlib import import_module

from data import add_option
from harness import RESULTS, Records, chosen, environment, in_words

MODULES = [
    "ensembles_bagging",
    "ensembles_trees",
    "ensembles_boosting",
]


def main() -> None:
    """Measure what is asked for, and write it down."""
    parts = {}
    for module in MODULES:
        parts |= import_module(module).PARTS
    parser = argparse.ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--only", default="", help=f"some of {', '.join(parts)}")
    parser.add_argument("--list", action="store_true", help="say which parts there are, and end")
    given = parser.parse_args()
    if given.list:
        print("\n".join(parts))
        return
    records = Records(RESULTS / "ensembles.json")
    for name in chosen(given.only, parts, parser):
        measure, report = parts[name]
        records[name] = {"environment": environment(), "found": measure(given.data)}
        records.save()
        print(f"## {name}\n\n{report(records[name]['found'])}\n", flush=True)
    text = ["# Ensembles", "`python benchmarks/ensembles.py --data FOLDER`"]
    for name, record in records.items():
        if name in parts:
            text += [f"## {name}", parts[name][1](record["found"]), in_words(record["environment"])]
    records.write("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()

"""Machines on Dask collections: against one process, on disk, with killed workers, and on paper.

    python benchmarks/dask.py --data FOLDER [--only PART,PART...] [--list]

The cluster is a LocalCluster of two worker processes with one thread each, on the machine that also
runs the scheduler and the process that fits. Each module of ``MODULES`` has ``PARTS``: names with a
function that measures, given the folder of the data, and one that writes a report. Times are wall
times, sides in turns. Results go to ``results/dask.json`` and ``.md``; parts that are not asked for
stay as they were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "dask":  # another script of this folder has looked for the library
    raise ImportError("benchmarks/dask.py is a script; run it, or move its folder down sys.path.")

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = str(Path(__file__).resolve().parent)
sys.path[:] = [*(folder for folder in sys.path if folder != HERE), HERE]  # dask is not this file

import argparse  # noqa: E402
from importlib import import_module  # noqa: E402

from data import add_option  # noqa: E402
from harness import RESULTS, Records, chosen, environment, in_words  # noqa: E402

MODULES = ["dask_kernel", "dask_linear", "dask_search", "dask_scaling"]


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
    records = Records(RESULTS / "dask.json")
    for name in chosen(given.only, parts, parser):
        measure, report = parts[name]
        records[name] = {"environment": environment(), "found": measure(given.data)}
        records.save()
        print(f"## {name}\n\n{report(records[name]['found'])}\n", flush=True)
    text = ["# Dask", "`python benchmarks/dask.py --data FOLDER`"]
    for name, record in records.items():
        if name in parts:
            text += [f"## {name}", parts[name][1](record["found"]), in_words(record["environment"])]
    records.write("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()

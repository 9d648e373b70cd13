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

from parts import run_parts  # noqa: E402

MODULES = ["dask_kernel", "dask_linear", "dask_search", "dask_scaling"]


if __name__ == "__main__":
    run_parts(__doc__, "dask", MODULES)

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

from parts import run_parts

MODULES = [
    "ensembles_bagging",
    "ensembles_trees",
    "ensembles_boosting",
]


if __name__ == "__main__":
    run_parts(__doc__, "ensembles", MODULES)

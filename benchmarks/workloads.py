"""What ``speed.py`` measures: machines, their parameters, and the data they are fitted to.

A workload's key is ``section/name``. The data sets are those of :mod:`data`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import data
import numpy as np
import scipy.sparse as sp

QUICK_SHARE, QUICK_LEAST = 10, 500  # --quick takes a tenth of the rows, but at least so many


@dataclass(frozen=True)
class Workload:
    """One row of a table: a machine and its parameters on some rows of a data set.

    ``rows`` and ``predict`` count the rows to fit and to predict (None: all there are). ``limit``
    is the time in seconds after which a run is given up.
    """

    key: str
    source: str
    parameters: dict
    machine: str = "SVC"
    group: str = ""
    rows: int | None = None
    predict: int | None = 0
    sparse: bool = False
    grid: dict = field(default_factory=dict)
    limit: float = 3600.0

    @property
    def section(self) -> str:
        """The first part of the key."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """The rest of the key."""
        return self.key.partition("/")[2]


SOURCES = {  # names in keys that are shorter than those of the data sets
    "california": "california_housing",
    "kin40k": "gp_kin40k",
    "protein": "gp_protein",
}
LARGE, PAIRS, FEW = "large", "many small pairs", "few support vectors"
GAMMAS = np.array([0.1, 0.3, 1, 3, 10, 30])
COSTS = [0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]
GROWTH = (5_000, 10_000, 20_000, 40_000, 80_000, 160_000)

_A9A = {"C": 10.0, "gamma": 0.05}
_W8A = {"C": 16.0, "gamma": 0.03125}
_COVTYPE = {"C": 10.0, "gamma": 10.0}
_SVR = {"C": 10.0, "epsilon": 0.1, "gamma": "scale"}


def _svc() -> list[Workload]:
    def row(group, source, C, gamma, rows=None, predict=None):
        parameters = {"C": float(C), "gamma": gamma}
        key = f"svc/{source}"
        return Workload(key, source, parameters, group=group, rows=rows, predict=predict)

    return [
        row(LARGE, "a9a", **_A9A),
        row(LARGE, "w8a", **_W8A, predict=10_000),
        row(LARGE, "covtype", **_COVTYPE, rows=50_000, predict=20_000),
        row(LARGE, "mnist", C=10, gamma=0.02),
        row(PAIRS, "usps", C=10, gamma=1 / 128),
        row(PAIRS, "letter", C=16, gamma=0.5, rows=16_000),
        row(PAIRS, "shuttle", C=100, gamma=50.0),
        row(FEW, "skin", C=10, gamma=10.0, rows=200_000),
    ]


def _csr() -> list[Workload]:
    dense = (workload for workload in _svc() if workload.source in ("a9a", "w8a"))
    return [
        replace(workload, key=f"csr/{workload.name}", group="", sparse=True, limit=900.0)
        for workload in dense
    ]


def _svr() -> list[Workload]:
    sizes = {"california": None, "kin40k": 20_000, "protein": 20_000}
    return [
        Workload(f"svr/{name}", SOURCES[name], _SVR, machine="SVR", rows=rows)
        for name, rows in sizes.items()
    ]


def _nu() -> list[Workload]:
    """The nu machines; NuSVR takes the labels -1 and +1 of a9a and w8a for a real target.

    Of w8a 3 % are positive, so nu must stay below 0.06. On a9a, NuSVC's margin comes near ``tol``
    for a nu much smaller than 0.3, and what is compared then is chance.
    """

    def row(machine, source, **parameters):
        key = f"nu/{machine}-{source}"
        source = SOURCES.get(source, source)
        return Workload(key, source, parameters, machine=machine, rows=20_000)

    a9a, w8a = {"gamma": _A9A["gamma"]}, {"gamma": _W8A["gamma"]}
    return [
        row("NuSVC", "a9a", nu=0.3, **a9a),
        row("NuSVC", "w8a", nu=0.04, **w8a),
        row("NuSVR", "a9a", nu=0.2, C=1.0, **a9a),
        row("NuSVR", "w8a", nu=0.04, C=1.0, **w8a),
        row("NuSVR", "kin40k", nu=0.5, C=10.0, gamma="scale"),
        row("OneClassSVM", "a9a", nu=0.1, **a9a),
        row("OneClassSVM", "w8a", nu=0.1, **w8a),
    ]


def _search() -> list[Workload]:
    def row(source, gammas, rows=None):
        grid = {"C": COSTS, "gamma": gammas.tolist()}
        return Workload(f"search/{source}", source, {}, machine="search", rows=rows, grid=grid)

    return [row("covtype", GAMMAS, 5_000), row("usps", GAMMAS / 1000)]


def _growth() -> list[Workload]:
    return [Workload(f"growth/{rows}", "covtype", _COVTYPE, rows=rows) for rows in GROWTH]


WORKLOADS = {
    workload.key: workload
    for section in (_svc, _csr, _svr, _nu, _search, _growth)
    for workload in section()
}


def load(workload: Workload, folder: Path | None, quick: bool = False) -> data.Data:
    """Load the data of a workload."""
    rows, new = workload.rows, workload.predict
    if quick:
        rows = _tenth(rows, data.size(workload.source, folder))
        new = new and _tenth(new, new)
    labels = "real" if workload.machine.endswith("SVR") else "integers"
    kept = {"sparse": workload.sparse, "labels": labels}
    found = data.load(workload.source, folder, rows, new=new, **kept)
    if quick and new is None:
        new = _tenth(None, len(found.y_new))
        found = replace(found, X_new=found.X_new[:new], y_new=found.y_new[:new])
    if not workload.sparse:
        return found
    return replace(found, X=_with_ones(found.X), X_new=_with_ones(found.X_new))


def _tenth(wanted: int | None, available: int) -> int:
    count = available if wanted is None else min(wanted, available)
    return min(count, max(count // QUICK_SHARE, QUICK_LEAST))


def _with_ones(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Append a column of ones, which the RBF kernel does not see.

    w8a has empty rows, and from such CSR data scikit-learn-intelex 2026.2 often never returns.
    """
    return sp.csr_matrix(sp.hstack([rows, np.ones((rows.shape[0], 1))]), dtype=np.float64)

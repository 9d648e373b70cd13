"""What is measured: data sets, and the machines that are fitted to them.

A workload's key is ``section/name``. Scaling takes its limits from all training rows of a file, so
subsets of one file share it. Where only some rows are wanted they are the first of a permutation
with seed 0. Rows to predict are the file's test part, or else the rows that follow in that
permutation, or else (w8a, which is fitted whole and has no test part) training rows again.

The data folder holds these files, each with ``X`` and ``y`` (CSR as ``X_data``, ``X_indices``,
``X_indptr``, ``X_shape``) and perhaps a test part ``X_test``, ``y_test``:
a9a, w8a, covtype, mnist, usps, letter, shuttle, skin_nonskin, california_housing, gp_kin40k and
gp_protein, all ``.npz``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

QUICK_SHARE, QUICK_LEAST = 10, 500  # --quick takes a tenth of the rows, but at least so many


@dataclass(frozen=True)
class Source:
    """A file and how its values are scaled.

    ``unit`` is the value of ``X`` that becomes one, and ``limits`` what the smallest and largest
    value of a column become; ``standardise`` is for regression and includes the target.
    ``positive`` makes two classes: this one and the rest.
    """

    file: str
    unit: float = 1.0
    limits: tuple[int, int] | None = None
    standardise: bool = False
    positive: int | None = None


SOURCES = {
    "a9a": Source("a9a.npz"),
    "w8a": Source("w8a.npz"),
    "covtype": Source("covtype.npz", limits=(0, 1), positive=2),
    "mnist": Source("mnist.npz", unit=255.0),
    "usps": Source("usps.npz"),
    "letter": Source("letter.npz", limits=(-1, 1)),
    "shuttle": Source("shuttle.npz", limits=(0, 1)),
    "skin": Source("skin_nonskin.npz", unit=255.0),
    "california": Source("california_housing.npz", standardise=True),
    "kin40k": Source("gp_kin40k.npz", standardise=True),
    "protein": Source("gp_protein.npz", standardise=True),
}


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
        Workload(f"svr/{source}", source, _SVR, machine="SVR", rows=rows)
        for source, rows in sizes.items()
    ]


def _nu() -> list[Workload]:
    """The nu machines; NuSVR takes the labels -1 and +1 of a9a and w8a for a real target.

    Of w8a 3 % are positive, so nu must stay below 0.06. On a9a, NuSVC's margin comes near ``tol``
    for a nu much smaller than 0.3, and what is compared then is chance.
    """

    def row(machine, source, **parameters):
        key = f"nu/{machine}-{source}"
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


@dataclass(frozen=True)
class Data:
    """Arrays of a workload, float64; ``X_new`` and ``y_new`` are the rows to predict."""

    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    X_new: np.ndarray | sp.csr_matrix
    y_new: np.ndarray


def load(workload: Workload, folder: Path, quick: bool = False) -> Data:
    """Read, cut and scale the data of a workload."""
    source = SOURCES[workload.source]
    with np.load(folder / source.file) as file:
        X, y = stored(file, "X"), file["y"]
        test = (stored(file, "X_test"), file["y_test"]) if "y_test" in file else None
    rows = _count(workload.rows, len(y), quick)
    order = np.random.default_rng(0).permutation(len(y))
    chosen = order[:rows] if rows < len(y) else np.arange(len(y))
    if test is None:
        rest = order[rows:] if rows < len(y) else order
        test = X[rest], y[rest]
    new = slice(_count(workload.predict, len(test[1]), quick))

    def points(part):
        return _sparse(part) if workload.sparse else _scaled(source, X, part)

    def target(values):
        return _target(source, y, values, regression=workload.machine.endswith("SVR"))

    return Data(points(X[chosen]), target(y[chosen]), points(test[0][new]), target(test[1][new]))


def stored(file, name: str) -> np.ndarray | sp.csr_matrix:
    """An array of a file, or the CSR matrix that is stored in four."""
    if name in file:
        return file[name]
    parts = (file[f"{name}_data"], file[f"{name}_indices"], file[f"{name}_indptr"])
    return sp.csr_matrix(parts, shape=tuple(file[f"{name}_shape"]))


def _count(wanted: int | None, available: int, quick: bool) -> int:
    count = available if wanted is None else min(wanted, available)
    return min(count, max(count // QUICK_SHARE, QUICK_LEAST)) if quick else count


def _sparse(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Append a column of ones, which the RBF kernel does not see.

    w8a has empty rows, and from such CSR data scikit-learn-intelex 2026.2 often never returns.
    """
    ones = np.ones((rows.shape[0], 1))
    return sp.csr_matrix(sp.hstack([rows, ones]), dtype=np.float64)


def _scaled(source: Source, X, rows) -> np.ndarray:
    """Some rows, dense and scaled as the training rows X ask."""
    rows = rows.toarray() if sp.issparse(rows) else rows
    if source.standardise:
        return (rows - X.mean(axis=0, dtype=np.float64)) / X.std(axis=0, dtype=np.float64)
    if source.limits is None:
        return rows.astype(np.float64) / source.unit
    least, largest = X.min(axis=0).astype(np.float64), X.max(axis=0)
    low, high = source.limits
    return low + (high - low) * (rows - least) / np.where(largest > least, largest - least, 1.0)


def _target(source: Source, y: np.ndarray, values: np.ndarray, regression: bool) -> np.ndarray:
    """Labels as integers, or a real target."""
    if source.standardise:
        return (values - y.mean(dtype=np.float64)) / y.std(dtype=np.float64)
    if regression:
        return values.astype(np.float64)
    return (values if source.positive is None else values == source.positive).astype(np.int64)

"""Heuristics of the solvers, each switched off alone: what does it pay, and where does it harm?

    python benchmarks/ablation.py --data FOLDER [--only blocks,small] [--heuristics momentum]

A *road* is a kind of fit that takes a certain solver: support vector machines of some size, linear
machines, a search. A cell is a road, a data set and a C. Every cell is fitted as the code is, and
once more for each heuristic of its road with that one switched off, to the same tolerance, in turns
and in one process. A ratio is the CPU time without the heuristic over that with it: above one, it
pays. A fit that goes step by step the same way has not met the heuristic, and does not count; a
ratio beyond 5 % is measured again before it does. Where a fit without it does not converge within
the time limit, the ratio is a bound.

The rule: what does not pay 5 % somewhere without harm elsewhere is to be deleted. Results are
merged into ``results/ablation.json`` cell by cell, and ``results/ablation.md`` is written from all.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import data
import numba
import numpy as np
from harness import CPU, RESULTS, Records, chosen, environment, geometric_mean, in_words, table
from harness import seconds as timed

from maxmargin import SVC, SVR, LinearSVC, LinearSVR, LogisticRegression, SVCSearchCV
from maxmargin.backends.cpu import operand
from maxmargin.backends.cpu.dual import small as cpu_small
from maxmargin.backends.cpu.dual import steps as cpu_steps
from maxmargin.backends.cpu.dual.steps import steps_among
from maxmargin.backends.cpu.linear import losses as cpu_losses
from maxmargin.backends.cpu.linear import newton as cpu_newton
from maxmargin.risk import regularised
from maxmargin.solvers import SMO
from maxmargin.solvers.dual import certified, near_level, seeded, smo, working_set
from maxmargin.solvers.dual import small as small_batch
from maxmargin.solvers.risk import (
    dual_descent,
    multipliers,
    newton,
    newton_steps,
    subsampled_newton,
)
from maxmargin.svm import primal_start

LIMIT = 8.0  # seconds for a fit
PAYS, HARMS = 1.05, 0.95
REPEATS, MORE = 3, 3  # turns, and more of them for a ratio that would count
LONG = 0.7  # CPU seconds of a fit from which there are fewer
NEVER = 1 << 60


# -- roads -------------------------------------------------------------------------------------


class BySMO(SVC):
    """SVC by SMO alone."""

    def _solver(self) -> Any:
        return replace(super()._solver(), method=SMO())


@dataclass(frozen=True)
class Road:
    """A kind of fit: which machine, on which data, for which C (of a search: which gamma)."""

    about: str
    make: Callable[[float, bool], Any]
    names: tuple[str, ...]
    rows: int
    costs: tuple[float, ...] = (0.1, 10.0, 1000.0)
    scaling: str = "standardised"
    labels: str = "two"

    def load(self, name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
        """Rows and labels of a data set."""
        topic, _, rest = name.partition(" ")
        if topic == "reuters":
            found = dict(data.reuters(data._within(folder)))[rest]
            return found.X, found.y
        sparse = self.scaling == "sparse" and name in ("a9a", "w8a")
        scaling = "standardised" if self.scaling == "sparse" else self.scaling
        rows = self.rows // 2 if data.is_regression(name) else self.rows  # two variables for each
        found = data.load(name, folder, rows, scaling, sparse=sparse, labels=self.labels)
        return found.X, found.y


def _kernel(kernel: str = "rbf", kind: type = SVC, **more: Any) -> Callable[[float, bool], Any]:
    def make(C: float, regression: bool) -> Any:
        chosen = SVR if regression else kind
        return chosen(**{"C": C, "kernel": kernel, "n_jobs": 1, "time_limit": LIMIT, **more})

    return make


def _linear(loss: str, **more: Any) -> Callable[[float, bool], Any]:
    def make(C: float, regression: bool) -> Any:
        fixed = {"C": C, "max_iter": -1, "time_limit": LIMIT, "n_jobs": 1, **more}
        if regression:
            kind = "squared_epsilon_insensitive" if "squared" in loss else "epsilon_insensitive"
            return LinearSVR(loss=kind, **fixed)
        if loss == "logistic":
            return LogisticRegression(**fixed)
        return LinearSVC(loss=loss, **fixed)

    return make


def _search(gamma: float, regression: bool) -> Any:
    grid = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0]}
    return SVCSearchCV(SVC(gamma=gamma, n_jobs=1), grid, cv=3)


_SETS = ("magic04", "a9a", "susy_30k", "htru2", "covtype", "spambase", "usps", "letter")
_FLAT = ("magic04", "a9a", "susy_30k", "htru2", "covtype", "spambase", "cod_rna_standardized")
_TALL = ("made overlap", "made border", "covtype")
_LARGE = ("covtype", "a9a", "susy_30k", "cod_rna_standardized", "htru2", "skin", "letter")
ROADS = {
    "blocks": Road(
        "RBF, 4,000 rows, two classes or a real target: large working sets",
        _kernel(),
        (*_SETS, "ida_banana", "california_housing", "made overlap"),
        4000,
    ),
    "large blocks": Road(
        "RBF, 20,000 rows: large working sets, many rounds",
        _kernel(time_limit=40.0),
        (*_LARGE, "california_housing", "made overlap"),
        20_000,
        (0.1, 1.0, 100.0),
    ),
    "growing": Road("RBF, 1,500 rows: one set that grows", _kernel(), (*_SETS, "ida_banana"), 1500),
    "small": Road(
        "RBF, at most 800 rows: many at a time in compiled code",
        _kernel(),
        (*_SETS, "ida_banana", "svmguide1", "breast_cancer", "made overlap"),
        800,
    ),
    "pairs": Road(
        "RBF, several classes, 1,500 rows: small problems by the dozen",
        _kernel(),
        ("digits", "letter", "satimage", "pendigits", "usps", "shuttle", "wine", "iris"),
        1500,
        labels="integers",
    ),
    "smo": Road("RBF by SMO alone, 1,200 rows", _kernel(kind=BySMO), _SETS, 1200),
    "uneven": Road(
        "cubic kernel by SMO alone, 800 rows: diagonal values far apart",
        _kernel("poly", kind=BySMO, coef0=1.0),
        _SETS,
        800,
        (1e-3, 0.1, 10.0),
    ),
    "linear kernel": Road(
        "linear kernel, 2,500 rows: singular matrices",
        _kernel("linear"),
        (*_SETS, "california_housing", "made overlap"),
        2500,
        (0.1, 1.0, 100.0),
    ),
    "tall kernel": Road(
        "linear kernel, 25,000 rows",
        _kernel("linear"),
        ("covtype", "cod_rna_standardized", "susy_30k", "skin", "w8a", "a9a", "shuttle", "letter"),
        25_000,
        (0.1, 1.0, 10.0),
    ),
    "smooth": Road(
        "LinearSVC with the squared hinge, all rows up to 30,000",
        _linear("squared_hinge"),
        (*_FLAT, "w8a"),
        30_000,
        (0.01, 1.0, 100.0),
        "sparse",
    ),
    "logistic": Road(
        "LogisticRegression, all rows up to 30,000",
        _linear("logistic"),
        (*_FLAT, "w8a"),
        30_000,
        (0.01, 1.0, 100.0),
        "sparse",
    ),
    "tall": Road(
        "LinearSVC with the squared hinge, 150,000 rows",
        _linear("squared_hinge"),
        _TALL,
        150_000,
        (0.01, 1.0, 100.0),
    ),
    "tall logistic": Road(
        "LogisticRegression, 150,000 rows",
        _linear("logistic"),
        _TALL,
        150_000,
        (0.01, 1.0, 100.0),
    ),
    "kinks": Road(
        "LinearSVC with the hinge, all rows up to 30,000",
        _linear("hinge"),
        (*_FLAT, "w8a", "california_housing", "made border"),
        30_000,
        (0.01, 1.0, 100.0),
        "sparse",
    ),
    "rows": Road(
        "LinearSVC with the hinge by dual coordinate descent",
        _linear("hinge", dual=True),
        ("reuters earn", "reuters acq", "reuters grain", "a9a", "w8a", "spambase", "htru2", "usps"),
        5000,
        (0.1, 1.0, 10.0),
        "sparse",
    ),
    "search": Road(
        "SVCSearchCV, five C and three folds, 1,000 rows; for gammas of 0.01, 0.1 and 1",
        _search,
        (*_SETS, "ida_banana"),
        1000,
        (0.01, 0.1, 1.0),
    ),
}


# -- heuristics --------------------------------------------------------------------------------


Switch = tuple[Any, str, Any]  # whose attribute becomes what


@dataclass(frozen=True)
class Heuristic:
    """Something that could be left out: where it is, and what has to change for that.

    ``silent`` says that a fit without it goes the same way, only slower or faster; ``purpose`` what
    it is for where that is not speed; ``deleted`` that it is gone, and only its record is left.
    """

    name: str
    where: str
    roads: tuple[str, ...]
    off: Callable[[], list[Switch]]
    silent: bool = False
    purpose: str = ""
    deleted: bool = False

    @cached_property
    def switches(self) -> list[Switch]:
        """What changes; built once, since it may have to be compiled."""
        return self.off()

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """Leave it out for a while."""
        kept = [(owner, name, vars(owner)[name]) for owner, name, _ in self.switches]
        try:
            for owner, name, value in self.switches:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)


def _constants(owner: Any, **values: Any) -> Callable[[], list[Switch]]:
    return lambda: [(owner, name, value) for name, value in values.items()]


def _anew(function: Any) -> Any:
    """Compile a function again, at its first call: with the constants as they are then."""
    return numba.njit(nogil=True, error_model="numpy")(function.py_func)


def _small(**values: Any) -> Callable[[], list[Switch]]:
    return lambda: [
        *_constants(cpu_small, **values)(),
        (cpu_small, "solve_some", _anew(cpu_small.solve_some)),
    ]


def _without_first_sample() -> list[Switch]:
    select = working_set._State.select

    def selected(self: Any, tol: float) -> np.ndarray:
        self.fresh = False
        return select(self, tol)

    return [(working_set._State, "select", selected)]


def _all_rows_kept() -> list[Switch]:
    def places(self: Any, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        store = self.store
        slots = np.arange(store.used, min(store.used + len(new), store.capacity))
        kept = np.arange(len(new)) < len(slots)
        if len(slots):
            store.place(new[kept], slots)
        return kept, slots

    return [(working_set._State, "_places", places)]


def _no_extrapolation() -> list[Switch]:
    reach = _anew(cpu_losses.reach)
    return [
        (cpu_losses, "FAR", 1.0),
        (regularised, "reach", reach),
        (cpu_newton, "reach", reach),
        (newton_steps, "newton_step", _anew(cpu_newton.newton_step)),
    ]


def _even_chances(risk: Any, f: np.ndarray, count: int) -> np.ndarray:
    return np.where(risk.cost > 0, min(1.2 * count / risk.n, 1.0), 0.0)


def _every_row() -> list[Switch]:
    looked = dual_descent._looked

    def all_rows(f: np.ndarray, *others: Any) -> Any:
        gap, loss, _ = looked(f, *others)
        return gap, loss, np.arange(len(f))

    return [(dual_descent, "_looked", all_rows)]


_ENGINE = ("blocks", "large blocks", "linear kernel")
_SMOOTH = ("smooth", "logistic", "tall", "tall logistic")
HEURISTICS = [
    Heuristic(
        "fill-up of small sets",
        "working_set._FEWEST",
        _ENGINE,
        _constants(working_set, _FEWEST=2),
    ),
    Heuristic(
        "random violators beside the worst",
        "working_set._WORST",
        _ENGINE,
        _constants(working_set, _WORST=1.0),
    ),
    Heuristic(
        "first set a random sample",
        "working_set._FIRST",
        _ENGINE,
        _without_first_sample,
    ),
    Heuristic(
        "rows kept in float32",
        "operand._CHEAP",
        _ENGINE,
        _constants(operand, _CHEAP=np.inf),
        silent=True,
    ),
    Heuristic(
        "of the rows, only those of free variables kept",
        "working_set._State._places",
        _ENGINE,
        _all_rows_kept,
        silent=True,
    ),
    Heuristic(
        "blocks solved to a tenth of the violation only",
        "cpu.dual.steps.wanted",
        _ENGINE,
        _constants(cpu_steps, wanted=lambda tol, violation: 0.5 * tol),
    ),
    Heuristic(
        "momentum in blocks",
        "cpu.dual.momentum.conjugate_steps",
        _ENGINE,
        _constants(working_set, conjugate_steps=steps_among),
    ),
    Heuristic(
        "patience with a block",
        "working_set._PATIENCE",
        _ENGINE,
        _constants(working_set, _PATIENCE=NEVER),
        purpose="an end where float32 never comes to its tolerance",
    ),
    Heuristic(
        "sets that grow",
        "working_set._WHOLE",
        ("growing",),
        _constants(working_set, _WHOLE=0),
    ),
    Heuristic(
        "Newton's steps near the level",
        "near_level.Pace.tired",
        ("blocks", "growing", "linear kernel", "smo", "uneven"),
        _constants(near_level.Pace, tired=lambda self, violation: False),
    ),
    Heuristic(
        "low rank in Newton's steps",
        "near_level.NearLevel._has_low_rank",
        ("blocks", "linear kernel", "uneven"),
        _constants(near_level.NearLevel, _has_low_rank=lambda self, cost: False),
    ),
    Heuristic(
        "only variables near the level in Newton's steps",
        "near_level._MANY",
        ("blocks", "growing", "linear kernel"),
        _constants(near_level, _MANY=0.0),
    ),
    Heuristic(
        "small problems in compiled code",
        "small.SmallBatch.accepts",
        ("small", "pairs"),
        _constants(small_batch.SmallBatch, accepts=lambda *arguments: "switched off"),
    ),
    Heuristic(
        "small: an early descent at a loose tolerance",
        "cpu.dual.small._LOOSE",
        ("small", "pairs"),
        _small(_LOOSE=1.0),
    ),
    Heuristic(
        "small: that descent on small faces only",
        "cpu.dual.small._SMALL_FACE",
        ("small", "pairs"),
        list,
        deleted=True,
    ),
    Heuristic(
        "small: descents where steps are many",
        "cpu.dual.small._WEARY",
        ("small", "pairs"),
        _small(_WEARY=1 << 30),
    ),
    Heuristic(
        "small: all descents",
        "cpu.dual.small._FACE",
        ("small", "pairs"),
        _small(_FACE=0),
        purpose="exact answers",
    ),
    Heuristic(
        "refining of small answers",
        "certified._worth_refining",
        ("small", "pairs"),
        _constants(certified, _worth_refining=lambda evaluation: False),
        purpose="digits where tol is loose",
    ),
    Heuristic(
        "shrinking",
        "smo._WORTH_SHRINKING",
        ("smo", "uneven"),
        _constants(smo, _WORTH_SHRINKING=-1.0),
    ),
    Heuristic(
        "faces in SMO",
        "smo._State.descend",
        ("smo", "uneven"),
        _constants(smo._State, descend=lambda self: None),
        purpose="exact answers",
    ),
    Heuristic(
        "alternating selection for uneven diagonals",
        "smo._EVEN",
        ("smo", "uneven"),
        _constants(smo, _EVEN=np.inf),
        purpose="outlying rows (decision 0021)",
    ),
    Heuristic(
        "rows fetched in panels",
        "smo._FETCH_ROWS",
        ("smo", "uneven"),
        _constants(smo, _FETCH_ROWS=(1, 1)),
        silent=True,
    ),
    Heuristic(
        "the primal first, for tall linear kernels",
        "primal_start._ROWS",
        ("tall kernel",),
        _constants(primal_start, _ROWS=NEVER),
    ),
    Heuristic(
        "a part of the rows for the curvature of all",
        "subsampled_newton.by_part",
        ("tall", "tall logistic"),
        _constants(newton, many=lambda risk: False),
    ),
    Heuristic(
        "that part by leverage, not evenly",
        "risk.sampling.chances",
        ("tall", "tall logistic"),
        _constants(regularised, chances=_even_chances),
    ),
    Heuristic(
        "a first solution from a sample",
        "subsampled_newton.from_sample",
        ("tall", "tall logistic"),
        _constants(subsampled_newton, from_sample=lambda run, method: iter(())),
    ),
    Heuristic(
        "a second draw of the part",
        "subsampled_newton._DRAWS",
        ("tall", "tall logistic"),
        _constants(subsampled_newton, _DRAWS=1),
    ),
    Heuristic(
        "Newton's steps that go on where it still falls",
        "cpu.linear.losses.FAR",
        (*_SMOOTH, "kinks"),
        _no_extrapolation,
    ),
    Heuristic(
        "the last matrix and what has changed",
        "newton_steps._FEW",
        (*_SMOOTH, "kinks"),
        _constants(newton_steps, _FEW=0.0),
    ),
    Heuristic(
        "a whole step in one compiled call",
        "newton_steps.LOOPED",
        ("smooth", "logistic", "kinks"),
        _constants(newton_steps, LOOPED=-1),
    ),
    Heuristic(
        "width of kinks doubled and halved",
        "multipliers._FACTOR",
        ("kinks",),
        _constants(multipliers, _FACTOR=1.0),
    ),
    Heuristic(
        "kinks: a first solution from a sample",
        "multipliers.many",
        ("kinks",),
        list,
        deleted=True,
    ),
    Heuristic(
        "sweeps over the liveliest rows",
        "dual_descent._BEFORE",
        ("rows",),
        _constants(dual_descent, _BEFORE=0),
    ),
    Heuristic(
        "rows that are settled set aside",
        "dual_descent._looked",
        ("rows",),
        _every_row,
    ),
    Heuristic(
        "path: multiples of the last solution",
        "seeded.warm_start_ratio",
        ("search",),
        _constants(seeded, warm_start_ratio=lambda before, beta, problem: 1.0),
        silent=True,
    ),
    Heuristic(
        "path: faces changed by linear systems",
        "path._FACES_BELOW",
        ("search",),
        list,
        deleted=True,
    ),
    Heuristic(
        "path: steps among those that matter",
        "seeded._PATIENCE",
        ("search",),
        _constants(seeded, _PATIENCE=1000.0),
        silent=True,
    ),
    Heuristic("path: bordered systems", "path._BORDER", ("search",), list, deleted=True),
    Heuristic("path: values among them used again", "path._KEPT", ("search",), list, deleted=True),
    Heuristic(
        "path: momentum",
        "seeded.conjugate_steps",
        ("search",),
        _constants(seeded, conjugate_steps=steps_among),
        silent=True,
    ),
]


# -- measuring ---------------------------------------------------------------------------------


@dataclass
class Side:
    """One way to fit a cell: times, and what came of it."""

    heuristic: Heuristic | None
    road: Road
    C: float
    regression: bool

    def __post_init__(self) -> None:
        self.times: list[float] = []
        self.model: Any = None

    def fit(self, X: Any, y: np.ndarray) -> None:
        """Fit once more."""
        model = self.road.make(self.C, self.regression)
        if self.heuristic is None:
            self.times.append(timed(lambda: model.fit(X, y), CPU))
        else:
            with self.heuristic.switched_off():
                self.times.append(timed(lambda: model.fit(X, y), CPU))
        self.model = model

    @property
    def best(self) -> float:
        """Least time."""
        return min(self.times)

    @property
    def converged(self) -> bool:
        """Whether the answer is as good as was asked."""
        model = getattr(self.model, "best_estimator_", self.model)
        return bool(model.certificate_.converged)

    @property
    def trail(self) -> bytes:
        """Steps and coefficients: the same for fits that went the same way."""
        model = getattr(self.model, "best_estimator_", self.model)
        coef = model.dual_coef_ if hasattr(model, "dual_coef_") else model.coef_
        coef = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
        return np.ravel(model.n_iter_).tobytes() + coef.tobytes()


def measure_cell(
    road: Road, heuristics: list[Heuristic], name: str, C: float, X: Any, y: np.ndarray
) -> dict:
    """Fit one cell as it is and without each heuristic."""
    regression = data.is_regression(name)
    whole = Side(None, road, C, regression)
    whole.fit(X, y)
    sides = [Side(heuristic, road, C, regression) for heuristic in heuristics]
    for side in sides:
        side.fit(X, y)
    met = [side for side in sides if side.heuristic.silent or side.trail != whole.trail]  # type: ignore[union-attr]

    def turns(some: list[Side], count: int) -> None:
        for _ in range(count):
            for side in [whole, *some]:
                if side.converged:
                    side.fit(X, y)

    def counts(side: Side) -> bool:
        return not HARMS <= side.best / whole.best <= PAYS

    turns(met, 1 if whole.best > LONG else REPEATS - 1)
    close = [side for side in met if counts(side) and side.best < 2 * whole.best]
    if close and whole.best <= 2 * LONG:
        turns(close, MORE)
    record: dict[str, Any] = {"seconds": whole.best, "converged": whole.converged, "without": {}}
    for side in met:
        assert side.heuristic is not None
        record["without"][side.heuristic.name] = [side.best, side.converged]
    return record


def measure(names: list[str], wanted: list[str], folder: Path | None, records: Records) -> None:
    """Measure the cells of some roads."""
    for road_name in names:
        road = ROADS[road_name]
        heuristics = [h for h in HEURISTICS if road_name in h.roads and h.name in wanted]
        warm = False
        for name in road.names:
            if name in data.FILES and not data.available(name, folder):
                print(f"{name} is not in the data folder", flush=True)
                continue
            X, y = road.load(name, folder)
            for C in road.costs:
                if not warm:  # compile everything once
                    for heuristic in (None, *heuristics):
                        Side(heuristic, road, C, data.is_regression(name)).fit(X, y)
                    warm = True
                key = f"{road_name}: {name} C={C:g}"
                record = measure_cell(road, heuristics, name, C, X, y)
                if key in records:  # what was not measured now stays
                    faster = record["seconds"] / records[key]["seconds"]
                    for other, (spent, done) in records[key]["without"].items():
                        if other not in {heuristic.name for heuristic in heuristics}:
                            record["without"][other] = [spent * faster, done]
                records[key] = record
                records.save()
                print(f"{key}: {record['seconds']:.3f} s, {len(record['without'])} met", flush=True)


# -- report ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What all cells say about a heuristic."""

    heuristic: Heuristic
    ratios: dict[str, float]
    unfinished: int
    cells: int

    @property
    def mean(self) -> float:
        """Geometric mean over the cells that met it."""
        return geometric_mean(self.ratios.values()) if self.ratios else 1.0

    @property
    def best(self) -> float:
        """Where it pays most."""
        return max(self.ratios.values(), default=1.0)

    @property
    def worst(self) -> float:
        """Where it pays least, or harms."""
        return min(self.ratios.values(), default=1.0)

    @property
    def verdict(self) -> str:
        """Keep it or not, by the rule."""
        if self.heuristic.deleted:
            return "**deleted**"
        if self.heuristic.purpose:
            return f"for {self.heuristic.purpose}"
        if not self.ratios:
            return "not met"
        if self.unfinished:
            return "keep: fits end with it"
        if self.best < PAYS:
            return "delete: pays nowhere"
        if self.worst >= HARMS:
            return "keep"
        return "keep: pays more than it harms" if self.mean >= PAYS else "harms as much as it pays"


def findings(records: Records) -> Iterator[Finding]:
    """What the recorded cells say, heuristic by heuristic."""
    for heuristic in HEURISTICS:
        ratios, unfinished, cells = {}, 0, 0
        for key, record in records.items():
            road = key.partition(":")[0]
            if road not in heuristic.roads or not record.get("converged"):
                continue
            cells += 1
            if heuristic.name in record["without"]:
                seconds, converged = record["without"][heuristic.name]
                if not converged and seconds < PAYS * record["seconds"]:
                    continue  # stopped on the wall clock too soon to tell
                ratios[key] = seconds / record["seconds"]
                unfinished += not converged
        yield Finding(heuristic, ratios, unfinished, cells)


def report(records: Records) -> str:
    """The table."""
    lines = []
    for found in findings(records):
        places = ["", ""]
        for k, value in enumerate((found.best, found.worst)):
            key = next((key for key, ratio in found.ratios.items() if ratio == value), "")
            places[k] = f"{value:.2f} ({key})" if key else f"{value:.2f}"
        met = f"{len(found.ratios)} of {found.cells}"
        name = f"{found.heuristic.name} (`{found.heuristic.where}`)"
        ending = f", {found.unfinished} unfinished" if found.unfinished else ""
        lines.append([name, met + ending, f"{found.mean:.2f}", *places, found.verdict])
    header = ["heuristic", "met in cells", "geometric mean", "best", "worst", "verdict"]
    roads = [[name, road.about] for name, road in ROADS.items()]
    about = records.get("about", {})
    parts = [
        "# What each heuristic pays",
        "`OPENBLAS_NUM_THREADS=1 python benchmarks/ablation.py --data FOLDER`",
        in_words(about["environment"]) if about else "",
        "CPU time without a heuristic over that with it, to the same tolerance, best of three to "
        "six fits in turns, on a machine that others used, too: ratios within 5 % of one are "
        "noise. Above one, it pays. Only cells whose fit meets it count. Of a fit that did not "
        f"converge in {LIMIT:g} s without it the ratio is a bound.",
        table(header, lines),
        "The roads:",
        table(["road", "fits"], roads),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def main() -> None:
    """Measure what was asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data.add_option(parser)
    parser.add_argument("--only", default="", help="roads")
    parser.add_argument("--heuristics", default="", help="names, separated by semicolons")
    parser.add_argument("--output", type=Path, default=RESULTS / "ablation.json")
    parser.add_argument("--report", action="store_true", help="measure nothing, rewrite the table")
    options = parser.parse_args()
    records = Records(options.output)
    if not options.report:
        warnings.simplefilter("ignore")  # of fits that do not converge: they are counted
        records["about"] = {"environment": environment()}
        wanted = [h.name for h in HEURISTICS if not h.deleted]
        if options.heuristics:
            wanted = [name for name in wanted if name in options.heuristics.split(";")]
        names = chosen(options.only, ROADS, parser)
        measure(names, wanted, options.data, records)
    records.write(report(records))
    print(report(records))


if __name__ == "__main__":
    main()

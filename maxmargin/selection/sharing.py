"""The fits of a search, with what they have in common done once.

    transformers   for each fold and each of their settings
    primitives     (products, squared distances) for all kernels made of them
    kernel matrix  for all folds, classes and costs
    path of C      each solution begins the next (:mod:`maxmargin.selection.path`)

What cannot be had this way, such as a limit on the steps, an indefinite kernel or data that a fit
refuses, is left out here, and the search really fits it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import column_or_1d

from maxmargin import memory
from maxmargin.backends import cpu
from maxmargin.backends.device import DeviceError, Placement
from maxmargin.backends.threads import StoppedError, Workers, on_one_blas_thread
from maxmargin.certificate import Certificate, Evaluation
from maxmargin.duals import DualProblem, read_levels
from maxmargin.estimators.data import validate_data
from maxmargin.gram import Definiteness, DeviceGram, Gram
from maxmargin.kernels import Input, Kernel
from maxmargin.kernels.base import Validity
from maxmargin.progress import Monitor
from maxmargin.selection.matrices import Matrices, Resident, shares_primitives
from maxmargin.selection.path import SMALL, CPath, UnsettledError, multiple
from maxmargin.selection.targets import Fold, Labels, Numbers, Targets
from maxmargin.solvers import Auto, solve_certified
from maxmargin.svm import SVC
from maxmargin.svm.classification import probability_folds
from maxmargin.svm.probability import platt

T = TypeVar("T")
Splits = Sequence[tuple[int, np.ndarray, np.ndarray]]

_FLOAT32_FROM = 1e-4  # tol from which on float32 kernel values are enough
_NOISE = 0.02  # share of a value's unit that the rounding of kernel values may take
_SUMMED_NARROW = 1e-3  # and up to which values are summed in float32 too
_LARGEST = 1e30  # kernel value up to which float32 is thought of
_PANEL, _LONG = 512, 16  # rows evaluated at a time, and rows that are worth a slice
_AT_ONCE = 4  # matrices at a time, at most
_MANY = 4  # problems per thread from which on a thread has a problem to itself
_REFUSED = (ValueError, TypeError, DeviceError)  # how a fit refuses its data
_OF_PROBLEM = {"tol", "class_weight", "epsilon", "fit_intercept"}
_HONOURED = {
    *_OF_PROBLEM,
    *("C", "lam", "kernel", "gamma", "degree", "coef0"),
    *("probability", "decision_function_shape", "break_ties", "random_state", "multiclass"),
    *("shrinking", "cache_size", "verbose", "n_jobs", "warm_start", "device"),
}


@dataclass(frozen=True)
class Outcome:
    """What one candidate's machine says on one split.

    ``test`` and ``train`` are its values on these rows: (rows, problems) or (rows,).
    ``sigmoids`` are the numbers A and B of each problem's probabilities, where these are known.
    """

    candidate: int
    split: int
    seconds: float
    classes: np.ndarray | None
    test: np.ndarray
    train: np.ndarray | None
    sigmoids: np.ndarray | None = None


@dataclass
class Candidate:
    """A point of the grid: its number, its estimator, and the machine at the estimator's end.

    ``around`` are those of its parameters that do not belong to the machine.
    """

    number: int
    estimator: Any
    around: dict[str, Any]
    kernel: Kernel = field(init=False)

    @property
    def machine(self) -> Any:
        """The last step, or the estimator itself."""
        return self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator

    @property
    def multiclass(self) -> Any:
        """The scheme for several classes; None where numbers are learnt."""
        return getattr(self.machine, "multiclass", None)

    @property
    def cost(self) -> float:
        """What the path is ordered by."""
        return self.machine.C if self.machine.lam is None else 1.0 / self.machine.lam

    def shareable(self, kind: Any) -> bool:
        """Whether all that is asked of the machine can be honoured; looks at its parameters."""
        if type(self.machine) is not kind:
            return False
        given = self.machine.get_params(deep=False)
        defaults = signature(kind).parameters
        if any(given[name] != defaults[name].default for name in given.keys() - _HONOURED):
            return False
        try:
            self.machine._validate_params()
            self.kernel = self.machine._validated_kernel()
        except (ValueError, TypeError):  # parameters that a fit refuses, and says why
            return False
        return bool(np.isfinite(self.cost))

    def on_the_same_data(self, other: Candidate) -> bool:
        """Whether the two see their data in the same form, in the same place, cut the same way."""
        same_place = self.machine.device == other.machine.device
        same_tasks = same(self.multiclass, other.multiclass)
        return self.kernel.input is other.kernel.input and same_place and same_tasks

    def beside(self, other: Candidate) -> bool:
        """Whether the two differ in kernel and cost only."""
        mine, theirs = self.machine.get_params(deep=False), other.machine.get_params(deep=False)
        compared = _OF_PROBLEM | {"probability", "random_state"}
        return all(same(mine[name], theirs[name]) for name in mine.keys() & compared)


@dataclass
class Path:
    """Candidates that differ in their cost only, the lowest first, on one fold.

    Each problem is followed as far as float32 goes; ``reached`` is the number of candidates of
    which all problems are solved. With ``probabilities``, so are the problems of the folds inside
    that the sigmoids are fitted to.
    """

    targets: Targets
    fold: Fold
    candidates: list[Candidate]
    probabilities: bool = False
    reached: int = 0

    @property
    def tol(self) -> float:
        """KKT violation to reach."""
        return self.candidates[0].machine.tol

    def begin(self) -> None:
        """Make room for the solutions."""
        count, targets = len(self.candidates), self.targets
        self.coefficients = np.zeros((len(self.fold.weight), count, targets.columns))
        self.bias = np.zeros((count, targets.n_problems))
        self.noise = np.zeros((count, targets.n_problems))
        self.seconds = np.zeros((count, targets.n_problems))
        self.sigmoids = np.zeros((count, targets.n_problems, 2))
        self.reached = count
        machine = self.candidates[0].machine
        self.inside: list[Inside] = []
        if self.probabilities and isinstance(targets, Labels):
            random = check_random_state(machine.random_state)  # drawn from pair after pair
            every = range(targets.n_problems)
            self.inside = [Inside.of(targets, self.fold, k, random) for k in every]

    def follow(self, k: int, block: np.ndarray, stopped: Callable[[], Any] | None) -> None:
        """Solve problem k for one cost after the other."""
        targets, fold = self.targets, self.fold

        def pose(machine: Any) -> DualProblem:
            return targets.problem(machine, k, fold)

        for i, beta, bias, noise, seconds in self._solutions(block, pose, stopped):
            targets.place(k, targets.sign * beta, self.coefficients[:, i])
            self.bias[i, k] = targets.sign * bias
            self.noise[i, k] = noise
            self.seconds[i, k] = seconds
        if self.inside:
            self._follow_inside(k, block, stopped)

    def _follow_inside(self, k: int, block: np.ndarray, stopped: Any) -> None:
        """Solve the folds inside problem k, and fit each candidate's sigmoid to their values."""
        targets, inside, sign = self.targets, self.inside[k], self.targets.sign
        assert isinstance(targets, Labels)
        signs, rows = targets.tasks[k][1], np.arange(len(block))
        weight = targets.weights(self.candidates[0].machine, k, self.fold)
        values = np.tile(inside.values, (len(self.candidates), 1))
        for kept, held_out in inside.folds:
            part = np.zeros(len(block))
            part[inside.rows[kept]] = weight[inside.rows[kept]]

            def pose(machine: Any, part: np.ndarray = part) -> DualProblem:
                return machine._part_of_problem(rows, signs, part, weight)

            outside = block[inside.rows[held_out]]
            for i, beta, bias, _, seconds in self._solutions(block, pose, stopped):
                values[i, held_out] = outside @ beta + bias
                self.seconds[i, k] += seconds
        own = sign * signs[inside.rows]
        for i in range(self.reached):
            self.sigmoids[i, k] = platt(sign * values[i], own)

    def _solutions(
        self, block: np.ndarray, pose: Callable[[Any], DualProblem], stopped: Any
    ) -> Iterator[tuple[int, np.ndarray, float, float, float]]:
        """Yield number, coefficients, bias, their noise and seconds for one cost after the other.

        Ends where float32 does not suffice, and no candidate from there on counts as reached.
        """
        path = None
        for i, candidate in enumerate(self.candidates[: self.reached]):
            if stopped is not None and stopped():
                raise StoppedError
            began = time.perf_counter()
            problem = pose(candidate.machine)
            path = path or CPath(block, problem, candidate.machine.tol, stopped)
            try:
                alpha = path.solve(problem)
            except UnsettledError:
                self.reached = min(self.reached, i)
                return
            noise = cpu.DEVIATION32 * float(np.linalg.norm(alpha)) * path.scale
            if noise > _NOISE * self.targets.unit(self.fold):
                self.reached = min(self.reached, i)
                return
            bias = read_levels(problem, np.full(problem.n_groups, path.level)).bias
            beta = problem.on_rows(alpha, len(block))
            yield i, beta, bias, noise, time.perf_counter() - began

    def values(self, K: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Values of the candidates reached: (candidates, rows, problems)."""
        targets, count = self.targets, self.reached
        narrow = self.noise[:count].max(initial=0.0) <= _SUMMED_NARROW * targets.unit(self.fold)
        dtype: Any = np.float32 if narrow else np.float64
        coefficients = self.coefficients[:, :count].reshape(len(K), -1).astype(dtype)
        values = np.empty((count, len(rows), targets.n_problems))
        for places, part in _stretches_of(rows):
            sums = np.empty((len(places), len(targets.stretches), count, targets.columns))
            for s, (start, stop) in enumerate(targets.stretches):
                block = K[part, start:stop].astype(dtype, copy=False)
                sums[:, s] = (block @ coefficients[start:stop]).reshape(len(places), count, -1)
            for i in range(count):
                values[i, places] = targets.combine(sums[:, :, i])
        return values + self.bias[:count, None]

    def outcomes(self, test: np.ndarray, train: np.ndarray | None) -> list[Outcome]:
        """Return what these values mean, of the candidates reached."""
        return [
            self.outcome(
                candidate,
                float(self.seconds[i].sum()),
                test[i],
                None if train is None else train[i],
                self.sigmoids[i] if self.inside else None,
            )
            for i, candidate in enumerate(self.candidates[: self.reached])
        ]

    def outcome(
        self,
        candidate: Candidate,
        seconds: float,
        test: np.ndarray,
        train: np.ndarray | None,
        sigmoids: np.ndarray | None = None,
    ) -> Outcome:
        """Return the outcome of one candidate."""
        classes = self.targets.classes
        if classes is None:
            test, train = test[:, 0], None if train is None else train[:, 0]
        split = self.fold.split
        return Outcome(candidate.number, split, seconds, classes, test, train, sigmoids)


@dataclass(frozen=True)
class Inside:
    """The folds inside the training rows of a pair, as a fit with probabilities draws them.

    ``rows`` are the pair's training rows, as rows of its block; ``folds`` say which of them to
    learn from and which to hold out, and ``values`` what is known of these without learning.
    """

    rows: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    values: np.ndarray

    @classmethod
    def of(cls, targets: Labels, fold: Fold, k: int, random: np.random.RandomState) -> Inside:
        """Draw the folds of the k-th pair."""
        all_rows, signs = targets.tasks[k]
        taking_part = np.zeros(len(fold.weight), dtype=bool)
        taking_part[all_rows] = fold.weight[all_rows] > 0
        train = fold.train[taking_part[fold.train]]
        rows = np.searchsorted(all_rows, train)
        values = np.zeros(len(rows))
        return cls(rows, list(probability_folds(signs[rows], values, random)), values)


@dataclass
class Work:
    """The paths that belong to one kernel, and its matrix while it is there."""

    kernel: Kernel
    paths: list[Path] = field(default_factory=list)
    K: Any = None

    def shares_with(self, other: Work) -> bool:
        """Whether the two kernels are made of the same primitives."""
        return shares_primitives(self.kernel.lower(), other.kernel.lower())


@dataclass(frozen=True)
class Fits:
    """The fits of a search over the splits of its data.

    Parameters
    ----------
    X, y : as given to the search
    splits : sequence of (number, train, test)
    sample_weight : array-like or None
    train_too : bool
        Whether values on the training rows are wanted as well.
    probabilities : bool
        Whether the scorers ask for them.
    workers : Workers
    monitor : Monitor
        When it says stop, :class:`~maxmargin.backends.threads.StoppedError` is raised.
    """

    X: Any
    y: Any
    splits: Splits
    sample_weight: Any
    train_too: bool
    probabilities: bool
    workers: Workers
    monitor: Monitor

    def outcomes(self, candidates: list[Candidate], kind: type) -> Iterator[Outcome]:
        """Yield what can be had by sharing, in any order; ``kind`` is that of the machines."""
        candidates = [candidate for candidate in candidates if candidate.shareable(kind)]
        for group in grouped(candidates, lambda a, b: same(a.around, b.around)):
            for alike in grouped(group, Candidate.on_the_same_data):
                for data in self._data_sets(alike[0]):
                    yield from data.outcomes(alike)

    def _data_sets(self, candidate: Candidate) -> Iterator[DataSet]:
        """Yield the data as the machines see them: as a whole, or transformed for each split."""
        estimator = candidate.estimator
        steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
        if all(step in (None, "passthrough") for _, step in steps):
            try:
                X, y, weight, names = _validated(candidate, self.X, self.y, self.sample_weight)
                data = self._data_set(candidate, X, y, weight, names, self.splits)
            except _REFUSED:
                return  # a fit raises the same, where it concerns that fit
            yield data
            return
        if candidate.kernel.input is not Input.VECTORS:
            return
        for number, train, test in self.splits:
            try:
                X, X_test = self._transformed(candidate, train, test)
            except Exception:  # transformers are anyone's code: in a fit they raise the same
                continue
            try:
                X, y, weight, names = self._joined(candidate, X, X_test, train, test)
                here = np.arange(len(train)), np.arange(len(train), len(y))
                data = self._data_set(candidate, X, y, weight, names, [(number, *here)])
            except _REFUSED:
                continue  # a fit raises the same
            yield data

    def _transformed(
        self, candidate: Candidate, train: np.ndarray, test: np.ndarray
    ) -> tuple[Any, Any]:
        """Fit the transformers to the training rows; what they make of these and of the others."""
        steps = clone(candidate.estimator[:-1])
        y = _safe_indexing(self.y, train)
        X = steps.fit_transform(_safe_indexing(self.X, train), y)
        return X, steps.transform(_safe_indexing(self.X, test))

    def _joined(
        self, candidate: Candidate, X: Any, X_test: Any, train: np.ndarray, test: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, Any]:
        """Data, targets, weights and names of both sides of a split, the training rows first."""
        y, weight = _safe_indexing(self.y, train), None
        if self.sample_weight is not None:
            weight = _safe_indexing(self.sample_weight, train)
        X, y, weight, names = _validated(candidate, X, y, weight)
        X_test = validate_data(
            candidate.machine, X_test, dtype=X.dtype, accept_sparse="csr", reset=False
        )
        both = sp.vstack([X, X_test]).tocsr() if sp.issparse(X) else np.vstack([X, X_test])
        y_test = np.asarray(_safe_indexing(self.y, test)).reshape(len(test))
        return both, np.append(y, y_test), np.append(weight, np.ones(len(test))), names

    def _data_set(
        self,
        candidate: Candidate,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        names: Any,
        splits: Splits,
    ) -> DataSet:
        budget = memory.budget(candidate.machine.cache_size)
        multiclass, pairwise = candidate.multiclass, candidate.kernel.pairwise
        data = DataSet(X, y, weight, splits, names=names, multiclass=multiclass, pairwise=pairwise)
        data.train_too, data.budget, data.workers = self.train_too, budget, self.workers
        data.monitor, data.probabilities = self.monitor, self.probabilities
        data.cache_size = candidate.machine.cache_size
        kernel = candidate.kernel.resolve(data.X, names)
        data.placement = candidate.machine._placed(kernel, data.X, len(y))
        data.automatic = candidate.machine.device == "auto"
        return data


def _validated(
    candidate: Candidate, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Data, targets, weights and column names, checked as the machine's fit does."""
    machine = candidate.machine
    labelled = isinstance(machine, SVC)
    X, y = machine._validated(X, y, candidate.kernel, **({} if labelled else {"y_numeric": True}))
    y = column_or_1d(y)
    if not labelled:
        y = y.astype(np.float64)
    weight = machine._validated_weight(sample_weight, X)
    return X, y, weight, getattr(machine, "feature_names_in_", None)


class DataSet:
    """Rows that some folds share, and the kernel matrices over them.

    The rows are put in order of their class, and within it of the split that holds them out: the
    rows of a problem are then a few stretches of the matrix, and those of a class a single one.
    """

    train_too: bool
    probabilities: bool
    budget: int
    workers: Workers
    monitor: Monitor
    cache_size: float | str
    placement: Placement
    automatic: bool  # whether the CPU may do what the GPU cannot

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        splits: Splits,
        *,
        names: Any,
        multiclass: Any,
        pairwise: bool,
    ) -> None:
        self.names = names
        held_out = np.zeros(len(y), dtype=np.int64)
        for number, _, test in splits:
            held_out[test] = number + 1
        labelled = multiclass is not None
        classes = np.unique(y, return_inverse=True)[1] if labelled else np.zeros(len(y))
        order = np.lexsort((held_out, classes))
        place = np.argsort(order)
        X, y = _safe_indexing(X, order), y[order]
        self.X = np.ascontiguousarray(X[:, order]) if pairwise else X
        self.targets: Targets = Labels(y, multiclass) if labelled else Numbers(y)
        self.folds = []
        for number, train, test in splits:
            own = np.zeros(len(y))
            np.add.at(own, place[train], weight[train])  # a row may be drawn twice
            fold = Fold(number, place[train], place[test], own)
            if self.targets.learnable(fold):
                self.folds.append(fold)

    def outcomes(self, candidates: list[Candidate]) -> Iterator[Outcome]:
        """Yield the outcomes of candidates on the folds."""
        for alike in grouped(candidates, lambda a, b: _precision(a) is _precision(b)):
            works = self._works(alike)
            for family in grouped(works, Work.shares_with):
                yield from self._family(family, _precision(alike[0]))

    def _works(self, candidates: list[Candidate]) -> list[Work]:
        """Say which paths are to be followed under which kernels."""
        works: list[Work] = []
        alike = grouped(candidates, lambda a, b: a.kernel == b.kernel and a.beside(b))
        paths = [sorted(path, key=lambda candidate: candidate.cost) for path in alike]
        for fold in self.folds:
            pairwise = candidates[0].kernel.pairwise  # its values do not depend on data
            X = self.X if pairwise else _safe_indexing(self.X, np.sort(fold.train))
            for path in paths:
                if not self._posed(path, fold):
                    continue
                kernel = path[0].kernel.resolve(X, self.names)
                work = next((work for work in works if work.kernel == kernel), None)
                if work is None:
                    works.append(work := Work(kernel))
                probable = self.probabilities and path[0].machine.probability is True
                once = len(np.unique(fold.train)) == len(fold.train)
                work.paths.append(Path(self.targets, fold, path, probable and once))
        return works

    def _posed(self, candidates: list[Candidate], fold: Fold) -> bool:
        """Whether the machines' problems can be stated; if not, a fit says why."""
        try:
            self.targets.problem(candidates[0].machine, 0, fold)
        except ValueError:
            return False
        return True

    def _family(self, works: list[Work], dtype: Any) -> Iterator[Outcome]:
        """Follow the paths under kernels that are made of the same primitives."""
        works = [work for work in works if self._sound(work.kernel)]
        if not works:
            return
        while works and self.placement.on_gpu:
            try:
                yield from list(self._on_device(works[0]))
                works = works[1:]
            except DeviceError as error:
                if not self.automatic:
                    raise
                self.placement = Placement("cpu", str(error))
        if not works:
            return
        if dtype is np.float32 and not all(self._narrow(work.kernel) for work in works):
            dtype = np.float64
        matrices = Matrices(self.X, dtype, self.workers)
        threads, at_once, left = self._room(matrices)
        if threads:
            matrices.prepare([work.kernel for work in works], left)
        for first in range(0, len(works), at_once):
            batch = works[first : first + at_once]
            if threads:
                for place, work in enumerate(batch):
                    work.K = matrices.of(work.kernel, place)
                if dtype is np.float32:
                    self._follow(batch, Workers(threads, self.monitor.stopped))
                    yield from self._answers(batch)
            for work in batch:
                yield from self._certified(work, dtype)

    def _on_device(self, work: Work) -> Iterator[Outcome]:
        """Solve all folds and classes at once, one cost after the other."""
        device = self.placement.device
        gram = DeviceGram.of(self.X, work.kernel, device=device, cache_size=self.cache_size)
        for paths in grouped(work.paths, lambda a, b: a.tol == b.tol):
            yield from self._rest(gram, paths)

    def _room(self, matrices: Matrices) -> tuple[int, int, int]:
        """Threads, matrices at a time, and bytes left for the primitives.

        Without room for one matrix and one thread there are no threads. Several matrices at a time
        keep the threads busy where each has few problems; with a time limit, one after the other,
        so that some candidates are complete when it is over.
        """
        size = matrices.dtype.itemsize * (self.targets.block_size + self.targets.n_variables**2)
        threads = max(min(self.workers.count, (self.budget - matrices.nbytes) // size), 0)
        left = self.budget - threads * size - matrices.nbytes
        more = min(left // 2 // matrices.nbytes, _AT_ONCE - 1)
        enough = self.targets.n_problems >= _MANY * threads or self.monitor.time_limit is not None
        if not threads or enough or more < 1:
            return threads, 1, left
        return threads, int(1 + more), left - more * matrices.nbytes

    def _sound(self, kernel: Kernel) -> bool:
        """Whether a kernel is symmetric, finite and not indefinite, as far as one can tell."""
        if kernel.validity is Validity.VALID:
            return True
        gram = self._gram(kernel)
        try:
            gram.check()
        except ValueError:
            return False  # a fit says why
        return gram.definiteness is not Definiteness.INDEFINITE

    def _narrow(self, kernel: Kernel) -> bool:
        """Whether the kernel's values are far inside what float32 can hold."""
        if kernel.lower().gaussian_rate is not None:
            return True
        return bool(np.abs(self._gram(kernel).diagonal).max() < _LARGEST)

    def _gram(self, kernel: Kernel) -> Gram:
        return Gram.of(self.X, kernel, memory=self.budget)

    @on_one_blas_thread
    def _follow(self, works: list[Work], workers: Workers) -> None:
        """Solve the problems of all paths over float32 values, as far as these suffice."""
        targets = self.targets
        buffers: SimpleQueue = SimpleQueue()
        for _ in range(workers.count):
            buffers.put(np.empty(targets.block_size, dtype=np.float32))

        def follow(task: tuple[Work, int, list[Path]]) -> None:
            work, k, paths = task
            buffer = buffers.get()
            try:
                block = targets.block(work.K, k, buffer)
                for path in paths:
                    path.follow(k, block, self.monitor.stopped)
            finally:
                buffers.put(buffer)

        tasks = []
        for work in works:
            for path in work.paths:
                path.begin()
            shared = targets.n_problems >= _MANY * workers.count
            for paths in [work.paths] if shared else [[path] for path in work.paths]:
                tasks += [(work, k, paths) for k in range(targets.n_problems)]
        workers.map(follow, tasks)

    @on_one_blas_thread
    def _answers(self, works: list[Work]) -> list[Outcome]:
        """Evaluate what was solved."""

        def answer(task: tuple[np.ndarray, Path]) -> list[Outcome]:
            K, path = task
            train = path.values(K, path.fold.train) if self.train_too else None
            return path.outcomes(path.values(K, path.fold.test), train)

        tasks = [(work.K, path) for work in works for path in work.paths if path.reached]
        return [outcome for outcomes in self.workers.map(answer, tasks) for outcome in outcomes]

    def _certified(self, work: Work, dtype: Any) -> Iterator[Outcome]:
        """Solve what is left of the paths to certificates."""
        unsolved = [path for path in work.paths if path.reached < len(path.candidates)]
        if not unsolved:
            return
        gram = self._gram(work.kernel)
        if work.K is not None and dtype is np.float64:
            left = max(self.budget - work.K.nbytes, self.budget // 4)
            gram = Gram.of(work.K, Resident(work.kernel.validity), memory=left)
        for path in unsolved:
            yield from self._rest(gram, [path])

    def _rest(self, gram: Gram, paths: list[Path]) -> Iterator[Outcome]:
        """Solve the rest of some paths of one tolerance, each cost begun from the last."""
        n = self.targets.n_problems
        before: dict[tuple[int, int], tuple[DualProblem, Evaluation]] = {}
        while paths := [path for path in paths if path.reached < len(path.candidates)]:
            began = time.perf_counter()
            problems = []
            for path in paths:
                machine = path.candidates[path.reached].machine
                for k in range(n):
                    problem = self._on_rows(machine, k, path.fold)
                    problems.append(_begun_from(before.get((id(path), k)), problem))
            solver = Auto(shrinking=bool(machine.shrinking), monitor=self.monitor)
            evaluations, _ = solve_certified(gram, problems, solver, machine.tol, self.workers)
            if self.monitor.stopped():
                raise StoppedError
            machine._warn_unfinished(Certificate.worst([e.certificate for e in evaluations]))
            seconds = (time.perf_counter() - began) / len(paths)
            values = self._values_of(gram, evaluations)
            for j, path in enumerate(paths):
                own = slice(n * j, n * (j + 1))
                before.update(
                    ((id(path), k), (problems[n * j + k], evaluations[n * j + k])) for k in range(n)
                )
                test, train = values(path.fold.test, own), None
                if self.train_too:
                    train = values(path.fold.train, own)
                yield path.outcome(path.candidates[path.reached], seconds, test, train)
                path.reached += 1

    def _values_of(
        self, gram: Gram, evaluations: list[Evaluation]
    ) -> Callable[[np.ndarray, slice], np.ndarray]:
        """Return what gives the values of some of the machines at some rows."""
        sign, together = self.targets.sign, None
        bias = np.array([evaluation.bias for evaluation in evaluations])
        coefficients = sp.csc_array(
            (
                np.concatenate([e.coefficients for e in evaluations]),
                np.concatenate([e.rows for e in evaluations]),
                np.cumsum([0, *(len(e.rows) for e in evaluations)]),
            ),
            shape=(gram.n, len(evaluations)),
        )
        if isinstance(gram, DeviceGram):  # all at once, where that costs hardly more than one
            together = gram.matmat(coefficients)

        def values(rows: np.ndarray, machines: slice) -> np.ndarray:
            if together is not None:
                return sign * (together[rows, machines] + bias[machines])
            sums = [
                gram.matvec(coefficients[:, [k]].toarray()[:, 0], rows, self.workers)
                for k in range(len(evaluations))[machines]
            ]
            return sign * (np.column_stack(sums) + bias[machines])

        return values

    def _on_rows(self, machine: Any, k: int, fold: Fold) -> DualProblem:
        """Return problem k over the rows of the whole matrix, without those held out."""
        problem = self.targets.problem(machine, k, fold)
        problem = replace(problem, gram_row=self.targets.rows(k)[problem.gram_row])
        inside = np.zeros(len(fold.weight), dtype=bool)
        inside[fold.train] = True
        return problem.restricted(np.flatnonzero(inside[problem.gram_row]))


def _begun_from(last: tuple[DualProblem, Evaluation] | None, problem: DualProblem) -> DualProblem:
    """Begin a problem from the solution of the same one with a lower cost, if there is one."""
    if last is None or len(problem) < SMALL:
        return problem  # a small one is as soon solved from zero, and exactly
    before, evaluation = last
    beta = evaluation.solution.beta
    ratio = multiple(before, beta, problem)
    beta = np.clip(ratio * beta, problem.lower, problem.upper)
    return problem.started_from(beta, ratio * evaluation.recomputed)


def _stretches_of(rows: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield places of the rows, and the rows there, as slices of consecutive ones where long."""
    order = np.argsort(rows, kind="stable")
    cuts = np.flatnonzero(np.diff(rows[order]) != 1) + 1
    scattered = []
    for places in np.split(order, cuts):
        if len(places) < _LONG:
            scattered.append(places)
            continue
        for first in range(0, len(places), _PANEL):
            part = places[first : first + _PANEL]
            yield part, slice(rows[part[0]], rows[part[-1]] + 1)
    if scattered:
        together = np.concatenate(scattered)
        for first in range(0, len(together), _PANEL):
            part = together[first : first + _PANEL]
            yield part, rows[part]


def _precision(candidate: Candidate) -> Any:
    return np.float32 if candidate.machine.tol >= _FLOAT32_FROM else np.float64


def grouped(items: Sequence[T], alike: Callable[[T, T], bool]) -> list[list[T]]:
    """Put items together that are alike; the first of each group stands for it.

    >>> grouped([1, 2, 3, 4], lambda a, b: a % 2 == b % 2)
    [[1, 3], [2, 4]]
    """
    groups: list[list[T]] = []
    for item in items:
        group = next((group for group in groups if alike(group[0], item)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def same(a: Any, b: Any) -> bool:
    """Whether two values, or dictionaries of values, are known to be the same.

    >>> same({"C": 1.0, "x": (1, 2)}, {"C": 1, "x": (1, 2)})
    True
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    try:
        return bool(a is b or a == b)
    except ValueError:  # arrays
        return False

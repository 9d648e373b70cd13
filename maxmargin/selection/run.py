"""The fits of a search, with what they have in common done once.

    transformers   for each fold and each of their settings
    primitives     (products, squared distances) for all kernels made of them
    kernel matrix  for all folds, classes and costs
    path of C      each solution begins the next (:mod:`maxmargin.selection.cost_path`)

What cannot be had this way is left out here with a reason (:mod:`maxmargin.selection.plan`), and
the search fits it one by one. Linear machines have :mod:`maxmargin.selection.linear_path`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from maxmargin.backends.device import DeviceError, Placement
from maxmargin.backends.threads import StoppedError, Workers, on_one_blas_thread
from maxmargin.certificate import DualCertificate
from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Definiteness, DeviceGram, Gram
from maxmargin.kernels import Input, Kernel
from maxmargin.kernels.base import Validity
from maxmargin.progress import Monitor
from maxmargin.selection.cost_path import CostPath
from maxmargin.selection.data_set import DataSet, Splits, joined, used_rows, validated
from maxmargin.selection.held_out import HeldOut
from maxmargin.selection.linear_path import linear_outcomes
from maxmargin.selection.matrices import Matrices, Resident, shares_primitives
from maxmargin.selection.plan import REFUSALS, Candidate, Sharing, grouped
from maxmargin.selection.room import SEVERAL, room
from maxmargin.selection.scikit_learn import Manners
from maxmargin.selection.targets import Fold
from maxmargin.solvers import Auto, solve_certified
from maxmargin.solvers.dual.path import SMALL, warm_start_ratio

_LARGEST = 1e30  # kernel value up to which float32 is thought of
# what a kernel function of the user's may raise: in a fit of its own it is a failed fit
_OF_FUNCTIONS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_FOLLOWED = "along paths of C over float32 values"
_CERTIFIED = "solved to certificates over float64 values"


@dataclass
class KernelJob:
    """The paths that belong to one kernel, and its matrix while it is there."""

    kernel: Kernel
    paths: list[CostPath] = field(default_factory=list)
    K: Any = None

    def shares_with(self, other: KernelJob) -> bool:
        """Whether the two kernels are made of the same primitives."""
        return shares_primitives(self.kernel.lower(), other.kernel.lower())


@dataclass(frozen=True)
class SharedFits:
    """The fits of a search over the splits of its data.

    Parameters
    ----------
    manners : Manners
        With the data as given to the search.
    splits : sequence of (number, train, test)
    sample_weight : array-like or None
    workers : Workers
    monitor : Monitor
        When it says stop, :class:`~maxmargin.backends.threads.StoppedError` is raised.
    sharing : Sharing
        Told what is shared, and what is not.
    """

    manners: Manners
    splits: Splits
    sample_weight: Any
    workers: Workers
    monitor: Monitor
    sharing: Sharing

    def outcomes(self, candidates: list[Candidate]) -> Iterator[HeldOut]:
        """Yield what can be had by sharing, in any order."""
        ready = []
        for candidate in candidates:
            reason = candidate.refusal(self.manners.ask_for_probabilities)
            if reason is None:
                ready.append(candidate)
            else:
                self.leave_alone([candidate], reason)
        for group in grouped(ready, Candidate.same_data):
            if group[0].linear:
                yield from linear_outcomes(self, group)
                continue
            for data in self._data_sets(group):
                yield from self._over(data, group)

    def leave_alone(
        self, candidates: list[Candidate], reason: str, split: int | None = None
    ) -> None:
        """Say why candidates are left to fits of their own, on one split or on all of them."""
        splits = [number for number, *_ in self.splits] if split is None else [split]
        self.sharing.leave_alone(candidates, splits, reason)

    # -- the data ------------------------------------------------------------------------------

    def _data_sets(self, group: list[Candidate]) -> Iterator[DataSet]:
        """Yield the data as the machines see them: as a whole, or transformed for each split."""
        candidate, X = group[0], self.manners.X
        assert candidate.kernel is not None
        if candidate.steps:
            yield from self._transformed_data_sets(group)
            return
        try:
            X, y, weight, names = validated(candidate, X, self.manners.y, self.sample_weight)
            parts = list(used_rows(self.splits, len(y)))
        except REFUSALS as error:  # a fit raises the same, where it concerns that fit
            self.leave_alone(group, f"The data are refused: {error}")
            return
        for rows, splits in parts:
            own = X, y, weight
            if rows is not None:
                some = X[np.ix_(rows, rows)] if candidate.kernel.pairwise else None
                own = _safe_indexing(X, rows) if some is None else some, y[rows], weight[rows]
            yield from self._data_set(group, *own, names, splits)

    def _transformed_data_sets(self, group: list[Candidate]) -> Iterator[DataSet]:
        candidate, y = group[0], self.manners.y
        assert candidate.kernel is not None
        if candidate.kernel.input is not Input.VECTORS:
            reason = "Transformers stand before a kernel that does not take vectors."
            self.leave_alone(group, reason)
            return
        for number, train, test in self.splits:
            made, failure = self.manners.transformed(candidate.estimator[:-1], train, test)
            if failure is not None:
                self.leave_alone(group, f"The transformers fail: {failure}", number)
                continue
            weight = self.sample_weight
            weight = None if weight is None else _safe_indexing(weight, train)
            sides = _safe_indexing(y, train), weight, _safe_indexing(y, test)
            try:
                data = joined(candidate, made.train_, made.test_, *sides)
            except REFUSALS as error:
                self.leave_alone(group, f"The data are refused: {error}", number)
                continue
            here = np.arange(len(train)), np.arange(len(train), len(train) + len(test))
            yield from self._data_set(group, *data, [(number, *here)])

    def _data_set(
        self,
        group: list[Candidate],
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        names: Any,
        splits: Splits,
    ) -> Iterator[DataSet]:
        """Yield a data set, or say why there is none."""
        try:
            data = DataSet.of(group[0], X, y, weight, names, splits)
        except REFUSALS as error:
            numbers = [number for number, *_ in splits]
            self.sharing.leave_alone(group, numbers, f"The data are refused: {error}")
            return
        folds, data.folds = data.folds, []
        for fold in folds:
            if data.targets.learnable(fold):
                data.folds.append(fold)
            else:
                reason = "Its training rows do not have all classes of the data, with some weight."
                self.leave_alone(group, reason, fold.split)
        yield data

    # -- what is to be done with them ----------------------------------------------------------

    def _over(self, data: DataSet, candidates: list[Candidate]) -> Iterator[HeldOut]:
        """Yield the outcomes of candidates on the folds of a data set."""
        for alike in grouped(candidates, lambda a, b: a.dtype is b.dtype):
            jobs = self._jobs(data, alike)
            for family in grouped(jobs, KernelJob.shares_with):
                yield from self._family(data, family, alike[0].dtype)

    def _jobs(self, data: DataSet, candidates: list[Candidate]) -> list[KernelJob]:
        """Say which paths are to be followed under which kernels."""
        jobs: list[KernelJob] = []
        alike = grouped(candidates, lambda a, b: a.kernel == b.kernel and a.same_problem(b))
        paths = [sorted(path, key=lambda candidate: candidate.cost) for path in alike]
        for fold in data.folds:
            pairwise = candidates[0].kernel.pairwise  # type: ignore[union-attr]
            X = data.X if pairwise else _safe_indexing(data.X, np.sort(fold.train))
            once = len(np.unique(fold.train)) == len(fold.train)
            for path in paths:
                posed = self._posed(data, path, fold)
                if not posed:
                    continue
                try:
                    kernel = path[0].kernel.resolve(X, data.names)  # type: ignore[union-attr]
                except REFUSALS as error:  # it looks through the data, by maps of the user's too
                    self.leave_alone(path, f"The kernel refuses: {error}", fold.split)
                    continue
                job = next((job for job in jobs if job.kernel == kernel), None)
                if job is None:
                    jobs.append(job := KernelJob(kernel))
                probable = self.manners.ask_for_probabilities and once
                probable &= getattr(path[0].machine, "probability", False) is True
                job.paths.append(CostPath(data.targets, fold, posed, probable))
        return jobs

    def _posed(self, data: DataSet, path: list[Candidate], fold: Fold) -> list[Candidate]:
        """Return the candidates whose problems can be stated; of the others, a fit says why."""
        posed, with_nu = [], hasattr(path[0].machine, "nu")
        for i, candidate in enumerate(path):
            try:
                if with_nu or not i:  # without nu, one tells for all costs and pairs of classes
                    for k in range(data.targets.n_problems if with_nu else 1):
                        data.targets.problem(candidate.machine, k, fold)
                posed.append(candidate)
            except ValueError as error:
                reason = f"Its problem cannot be stated: {error}"
                self.leave_alone([candidate] if with_nu else path, reason, fold.split)
                if not with_nu:
                    return []
        return posed

    def _unsound(self, data: DataSet, kernel: Kernel) -> str | None:
        """Why a kernel's matrix is none to share: not symmetric, not finite or indefinite."""
        if kernel.validity is Validity.VALID:
            return None
        refusals = _OF_FUNCTIONS if kernel.lower().calls_python else (ValueError,)
        try:
            gram = data.gram(kernel)
            gram.check()
        except refusals as error:
            return f"The kernel's values are refused: {error!r}"
        if gram.definiteness is Definiteness.INDEFINITE:
            return (
                "The kernel is indefinite on these data: where a fit ends then depends on where it "
                "begins."
            )
        return None

    def _fits_float32(self, data: DataSet, kernel: Kernel) -> bool:
        """Whether the kernel's values are far inside what float32 can hold."""
        if kernel.lower().gaussian_rate is not None:
            return True
        return bool(np.abs(data.gram(kernel).diagonal).max() < _LARGEST)

    # -- doing it ------------------------------------------------------------------------------

    def _family(self, data: DataSet, jobs: list[KernelJob], dtype: Any) -> Iterator[HeldOut]:
        """Follow the paths under kernels that are made of the same primitives."""
        sound = []
        for job in jobs:
            reason = self._unsound(data, job.kernel)
            if reason is None:
                sound.append(job)
                continue
            for path in job.paths:
                self.leave_alone(path.candidates, reason, path.fold.split)
        jobs = sound
        while jobs and data.placement.on_gpu:
            try:
                yield from list(self._on_device(data, jobs[0]))
                jobs = jobs[1:]
            except DeviceError as error:
                if not data.automatic:
                    raise
                data.placement = Placement("cpu", str(error))
        if not jobs:
            return
        if dtype is np.float32 and not all(self._fits_float32(data, job.kernel) for job in jobs):
            dtype = np.float64
        matrices = Matrices(data.X, dtype, self.workers)
        threads, at_once, left = room(
            data, matrices, self.workers.count, self.monitor.time_limit is not None
        )
        if threads:
            matrices.prepare([job.kernel for job in jobs], left)
        for first in range(0, len(jobs), at_once):
            batch = jobs[first : first + at_once]
            if threads:
                for place, job in enumerate(batch):
                    job.K = matrices.of(job.kernel, place)
                if dtype is np.float32:
                    self._follow(data, batch, Workers(threads, self.monitor.stopped))
                    yield from self._answers(batch)
            for job in batch:
                yield from self._certified(data, job, dtype)

    def _on_device(self, data: DataSet, job: KernelJob) -> Iterator[HeldOut]:
        """Solve all folds and classes at once, one cost after the other."""
        device = data.placement.device
        gram = DeviceGram.of(data.X, job.kernel, device=device, cache_size=data.cache_size)
        for paths in grouped(job.paths, lambda a, b: a.tol == b.tol):
            yield from self._rest(data, gram, paths, f"on {device}")

    @on_one_blas_thread
    def _follow(self, data: DataSet, jobs: list[KernelJob], workers: Workers) -> None:
        """Solve the problems of all paths over float32 values, as far as these suffice."""
        targets = data.targets
        buffers: SimpleQueue = SimpleQueue()
        for _ in range(workers.count):
            buffers.put(np.empty(targets.block_size, dtype=np.float32))

        def follow(task: tuple[KernelJob, int, list[CostPath]]) -> None:
            job, k, paths = task
            buffer = buffers.get()
            try:
                block = targets.block(job.K, k, buffer)
                for path in paths:
                    path.follow(k, block, self.monitor.stopped)
            finally:
                buffers.put(buffer)

        tasks = []
        for job in jobs:
            for path in job.paths:
                path.begin()
            shared = targets.n_problems >= SEVERAL * workers.count
            for paths in [job.paths] if shared else [[path] for path in job.paths]:
                tasks += [(job, k, paths) for k in range(targets.n_problems)]
        workers.map(follow, tasks)

    @on_one_blas_thread
    def _answers(self, jobs: list[KernelJob]) -> list[HeldOut]:
        """Evaluate what was solved."""
        train_too = self.manners.search.return_train_score

        def answer(task: tuple[np.ndarray, CostPath]) -> list[HeldOut]:
            K, path = task
            test = path.values(K, path.fold.test)
            train = path.values(K, path.fold.train) if train_too else None
            return [
                HeldOut(
                    candidate,
                    path.fold.split,
                    float(path.seconds[i].sum()),
                    _FOLLOWED,
                    test=test[i],
                    train=None if train is None else train[i],
                    classes=path.targets.classes,
                    sigmoids=path.sigmoids[i] if path.inside else None,
                )
                for i, candidate in enumerate(path.candidates[: path.reached])
            ]

        tasks = [(job.K, path) for job in jobs for path in job.paths if path.reached]
        return [known for some in self.workers.map(answer, tasks) for known in some]

    def _certified(self, data: DataSet, job: KernelJob, dtype: Any) -> Iterator[HeldOut]:
        """Solve what is left of the paths to certificates."""
        unsolved = [path for path in job.paths if path.left]
        if not unsolved:
            return
        gram, K = data.gram(job.kernel), None
        if job.K is not None and dtype is np.float64:
            K = job.K
            left = max(data.budget - K.nbytes, data.budget // 4)
            gram = Gram.of(K, Resident(job.kernel.validity), memory=left)
        for paths in grouped(unsolved, lambda a, b: a.tol == b.tol):
            yield from self._rest(data, gram, paths, _CERTIFIED, K)

    def _rest(
        self,
        data: DataSet,
        gram: Gram,
        paths: list[CostPath],
        how: str,
        K: np.ndarray | None = None,
    ) -> Iterator[HeldOut]:
        """Solve the rest of some paths of one tolerance, each cost begun from the last.

        All folds at once: small problems are solved together. ``K`` is the matrix in float64,
        where it is there.
        """
        n, targets = data.targets.n_problems, data.targets
        before: dict[tuple[int, int], tuple[DualProblem, Evaluation]] = {}
        while paths := [path for path in paths if path.left]:
            began = time.perf_counter()
            problems = []
            for path in paths:
                machine = path.left[0].machine
                for k in range(n):
                    problem = _on_rows(data, machine, k, path.fold)
                    problems.append(_begun_from(before.get((id(path), k)), problem))
            solver = Auto(shrinking=bool(machine.shrinking), monitor=self.monitor)
            evaluations, _ = solve_certified(gram, problems, solver, machine.tol, self.workers)
            if self.monitor.stopped():
                raise StoppedError
            machine._warn_unfinished(DualCertificate.worst([e.certificate for e in evaluations]))
            seconds = (time.perf_counter() - began) / len(paths)
            values = self._values_of(gram, evaluations, targets.sign, K)
            for j, path in enumerate(paths):
                own = slice(n * j, n * (j + 1))
                before.update(
                    ((id(path), k), (problems[n * j + k], evaluations[n * j + k])) for k in range(n)
                )
                test, train = values(path.fold.test, own), None
                if self.manners.search.return_train_score:
                    train = values(path.fold.train, own)
                yield HeldOut(
                    path.left[0],
                    path.fold.split,
                    seconds,
                    how,
                    test=test,
                    train=train,
                    classes=targets.classes,
                )
                path.reached += 1

    def _values_of(
        self, gram: Gram, evaluations: list[Evaluation], sign: float, K: np.ndarray | None
    ) -> Callable[[np.ndarray, slice], np.ndarray]:
        """Return what gives the values of some of the machines at some rows."""
        together = None
        bias = np.array([evaluation.bias for evaluation in evaluations])
        coefficients = sp.csc_array(
            (
                np.concatenate([e.coefficients for e in evaluations]),
                np.concatenate([e.rows for e in evaluations]),
                np.cumsum([0, *(len(e.rows) for e in evaluations)]),
            ),
            shape=(gram.n, len(evaluations)),
        )
        if gram.on_device:  # all at once, where that costs hardly more than one
            together = gram.matmat(coefficients)

        def values(rows: np.ndarray, machines: slice) -> np.ndarray:
            if together is not None:
                return sign * (together[rows, machines] + bias[machines])
            if K is not None:
                return sign * ((coefficients[:, machines].T @ K[rows].T).T + bias[machines])
            sums = [
                gram.matvec(coefficients[:, [k]].toarray()[:, 0], rows, self.workers)
                for k in range(len(evaluations))[machines]
            ]
            return sign * (np.column_stack(sums) + bias[machines])

        return values


def _on_rows(data: DataSet, machine: Any, k: int, fold: Fold) -> DualProblem:
    """Return problem k over the rows of the whole matrix, without those held out."""
    problem = data.targets.problem(machine, k, fold)
    problem = replace(problem, gram_row=data.targets.rows(k)[problem.gram_row])
    inside = np.zeros(len(fold.weight), dtype=bool)
    inside[fold.train] = True
    return problem.restricted(np.flatnonzero(inside[problem.gram_row]))


def _begun_from(last: tuple[DualProblem, Evaluation] | None, problem: DualProblem) -> DualProblem:
    """Begin a problem from the solution of the same one with a lower cost, if there is one."""
    if last is None or len(problem) < SMALL:
        return problem  # a small one is as soon solved from zero, and exactly
    if problem.start.any():
        return problem  # sums that are fixed, as by nu: a multiple would not keep to them
    before, evaluation = last
    beta = evaluation.solution.beta
    ratio = warm_start_ratio(before, beta, problem)
    beta = np.clip(ratio * beta, problem.lower, problem.upper)
    return problem.started_from(beta, ratio * evaluation.recomputed)

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
from maxmargin.backends.threads import Workers, on_one_blas_thread
from maxmargin.certificate import DualCertificate
from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation, evaluate
from maxmargin.gram import Definiteness, DeviceGram, Gram
from maxmargin.gram.matrices import Resident, shares_primitives
from maxmargin.kernels import Input, Kernel
from maxmargin.kernels.base import Validity
from maxmargin.progress import Monitor
from maxmargin.selection.cost_path import CostPath
from maxmargin.selection.data_set import SEVERAL, DataSet
from maxmargin.selection.direct_path import direct_outcomes
from maxmargin.selection.held_out import Claim, HeldOut
from maxmargin.selection.linear_path import linear_outcomes
from maxmargin.selection.plan import REFUSALS, Candidate, Sharing, grouped
from maxmargin.selection.scikit_learn import Manners
from maxmargin.selection.shared_data import SharedData, TrainingSide
from maxmargin.selection.targets import COARSE, UNDECIDED, Fold, Labels
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Auto, solve_certified
from maxmargin.solvers.dual.seeded import warm_start_ratio
from maxmargin.svm.probability import needs_all

_LARGEST = 1e30  # kernel value up to which float32 is thought of
# what a kernel function of the user's may raise: in a fit of its own it is a failed fit
_SMALL = 1000  # variables up to which a problem is as soon solved from zero
_OF_FUNCTIONS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_FOLLOWED = "along paths of C over float32 values"
_DIRECT = "all classes at once along paths of C, to certificates over float64 values"
_UNSEEN = (
    "probability={!r} wants the values of machines on rows of classes that they do not see, which "
    "only a fit of its own has."
)
_DIRECT_ALONE = "probability={!r} of all classes at once needs folds, which only a fit has."
_CERTIFIED = "solved to certificates over float64 values"


@dataclass
class KernelJob:
    """The paths that belong to one kernel, its matrix while it is there, and the rounding of that.

    The latter as of :attr:`maxmargin.gram.Gram.rounding`.
    """

    kernel: Kernel
    paths: list[CostPath] = field(default_factory=list)
    K: Any = None
    rounding: float = 0.0


@dataclass(frozen=True)
class SharedFits:
    """The fits of a search over some splits of its data.

    ``sharing`` is told what is shared, and what is not. When someone wants the work to end,
    :class:`~maxmargin.backends.threads.StoppedError` is raised.
    """

    data: SharedData
    splits: list[int]
    workers: Workers
    monitor: Monitor
    sharing: Sharing

    @property
    def manners(self) -> Manners:
        """Scores and data of the search."""
        return self.data.manners

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
            for data in self.data.sets(group, self.splits, self.leave_alone):
                yield from self._over(data, group)

    def leave_alone(self, candidates: list[Candidate], reason: str, *splits: int) -> None:
        """Say why candidates are left to fits of their own, on some splits or on all of them."""
        self.sharing.leave_alone(candidates, splits or self.splits, reason)

    def training_sides(self, group: list[Candidate]) -> Iterator[TrainingSide]:
        """Yield the training rows of each split, as the transformers leave them."""
        return self.data.training_sides(group, self.splits, self.leave_alone)

    # -- what is to be done with them ----------------------------------------------------------

    def _over(self, data: DataSet, candidates: list[Candidate]) -> Iterator[HeldOut]:
        """Yield the outcomes of candidates on the folds of a data set."""
        for alike in grouped(candidates, lambda a, b: a.dtype is b.dtype):
            jobs = self._jobs(data, alike)
            for family in grouped(
                jobs, lambda a, b: shares_primitives(a.kernel.lower(), b.kernel.lower())
            ):
                yield from self._family(data, family, alike[0].dtype)

    def _jobs(self, data: DataSet, candidates: list[Candidate]) -> list[KernelJob]:
        """Say which paths are to be followed under which kernels."""
        jobs: list[KernelJob] = []
        alike = grouped(candidates, lambda a, b: a.kernel == b.kernel and a.same_problem(b))
        paths = [sorted(path, key=lambda candidate: candidate.cost) for path in alike]
        for fold in data.folds:
            pairwise = candidates[0].kernel.pairwise
            X = data.X if pairwise else _safe_indexing(data.X, np.sort(fold.train))
            once = len(np.unique(fold.train)) == len(fold.train)
            for path in paths:
                asked = path[0].calibration if self.manners.ask_for_probabilities else None
                reason = _not_shared(asked, data.targets)
                if reason is not None:
                    reason = reason.format(path[0].machine.probability)
                    self.leave_alone(path, reason, fold.split)
                    continue
                if data.targets.coarse(fold, path[0].machine.tol):
                    self.leave_alone(path, COARSE, fold.split)
                    continue
                posed = self._posed(data, path, fold)
                if not posed:
                    continue
                try:
                    kernel = path[0].kernel.resolve(X, data.names)
                except REFUSALS as error:  # it looks through the data, by maps of the user's too
                    self.leave_alone(path, f"The kernel refuses: {error}", fold.split)
                    continue
                job = next((job for job in jobs if job.kernel == kernel), None)
                if job is None:
                    jobs.append(job := KernelJob(kernel))
                probable = asked is not None and once
                job.paths.append(CostPath(data.targets, fold, posed, probable))
        return jobs

    def _posed(self, data: DataSet, path: list[Candidate], fold: Fold) -> list[Candidate]:
        """Return the candidates whose problems can be stated; of the others, a fit says why."""
        posed, with_nu = [], hasattr(path[0].machine, "nu")
        for i, candidate in enumerate(path):
            try:
                if with_nu or not i:  # without nu, one tells for all costs and pairs of classes
                    data.targets.state(candidate.machine, fold, every=with_nu)
                posed.append(candidate)
            except ValueError as error:
                reason = f"Its problem cannot be stated: {error}"
                self.leave_alone([candidate] if with_nu else path, reason, fold.split)
                if not with_nu:
                    return []
        return posed

    def _unsound(self, data: DataSet, kernel: Kernel) -> str | None:
        """Why a kernel's matrix is none to share: not symmetric, not finite or indefinite.

        Or sequences that it refuses, which are read here for the first time.
        """
        valid, strings = kernel.validity is Validity.VALID, kernel.input is Input.SEQUENCES
        if valid and not strings:
            return None
        python = kernel.lower().calls_python
        refusals = (
            _OF_FUNCTIONS if python else (ValueError, TypeError) if strings else (ValueError,)
        )
        try:
            gram = data.gram(kernel)
            if not valid:
                gram.check()
        except refusals as error:
            return f"The kernel's values are refused: {error!r}"
        if not valid and gram.definiteness is Definiteness.INDEFINITE:
            return "The kernel is indefinite on these data: where a fit ends depends on its start."
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
                yield from list(self._certified(data, jobs[0], np.float64))
                jobs = jobs[1:]
            except DeviceError as error:
                if data.machine.device != "auto":
                    raise
                data.placement = Placement("cpu", str(error))
                for path in jobs[0].paths:
                    path.reached = 0
        if not jobs:
            return
        if data.targets.direct:
            dtype = np.float64  # no more than the certificates need
        if dtype is np.float32 and not all(self._fits_float32(data, job.kernel) for job in jobs):
            dtype = np.float64
        matrices = data.matrices(dtype, self.workers)
        limited = self.monitor.time_limit is not None
        threads, at_once, left = data.room(matrices, self.workers.count, limited)
        if threads:
            matrices.prepare([job.kernel for job in jobs], left)
        for first in range(0, len(jobs), at_once):
            batch = jobs[first : first + at_once]
            if threads:
                for place, job in enumerate(batch):
                    job.K = matrices.of(job.kernel, place)
                    job.rounding = matrices.rounding(job.kernel)
                if dtype is np.float32:
                    self._follow(data, batch, Workers(threads, self.monitor.stopped))
                    for job in batch:
                        self._solve_doubtful(data, job)
                    yield from self._answers(batch)
            for job in batch:
                yield from self._certified(data, job, dtype)

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
                    path.follow(k, block, self.monitor)
            finally:
                buffers.put(buffer)

        tasks = []
        for job in jobs:
            for path in job.paths:
                path.begin(job.rounding)
            shared = targets.n_problems >= SEVERAL * workers.count
            for paths in [job.paths] if shared else [[path] for path in job.paths]:
                tasks += [(job, k, paths) for k in range(targets.n_problems)]
        workers.map(follow, tasks)

    def _solve_doubtful(self, data: DataSet, job: KernelJob) -> None:
        """Solve problems again over float64 values that float32 leaves in doubt."""
        doubtful = [path for path in job.paths if path.doubtful]
        if not doubtful:
            return
        gram = data.gram(job.kernel)
        for paths in grouped(doubtful, lambda a, b: a.tol == b.tol):
            tasks = [
                (path, i, k) for path in paths for i, k in sorted(path.doubtful) if i < path.reached
            ]
            if not tasks:
                continue
            began, machine = time.perf_counter(), paths[0].candidates[0].machine
            problems = []
            for path, i, k in tasks:
                beta = path.doubtful[i, k]
                problems.append(_on_rows(data, path.candidates[i].machine, k, path.fold, beta))
            answers = self._evaluated(gram, problems, machine.tol)
            open_ = [j for j in range(len(tasks)) if j not in answers]
            solved = self._solved(gram, [problems[j] for j in open_], machine) if open_ else []
            answers |= dict(zip(open_, solved, strict=True))
            seconds = (time.perf_counter() - began) / len(tasks)
            for j, (path, i, k) in enumerate(tasks):
                path.certify_again(i, k, answers[j], seconds)

    def _evaluated(
        self, gram: Gram, problems: list[DualProblem], tol: float
    ) -> dict[int, Evaluation]:
        """Return the evaluations, over float64 values, of those starts that are solutions.

        Only large problems are looked at, and begin from what is then known: a small one is as soon
        solved again.
        """
        large = [j for j, problem in enumerate(problems) if len(problem) >= _SMALL]
        if not large:
            return {}
        coefficients = np.array([problems[j].on_rows(problems[j].start, gram.n) for j in large])
        decisions = gram.matmat(coefficients.T, None, self.workers).T
        found = {}
        for j, decision in zip(large, decisions, strict=True):
            problem = problems[j] = problems[j].started_from(problems[j].start, decision)
            own, rows = problem.renumbered(), problem.rows
            start = Solution(own.start, 0, Status.CONVERGED, decision[rows], exact=True)
            own = own.started_from(np.zeros_like(own.start)).over(gram.take(rows))
            evaluation = evaluate(own, start, tol, gram.spectrum, rows=rows)
            certificate = evaluation.certificate
            if certificate.kkt_violation <= tol and np.isfinite(certificate.relative_gap):
                found[j] = evaluation
        return found

    def _solved(self, gram: Gram, problems: list[DualProblem], machine: Any) -> list[Evaluation]:
        """Solve problems to certificates, and warn of what does not converge."""
        solver = Auto(shrinking=bool(machine.shrinking), monitor=self.monitor)
        evaluations, _ = solve_certified(gram, problems, solver, machine.tol, self.workers)
        self.workers.check()
        machine._warn_unfinished(DualCertificate.worst([e.certificate for e in evaluations]))
        return evaluations

    @on_one_blas_thread
    def _answers(self, jobs: list[KernelJob]) -> list[HeldOut]:
        """Evaluate what was solved."""

        def answer(task: tuple[np.ndarray, CostPath]) -> list[HeldOut]:
            K, path = task
            test = path.values(K, path.fold.test)
            path.end_at_hidden(test)
            train = None
            if self.manners.train_too and path.reached:
                train = path.values(K, path.fold.train)
                path.end_at_hidden(train)
            return [
                HeldOut(
                    candidate,
                    path.fold.split,
                    float(path.seconds[i].sum()),
                    _FOLLOWED,
                    path.claim(i),
                    test=test[i],
                    train=None if train is None else train[i],
                    classes=path.targets.classes,
                    calibration=path.calibration(i),
                )
                for i, candidate in enumerate(path.candidates[: path.reached])
                if not self._undecided(path, candidate, test[i])
            ]

        tasks = [(job.K, path) for job in jobs for path in job.paths if path.reached]
        return [known for some in self.workers.map(answer, tasks) for known in some]

    def _undecided(self, path: CostPath, candidate: Candidate, values: np.ndarray) -> bool:
        """Leave a candidate alone whose ``tol`` leaves the classes of held-out rows open."""
        undecided = path.targets.undecided(values, path.tol)
        if undecided:
            self.leave_alone([candidate], UNDECIDED, path.fold.split)
        return undecided

    def _certified(self, data: DataSet, job: KernelJob, dtype: Any) -> Iterator[HeldOut]:
        """Solve what is left of the paths to certificates."""
        unsolved = [path for path in job.paths if path.left]
        if not unsolved:
            return
        gram: Gram
        how = _CERTIFIED
        if data.placement.on_gpu:
            device, cache_size = data.placement.device, data.machine.cache_size
            gram = DeviceGram.of(data.X, job.kernel, device=device, cache_size=cache_size)
            how = f"on {device}"
        elif job.K is not None and dtype is np.float64:
            left = max(data.budget - job.K.nbytes, data.budget // 4)
            gram = Gram.of(job.K, Resident(job.kernel.validity), memory=left)
        else:
            gram = data.gram(job.kernel)
        if isinstance(data.targets, Labels) and data.targets.direct:
            how = how if gram.on_device else _DIRECT
            yield from direct_outcomes(self, data.targets, gram, unsolved, how)
            return
        for paths in grouped(unsolved, lambda a, b: a.tol == b.tol):
            yield from self._rest(data, gram, paths, how)

    def _rest(
        self, data: DataSet, gram: Gram, paths: list[CostPath], how: str
    ) -> Iterator[HeldOut]:
        """Solve the rest of some paths of one tolerance, each cost begun from the last.

        All folds at once: small problems are solved together.
        """
        n, targets = data.targets.n_problems, data.targets
        before: dict[int, tuple[list[DualProblem], list[Evaluation]]] = {}
        while paths := [path for path in paths if path.left]:
            began = time.perf_counter()
            problems = []
            for path in paths:
                machine = path.left[0].machine
                posed = [_on_rows(data, machine, k, path.fold) for k in range(n)]
                if id(path) in before:
                    posed = list(map(_begun_from, *before[id(path)], posed))
                problems += posed
            evaluations = self._solved(gram, problems, machine)
            seconds = (time.perf_counter() - began) / len(paths)
            values = self._values_of(gram, evaluations, targets.sign)
            for j, path in enumerate(paths):
                own = slice(n * j, n * (j + 1))
                before[id(path)] = problems[own], evaluations[own]
                candidate, test = path.left[0], values(path.fold.test, own)
                path.reached += 1
                if self._undecided(path, candidate, test):
                    continue
                yield HeldOut(
                    candidate,
                    path.fold.split,
                    seconds,
                    how,
                    Claim.of(DualCertificate.worst([e.certificate for e in evaluations[own]])),
                    test=test,
                    train=values(path.fold.train, own) if self.manners.train_too else None,
                    classes=targets.classes,
                )

    def _values_of(
        self, gram: Gram, evaluations: list[Evaluation], sign: float
    ) -> Callable[[np.ndarray, slice], np.ndarray]:
        """Return what gives the values of some of the machines at some rows."""
        bias = np.array([evaluation.bias for evaluation in evaluations])
        coefficients = sp.csc_array(
            (
                np.concatenate([e.coefficients for e in evaluations]),
                np.concatenate([e.rows for e in evaluations]),
                np.cumsum([0, *(len(e.rows) for e in evaluations)]),
            ),
            shape=(gram.n, len(evaluations)),
        )
        # on a GPU all at once, where that costs hardly more than one
        together = gram.matmat(coefficients) if gram.on_device else None

        def values(rows: np.ndarray, machines: slice) -> np.ndarray:
            if together is None:
                sums = gram.matmat(coefficients[:, machines], rows, self.workers)
            else:
                sums = together[rows, machines]
            return sign * (sums + bias[machines])

        return values


def _not_shared(calibration: str | None, targets: Any) -> str | None:
    """Why candidates with probabilities of some kind are not shared, with room for their name."""
    if calibration is None or not isinstance(targets, Labels):
        return None
    if targets.direct:
        return _DIRECT_ALONE
    return _UNSEEN if needs_all(calibration, targets.scheme) else None


def _on_rows(
    data: DataSet, machine: Any, k: int, fold: Fold, beta: np.ndarray | None = None
) -> DualProblem:
    """Return problem k over the rows of the whole matrix, without those held out.

    A large one is begun from ``beta``, variables of all rows, if these are known.
    """
    problem = data.targets.problem(machine, k, fold)
    problem = replace(problem, gram_row=data.targets.rows(k)[problem.gram_row])
    inside = np.zeros(len(fold.weight), dtype=bool)
    inside[fold.train] = True
    own = np.flatnonzero(inside[problem.gram_row])
    problem = problem.restricted(own)
    return problem if beta is None or len(own) < _SMALL else problem.started_near(beta[own])


def _begun_from(before: DualProblem, evaluation: Evaluation, problem: DualProblem) -> DualProblem:
    """Begin a problem from the solution of the same one with a lower cost."""
    if len(problem) < _SMALL:
        return problem  # a small one is as soon solved from zero, and exactly
    if problem.start.any():
        return problem  # sums that are fixed, as by nu: a multiple would not keep to them
    beta = evaluation.solution.beta
    ratio = warm_start_ratio(before, beta, problem)
    beta = np.clip(ratio * beta, problem.lower, problem.upper)
    return problem.started_from(beta, ratio * evaluation.recomputed)

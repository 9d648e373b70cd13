"""What the five kernel machines share: from validated data to a certified kernel expansion."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
)

from maxmargin import memory
from maxmargin.backends.device import DeviceError, Placement, place
from maxmargin.backends.threads import ALONE, Workers, thread_count
from maxmargin.certificate import Certificate, Evaluation
from maxmargin.duals import DualProblem
from maxmargin.estimators.callbacks import CallbackSupportMixin, scikit_learn_listeners
from maxmargin.estimators.checkpoint import Checkpoint
from maxmargin.estimators.data import (
    refuse_extreme_targets,
    refuse_extreme_weights,
    validate_data,
)
from maxmargin.estimators.expansion import expansion_of
from maxmargin.estimators.parameters import POSITIVE, CheckedParameters
from maxmargin.gram import DeviceGram, Gram
from maxmargin.kernels import Input, Kernel, Linear, as_kernel
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solvers import Auto, solve_certified
from maxmargin.svm import linear_road

_LOOKED_AT_APART = 1 << 20  # entries from which threads are worth their start
_ROOM = 48  # bytes, times rows and rows or columns, that a fit has a use for at most
_PER_VALUE = 8  # entries that take as long to look at as a kernel value to compute

F = TypeVar("F", bound=Callable[..., Any])


class KernelMachine(CheckedParameters, CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines: validation, kernel, Gram matrix, solve, certificate.

    A machine turns its data into dual problems and its evaluated solutions into attributes; all
    between is here, and the same for all of them.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    tol: float
    shrinking: bool
    cache_size: Any
    verbose: Any
    max_iter: int
    time_limit: float | None
    n_jobs: int | None
    device: str
    warm_start: bool
    checkpoint: Any
    checkpoint_interval: float
    callback: Any

    _parameter_constraints: dict = {
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}),
            Kernel,
            callable,
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [POSITIVE],
        "shrinking": ["boolean"],
        "cache_size": [StrOptions({"auto"}), POSITIVE],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [POSITIVE, None],
        "n_jobs": [Integral, None],
        "device": [str],
        "warm_start": ["boolean"],
        "checkpoint": [str, PathLike, None],
        "checkpoint_interval": [Interval(Real, 0.0, None, closed="left")],
        "callback": [callable, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags

    # -- fitting -------------------------------------------------------------------------------

    def _validated_kernel(self) -> Kernel:
        return as_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _validated(self, X: Any, y: Any, kernel: Kernel, **y_options: Any) -> tuple[Any, Any]:
        """Check X and y as scikit-learn does, keeping float32, CSR and the column names."""
        if kernel.input is Input.OBJECTS:
            X, y = validate_data(self, X, y, skip_check_array=True)
            check_consistent_length(X, y)
            if not _num_samples(X):
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X, y
        if kernel.pairwise and sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported.")
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            ensure_all_finite=False,
            **y_options,
        )
        self._refuse_infinite(X)
        if y_options.get("y_numeric"):
            refuse_extreme_targets(y)
        if kernel.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix."
                f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    def _refuse_infinite(self, X: Any) -> None:
        """Refuse NaN and infinity as scikit-learn does, with all threads looking."""
        entries = (X.data if sp.issparse(X) else X).reshape(-1)
        if len(entries) < _LOOKED_AT_APART and np.isfinite(_total(entries)):
            return
        workers = self._workers(entries.size)
        parts = np.array_split(entries, workers.count)
        if len(entries) < _LOOKED_AT_APART or not np.isfinite(workers.map(_total, parts)).all():
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")

    def _validated_weight(self, sample_weight: Any, X: Any) -> np.ndarray:
        if sample_weight is None:
            return np.ones(_num_samples(X))
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weight > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        refuse_extreme_weights(weight)
        return weight

    def _gram(self, X: Any, kernel: Kernel) -> Gram:
        """Build the Gram matrix of the training data; its kernel is the resolved one."""
        names = getattr(self, "feature_names_in_", None)
        kernel = kernel.resolve(X, names)
        self.device_ = self._placed(kernel, X, _num_samples(X))
        if self.device_.on_gpu:
            gram: Gram = DeviceGram.of(
                X, kernel, device=self.device_.device, cache_size=self.cache_size
            )
        else:
            n = _num_samples(X)
            wanted = _ROOM * n * (n + getattr(X, "size", n) // n)
            budget = memory.budget(self.cache_size, wanted)
            gram = Gram.of(X, kernel, memory=budget, at_once=self.time_limit is None)
        gram.check()
        self.kernel_ = gram.kernel
        return gram

    _gpu_failed: str | None = None  # in this fit, and why

    def _placed(self, kernel: Kernel, X: Any, against: int) -> Placement:
        """Decide where to compute the kernel between the rows of X and so many others."""
        if self.device == "cpu":
            return place("cpu", 0, 0)
        blocked = self._gpu_failed
        if kernel.lower().calls_python:
            blocked = f"The kernel {kernel!r} calls a Python function, which a GPU cannot run."
        n = _num_samples(X)
        width = X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else 1
        return place(self.device, int((n * float(against)) ** 0.5), width, blocked=blocked)

    def _solver(self) -> Auto:
        listeners: list = [] if self.callback is None else [self.callback]
        return Auto(self.max_iter, bool(self.shrinking), Monitor(self.time_limit, listeners))

    def _workers(self, entries: float = np.inf) -> Workers:
        """Threads for work on so many entries; where it is little, the caller's own."""
        return Workers(thread_count(self.n_jobs)) if entries >= _LOOKED_AT_APART else ALONE

    def _solved(
        self, gram: Gram, problems: list[DualProblem], solver: Auto, X: Any
    ) -> list[Evaluation]:
        """Solve and certify; sets ``certificate_``, ``fit_status_`` and the step counts."""
        monitor, workers = solver.monitor, self._workers()
        monitor.problems = len(problems)
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(
                self.checkpoint, X, self.kernel_, problems, self.checkpoint_interval
            )
            monitor.listeners.append(checkpoint)
        monitor.listeners.extend(scikit_learn_listeners(self))
        with monitor.watching(self.verbose):
            problems = self._started(problems, checkpoint)
            if not self.device_.on_gpu:
                problems = [
                    linear_road.started(
                        problem, X, workers, ProblemMonitor(monitor, k), self.max_iter
                    )
                    if not problem.start.any() and linear_road.pays(self.kernel_, X, problem)
                    else problem
                    for k, problem in enumerate(problems)
                ]
            evaluations, steps = solve_certified(gram, problems, solver, self.tol, workers)
            self.certificate_ = Certificate.worst([e.certificate for e in evaluations])
            if self.verbose:  # the claim may take eigenvalues
                certificate = self.certificate_
                monitor.end(f"{certificate.status}: {certificate.claim}", certificate.converged)
        self.fit_status_ = int(not self.certificate_.converged)
        self.n_iter_: Any = np.array(steps)
        self._alphas = [_nonzero(e.solution.alpha) for e in evaluations]
        if checkpoint is not None:
            if self.certificate_.converged:
                checkpoint.remove()
            else:
                checkpoint.write([e.solution.alpha for e in evaluations])
        self._warn_unfinished(self.certificate_)
        return evaluations

    def _started(
        self, problems: list[DualProblem], checkpoint: Checkpoint | None
    ) -> list[DualProblem]:
        """Start where a checkpoint or, with ``warm_start``, the last fit has left off."""
        alphas = None if checkpoint is None else checkpoint.read()
        sizes = [len(problem.sign) for problem in problems]
        if alphas is None and self.warm_start and hasattr(self, "_alphas"):
            known = [size for size, _, _ in self._alphas]
            alphas = [_scattered(*part) for part in self._alphas] if known == sizes else None
        if alphas is None:
            return problems
        return [
            problem if problem.hard else problem.started_near(alpha)
            for problem, alpha in zip(problems, alphas, strict=True)
        ]

    def _warn_unfinished(self, certificate: Certificate, where: str = "") -> None:
        """Warn when a problem did not converge: why, how far it is, and what to do."""
        if certificate.converged:
            return
        advice = certificate.status.advice.format(
            max_iter=self.max_iter, time_limit=self.time_limit or 0.0
        )
        warnings.warn(
            f"{where}{advice} The KKT violation is {certificate.kkt_violation:.3g} "
            f"(tol {self.tol:g}). See certificate_.",
            ConvergenceWarning,
            stacklevel=8,
        )

    def _keep_support(self, X: Any, support: np.ndarray, dual_coef: np.ndarray) -> None:
        """Set the attributes of the expansion, sparse where X is sparse, as scikit-learn does."""
        self.shape_fit_ = tuple(X.shape) if hasattr(X, "shape") else (_num_samples(X),)
        self.support_ = support.astype(np.int32)
        if self.kernel_.pairwise:
            self.support_vectors_ = np.empty((0, 0))
        else:
            width = X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else 1
            self.support_vectors_ = _taken(X, support, self._workers(len(support) * width))
        if sp.issparse(X):
            container = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            self.dual_coef_ = container(dual_coef)
        else:
            self.dual_coef_ = dual_coef

    # -- evaluating ----------------------------------------------------------------------------

    def _expansion(self, X: Any, **grouping: Any) -> np.ndarray:
        """Values of the machine's expansions at new points; grouped as by `KernelExpansion.at`."""
        self._check_is_fitted()
        kernel = self.kernel_
        if kernel.input is Input.OBJECTS:
            X = validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = validate_data(
                self,
                X,
                dtype=[np.float64, np.float32],
                order="C",
                accept_sparse=not kernel.pairwise and "csr",
                reset=False,
            )
        parts = kernel, self.support_vectors_, self.support_, self.dual_coef_
        return expansion_of(self, *parts).at(
            X,
            workers=self._workers(_PER_VALUE * _num_samples(X) * len(self.support_)),
            device=self._device_for(kernel, X),
            **grouping,
        )

    def _device_for(self, kernel: Kernel, X: Any) -> str:
        """Where to evaluate: a machine that was made on a GPU works without one, too."""
        try:
            return self._placed(kernel, X, max(len(self.support_), 1)).device
        except DeviceError as error:
            warnings.warn(f"Evaluating on the CPU. {error}", UserWarning, stacklevel=5)
            return "cpu"

    def _check_is_fitted(self) -> None:
        """Refuse a machine that is not fitted, as scikit-learn does; to be sure of one is quick."""
        if "dual_coef_" not in vars(self):
            check_is_fitted(self)

    def _dense_dual_coef(self) -> np.ndarray:
        return self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_

    @property
    def coef_(self) -> Any:
        """Weights of the features, ``w = sum_i dual_coef_i x_i``; for the linear kernel only."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = safe_sparse_dot(self._expansion_coefficients(), self.support_vectors_)
        if sp.issparse(self.dual_coef_):
            return type(self.dual_coef_)(weights)
        weights.flags.writeable = False
        return weights

    @abstractmethod
    def _expansion_coefficients(self) -> np.ndarray:
        """Coefficients of the machine's expansions over its support vectors, (k, n_SV)."""


class SingleMachine(KernelMachine):
    """A machine with one expansion: regression and the one-class machine."""

    dual_coef_: Any
    intercept_: np.ndarray

    def _keep_expansion(self, X: Any, evaluation: Evaluation) -> None:
        """Set the attributes of the one expansion."""
        self.n_iter_ = int(self.n_iter_[0])
        support = np.flatnonzero(evaluation.coefficients)
        self._keep_support(X, support, evaluation.coefficients[support][None, :])
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.intercept_ = np.array([evaluation.bias])

    def _expansion_coefficients(self) -> np.ndarray:
        return self._dense_dual_coef()

    def _decision(self, X: Any) -> np.ndarray:
        return self._expansion(X)[:, 0] + self.intercept_[0]


def with_the_cpu_in_reserve(fit: F) -> F:
    """Let a fit begin again on the CPU where the GPU that ``device="auto"`` chose has failed."""

    @wraps(fit)
    def fitted(machine: KernelMachine, *args: Any, **options: Any) -> Any:
        try:
            return fit(machine, *args, **options)
        except DeviceError as error:
            if machine.device != "auto":
                raise
            machine._gpu_failed = str(error)
        try:
            return fit(machine, *args, **options)
        finally:
            del machine._gpu_failed

    return fitted  # type: ignore[return-value]


def _total(entries: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(entries.sum())


def _taken(X: Any, rows: np.ndarray, workers: Workers) -> Any:
    """Rows of X; many of an array with all threads, since new memory is slow to write to."""
    if not isinstance(X, np.ndarray):
        return _safe_indexing(X, rows)
    if len(rows) * X.shape[1] < _LOOKED_AT_APART:
        return X[rows]
    taken = np.empty((len(rows), X.shape[1]), dtype=X.dtype)

    def copy(part: np.ndarray) -> None:
        some = slice(part[0], part[-1] + 1)
        np.take(X, rows[some], axis=0, out=taken[some], mode="clip")  # unbuffered, unlike "raise"

    workers.map(copy, np.array_split(np.arange(len(rows)), workers.count))
    return taken


def _nonzero(alpha: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Length, places and values of a sparse vector."""
    places = np.flatnonzero(alpha)
    return len(alpha), places, alpha[places]


def _scattered(size: int, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Undo :func:`_nonzero`."""
    alpha = np.zeros(size)
    alpha[places] = values
    return alpha

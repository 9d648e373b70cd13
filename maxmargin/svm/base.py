"""What the five kernel machines share: from dual problems to a certified kernel expansion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin import memory
from maxmargin.certificate import Certificate
from maxmargin.duals import DualProblem
from maxmargin.estimators import readings
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import listeners_of
from maxmargin.estimators.checkpoint import Checkpoint
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.evaluation import Evaluation
from maxmargin.gram import Definiteness, Gram
from maxmargin.kernels import Linear
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import SMO, Auto, DualMethod, QuadraticProgramme, solve_certified
from maxmargin.solvers.select import DUAL_METHODS, in_words
from maxmargin.svm import approximation, primal_start
from maxmargin.svm.norm_bound import within


class KernelMachine(KernelEstimator):
    """A kernel estimator whose expansion solves quadratic programmes, with a certificate.

    A machine turns its data into dual problems and its evaluated solutions into attributes; all
    between is here, and the same for all of them.
    """

    tol: float
    shrinking: bool
    max_iter: int
    warm_start: bool
    checkpoint: Any
    checkpoint_interval: float
    solver: Any
    norm_bound: float | None = None  # of the machines that have one
    C_: np.ndarray
    lam_: np.ndarray
    approximation: Any = None  # where it is no parameter
    feature_map_: Any = None  # in place of an expansion

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        "tol": [POSITIVE],
        "shrinking": ["boolean"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "warm_start": ["boolean"],
        "checkpoint": [str, PathLike, None],
        "checkpoint_interval": [Interval(Real, 0.0, None, closed="left")],
        **WATCHED,
        "solver": [StrOptions({"auto", *DUAL_METHODS}), DualMethod],
    }

    def to_sklearn(self) -> Any:
        """Return scikit-learn's estimator with the same function, fitted, for tools that need it.

        Returns
        -------
        model : estimator of scikit-learn
            It predicts the same, but has no probabilities.
        """
        from maxmargin.svm.export import svm_of

        return svm_of(self)

    # -- fitting -------------------------------------------------------------------------------

    def _solver(self) -> Auto:
        monitor, shrinking = Monitor(self.time_limit, listeners_of(self)), bool(self.shrinking)
        method = self.solver
        if isinstance(method, str):
            named = DUAL_METHODS.get(method)  # None for "auto"
            method = SMO(shrinking) if named is SMO else named and named()
            if named is QuadraticProgramme and not isinstance(self.cache_size, str):
                method = QuadraticProgramme(memory.budget(self.cache_size))
        return Auto(self.max_iter, shrinking, monitor, method)

    @property
    def _sign(self) -> float:
        """Minus one where labels are the other way round in the problems."""
        return 1.0

    def _solved(
        self,
        gram: Gram,
        problems: list[DualProblem],
        solver: Auto,
        X: Any,
        known: Sequence[Evaluation | None] = (),
    ) -> list[Evaluation]:
        """Solve and certify; sets ``certificate_``, ``fit_status_`` and the step counts.

        ``known`` are answers that are certified already, None for each that is still missing.
        """
        monitor, workers = solver.monitor, self._workers()
        monitor.problems = len(problems)
        monitor.started -= gram.seconds
        checkpoint = None
        if self.checkpoint is not None:
            if self.norm_bound is not None:
                raise ValueError("A fit with norm_bound keeps no checkpoint: use warm_start=True.")
            checkpoint = Checkpoint(
                self.checkpoint, X, self.kernel_, problems, self.checkpoint_interval
            )
            monitor.listeners.append(checkpoint)
        heard = bool(monitor.listeners) and self.norm_bound is None  # which changes the box
        if heard and isinstance(self.kernel_, Linear):
            monitor.readings |= {
                k: readings.of_dual(problem, X, self._sign) for k, problem in enumerate(problems)
            }
        with monitor.watching(self.verbose):
            if self.norm_bound is not None:
                evaluations, steps = self._solved_within(gram, problems, solver, self.norm_bound)
            else:
                for name in ("C_", "lam_"):  # of another fit
                    self.__dict__.pop(name, None)
                problems = self._started(problems, checkpoint)
                if not self.device_.on_gpu and solver.method is None and monitor.trace is None:
                    problems = [
                        self._begun(problem, X, ProblemMonitor(monitor, k))
                        for k, problem in enumerate(problems)
                    ]
                evaluations, steps = _missing(gram, problems, solver, self.tol, workers, known)
            parts: list[Any] = [e.certificate for e in evaluations]
            self._keep_certificate(type(parts[0]).worst(parts), steps, monitor)
        self._betas = [_nonzero(e.solution.beta) for e in evaluations]
        self.__dict__.pop("_free_and_bounded", None)
        if self.norm_bound is None:  # whose expansion may lie between those of two costs
            self._free_and_bounded = [_free_and_bounded(e) for e in evaluations]
        if checkpoint is not None:
            if self.certificate_.converged:
                checkpoint.remove()
            else:
                checkpoint.write([e.solution.beta for e in evaluations])
        self._warn_unfinished(self.certificate_)
        self._warn_without_norm([e.squared_norm for e in evaluations])
        return evaluations

    def _solved_within(
        self, gram: Gram, problems: list[DualProblem], solver: Auto, norm_bound: float
    ) -> tuple[list[Evaluation], list[int]]:
        """Solve problems that are posed at C = 1 under a bound on the norm; sets their costs."""
        betas = self._known_betas(problems) if hasattr(self, "C_") else None
        found = []
        for k, problem in enumerate(problems):
            known = None if betas is None else (float(self.C_[k]), betas[k])
            how = solver, self.tol, self._workers(), k, known
            found.append(within(gram, problem, norm_bound, *how))
        evaluations, costs, steps = map(list, zip(*found, strict=True))
        weights = np.array([problem.losses.cost.sum() for problem in problems if problem.losses])
        self.C_ = np.array(costs)
        self.lam_ = 0.5 / (weights * self.C_)
        return evaluations, steps

    def _keep_certificate(
        self, certificate: Certificate, steps: list[int], monitor: Monitor
    ) -> None:
        """Set what a fit says of its answer."""
        self.certificate_, self.fit_status_ = certificate, int(not certificate.converged)
        self.n_iter_: Any = np.array(steps)
        self.solver_, self.solver_why_ = in_words(monitor.chosen)
        if self.verbose:  # the claim may take eigenvalues
            monitor.end(f"{certificate.status}: {certificate.claim}", certificate.converged)

    def _begun(self, problem: DualProblem, X: Any, monitor: ProblemMonitor) -> DualProblem:
        """Begin at the primal's answer, where that is the shorter way."""
        if problem.start.any() or not primal_start.applies(self.kernel_, X, problem):
            return problem
        monitor.fit.chosen.append(primal_start.CHOICE)
        return primal_start.start_from_primal(problem, X, self._workers(), monitor, self.max_iter)

    def _started(
        self, problems: list[DualProblem], checkpoint: Checkpoint | None
    ) -> list[DualProblem]:
        """Start where a checkpoint or, with ``warm_start``, the last fit has left off."""
        betas = None if checkpoint is None else checkpoint.read()
        betas = self._known_betas(problems) if betas is None else betas
        if betas is None:
            return problems
        return [
            problem if problem.hard else problem.started_near(beta)
            for problem, beta in zip(problems, betas, strict=True)
        ]

    def _known_betas(self, problems: list[DualProblem]) -> list[np.ndarray] | None:
        """Variables of the last fit, with ``warm_start`` and for problems of the same size."""
        if not self.warm_start or not hasattr(self, "_betas"):
            return None
        same = [size for size, _, _ in self._betas] == [len(problem) for problem in problems]
        return [_scattered(*part) for part in self._betas] if same else None

    def _warn_unfinished(self, certificate: Certificate, where: str = "") -> None:
        """Warn when a problem did not converge: why, how far it is, and what to do."""
        if not certificate.converged:
            self._warn_stopped(certificate.status, certificate.violation, where)

    def _warn_stopped(self, status: Status, violation: float, where: str = "") -> None:
        # the violation is below tol, but not small beside the margin: another advice
        family = "margin" if hasattr(self, "nu") and violation <= self.tol else ""
        advice = status.advice_for(family).format(
            max_iter=self.max_iter, time_limit=self.time_limit or 0.0
        )
        by_gap = self.feature_map_ is not None or (self.norm_bound is not None and not where)
        what = "relative duality gap" if by_gap else "KKT violation"
        warn(f"{where}{advice} The {what} is {violation:.3g} (tol {self.tol:g}). See certificate_.")

    def _warn_without_norm(self, squared_norms: Any) -> None:
        """Warn where the kernel is known to be indefinite: else a negative norm is rounding."""
        certificate: Any = self.certificate_
        if min(squared_norms) < 0 and certificate.definiteness is Definiteness.INDEFINITE:
            super()._warn_without_norm(squared_norms)

    def _keep_support(self, X: Any, support: np.ndarray, dual_coef: np.ndarray) -> None:
        """Set the attributes of the expansion, sparse where X is sparse, as scikit-learn does."""
        for name in approximation.OF_FEATURES:
            self.__dict__.pop(name, None)
        self.shape_fit_ = tuple(X.shape) if hasattr(X, "shape") else (_num_samples(X),)
        self._keep_support_vectors(X, support)
        if sp.issparse(X):
            container = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            self.dual_coef_ = container(dual_coef)
        else:
            self.dual_coef_ = dual_coef

    # -- evaluating ----------------------------------------------------------------------------

    def _expansion(self, X: Any, **grouping: Any) -> np.ndarray:
        """Values of the machine's expansions at new points; grouped as by `KernelExpansion.at`."""
        self._check_is_fitted()
        if self.feature_map_ is not None:
            return approximation.values_at(self, self._validated_points(X, self.kernel_))
        return self._expansion_at(X, self.dual_coef_, **grouping)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if self.feature_map_ is not None and name in approximation.OF_EXPANSION:
                raise AttributeError(approximation.no_expansion(self, name))
            if name == "slack_" and "distribution_" in vars(self):
                raise AttributeError(
                    "slack_ has a number for every training row, and these have stayed where they "
                    "are: take it from decision_function(X) or predict(X), which are lazy."
                )
            return object.__getattribute__(self, name)  # raises once more, with its own words

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
    """A machine of single expansions: the one-class machine's, or one of each output."""

    dual_coef_: Any
    intercept_: np.ndarray

    def _keep_expansions(self, X: Any, evaluations: list[Evaluation]) -> None:
        """Set the attributes of the expansions, over the rows that any of them needs."""
        coefficients = np.array([evaluation.coefficients for evaluation in evaluations])
        support = np.flatnonzero(coefficients.any(axis=0))
        self._keep_support(X, support, coefficients[:, support])
        self.n_support_ = np.count_nonzero(coefficients, axis=1).astype(np.int32)
        self.intercept_ = np.array([evaluation.bias for evaluation in evaluations])

    def _expansion_coefficients(self) -> np.ndarray:
        return self._dense_dual_coef()

    def _decision(self, X: Any) -> np.ndarray:
        values = self._expansion(X) + self.intercept_
        return values[:, 0] if values.shape[1] == 1 else values


def _missing(
    gram: Gram,
    problems: list[DualProblem],
    solver: Auto,
    tol: float,
    workers: Any,
    known: Sequence[Evaluation | None],
) -> tuple[list[Evaluation], list[int]]:
    """Solve the problems whose answers are not known, and return those of all."""
    if not known:
        return solve_certified(gram, problems, solver, tol, workers)
    missing = [k for k, own in enumerate(known) if own is None]
    evaluations: list[Any] = list(known)
    steps = [0 if own is None else own.solution.n_iter for own in known]
    if missing:
        posed = [problems[k] for k in missing]
        found, taken = solve_certified(gram, posed, solver, tol, workers)
        for k, own, some in zip(missing, found, taken, strict=True):
            evaluations[k], steps[k] = own, some
    return evaluations, steps


def _nonzero(beta: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Length, places and values of a sparse vector."""
    places = beta.nonzero()[0]
    return len(beta), places, beta[places]


def _free_and_bounded(evaluation: Evaluation) -> tuple[int, int]:
    """How many of the variables are between their bounds, and how many at one that is not zero."""
    problem, beta = evaluation.problem, evaluation.solution.beta
    at_wall = (beta <= problem.lower) | (beta >= problem.upper)
    bounded = int(np.count_nonzero(beta[at_wall]))
    return int(np.count_nonzero(beta)) - bounded, bounded


def _scattered(size: int, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Undo :func:`_nonzero`."""
    beta = np.zeros(size)
    beta[places] = values
    return beta

"""From validated data to certified weights: what the machines of a regularised risk share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT
from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.certificate import RiskCertificate
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import LinearMachine
from maxmargin.linear.norm_bound import within
from maxmargin.linear.stream import end_stream
from maxmargin.losses import Loss
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import (
    L2,
    LinearSolution,
    Penalty,
    RegularisedRisk,
    cost_per_weight,
)
from maxmargin.solution import Status
from maxmargin.solvers import DualDescent, Method, Pegasos, Watch, select_solver
from maxmargin.solvers.risk.cache import RiskCache
from maxmargin.solvers.select import RISK_METHODS, method_name, select_primal

_ROW_PASSES = 1000  # row by row, before the primal takes over where there is no limit
_STALLED = (
    "Solver terminated early: no step lowers the objective any more in float64. Scale the data "
    "with StandardScaler or MinMaxScaler, lower C, or raise tol."
)


class RiskMachine(LinearMachine):
    """A machine that minimises a regularised risk, one for each class or one for all."""

    C: float
    lam: float | None
    norm_bound: float | None
    tol: float
    max_iter: int
    fit_intercept: bool
    intercept_scaling: float | None
    solver: str | Method
    dual: Any
    verbose: Any
    time_limit: float | None
    n_jobs: int | None
    warm_start: bool
    random_state: Any
    callback: Any

    _parameter_constraints: dict = {
        "C": [POSITIVE],
        "lam": [POSITIVE, None],
        "norm_bound": [POSITIVE, None],
        "tol": [POSITIVE],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE, None],
        "verbose": ["verbose"],
        "time_limit": [POSITIVE, None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "callback": [callable, None],
    }

    @property
    def _penalty(self) -> Penalty:
        """What holds the weights back."""
        return L2

    @property
    def _cost(self) -> float:
        """Cost of a row of weight one, without ``lam``."""
        return self.C

    @property
    def _penalised_intercept(self) -> float | None:
        """Value of the column whose weight is the intercept and penalised; None where it is not."""
        return self.intercept_scaling

    def _minimise(self, problems: list, caches: list[RiskCache] | None = None) -> None:
        """Solve problems that are posed at C = 1; sets the attributes of the answers.

        ``caches`` have what was found out about them at another C.
        """
        weights = np.array([risk.total_cost for risk in problems])
        risks = [
            risk.times(cost_per_weight(self._cost, self.lam, float(weight)))
            for risk, weight in zip(problems, weights, strict=True)
        ]
        with self._watching(len(risks)) as monitor:
            answers = []
            for k, risk in enumerate(risks):
                cache = None if caches is None else caches[k]
                answers.append(self._solved(risk, k, ProblemMonitor(monitor, k), cache))
                monitor.finished()
            self._answers = [kept(solution, self.warm_start) for _, solution in answers]
            thetas = np.array([answer.theta for answer in self._answers])
            self._keep(risks[0].design, thetas.reshape(-1, thetas.shape[-1]))
            totals = np.array([risk.total_cost for risk, _ in answers])
            self.C_, self.lam_ = totals / weights, 0.5 / totals
            self.n_iter_: Any = max(solution.n_iter for _, solution in answers)
            self.certificate_ = RiskCertificate.worst([found.certificate for _, found in answers])

    def _risks(
        self,
        X: Any,
        targets: list[np.ndarray],
        weights: list[np.ndarray],
        loss: Loss,
    ) -> list[RegularisedRisk]:
        """Problems at C = 1, one for each target and the weights of its rows."""
        design, penalised = self._design(X), self._penalised_intercept is not None
        return [
            RegularisedRisk(design, y, weight, loss, penalised, self._penalty)
            for y, weight in zip(targets, weights, strict=True)
        ]

    def _design(self, X: Any) -> Design:
        """Rows of X with the intercept's column."""
        scaling = 1.0 if self._penalised_intercept is None else float(self._penalised_intercept)
        constant = scaling if self.fit_intercept else 0.0
        return Design(X, constant, Workers(thread_count(self.n_jobs)))

    @contextmanager
    def _watching(self, problems: int = 1) -> Iterator[Monitor]:
        """Have someone between a fit and its solvers; ends with the certificate on the bar."""
        with self._watched(problems) as monitor:
            yield monitor
            certificate = self.certificate_
            monitor.end(f"{certificate.status}: {certificate.claim}", certificate.converged)
        end_stream(self)

    @on_one_blas_thread
    def _solved(
        self, risk: Any, k: int, monitor: ProblemMonitor, cache: RiskCache | None
    ) -> tuple[Any, LinearSolution]:
        """Solve one problem; returns it as it was solved, and the answer."""
        method = self._method(risk)
        self.solver_ = method_name(method)
        seed = 0
        if isinstance(method, DualDescent | Pegasos):
            seed = int(check_random_state(self.random_state).randint(1 << 31))
        watch, start = Watch(self.tol, self.max_iter, monitor, seed=seed), self._start(risk, k)
        if self.norm_bound is not None:
            return within(risk, self.norm_bound, method, watch, start)
        if isinstance(method, DualDescent) and risk.design.width <= DIRECT:
            return risk, self._solved_by_rows_or_columns(risk, method, watch, start)
        return risk, method.solve(risk, watch, start=start, cache=cache)

    def _solved_by_rows_or_columns(
        self, risk: RegularisedRisk, method: Method, watch: Watch, start: LinearSolution | None
    ) -> LinearSolution:
        """Go row by row as was asked for, and over to the primal where that crawls.

        Rows that are nearly alike, or costs of very different size, need more sweeps than anyone
        waits for. Where features are few the primal's method then takes the last half of the
        passes; LIBLINEAR does the same.
        """
        rows = self.max_iter // 2 if self.max_iter >= 0 else _ROW_PASSES
        solution = method.solve(risk, replace(watch, max_iter=rows), start=start)
        if solution.status not in (Status.MAX_ITER, Status.STALLED):
            return solution
        primal = select_primal(risk).method
        self.solver_ = f"{self.solver_}, {method_name(primal)}"
        finished = primal.solve(risk, replace(watch, spent=solution.n_iter), start=solution)
        return replace(finished, n_iter=solution.n_iter + finished.n_iter)

    def _method(self, risk: Any) -> Method:
        """Method that was asked for, or the one for the problem; refuses one that is not."""
        if isinstance(self.solver, Method):
            method = self.solver
        elif self._solver_name != "auto":
            method = RISK_METHODS[self._solver_name]()
        elif self.dual is True:
            method = DualDescent()
        elif self.dual is False and isinstance(risk, RegularisedRisk):
            method = select_primal(risk).method
        else:
            method = select_solver(risk).method
        refused = method.accepts(risk)
        if refused is not None:
            raise ValueError(f"{refused} Got solver={self.solver!r} and dual={self.dual!r}.")
        return method

    @property
    def _solver_name(self) -> str:
        """Our name of the solver."""
        return str(self.solver)

    def _start(self, risk: Any, k: int) -> LinearSolution | None:
        """Where the last fit has ended, with ``warm_start`` and for as many features."""
        known = getattr(self, "_answers", None)
        if not self.warm_start or known is None or k >= len(known):
            return None
        if known[k].theta.shape != risk.shape:
            return None
        if not isinstance(risk, RegularisedRisk):
            return known[k]
        return replace(known[k], s=np.clip(known[k].s, *risk.loss.slopes))  # of another loss, maybe

    def _keep(self, design: Design, thetas: np.ndarray) -> None:
        """Set the attributes of some weights, one row for each machine."""
        self.coef_ = np.ascontiguousarray(thetas[:, : design.features])
        self.intercept_ = np.zeros(len(thetas))
        if design.constant:
            self.intercept_ = design.constant * thetas[:, -1]

    def _warn_unfinished(self) -> None:
        """Warn when a problem did not converge."""
        if not self.certificate_.converged:
            warn(self._unfinished())

    def _unfinished(self) -> str:
        """Why a problem did not converge, how far it is, and what to do."""
        certificate = self.certificate_
        advice = certificate.status.advice
        if certificate.status is Status.STALLED:
            advice = _STALLED
        advice = advice.format(max_iter=self.max_iter, time_limit=self.time_limit or 0.0)
        return (
            f"{advice} The relative duality gap is {certificate.relative_gap:.3g} "
            f"(tol {self.tol:g}). See certificate_."
        )


def with_weight(X: Any, weight: np.ndarray, *arrays: np.ndarray) -> tuple:
    """Rows of X, of their weights and of other arrays, without those of weight zero."""
    used = np.flatnonzero(weight)
    if len(used) == len(weight):
        return X, weight, *arrays
    return X[used], weight[used], *(array[used] for array in arrays)


def kept(solution: LinearSolution, whole: bool) -> LinearSolution:
    """Return what a later fit may start from: without need, not one number for each row."""
    return replace(solution, s=solution.s if whole else np.empty(0))


def solver_names(*names: str) -> list:
    """Constraint on the parameter ``solver``: a name or a method."""
    return [StrOptions({"auto", *names}), Method]


def refuse_solver_against_dual(machine: RiskMachine) -> None:
    """Refuse a solver that is not what ``dual`` says."""
    by_rows = machine.solver == "dual_descent" or isinstance(machine.solver, DualDescent)
    if "auto" not in (machine.dual, machine.solver) and bool(machine.dual) != by_rows:
        raise ValueError(
            f"dual={machine.dual!r} and solver={machine.solver!r} contradict each other."
        )


def refuse_two_forms(machine: RiskMachine) -> None:
    """Refuse more than one of C, lam and norm_bound, and a bound that cannot be looked for."""
    if machine.norm_bound is None:
        return
    if machine.lam is not None or machine.C != 1.0:
        raise ValueError(
            "Give one of C, lam and norm_bound: each states how much the weights are held back; "
            f"got C={machine.C!r}, lam={machine.lam!r} and norm_bound={machine.norm_bound!r}."
        )
    if machine._penalty != L2:
        raise ValueError("norm_bound bounds ||w||: it goes with penalty='l2'.")
    if machine.solver == "sgd" or isinstance(machine.solver, Pegasos):
        raise ValueError(
            "norm_bound is found through exact answers, which solver='sgd' does not give: use "
            "solver='auto', or lam."
        )

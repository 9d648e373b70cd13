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
from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import LinearMachine
from maxmargin.linear.norm_bound import within
from maxmargin.linear.stream import end_stream
from maxmargin.losses import Loss
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import (
    L2,
    GapCertificate,
    LinearSolution,
    Penalty,
    RegularisedRisk,
    cost_per_weight,
)
from maxmargin.solution import Status
from maxmargin.solvers.risk.dual_descent import DualDescent
from maxmargin.solvers.risk.l1_descent import L1Descent
from maxmargin.solvers.risk.multipliers import Multipliers
from maxmargin.solvers.risk.newton import Newton
from maxmargin.solvers.risk.pegasos import Pegasos

_WIDE = 1500  # features from which rows one by one are faster than systems of this size
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
    solver: str
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
    _solvers: dict[str, type] = {
        "newton": Newton,
        "multipliers": Multipliers,
        "dual_descent": DualDescent,
        "l1_descent": L1Descent,
        "sgd": Pegasos,
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
    def _road(self) -> str:
        """Our name of the solver."""
        return self.solver

    @property
    def _penalised_intercept(self) -> float | None:
        """Value of the column whose weight is the intercept and penalised; None where it is not."""
        return self.intercept_scaling

    def _minimise(self, problems: list[RegularisedRisk], again: bool = False) -> None:
        """Solve problems that are posed at C = 1; sets the attributes of the answers.

        Where they will be solved again, at another C, what was found out is kept.
        """
        weights = np.array([risk.cost.sum() for risk in problems])
        risks = [
            risk.times(cost_per_weight(self._cost, self.lam, float(weight)))
            for risk, weight in zip(problems, weights, strict=True)
        ]
        with self._watching(len(risks)) as monitor:
            answers = []
            for k, risk in enumerate(risks):
                answers.append(self._solved(risk, k, ProblemMonitor(monitor, k)))
                if not again:
                    risk.known.forget()
                monitor.finished()
            self._answers = [kept(solution, self.warm_start) for _, solution, _ in answers]
            self._keep(risks[0].design, np.array([answer.theta for answer in self._answers]))
            totals = np.array([risk.cost.sum() for risk, _, _ in answers])
            self.C_, self.lam_ = totals / weights, 0.5 / totals
            self.n_iter_: Any = max(solution.n_iter for _, solution, _ in answers)
            self.certificate_ = GapCertificate.worst([certificate for *_, certificate in answers])

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
        self, risk: RegularisedRisk, k: int, monitor: ProblemMonitor
    ) -> tuple[RegularisedRisk, LinearSolution, GapCertificate]:
        name = self._solver_for(risk)
        self.solver_ = name
        solver = self._solvers[name](self.tol, self.max_iter, monitor)
        if hasattr(solver, "random"):
            seed = int(check_random_state(self.random_state).randint(1 << 31))
            solver = replace(solver, random=np.random.default_rng(seed))
        start = self._start(risk, k)
        if self.norm_bound is not None:
            risk, solution = within(risk, self.norm_bound, solver, start)
        elif name == "dual_descent" and risk.design.width <= _WIDE:
            solution = self._solved_by_rows_or_columns(risk, solver, start)
        else:
            solution = solver.solve(risk, start)
        certificate = solution.certificate
        if certificate is None or not certificate.converged:
            certificate = risk.certificate(solution.theta, solution.s, solution.status, self.tol)
        return risk, solution, certificate

    def _solved_by_rows_or_columns(
        self, risk: RegularisedRisk, solver: DualDescent, start: LinearSolution | None
    ) -> LinearSolution:
        """Go row by row as was asked for, and over to the primal where that crawls.

        Rows that are nearly alike, or costs of very different size, need more sweeps than anyone
        waits for. Where features are few the primal's solver then takes the last half of the
        passes; LIBLINEAR does the same.
        """
        rows = self.max_iter // 2 if self.max_iter >= 0 else _ROW_PASSES
        solution = replace(solver, max_iter=rows).solve(risk, start)
        if solution.status not in (Status.MAX_ITER, Status.STALLED):
            return solution
        name = "newton" if risk.loss.smooth else "multipliers"
        left = self.max_iter - solution.n_iter if self.max_iter >= 0 else -1
        finished = self._solvers[name](self.tol, left, solver.monitor).solve(risk, solution)
        self.solver_ = f"dual_descent, {name}"
        return replace(finished, n_iter=solution.n_iter + finished.n_iter)

    def _solver_for(self, risk: RegularisedRisk) -> str:
        """Name of the solver: the one that was asked for, or by the shape of the data."""
        if self._road != "auto":
            return self._road
        if risk.penalty.l1:
            return "l1_descent"
        by_rows = risk.design.width > _WIDE if isinstance(self.dual, str) else bool(self.dual)
        if risk.loss.shape is not None and not risk.penalty.none and by_rows:
            return "dual_descent"
        return "newton" if risk.loss.smooth else "multipliers"

    def _start(self, risk: RegularisedRisk, k: int) -> LinearSolution | None:
        """Where the last fit has ended, with ``warm_start`` and for as many features."""
        known = getattr(self, "_answers", None)
        if not self.warm_start or known is None or k >= len(known):
            return None
        if len(known[k].theta) != risk.design.width:
            return None
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
    return replace(solution, s=solution.s if whole else np.empty(0), certificate=None)


def solver_names(*names: str) -> list:
    """Constraint on the parameter ``solver``."""
    return [StrOptions({"auto", *names})]

"""From validated data to certified weights: what the machines of a regularised risk share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.backends.cpu_linear import Design
from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.linear.base import LinearMachine
from maxmargin.losses import Loss
from maxmargin.progress import ProblemMonitor, watched
from maxmargin.risk import GapCertificate, LinearSolution, RegularisedRisk, cost_per_weight
from maxmargin.solution import Status
from maxmargin.solvers.dual_descent import DualDescent
from maxmargin.solvers.l1_descent import L1Descent
from maxmargin.solvers.multipliers import Multipliers
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pegasos import Pegasos

POSITIVE = Interval(Real, 0.0, None, closed="neither")
_WIDE = 1500  # features from which rows one by one are faster than systems of this size
_DOUBLINGS, _CLOSE = 60, 1e-3  # of the search for a norm: tries, and how near to the bound


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

    def _minimise(
        self, X: Any, targets: list[np.ndarray], weight: np.ndarray, loss: Loss, penalty: str | None
    ) -> None:
        """Solve one problem for each target; sets the attributes of the answers."""
        used = np.flatnonzero(weight)
        if len(used) < len(weight):
            X, weight, targets = X[used], weight[used], [y[used] for y in targets]
        cost = cost_per_weight(self.C, self.lam, weight)
        constant = 0.0
        if self.fit_intercept:
            constant = 1.0 if self.intercept_scaling is None else float(self.intercept_scaling)
        design = Design(X, constant, Workers(thread_count(self.n_jobs)))
        answers = []
        with watched(self.time_limit, self.callback, self.verbose, len(targets)) as monitor:
            for k, y in enumerate(targets):
                risk = RegularisedRisk(
                    design, y, cost * weight, loss, self.intercept_scaling is not None, penalty
                )
                answers.append(self._solved(risk, k, ProblemMonitor(monitor, k)))
                monitor.finished()
            self.certificate_ = GapCertificate.worst([certificate for *_, certificate in answers])
            monitor.ending = f"{self.certificate_.status}: {self.certificate_.claim}"
        self._keep([risk for risk, _, _ in answers], [s for _, s, _ in answers])
        self._warn_unfinished()

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
        start = self._start(risk, name, k)
        if self.norm_bound is None:
            solution = solver.solve(risk, start)
        else:
            risk, solution = _within(risk, self.norm_bound, solver.solve, name)
        certificate = risk.certificate(solution.theta, solution.s, solution.status, self.tol)
        return risk, solution, certificate

    def _solver_for(self, risk: RegularisedRisk) -> str:
        """Name of the solver: the one that was asked for, or by the shape of the data."""
        if self.solver != "auto":
            return self.solver
        if risk.penalty == "l1":
            return "l1_descent"
        by_rows = risk.design.width > _WIDE if self.dual == "auto" else bool(self.dual)
        if risk.loss.shape is not None and risk.penalty is not None and by_rows:
            return "dual_descent"
        return "newton" if risk.loss.smooth else "multipliers"

    def _start(self, risk: RegularisedRisk, name: str, k: int) -> np.ndarray | None:
        """Where the last fit has ended, with ``warm_start`` and for data of the same shape."""
        known = getattr(self, "_answers", None)
        if not self.warm_start or known is None or k >= len(known):
            return None
        theta, s = known[k]
        if name == "dual_descent":
            return s if len(s) == risk.n else None
        return theta if len(theta) == risk.design.width else None

    def _keep(self, risks: list[RegularisedRisk], solutions: list[LinearSolution]) -> None:
        thetas = np.array([solution.theta for solution in solutions])
        features = risks[0].design.features
        self.coef_ = np.ascontiguousarray(thetas[:, :features])
        self.intercept_ = np.zeros(len(thetas))
        if risks[0].design.constant:
            self.intercept_ = risks[0].design.constant * thetas[:, -1]
        self.n_iter_: Any = max(solution.n_iter for solution in solutions)
        self._answers = [(solution.theta, solution.s) for solution in solutions]
        self.C_ = np.array([risk.cost.max() for risk in risks])
        self.lam_ = np.array([0.5 / risk.cost.sum() for risk in risks])

    def _warn_unfinished(self) -> None:
        """Warn when a problem did not converge: why, how far it is, and what to do."""
        certificate = self.certificate_
        if certificate.converged:
            return
        if certificate.status is Status.STALLED:
            advice = (
                "Solver terminated early: no step lowers the objective any more in float64. Scale "
                "the data with StandardScaler or MinMaxScaler, lower C, or raise tol."
            )
        else:
            advice = certificate.status.advice.format(
                max_iter=self.max_iter, time_limit=self.time_limit or 0.0
            )
        self._warn(
            f"{advice} The relative duality gap is {certificate.relative_gap:.3g} "
            f"(tol {self.tol:g}). See certificate_."
        )


def _within(
    risk: RegularisedRisk, bound: float, solve: Callable, name: str
) -> tuple[RegularisedRisk, LinearSolution]:
    """Find the costs whose answer has this norm: Ivanov's form through Tikhonov's.

    The norm grows with the cost, so the cost is bracketed and halved on a logarithmic scale. Where
    no cost makes the norm as large as the bound, the bound does not bind, and the last answer is
    the one without a penalty, as nearly as float64 can tell.
    """
    unit = risk.cost / risk.cost.max()
    features = risk.design.features

    def answer(log_cost: float, start: np.ndarray | None) -> tuple[RegularisedRisk, LinearSolution]:
        posed = risk.with_cost(np.exp(log_cost) * unit)
        return posed, solve(posed, start)

    def norm(solution: LinearSolution) -> float:
        return float(np.linalg.norm(solution.theta[:features]))

    def warm(solution: LinearSolution) -> np.ndarray | None:
        return None if name == "dual_descent" else solution.theta

    middle = 0.0
    posed, solution = answer(middle, None)
    step = 2.0 if norm(solution) < bound else -2.0
    low = high = middle
    for _ in range(_DOUBLINGS):
        if (norm(solution) < bound) != (step > 0):
            break
        before, size = middle, norm(solution)
        middle += step
        posed, solution = answer(middle, warm(solution))
        low, high = min(before, middle), max(before, middle)
        if step > 0 and norm(solution) - size < 1e-6 * size:
            return posed, solution  # the bound does not bind
    for _ in range(_DOUBLINGS):
        size = norm(solution)
        if (1.0 - _CLOSE) * bound <= size <= bound:
            break
        low, high = (middle, high) if size < bound else (low, middle)
        middle = 0.5 * (low + high)
        posed, solution = answer(middle, warm(solution))
    return posed, solution


def solver_names(*names: str) -> list:
    """Constraint on the parameter ``solver``."""
    return [StrOptions({"auto", *names})]

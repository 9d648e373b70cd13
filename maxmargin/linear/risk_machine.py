"""From validated data to certified weights: what the machines of a regularised risk share.

They fit all rows at one cost (``fit``) or along a path of costs (:func:`C_path`), or learn from a
stream, whose rows come some at a time, are looked at once, and are not kept (``partial_fit``). A
stream has no number of rows, so that there the weights are held back by ``lam``, not by C.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.systems import DIRECT
from maxmargin.backends.threads import Workers, around_fit, thread_count
from maxmargin.certificate import RiskCertificate
from maxmargin.estimators import readings
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import takes_collections
from maxmargin.estimators.parameters import POSITIVE, available_where
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import LinearClassifier, LinearMachine, growth, with_weight
from maxmargin.linear.norm_bound import within
from maxmargin.linear.street import Street, of_rows
from maxmargin.losses import Loss
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import (
    L2,
    DirectRisk,
    LinearSolution,
    Penalty,
    RegularisedRisk,
    cost_per_weight,
    refuse_two_forms,
)
from maxmargin.solution import Status
from maxmargin.solvers import (
    Choice,
    ClassDescent,
    DualDescent,
    DualMethod,
    Method,
    Pegasos,
    StochasticDescent,
    Subgradient,
    Watch,
    select_solver,
)
from maxmargin.solvers.driver import ASKED
from maxmargin.solvers.risk.pegasos import Stream
from maxmargin.solvers.risk.run import RiskCache
from maxmargin.solvers.select import RISK_METHODS, in_words, refusal_elsewhere, select_primal

_ROW_PASSES = 1000  # row by row, before the primal takes over where there is no limit
_SAID = ("certificate_", "C_", "lam_", "solver_", "solver_why_", "trace_", "loss_curve_")
_OF_A_FIT = (*_SAID, "_answers", "_street")
_OF_A_STREAM = ("_streams", "t_")


def takes_streams(machine: Any) -> None:
    """Raise an error that says why where the parameters do not say what to learn from a stream."""
    if machine.lam is None or machine.C != 1.0 or machine.norm_bound is not None:
        raise AttributeError(
            f"{type(machine).__name__!r} object has no attribute 'partial_fit' with "
            f"lam={machine.lam!r}, C={machine.C!r} and norm_bound={machine.norm_bound!r}: "
            "partial_fit needs lam, and neither C nor norm_bound, because a stream has no number "
            "of rows for C to be weighed against. Use lam = 1 / (2 N C) with the N that you expect."
        )
    if machine._penalty != L2:
        raise AttributeError(
            f"partial_fit goes with the l2 penalty, and here it is {machine._penalty}. Use fit."
        )
    if getattr(machine, "class_weight", None) == "balanced":
        raise AttributeError(
            "class_weight='balanced' needs to see all labels, which a stream cannot. Give a dict, "
            "for example of sklearn.utils.compute_class_weight over labels that you have."
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
    n_jobs: int | None
    warm_start: bool
    random_state: Any
    _n_rows: int

    _parameter_constraints: dict = {
        "C": [POSITIVE],
        "lam": [POSITIVE, None],
        "norm_bound": [POSITIVE, None],
        "tol": [POSITIVE],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE, None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        **WATCHED,
    }

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Dense float32 and float64 and CSR stay as they are.
        y : array-like of shape (n_samples,)
            Class labels of any type, or the numbers of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's cost. A row of weight zero takes no part.

        Returns
        -------
        self : object
        """
        self._minimise(self._pose(X, y, sample_weight))
        self._warn_unfinished()
        return self

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of the margins or residuals."""

    @abstractmethod
    def _pose(self, X: Any, y: Any, sample_weight: Any) -> list:
        """Problems of all rows, at C = 1."""

    def _refuse_contradictions(self) -> None:
        """Refuse parameters that do not go together."""
        by_rows = self.solver == "dual_descent" or isinstance(self.solver, DualDescent)
        if "auto" not in (self.dual, self.solver) and bool(self.dual) != by_rows:
            raise ValueError(
                f"dual={self.dual!r} and solver={self.solver!r} contradict each other."
            )
        self._refuse_two_forms()

    @property
    def _inexact(self) -> bool:
        """Whether the solver that was asked for never ends with an exact answer."""
        steps = isinstance(self.solver, Pegasos | StochasticDescent | Subgradient)
        return steps or self.solver in ("sgd", "subgradient")

    def _refuse_two_forms(self) -> None:
        """Refuse more than one of C, lam and norm_bound, and a bound that cannot be looked for."""
        if self.norm_bound is None:
            return
        refuse_two_forms(self)
        if self._penalty != L2:
            raise ValueError("norm_bound bounds ||w||: it goes with penalty='l2'.")
        if self._inexact:
            raise ValueError(
                "norm_bound is found through exact answers, which stochastic and subgradient steps "
                f"do not give: use solver='auto', or lam; got solver={self.solver!r}."
            )

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
                monitor.readings[k] = readings.of_risk(risk)
                answers.append(self._solved(risk, k, ProblemMonitor(monitor, k), cache))
                monitor.finished()
            self.solver_, self.solver_why_ = in_words(monitor.chosen)
            self._forget(("loss_curve_",))
            curves = [solution.curve for _, solution in answers if solution.curve is not None]
            if curves:
                self.loss_curve_ = curves[0] if len(answers) == 1 else curves
            self._answers = [kept(solution, self.warm_start) for _, solution in answers]
            thetas = np.array([answer.theta for answer in self._answers])
            passes = max(solution.n_iter for _, solution in answers)
            self._keep(risks[0].design, thetas.reshape(-1, thetas.shape[-1]), passes)
            totals = np.array([risk.total_cost for risk, _ in answers])
            self.C_, self.lam_ = totals / weights, 0.5 / totals
            self.certificate_ = RiskCertificate.worst([found.certificate for _, found in answers])
            self._forget(("_street",))
            if isinstance(self, Street) and risks[0].design.in_memory:
                self._keep_rows(self._n_rows, problems, [found for _, found in answers])

    def _learn(self, risks: list, rows: int) -> None:
        """Go over so many rows of a stream once, in the order in which they came; sets the weights.

        ``risks`` are the problems of these rows, one for each stream.
        """
        assert self.lam is not None  # takes_streams
        if not hasattr(self, "_streams"):
            self._streams = [Stream(risk.shape, self.lam) for risk in risks]
            self._forget(_OF_A_FIT)
            self.t_ = 0
        known: tuple = None, None
        for stream, risk in zip(self._streams, risks, strict=True):
            if known[0] is not risk.design:  # machines that see all rows share them
                known = risk.design, risk.design.squared_norms()
            stream.lam = self.lam
            stream.learn(risk, np.arange(risk.n), known[1])
        self._keep(risks[0].design, np.vstack([stream.average for stream in self._streams]), 1)
        self.t_ += rows

    def _forget(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _risk(self, design: Design, y: np.ndarray, weight: np.ndarray) -> RegularisedRisk:
        """Problem at C = 1, of targets and the weights of the rows."""
        penalised = self._penalised_intercept is not None
        return RegularisedRisk(design, y, weight, self._loss, penalised, self._penalty)

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
        self._forget(_OF_A_STREAM)

    def _solved(
        self, risk: Any, k: int, monitor: ProblemMonitor, cache: RiskCache | None
    ) -> tuple[Any, LinearSolution]:
        """Solve one problem; returns it as it was solved, and the answer."""
        choice = self._choice(risk)
        monitor.fit.chosen.append(choice)
        method = choice.method
        seed = 0
        if isinstance(method, ClassDescent | DualDescent | Pegasos | StochasticDescent):
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
        watch.monitor.fit.chosen.append(Choice(primal, "row by row would have taken too long"))
        # from zero: where costs differ by many orders of magnitude the intercept is far off
        finished = primal.solve(risk, replace(watch, spent=solution.n_iter))
        return replace(finished, n_iter=solution.n_iter + finished.n_iter)

    def _choice(self, risk: Any) -> Choice:
        """Method that was asked for, or the one for the problem; refuses one that is not."""
        if isinstance(self.solver, Method):
            choice = Choice(self.solver, ASKED)
        elif self._solver_name != "auto":
            choice = Choice(self._named(self._solver_name, risk), ASKED)
        elif self.dual is True and not isinstance(risk, DirectRisk):
            choice = Choice(DualDescent(), "dual=True")
        elif self.dual is False and isinstance(risk, RegularisedRisk):
            choice = select_primal(risk)
        else:
            choice = select_solver(risk)
        others = "It solves duals of kernel machines: use SVC or SVR with kernel='linear' for it."
        dual = isinstance(choice.method, DualMethod)
        refused = refusal_elsewhere(choice.method, risk)
        if refused is None:
            refused = others if dual else choice.method.accepts(risk)
        if isinstance(risk, DirectRisk) and not dual and refused is not None:
            refused = "All classes in one problem are solved by solver='auto' or 'class_descent'."
        if refused is not None:
            raise ValueError(f"{refused} Got solver={self.solver!r} and dual={self.dual!r}.")
        return choice

    def _named(self, name: str, risk: Any) -> Method:
        """Method of a name."""
        return RISK_METHODS[name]()

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

    def _keep(self, design: Design, thetas: np.ndarray, passes: int) -> None:
        """Set the attributes of weights that so many passes made, one row for each machine."""
        self.n_iter_: Any = passes
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
        advice = certificate.status.advice_for("risk")
        advice = advice.format(
            max_iter=self.max_iter,
            time_limit=self.time_limit or 0.0,
            step_size=getattr(self, "step_size", self.solver),
        )
        return (
            f"{advice}{growth(self)} The relative duality gap is {certificate.relative_gap:.3g} "
            f"(tol {self.tol:g}). See certificate_."
        )


class RiskClassifier(RiskMachine, LinearClassifier):
    """A classifier that minimises a regularised risk."""

    @available_where(takes_streams)
    @takes_collections
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some rows of a stream, which are not kept.

        A step on each row, in the order in which they come, and the average of the weights approach
        the answer of ``fit`` with the same ``lam`` (:mod:`maxmargin.solvers.risk.pegasos`). It
        needs ``lam``; the solver and its limits belong to ``fit``. There is no ``certificate_``,
        since no one has all rows; ``t_`` counts them. The first call after a ``fit`` begins anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that the stream may have; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        self._refuse_contradictions()
        X, y = self._validated(X, y, reset=not hasattr(self, "_streams"))
        index = self._classes_of_stream(y, classes)
        if self.scheme_.direct:
            raise ValueError(
                f"partial_fit learns machines for two classes, or a softmax, from a stream, and "
                f"{self.scheme_!r} is neither: use fit, or multiclass='ovr'."
            )
        weight, factors = self._weights_of_stream(sample_weight, X)
        self._learn(self._problems(X, index, weight, factors), len(index))
        return self

    def _pose(self, X: Any, y: Any, sample_weight: Any) -> list:
        self._refuse_contradictions()
        X, y = self._validated(X, y)
        index = self._classes_of(y)
        weight, factors = self._weights_and_factors(sample_weight, X, index)
        used, self._n_rows = np.flatnonzero(weight), len(weight)
        X, weight, index = with_weight(X, weight, index)
        return of_rows(self._problems(X, index, weight, factors), used, self._n_rows)

    def _problems(self, X: Any, index: np.ndarray, weight: np.ndarray, factors: np.ndarray) -> list:
        """Problems of some rows, at C = 1; the factors are those of the classes.

        A machine that does not see all classes has its own copy of the rows that it sees.
        """
        design, risks = self._design(X), []
        weights = self._weights_of_machines(index, weight, factors)
        for signs, own in zip(self._signs(index), weights, strict=True):
            rows = np.flatnonzero(signs)
            part = design if len(rows) == len(signs) else design.take(rows)
            risks.append(self._risk(part, signs[rows], own[rows]))
            risks[-1].rows = rows if len(rows) < len(signs) else None
        return risks


def kept(solution: LinearSolution, whole: bool) -> LinearSolution:
    """Return what a later fit may start from: without need, not one number for each row."""
    return replace(solution, s=solution.s if whole else np.empty(0), curve=None, f=None)


@around_fit
def C_path(
    machine: Any,
    X: Any,
    y: Any,
    Cs: Iterable[float],
    sample_weight: Any = None,
    *,
    from_zero: bool = False,
) -> list[Any]:
    """Fit a machine for every C of a list, in less time than each on its own.

    From the lowest C to the highest, each fit begins where the one before has ended; the answers
    are those of fits of their own, to ``tol``. A linear machine checks its data once, and the norms
    of ``coef_`` over ``lam_`` are the curve of all bounds on the norm (``norm_bound``) that have
    these answers.

    Parameters
    ----------
    machine : LinearSVC, LinearSVR, LogisticRegression, SVC, SVR, NuSVR or KernelLogisticRegression
        With its parameters; it stays as it is. Others that have C and ``warm_start`` do as well.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : iterable of float
        In any order.
    sample_weight : array-like of shape (n_samples,), optional
    from_zero : bool, default=False
        Whether each fit begins at zero instead, as a fit of its own does: then it ends where that
        ends, also where ``tol`` leaves that open, and only the data are checked once.

    Returns
    -------
    machines : list
        Fitted clones with their C, in the order of ``Cs``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.linear import C_path
    >>> X, y = load_iris(return_X_y=True)
    >>> machines = C_path(LinearSVC(), X, y, [1.0, 0.01])
    >>> [(model.C, round(model.score(X, y), 2)) for model in machines]
    [(1.0, 0.97), (0.01, 0.87)]
    """
    is_estimator = hasattr(machine, "get_params") and not isinstance(machine, type)
    if not is_estimator or not {"C", "warm_start"} <= set(machine.get_params(deep=False)):
        raise TypeError(
            "C_path needs an estimator that has the parameters C and warm_start, such as "
            f"LinearSVC(), SVC() or KernelLogisticRegression(), got {machine!r}."
        )
    costs = np.array([float(C) for C in Cs])
    if np.isinf(costs).any():
        raise ValueError("A path goes along finite costs: C=inf has no penalty to weigh against.")
    at: Any = clone(machine).set_params(warm_start=not from_zero)
    if not isinstance(machine, RiskMachine):
        return _path_of_fits(at, X, y, costs, sample_weight, machine.warm_start)
    for C in (costs.min(initial=1.0), costs.max(initial=1.0)):  # between the two, all are allowed
        at.set_params(C=float(C))._validate_params()
    at.C = 1.0
    problems = at._pose(X, y, sample_weight)
    caches = None if from_zero else [RiskCache() for _ in problems]
    found: dict[int, Any] = {}
    for k in np.argsort(costs, kind="stable").tolist():
        at = copy.copy(at)
        at.C = float(costs[k])
        at._refuse_contradictions()
        at._minimise(problems, caches)
        at._warn_unfinished()
        found[k] = at
    for fitted in found.values():
        fitted.warm_start = machine.warm_start
        if hasattr(fitted, "_answers"):
            fitted._answers = [kept(answer, machine.warm_start) for answer in fitted._answers]
    return [found[k] for k in range(len(costs))]


def _path_of_fits(
    at: Any, X: Any, y: Any, costs: np.ndarray, sample_weight: Any, warm_start: bool
) -> list[Any]:
    """Fit an estimator that starts warm for each C, from the lowest to the highest."""
    found: dict[int, Any] = {}
    for k in np.argsort(costs, kind="stable").tolist():
        at = copy.copy(at).set_params(C=float(costs[k]))
        at.fit(X, y, sample_weight=sample_weight)
        found[k] = at
    for fitted in found.values():
        fitted.set_params(warm_start=warm_start)
    return [found[k] for k in range(len(costs))]

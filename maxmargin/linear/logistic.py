"""Logistic regression: probabilities from the logistic loss, for two classes or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.callbacks import observed
from maxmargin.linear.linear_svc import refuse_two_forms
from maxmargin.linear.risk_classifier import RiskClassifier
from maxmargin.linear.risk_machine import RiskMachine, solver_names
from maxmargin.linear.stream import takes_streams
from maxmargin.losses import Logistic, Loss
from maxmargin.progress import ProblemMonitor
from maxmargin.risk import cost_per_weight
from maxmargin.solvers.lbfgs import LBFGS
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pegasos import Pegasos
from maxmargin.solvers.softmax import Softmax, SoftmaxRisk


class LogisticRegression(RiskClassifier):
    """Logistic regression.

    For labels ``y_i`` of -1 or +1 and sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i log(1 + exp(-y_i (w . x_i + b)))

    and for several classes the same with the softmax of one value for each. The intercept is not
    penalised. ``penalty=None`` is maximum likelihood; data that can be separated then have no
    answer, since longer weights are always better, and a warning says so.

    Parameters
    ----------
    penalty : {"l2", None}, default="l2"
    tol : float, default=1e-4
        Relative duality gap of an answer that counts as converged.
    C : float, default=1.0
        Weight of the likelihood against the penalty.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of each class.
    random_state : int, RandomState or None, default=None
        Of the rows of ``solver="sgd"``.
    solver : {"auto", "newton", "lbfgs", "sgd"}, default="auto"
        ``"newton"`` makes the matrix of second derivatives up to 1,500 features, and uses
        conjugate gradients beyond; ``"auto"`` is Newton for two classes, and for several up to 400
        weights in all, then ``"lbfgs"``. ``"sgd"`` is for two classes. ``solver_`` says which.
    max_iter : int, default=100
        Passes over the data allowed; -1 for no limit.
    verbose : bool or int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    lam : float, optional
        The lambda form in place of C: mean loss plus ``lam ||w||^2``.
    norm_bound : float, optional
        For two classes, least loss with ``||w|| <= norm_bound`` in place of C.
    time_limit : float, optional
        Seconds after which the solver stops where it is.
    callback : callable, optional
        Called with a :class:`~maxmargin.solvers.risk_solver.RiskProgress` some times a second;
        stops the fit by returning True. (scikit-learn's callbacks are set with
        ``set_callbacks``.)

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    certificate_ : GapCertificate
        Primal and dual objective, gap, status.
        Not there after ``partial_fit``.
    n_iter_ : int array of shape (1,)
        Passes over the data.
    C_, lam_ : arrays of shape (1,)
        Cost of a row of weight one, and what it is in the lambda form.
    solver_ : str
    t_ : int
        Steps of ``partial_fit``.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.98, 0.02, 0.  ]])
    >>> model.certificate_.converged
    True
    """

    dual = False
    intercept_scaling = None
    _solvers = {"newton": Newton, "lbfgs": LBFGS, "sgd": Pegasos}

    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in RiskMachine._parameter_constraints.items()
            if name != "intercept_scaling"
        },
        "penalty": [StrOptions({"l2"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": solver_names("newton", "lbfgs", "sgd"),
    }

    def __init__(
        self,
        penalty: str | None = "l2",
        *,
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int = 100,
        verbose: Any = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        lam: float | None = None,
        norm_bound: float | None = None,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.lam = lam
        self.norm_bound = norm_bound
        self.time_limit = time_limit
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the machine to labelled data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Dense float32 and float64 and CSR stay as they are.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's loss. A row of weight zero takes no part.

        Returns
        -------
        self : object
        """
        self._solve(self._pose(X, y, sample_weight))
        self._warn_unfinished()
        return self

    @available_if(takes_streams)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> LogisticRegression:
        """Learn from some rows of a stream, which are not kept.

        As :meth:`LinearSVC.partial_fit`: it needs ``lam``, and there is no ``certificate_``.

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
        self._learn(X, y, classes, sample_weight)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        return self

    @property
    def _loss(self) -> Loss:
        return Logistic()

    def _solve(self, problems: list, again: bool = False) -> None:
        if len(self.classes_) == 2:
            self._minimise(problems, again)
        else:
            self._minimise_softmax(problems[0])
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)

    def _problems(self, X: Any, index: np.ndarray, weights: list[np.ndarray]) -> list:
        if len(self.classes_) == 2:
            return super()._problems(X, index, weights)
        return [SoftmaxRisk(self._design(X), index, len(self.classes_), weights[0], self.penalty)]

    def _refuse_contradictions(self) -> None:
        refuse_two_forms(self)
        if self.penalty is None and (self.C != 1.0 or self.lam is not None):
            raise ValueError(
                "penalty=None has nothing for C or lam to weigh; leave them as they are, or use "
                "penalty='l2'."
            )
        if self.penalty is None and self.solver == "sgd":
            raise ValueError("solver='sgd' takes its steps from the penalty: use penalty='l2'.")

    def _minimise_softmax(self, problem: SoftmaxRisk) -> None:
        if self.solver == "sgd" or self.norm_bound is not None:
            raise ValueError(
                "solver='sgd' and norm_bound are for two classes. For several, use solver='auto' "
                "and C or lam, or wrap the machine in sklearn.multiclass.OneVsRestClassifier."
            )
        weight = float(problem.cost.sum())
        risk = problem.times(cost_per_weight(self.C, self.lam, weight))
        start = getattr(self, "_weights", None) if self.warm_start else None
        if start is not None and start.shape != risk.shape:
            start = None
        with self._watching() as monitor:
            solver = Softmax(self.solver, self.tol, self.max_iter, ProblemMonitor(monitor, 0))
            solve = on_one_blas_thread(solver.solve)
            self._weights, self.n_iter_, self.certificate_ = solve(risk, start)
            self._keep(risk.design, self._weights)
            total = np.array([risk.cost.sum()])
            self.C_, self.lam_ = total / weight, 0.5 / total
            self.solver_ = solver.method_for(risk)

    def _unfinished(self) -> str:
        if self.penalty is None:
            return (
                "Without a penalty the likelihood has no maximum where the classes can be "
                "separated: longer weights are always better. These have a norm of "
                f"{np.linalg.norm(self.coef_):.3g} and stopped growing for want of digits or "
                "passes. Use penalty='l2'; maxmargin.is_separable tells whether that is the case."
            )
        return super()._unfinished()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        return softmax(values, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            values = np.column_stack([np.zeros(len(values)), values])
        return values - np.logaddexp.reduce(values, axis=1)[:, None]

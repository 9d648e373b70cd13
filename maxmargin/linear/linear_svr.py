"""The linear support vector regressor: in the primal, for many rows or many features."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.backends.cpu.linear import Design
from maxmargin.estimators.collections import takes_collections
from maxmargin.estimators.data import is_table
from maxmargin.estimators.parameters import available_where
from maxmargin.linear.base import LinearRegressor, solver_names, with_weight
from maxmargin.linear.risk_machine import RiskMachine, takes_streams
from maxmargin.linear.street import Street, of_rows
from maxmargin.losses import (
    EpsilonInsensitive,
    Loss,
    ResidualLoss,
    SquaredEpsilonInsensitive,
)

_LOSSES = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}


class LinearSVR(Street, RiskMachine, LinearRegressor):
    """Linear support vector regression.

    With sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i V(w . x_i + b - y_i),   V(u) = max(0, |u| - epsilon)

    or the square of V. The intercept is not penalised unless ``intercept_scaling`` is given.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube in which nothing is lost.
    tol : float, default=1e-4
        Relative duality gap of an answer that counts as converged.
    C : float, default=1.0
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"} or ResidualLoss
        By name, ``"epsilon_insensitive"`` by default, or a convex loss of the residual with a
        ``shape``, which then has an epsilon of its own.
    fit_intercept : bool, default=True
    intercept_scaling : float, optional
        By default the intercept has no penalty. A number is LIBLINEAR's problem: the intercept is
        a weight on a column of this number, penalised like the others.
    dual : "auto" or bool, default="auto"
        Solve the dual, row by row, or the primal; ``"auto"`` takes the primal up to 1,500 features,
        and beyond where dense rows are few.
    verbose : bool or int, default=0
    random_state : int, RandomState or None, default=None
        Of the order of rows in ``"dual_descent"``.
    max_iter : int, default=1000
        Passes over the data allowed; -1 for no limit.
    lam, norm_bound, solver, time_limit, n_jobs, warm_start, callback, trace
        As in :class:`LinearSVC`; ``solver="newton"`` is for the squared loss.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : array of shape (n_outputs,)
    certificate_ : RiskCertificate
        Primal and dual objective, gap, status; of several outputs the worst, with one of each in
        ``parts``. Not there after ``partial_fit``.
    n_iter_ : int
    C_, lam_ : arrays of shape (n_outputs,)
    margin_ : float or array of shape (n_outputs,)
        ``1 / ||w||``.
    slack_ : array of shape (n_samples,) or (n_samples, n_outputs)
        By how much each training row lies outside the tube; nan for rows of weight zero.
    support_ : int array of shape (n_SV,)
        Training rows outside the tube or, of the plain loss, on its edge: those that have a dual
        variable, in any output.
    solver_, solver_why_ : str
        Methods that were taken, and why.
    t_ : int
        Rows that ``partial_fit`` has seen.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import LinearSVR
    >>> X = np.arange(10.0)[:, None]
    >>> model = LinearSVR(C=100.0).fit(X, 3 * X[:, 0] + 1)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([3.]), array([1.]))
    """

    _in_columns = True
    _parameter_constraints: dict = {
        **RiskMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions(set(_LOSSES)), ResidualLoss],
        "dual": ["boolean", StrOptions({"auto"})],
        "solver": solver_names("newton", "multipliers", "dual_descent", "sgd", "qp", "subgradient"),
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: Any = "auto",
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        lam: float | None = None,
        norm_bound: float | None = None,
        solver: Any = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.lam = lam
        self.norm_bound = norm_bound
        self.solver = solver
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_where(takes_streams)
    @takes_collections
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Learn from some rows of a stream, which are not kept.

        As :meth:`LinearSVC.partial_fit`: it needs ``lam``, and there is no ``certificate_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        X, y, weight = self._checked(X, y, sample_weight, reset=not hasattr(self, "_streams"))
        known = len(getattr(self, "_streams", y.T))
        if known != y.shape[1]:
            raise ValueError(
                f"y has {y.shape[1]} outputs, and the rows before had {known}: a stream keeps to "
                "one number of them."
            )
        self._learn(self._posed(X, y, weight), len(y))
        return self

    @property
    def _loss(self) -> Loss:
        return _LOSSES[self.loss](self.epsilon) if isinstance(self.loss, str) else self.loss

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> tuple:
        self._refuse_contradictions()
        several: dict[str, Any] = {"multi_output": True} if is_table(y) else {}
        X, y = self._validated(X, y, reset=reset, y_numeric=True, **several)
        weight = self._validated_weight(sample_weight, X)
        return X, np.asarray(y, dtype=np.float64).reshape(len(weight), -1), weight

    def _pose(self, X: Any, y: Any, sample_weight: Any) -> list:
        X, y, weight = self._checked(X, y, sample_weight)
        used, self._n_rows = np.flatnonzero(weight), len(weight)
        X, weight, y = with_weight(X, weight, y)
        return of_rows(self._posed(X, y, weight), used, self._n_rows)

    def _posed(self, X: Any, y: np.ndarray, weight: np.ndarray) -> list:
        """Problems of the outputs y (n, t), over one design."""
        design = self._design(X)
        return [self._risk(design, np.ascontiguousarray(target), weight) for target in y.T]

    def _keep(self, design: Design, thetas: np.ndarray, passes: int) -> None:
        super()._keep(design, thetas, passes)
        self.coef_ = self.coef_[0] if len(self.coef_) == 1 else self.coef_

"""Linear ridge regression: least squares with short weights, in its features or in its rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin import memory
from maxmargin.backends.systems import DIRECT
from maxmargin.backends.threads import Workers, on_one_blas_thread, thread_count
from maxmargin.estimators import readings
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.kernel_methods.base import warn_unfinished
from maxmargin.linear.base import LinearRegressor
from maxmargin.progress import ProblemMonitor
from maxmargin.solvers import Cholesky, Method, PreconditionedCG, Watch
from maxmargin.solvers.ridge.linear import CentredRows, DualSystem, LinearSystem, PrimalSystem

_FORMS: dict[str, type[LinearSystem]] = {"primal": PrimalSystem, "dual": DualSystem}


class Ridge(LinearRegressor):
    """Ridge regression: least squares, with a price on the length of the weights.

    With weights ``s_i`` of the rows and the lecture's lambda, here ``alpha``,

        minimise  1/2 sum_i s_i (w . x_i + b - t_i)^2 + alpha/2 |w|^2

    through M equations for the weights (the primal form) or N for coefficients of the rows (the
    dual representation), whichever are fewer. Both have the same answer. The intercept is not
    regularised.

    Parameters
    ----------
    alpha : float, default=1.0
        The lecture's lambda, positive; for zero there is :class:`~maxmargin.LinearRegression`.
    fit_intercept : bool, default=True
        Without it b = 0.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        ``"primal"`` factorises the M x M matrix of the features, ``"dual"`` the N x N matrix of the
        rows. ``"cg"`` has only products with X: conjugate gradients, with a preconditioner. Of the
        first two, ``"auto"`` takes the smaller; for a sparse X with more than 1,500 of both, or
        where the matrix has no room, ``"cg"``.
    tol : float, default=1e-4
        Largest relative residual of an answer that counts as converged: ``certificate_.residual``.
        What is factorised is exact to rounding.
    max_iter : int, default=-1
        Limit on the steps of ``"cg"``; -1 for none.
    cache_size : "auto" or float, default="auto"
        Memory for the matrix in MB, or a quarter of what is free.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which the fit stops where it is.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    form_ : {"primal", "dual"}
        In which form the system was solved.
    certificate_ : RidgeCertificate
        Objective, gap, residual and what they bound, with ``k(x, x) = |x|^2``, x less the mean of
        the rows; for several outputs that of the worst, with one of each in ``parts``.
    fit_status_ : int
        0 if converged, 1 otherwise (with a warning).
    n_iter_ : int
        Blocks of columns, or steps of conjugate gradients.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    After Ctrl-C, a time limit or a callback that says stop, ``"primal"`` leaves the exact solution
    with the first features alone, ``"dual"`` that of the first rows, ``"cg"`` the best point so
    far.

    Examples
    --------
    >>> from maxmargin import Ridge
    >>> model = Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12), round(model.intercept_, 12), model.form_
    (array([1.]), 2.0, 'primal')
    """

    _parameter_constraints: dict = {
        "alpha": [POSITIVE],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "primal", "dual", "cg"})],
        "tol": [POSITIVE],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "cache_size": [StrOptions({"auto"}), POSITIVE],
        "n_jobs": [Integral, None],
        **WATCHED,
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = -1,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @on_one_blas_thread
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights of the rows: one of two is that row twice.

        Returns
        -------
        self : Ridge
        """
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        weight = self._validated_weight(sample_weight, X)
        y = np.asarray(y, dtype=np.float64)
        target = y.reshape(len(y), -1)
        if (weight == 0).any():
            seen = weight > 0
            X, target, weight = X[seen], target[seen], weight[seen]
        self._fit_posed(CentredRows(X, target, weight, self.fit_intercept), y.ndim == 1)
        return self

    def _fit_posed(self, data: CentredRows, one_output: bool) -> None:
        """Fit to checked rows."""
        if not np.isfinite(data.sum_of_squares):
            raise ValueError(
                "X has values whose squares are beyond float64: scale its columns, for example "
                "with StandardScaler."
            )
        system, method = self._posed(data)
        with self._watched() as monitor:
            workers = Workers(thread_count(self.n_jobs))
            watch = Watch(self.tol, self.max_iter, ProblemMonitor(monitor), workers)
            monitor.readings[0] = readings.of_ridge(system)
            found = method.solve(system, watch)
            coef = system.weights(found.b).T
            solver = f"{found.solver}; {self._in_words(data)}"
            certificate = system.certificate(
                found.b, found.residual, solver, found.status, self.tol
            )
        intercept = data.target_mean - coef @ data.mean
        self.coef_ = coef[0] if one_output else coef
        self.intercept_ = float(intercept[0]) if one_output else intercept
        self.n_iter_, self.certificate_ = found.n_iter, certificate
        self.fit_status_ = int(not certificate.converged)
        warn_unfinished(self, certificate)

    def _posed(self, data: CentredRows) -> tuple[LinearSystem, Method]:
        """Return the system in the form that was asked for, or in the smaller; sets ``form_``."""
        smaller = "primal" if data.in_features else "dual"
        self.form_ = self.solver if self.solver in _FORMS else smaller
        unknowns = data.width if self.form_ == "primal" else data.n
        room = memory.budget(self.cache_size, 8 * unknowns**2)
        system = _FORMS[self.form_](data, float(self.alpha), room)
        products = self.solver == "cg"
        if self.solver == "auto":
            products = (data.sparse and unknowns > DIRECT) or Cholesky().accepts(system) is not None
        return system, PreconditionedCG() if products else Cholesky()

    def _in_words(self, data: CentredRows) -> str:
        """Say which form it was, and how many unknowns the other one has."""
        features, rows = f"{data.width} features", f"{data.n} rows"
        if self.form_ == "primal":
            return f"primal, unknowns for {features} (not for {rows})"
        return f"dual, unknowns for {rows} (not for {features})"

"""Linear ridge regression: least squares with short weights, in its features or in its rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin import memory
from maxmargin.backends.systems import DIRECT
from maxmargin.backends.threads import Workers, thread_count
from maxmargin.certificate import Certificate
from maxmargin.estimators import readings
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.kernel_methods.base import warn_unfinished
from maxmargin.kernel_methods.kernel_ridge import alpha_of_each_output
from maxmargin.linear.base import LinearRegressor, with_weight
from maxmargin.linear.regression import LinearRegression
from maxmargin.progress import ProblemMonitor
from maxmargin.solvers import Cholesky, Method, PreconditionedCG, Watch
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.linear import (
    CentredRows,
    DualSystem,
    LinearSystem,
    PositiveSystem,
    PrimalSystem,
)
from maxmargin.solvers.ridge.problem import NotDefiniteError
from maxmargin.solvers.ridge.singular import NonnegativeCholesky, SingularValues

_FORMS: dict[str, type[LinearSystem]] = {"primal": PrimalSystem, "dual": DualSystem}
_PRODUCTS = {"cg", "sparse_cg", "lsqr", "sag", "saga"}  # conjugate gradients
_FACTORS = {"primal", "dual", "cholesky", "svd"}
_FOR_POSITIVE = {"auto", "lbfgs"}
_NAMES: dict[type[Method], str] = {
    Cholesky: "cholesky",
    SingularValues: "svd",
    PreconditionedCG: "cg",
    NonnegativeCholesky: "nnls",
}


class Ridge(LinearRegressor):
    """Ridge regression: least squares, with a price on the length of the weights.

    With weights ``s_i`` of the rows,

        minimise  1/2 sum_i s_i (w . x_i + b - t_i)^2 + alpha/2 |w|^2

    through M equations for the weights (the primal form) or N for coefficients of the rows (the
    dual representation), whichever are fewer. Both have the same answer. The intercept is not
    regularised.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        The weight lambda of the penalty, for all targets or one for each. Zero is least squares:
        the solution of :class:`~maxmargin.LinearRegression`, with its certificate.
    fit_intercept : bool, default=True
        Without it b = 0.
    copy_X : bool, default=True
        For scikit-learn's signature: X is never overwritten.
    max_iter : int, optional
        Limit on the steps of conjugate gradients; None or -1 for none.
    tol : float, default=1e-4
        Largest relative residual of an answer that counts as converged: ``certificate_.residual``.
        What is factorised is exact to rounding.
    solver : str, default="auto"
        ``"primal"`` factorises the M x M matrix of the features, ``"dual"`` the N x N matrix of the
        rows, ``"cholesky"`` the smaller of both. ``"svd"`` takes the singular values of the rows,
        which also works where alpha is below the rounding of such a matrix. ``"cg"`` has only
        products with X: conjugate gradients, with a preconditioner. ``"auto"`` is ``"cholesky"``,
        and ``"svd"`` where that breaks down; for a sparse X with more than 1,500 rows and columns,
        or where the matrix has no room, ``"cg"``. The other names of scikit-learn are solved to
        the same optimum by another method: ``"sparse_cg"``, ``"lsqr"``, ``"sag"`` and ``"saga"``
        are ``"cg"``, and ``"lbfgs"``, for ``positive=True`` only, is nonnegative least squares.
    positive : bool, default=False
        Let no coefficient be negative; the intercept may be. By nonnegative least squares on a
        factor of the M x M matrix.
    random_state : int, RandomState or None, default=None
        For the pivots of ``"cg"``'s preconditioner. None is always the same choice.
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
    solver_ : str
        The solver that was asked for, or that ``"auto"`` has taken: ``"cholesky"``, ``"svd"``,
        ``"cg"``, ``"nnls"``, or ``"least_squares"`` for alpha = 0.
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
    >>> model.coef_.round(12), float(model.intercept_.round(12)), model.form_
    (array([1.]), 2.0, 'primal')
    """

    certificate_: Any
    n_iter_: Any

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, -1, None, closed="left"), None],
        "tol": [POSITIVE],
        "solver": [StrOptions({*_FOR_POSITIVE, *_FACTORS, *_PRODUCTS})],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "cache_size": [StrOptions({"auto"}), POSITIVE],
        "n_jobs": [Integral, None],
        **WATCHED,
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Of one target, as a column or not, predictions have shape (n_samples,).
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights of the rows: one of two is that row twice.

        Returns
        -------
        self : Ridge
        """
        self._refuse_contradictions()
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        weight = self._validated_weight(sample_weight, X)
        y = np.asarray(y, dtype=np.float64)
        target = y.reshape(len(y), -1)
        alphas = alpha_of_each_output(self.alpha, target.shape[1])
        X, weight, target = with_weight(X, weight, target)
        if alphas.all():
            self._fit_posed(CentredRows(X, target, weight, self.fit_intercept), alphas)
        else:
            self._fit_least_squares(X, target, weight, alphas)
        self._set_shapes(y.shape[1:])
        return self

    def _set_shapes(self, outputs: tuple[int, ...]) -> None:
        """Give the coefficients scikit-learn's shapes, for targets of shape (n, *outputs)."""
        if outputs in ((), (1,)):
            self.coef_ = self.coef_[0]
            self.intercept_ = self.intercept_ if outputs else self.intercept_[0]

    def _refuse_contradictions(self) -> None:
        if self.positive and self.solver not in _FOR_POSITIVE:
            raise ValueError(
                f"solver='{self.solver}' does not support positive fitting. Please set the solver "
                "to 'auto' or 'lbfgs', or set `positive=False`"
            )
        if self.solver == "lbfgs" and not self.positive:
            raise ValueError(
                "'lbfgs' solver can be used only when positive=True. Please use another solver."
            )

    def _fit_least_squares(
        self, X: Any, target: np.ndarray, weight: np.ndarray, alphas: np.ndarray
    ) -> None:
        """Fit targets with alpha = 0 by least squares, and the others with their penalties."""
        shared = {"fit_intercept", "positive", "n_jobs", "verbose", "time_limit", "callback"}
        options = {name: getattr(self, name) for name in shared}
        free = LinearRegression(trace=self.trace, tol=self.tol, **options)
        free.fit(X, target[:, alphas == 0], weight)
        coef, intercept = np.zeros((len(alphas), X.shape[1])), np.zeros(len(alphas))
        parts, steps = [free.certificate_], [free.n_iter_]
        if alphas.any():
            some = alphas > 0
            data = CentredRows(X, target[:, some], weight, self.fit_intercept)
            self._fit_posed(data, alphas[some])
            coef[some], intercept[some] = self.coef_, self.intercept_
            parts.append(self.certificate_)
            steps.append(self.n_iter_)
        else:
            self.__dict__.pop("form_", None)
            self.solver_ = "least_squares" if self.solver == "auto" else self.solver
            if hasattr(free, "trace_"):
                self.trace_ = free.trace_
        coef[alphas == 0], intercept[alphas == 0] = free.coef_, free.intercept_
        self.coef_, self.intercept_, self.n_iter_ = coef, intercept, max(steps)
        self.certificate_ = Certificate.worst(parts)
        self.fit_status_ = int(not self.certificate_.converged)

    def _fit_posed(self, data: CentredRows, alphas: np.ndarray) -> None:
        """Fit to checked rows, with an alpha for each target: sets coefficients (m, d)."""
        if not np.isfinite(data.sum_of_squares):
            raise ValueError(
                "X has values whose squares are beyond float64: scale its columns, for example "
                "with StandardScaler."
            )
        groups = [np.flatnonzero(alphas == alpha) for alpha in np.unique(alphas)]
        coef = np.zeros((len(alphas), data.width))
        parts: list[RidgeCertificate] = [None] * len(alphas)  # type: ignore[list-item]
        steps = []
        with self._watched(len(groups)) as monitor:
            for k, group in enumerate(groups):
                system, method = self._posed(data, float(alphas[group[0]]), group)
                watch = self._watch(ProblemMonitor(monitor, k))
                monitor.readings[k] = readings.of_ridge(system)
                try:
                    found = method.solve(system, watch)
                except NotDefiniteError:
                    system = PrimalSystem(data, system.alpha, system.room, group)
                    if self.solver == "primal" or SingularValues().accepts(system) is not None:
                        raise
                    self._says(system, SingularValues())
                    monitor.readings[k] = readings.of_ridge(system)
                    found = SingularValues().solve(system, watch)
                monitor.finished()
                coef[group] = system.weights(found.b).T
                solver = f"{found.solver}; {self._in_words(data)}"
                judged = system.certificate(found.b, found.residual, solver, found.status, self.tol)
                for output, part in zip(group, judged.parts or (judged,), strict=True):
                    parts[output] = part
                steps.append(found.n_iter)
        self.coef_ = coef
        self.intercept_ = data.target_mean - coef @ data.mean
        self.n_iter_, self.certificate_ = max(steps), RidgeCertificate.worst(parts)
        self.fit_status_ = int(not self.certificate_.converged)
        warn_unfinished(self, self.certificate_)

    def _watch(self, monitor: ProblemMonitor) -> Watch:
        limit = self.max_iter if self.solver in _PRODUCTS | {"auto"} else None
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(1 << 31))
        workers = Workers(thread_count(self.n_jobs))
        return Watch(self.tol, -1 if limit is None else limit, monitor, workers, seed=seed)

    def _posed(
        self, data: CentredRows, alpha: float, outputs: np.ndarray
    ) -> tuple[LinearSystem, Method]:
        """Return the system, in the smaller form unless ``solver`` names one, and the method."""
        form = "primal" if data.in_features else "dual"
        form = self.solver if self.solver in _FORMS else form
        form = "primal" if self.positive or self.solver == "svd" else form
        unknowns = data.width if form == "primal" else data.n
        smaller = min(data.n, data.width) if self.solver == "svd" else unknowns
        room = memory.budget(self.cache_size, 8 * smaller * unknowns)
        if self.positive:
            system: LinearSystem = PositiveSystem(data, alpha, room, outputs)
            method: Method = NonnegativeCholesky()
        else:
            system = _FORMS[form](data, alpha, room, outputs)
            products = self.solver in _PRODUCTS
            if self.solver == "auto":
                large = data.sparse and unknowns > DIRECT
                products = large or Cholesky().accepts(system) is not None
            method = PreconditionedCG() if products else Cholesky()
            method = SingularValues() if self.solver == "svd" else method
        self._says(system, method)
        return system, method

    def _says(self, system: LinearSystem, method: Method) -> None:
        """Set ``form_`` and ``solver_``."""
        self.form_ = "dual" if isinstance(system, DualSystem) else "primal"
        self.solver_ = _NAMES[type(method)] if self.solver == "auto" else self.solver

    def _in_words(self, data: CentredRows) -> str:
        """Say which form it was, and how many unknowns the other one has."""
        features, rows = f"{data.width} features", f"{data.n} rows"
        if self.form_ == "primal":
            return f"primal, unknowns for {features} (not for {rows})"
        return f"dual, unknowns for {rows} (not for {features})"

"""Linear regression: the least squares of the lecture, and its sign as a classifier.

    minimise  E(w, b) = sum_i s_i (w . x_i + b - y_i)^2            gradient 2 X' S (X w + b - y)

with weights ``s`` of the rows. The solution is that of the normal equations, ``w = (X'X)^-1 X'y``,
where they have one; it is found by a factorisation of X, by conjugate gradients, by gradient
descent or by stochastic gradient descent (:mod:`maxmargin.solvers`).

Reference: seed 004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from maxmargin.backends.threads import ALONE, Workers, thread_count
from maxmargin.certificate import GradientCertificate
from maxmargin.estimators import readings
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import (
    MULTICLASS,
    DescentMachine,
    LinearClassifier,
    LinearRegressor,
    growth,
    with_weight,
)
from maxmargin.multiclass import Scheme
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk.standardised import Regression, SquaredError, Standardisation
from maxmargin.solvers import (
    Factorisation,
    Method,
    NonnegativeLeastSquares,
    StochasticDescent,
    Watch,
)
from maxmargin.solvers.risk.descent import Descent
from maxmargin.solvers.risk.least_squares import LeastSquares, LeastSquaresMethod

_SOON = 2e10  # n d^2 up to which a sparse matrix is factorised: about a second
_SOLVERS = {"auto", "qr", "conjugate_gradient", "gradient_descent", "sgd"}


class _LeastSquaresMachine(DescentMachine):
    """Parameters and fit of the two machines below."""

    default_tol = 1e-6
    positive: bool = False
    n_jobs: int | None = None
    fit_intercept: bool

    _parameter_constraints: dict = {
        **DescentMachine._parameter_constraints,
        "solver": [StrOptions(_SOLVERS), Method],
    }

    def _fit_targets(self, X: Any, Y: np.ndarray, weight: np.ndarray) -> str:
        """Fit Y of shape (n, m): sets coefficients (m, d), intercepts (m,) and the certificate.

        Returns what to warn of.
        """
        solver = self._chosen(X.shape[0], X.shape[1], sp.issparse(X))
        X, weight, Y = with_weight(X, weight, Y)
        return self._fit_posed(solver, lambda monitor: Regression(X, Y, weight, self.fit_intercept))

    def _fit_posed(self, solver: str | Method, posed: Callable[[Monitor], Regression]) -> str:
        """Do so for a problem that is posed once somebody watches."""
        method = self._method(solver)
        with self._watched() as monitor:
            problem = posed(monitor)
            error, mean, size = problem.error, problem.mean, problem.size
            columns = error.columns
            if self._in_data_units(method):
                own = problem.in_data_units()
                monitor.readings[0] = readings.of_standardised(own.columns)
                found = _standardised(self._solved(method, own, monitor), columns, mean, size)
            else:
                monitor.readings[0] = readings.of_standardised(columns, size, mean)
                found = self._solved(method, error, monitor)
            V = np.column_stack([found.coef * columns.scale, found.centre])
            losses, gradient = error.each(V)
            if self.positive:  # down is no way for a coefficient at zero
                at_zero = np.column_stack([found.coef == 0, np.zeros(len(V), dtype=bool)])
                gradient = np.where(at_zero, np.minimum(gradient, 0.0), gradient)
        self.coef_ = found.coef * size[:, None]
        self.intercept_ = mean + found.centre * size - self.coef_ @ columns.mean
        self.n_iter_ = max(found.n_iter, 1)
        self.rank_ = found.rank
        self.singular_ = None
        if found.singular is not None:
            self.singular_ = found.singular * np.sqrt(columns.total)
        self.__dict__.pop("loss_curve_", None)
        if found.curve is not None:
            self.loss_curve_ = found.curve
        self.certificate_ = GradientCertificate(
            objective=float(losses @ size**2 * columns.total),
            gradient_norm=float(np.abs(gradient).max()),
            rank=found.rank,
            n_features=columns.d,
            solver=solver if isinstance(solver, str) else type(method).__name__,
            status=found.status,
            tol=self._tol(),
        )
        return self._warning()

    def _warning(self) -> str:
        certificate = self.certificate_
        if certificate.converged:
            return ""
        hint = "solver='qr' needs no steps."
        if certificate.solver in ("qr", "nnls"):
            hint = "It is the solution for the rows that were seen."
        elif certificate.solver == "conjugate_gradient":
            hint += (
                " Columns of one scale need fewer: StandardScaler, or MaxAbsScaler for a sparse X."
            )
        return (
            f"{self._advice(certificate.status)}{growth(self)} {hint} The gradient is "
            f"{certificate.gradient_norm:.2g}. See certificate_."
        )

    def _chosen(self, n: int, d: int, sparse: bool) -> str | Method:
        if self.positive:
            if self.solver not in ("auto", "qr"):
                raise ValueError(
                    f"positive=True has a method of its own: leave solver='auto', got "
                    f"{self.solver!r}."
                )
            return "nnls"
        if self.solver != "auto":
            return self.solver
        return "conjugate_gradient" if sparse and n * float(d) ** 2 > _SOON else "qr"

    def _solved(self, method: Method, error: SquaredError, monitor: Monitor) -> LeastSquares:
        """Solve for standardised targets; a factorisation takes no steps that could be limited."""
        direct = isinstance(method, Factorisation | NonnegativeLeastSquares)
        seed = 0
        if isinstance(method, StochasticDescent):
            seed = int(check_random_state(self.random_state).randint(1 << 31))
        watch = Watch(
            self._tol(),
            -1 if direct else self.max_iter,
            ProblemMonitor(monitor),
            Workers(thread_count(self.n_jobs)) if self.positive else ALONE,
            seed=seed,
        )
        if isinstance(method, LeastSquaresMethod):
            return method.solve(error, watch)
        columns = error.columns
        start = np.zeros((error.n_targets, columns.d + 1))
        found: Descent = method.solve(error, watch, start=start)
        coef, centre = found.point[:, :-1] * columns.inverse, found.point[:, -1]
        curve = [columns.per_step * value for value in found.curve]
        return LeastSquares(coef, centre, found.n_iter, found.status, curve=curve)


def _standardised(
    found: LeastSquares, columns: Standardisation, mean: np.ndarray, size: np.ndarray
) -> LeastSquares:
    """Bring a solution in the own units of X and y to the mean of X and the units of y."""
    centre = (found.centre + found.coef @ columns.mean - mean) / size
    return replace(found, coef=found.coef / size[:, None], centre=centre)


class LinearRegression(LinearRegressor, _LeastSquaresMachine):
    """Least squares: the line, plane or hyperplane nearest to the targets.

    With weights ``s_i`` of the rows,

        minimise  E(w, b) = sum_i s_i (w . x_i + b - y_i)^2

    The normal equations ``X'X w = X'y`` are solved by a factorisation of X, which keeps the digits
    that forming ``X'X`` would lose. Where columns depend on each other the solution is not unique:
    the one of least norm is returned, ``rank_`` says so, and predictions on such data do not
    depend on the choice. Columns of very different units are no difficulty: ranks are judged, and
    steps taken, on standardised columns, and the result is in X's own units. (Only
    ``"conjugate_gradient"``, for the sake of the least norm, and steps of a given ``step_size``
    are in X's units.)

    Parameters
    ----------
    fit_intercept : bool, default=True
        Without it b = 0.
    copy_X : bool, default=True
        X is never overwritten, so that both say the same; as in scikit-learn.
    positive : bool, default=False
        Let no coefficient be negative (NNLS; the intercept may be). Dense or sparse, by an active
        set method on the factorised data; ``certificate_`` then has the KKT violation.
    n_jobs : int, optional
        Threads for several targets with ``positive=True``: -1 for one per core; by default as many
        as BLAS may use.
    solver : {"auto", "qr", "conjugate_gradient", "gradient_descent", "sgd"} or Method
        By default ``"auto"``; a method is one of :mod:`maxmargin.solvers`. ``"qr"`` factorises
        blocks of rows, in about ``2 n d^2`` operations and memory of ``d^2``.
        ``"conjugate_gradient"`` only multiplies by X, which is fast where X is sparse. ``"auto"``
        is ``"qr"``, but for a sparse X with ``n d^2`` above 2e10 ``"conjugate_gradient"``.
        ``"gradient_descent"`` and ``"sgd"`` are the lecture's (see ``step_size``); of several
        solutions they find the one of least norm in the units of their steps, exactly or nearly.
    tol : float, optional
        Where the methods other than ``"qr"`` stop: largest entry of the gradient, in the units of
        ``certificate_.gradient_norm``. By default 1e-6, and 1e-3 for ``"sgd"``, where the error
        above the minimum is about the square of it.
    max_iter : int, default=1000
        Limit on the steps, for ``"sgd"`` passes over the rows, of all methods but ``"qr"``.
    step_size : float, {"constant", "inverse_sqrt", "inverse"} or callable, optional
        ``eta`` of the lecture's steps, ``w <- w - eta (2 X'X w - 2 X'y)`` for
        ``"gradient_descent"`` and ``w <- w - eta 2 (w . x_i - y_i) x_i`` for ``"sgd"``, row after
        row in random order (half of it is that of the delta rule, also called LMS or Widrow and
        Hoff's). A number, a schedule that begins with a safe size
        (:mod:`maxmargin.solvers.steps`), or a function of the number of the step, for ``"sgd"`` of
        the row, from 1 on. The last point is the answer; steps that are too large diverge, and a
        warning says so. By default steps are made to fit the data: by a line search, or small
        enough for every row, falling and averaged.
    units : {"auto", "data", "standardised"}, default="auto"
        Of those steps: w and b in the units of X and y, on the sum of the squares; or on their mean
        over standardised columns and targets, where one step size is good for all columns. By
        default the first where ``step_size`` is given, and the second where it is not.
    random_state : int, RandomState or None, default=None
        Of the order of the rows in ``"sgd"``.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which the fit stops where it is.
    callback : callable, optional
        Called some times a second with a :class:`~maxmargin.progress.Progress`; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    rank_ : int or None
        Rank of X (less its mean, with an intercept); known to ``"qr"``. Directions within the
        precision of X's values count as none where the gradient without them is within ``tol``.
    singular_ : array of shape (min(n_samples, n_features),) or None
        Singular values of X (less its mean), with rows times the root of their weights; known to
        ``"qr"``.
    certificate_ : GradientCertificate
        How far the fit is from the least sum of squares. The gradient is that of
        ``E / sum_i s_i (y_i - mean)^2`` with standardised columns: twice the correlation that a
        column still has with the residual, times the residual's size in units of y's. Zero at the
        minimum, whatever the units of X and y. (Without an intercept, y and the columns are taken
        about zero.) With ``positive=True`` it is the largest violation of the KKT conditions.
    loss_curve_ : list of float
        Of ``"gradient_descent"`` and ``"sgd"``: E at the start and after each step or pass, on
        standardised columns over ``sum_i s_i (y_i - mean)^2``; of all targets together.
    n_iter_ : int
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    After Ctrl-C, a time limit or a callback that says stop, ``"qr"`` leaves the exact solution for
    the rows that it has seen, the other methods the best point so far.

    Examples
    --------
    >>> from maxmargin.linear.regression import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12), float(model.intercept_.round(12))
    (array([2.]), 1.0)
    >>> model.rank_
    1

    Two of the lecture's steps, by hand from zero: ``w = 0.1 * 2 * (1 * 3 + 2 * 5) = 2.6``, then
    ``2.6 - 0.1 * 2 * (5 * 2.6 - 13) = 2.6``.

    >>> steps = LinearRegression(solver="gradient_descent", step_size=0.1, fit_intercept=False)
    >>> steps.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(12)
    array([2.6])
    """

    _parameter_constraints: dict = {
        **_LeastSquaresMachine._parameter_constraints,
        "copy_X": ["boolean"],
        "n_jobs": [Integral, None],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float | None = None,
        n_jobs: int | None = None,
        positive: bool = False,
        solver: Any = "auto",
        max_iter: int = 1000,
        step_size: Any = None,
        units: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.step_size = step_size
        self.units = units
        self.random_state = random_state
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : LinearRegression
        """
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        weight = self._validated_weight(sample_weight, X)
        y = np.asarray(y, dtype=np.float64)
        warning = self._fit_targets(X, y.reshape(len(y), -1), weight)
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        if warning:
            warn(warning)
        return self


class LeastSquaresClassifier(LinearClassifier, _LeastSquaresMachine):
    """The sign of a linear regression on labels -1 and +1.

    With weights ``s_i`` of the rows,

        minimise  E(w, b) = sum_i s_i (w . x_i + b - y_i)^2

    With more than two classes, one regression for each class against the rest, the largest value
    wins, or one for each task of a code that sees all classes. It is quick and has no parameter to
    choose, but a point far on the right side of the boundary costs as much as one on the wrong.

    Parameters
    ----------
    fit_intercept, solver, tol, max_iter, step_size, units, random_state, verbose, time_limit
    callback, trace
        As in :class:`LinearRegression`. With ``solver="sgd"`` and ``step_size=eta / 2`` it is the
        delta rule, ``w <- w + eta (y_i - w . x_i) x_i``.
    class_weight : dict, "balanced" or None, default=None
        Factors of the rows' weights for each class.
    multiclass : {"ovr", "ecoc"}, Scheme or subclass of it, default="ovr"
        How several classes are told apart. All regressions share one factorisation, so that each
        task has to see all rows, with the same weights; ``SchemeClassifier`` puts the other schemes
        around this machine.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_machines, n_features)
    intercept_ : array of shape (1,) or (n_machines,)
    scheme_ : Scheme
        How the machines make several classes.
    classes_ : array of shape (n_classes,)
    rank_, singular_, certificate_, loss_curve_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`LinearRegression`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin.linear.regression import LeastSquaresClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeastSquaresClassifier().fit(X[:100], y[:100])
    >>> model.score(X[:100], y[:100])
    1.0
    """

    _parameter_constraints: dict = {
        **_LeastSquaresMachine._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "multiclass": MULTICLASS,
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float | None = None,
        max_iter: int = 1000,
        step_size: Any = None,
        units: str = "auto",
        class_weight: Any = None,
        random_state: Any = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
        multiclass: Any = "ovr",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.step_size = step_size
        self.units = units
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace
        self.multiclass = multiclass

    def _refuse_scheme(self, scheme: Scheme) -> None:
        super()._refuse_scheme(scheme)
        if scheme.balanced or not scheme.code.all():
            raise ValueError(
                f"The regressions share one factorisation of all rows, and machines of {scheme!r} "
                "see some of them, or weigh them each in its own way: use multiclass='ovr' or "
                "'ecoc', or SchemeClassifier(LeastSquaresClassifier(), multiclass=...)."
            )

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LeastSquaresClassifier:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : LeastSquaresClassifier
        """
        X, y = self._validated(X, y)
        index = self._classes_of(y)
        weight = self._weights_with_classes(sample_weight, X, index)
        warning = self._fit_targets(X, np.column_stack(self._signs(index)), weight)
        if warning:
            warn(warning)
        return self

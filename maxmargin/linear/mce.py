"""Minimum classification error: the number of errors, smoothed until it has a gradient.

With ``l(z) = 1 / (1 + exp(-slope z))`` and weights ``s`` of the rows that sum to one,

    minimise  E(w, b) = sum_i s_i l(d_i) + alpha / 2 sum_j (scale_j w_j)^2

where ``scale_j`` is the standard deviation of column j, and ``d_i`` is positive for a row that is
misclassified. For two classes ``d_i = -y_i f(x_i)``, so that

    dE/dw = - sum_i s_i slope l(d_i) (1 - l(d_i)) y_i x_i

(seed 004 has the other sign, which would climb). For K classes it is Juang's and Katagiri's measure
of row i of class k,

    d_i = -g_k(x_i) + 1/eta log( 1/(K-1) sum_{j != k} exp(eta g_j(x_i)) )

which tends to the best competitor's lead as ``eta`` grows; it is ``-y f`` where K is two.

E is bounded and not convex: descents from several starts, of which the best is kept.

For two classes with an intercept and ``alpha = 0`` it has no minimum (but where no hyperplane beats
a coin). ``l(-y f) = P[y (f + e) < 0]`` for e of the logistic distribution, so that E(w, b) is the
mean over e of the error count of (w, b + e): never below the least count, which it only nears as w
grows. Without an intercept there can be one: for x = 1 (+) and 2 (-) it is w = -1.061, E = 0.425.

References: seed 004; Juang and Katagiri, IEEE Trans. Signal Processing 40, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.certificate import GradientCertificate
from maxmargin.estimators import readings
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import DescentMachine, LinearClassifier, growth, with_weight
from maxmargin.losses import MinimumClassificationError
from maxmargin.multiclass import Scheme
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk.standardised import (
    COMPETING,
    SIGMOID,
    Columns,
    RowLoss,
    SquaredError,
    StandardisedError,
)
from maxmargin.solution import Status
from maxmargin.solvers import ConjugateGradients, Method, StochasticDescent, Watch
from maxmargin.solvers.risk.descent import Descent

_STEEPEST = 1.0 / (6.0 * 3.0**0.5)  # largest curvature of 1 / (1 + exp(-z))
_START_STEPS, _START_TOL = 50, 1e-3  # of the least squares that the first descent starts from
_LENGTHS = 1.0, 100.0  # between which the other starts are drawn: long ones ignore outliers
_OFF_CENTRE, _RESOLVED = 0.1, 1e-6
_FIRST_STEP, _DECAY = 5.0, 0.5  # long steps for long, as slopes are small where a sigmoid is flat


@dataclass(frozen=True)
class SmoothedError(StandardisedError):
    """``E`` as a function of weights V of shape (m, d + 1) of the columns, the last one c.

    ``index`` is the class of each row; with two classes m is one.
    """

    columns: Any
    index: np.ndarray
    n_classes: int
    loss: MinimumClassificationError
    eta: float = 1.0
    alpha: float = 0.0
    intercept: bool = True

    def __call__(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, gradient = self.unpenalised(V)
        scale = 1.0 if self.columns.standardised else self.columns.units[1]
        held = scale * V[:, :-1]
        gradient[:, :-1] += self.alpha * scale * held
        penalty = 0.5 * self.alpha * np.vdot(held, held)
        return float(value + penalty), gradient

    def unpenalised(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the mean loss alone."""
        margins, towards = self._margins(self.values(V))
        gradient = self.gradient(self.loss.slope(margins)[:, None] * towards)
        return float(self.columns.weight @ self.loss.value(margins)), gradient

    def _margins(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``-d`` of each row, and its derivatives by the row's values."""
        if self.n_classes == 2:
            sign = np.where(self.index == 1, 1.0, -1.0)
            return sign * values[:, 0], sign[:, None]
        own = np.arange(len(values)), self.index
        rivals = values.copy()
        rivals[own] = -np.inf
        first = rivals.max(axis=1)
        share = np.exp(self.eta * (rivals - first[:, None]))
        total = share.sum(axis=1)
        towards = -share / total[:, None]
        towards[own] = 1.0
        return values[own] - first - np.log(total / (self.n_classes - 1)) / self.eta, towards

    def plain(self) -> SmoothedError:
        """The same error as a function of w and b."""
        return replace(self, columns=self.columns.plain())

    def on_labels(self, scheme: Scheme) -> tuple[np.ndarray, SquaredError]:
        """Means of the labels -1 and +1 of each function, and their squared error about these."""
        columns, signs = self.columns, np.column_stack(scheme.signs(self.index))
        mean = columns.weight @ signs if self.intercept else np.zeros(signs.shape[1])
        return mean, SquaredError(columns, signs - mean, self.intercept)

    def wrong(self, V: np.ndarray, scheme: Scheme) -> tuple[float, int]:
        """Weight and number of the rows that are misclassified."""
        wrong = scheme.decode(self.values(V)) != self.index
        return float(self.columns.weight[wrong].sum()), int(wrong.sum())

    def largest_value(self, V: np.ndarray) -> float:
        """Largest size of a row's values, the mean over its functions."""
        return float(np.abs(self.values(V)).mean(axis=1).max(initial=0.0))

    def log_value(self, V: np.ndarray, smallest: float) -> float:
        """Mean logarithm of the size of the rows' values, which count as so small at least."""
        values = np.abs(self.values(V)).mean(axis=1)
        return float(self.columns.weight @ np.log(np.maximum(values, smallest)))

    def rows(self) -> RowLoss:
        """Return the loss of one row, for stochastic descent."""
        steepness = self.loss.steepness
        curvature = _STEEPEST * steepness**2
        if self.n_classes == 2:
            target = np.where(self.index == 1, 1.0, -1.0)[:, None]
            return RowLoss(SIGMOID, target, curvature, _FIRST_STEP, steepness, decay=_DECAY)
        target = self.index[:, None].astype(np.float64)
        # by the chain rule: d has a gradient of norm at most sqrt(2) and a curvature of eta / 2
        curvature = 2.0 * curvature + 0.125 * steepness * self.eta
        return RowLoss(COMPETING, target, curvature, _FIRST_STEP, steepness, self.eta, _DECAY)


class MCEClassifier(LinearClassifier, DescentMachine):
    """The linear machine with the fewest training errors, as far as a smoothed count tells.

    With ``l(z) = 1 / (1 + exp(-slope z))``, labels -1 and +1 and weights that sum to one,

        minimise  E(w, b) = sum_i s_i l(-y_i (w . x_i + b)) + alpha / 2 sum_j (scale_j w_j)^2

    A row far on the wrong side costs one, as it does in the error count, and hardly pulls at w.
    For K classes there is one function ``g_k`` for each, and a row of class k costs ``l(d)`` with
    ``d = -g_k + 1/eta log(1/(K-1) sum_{j != k} exp(eta g_j))``. That is its own form for several
    classes, so that there is no ``multiclass``; ``SchemeClassifier(MCEClassifier(), ...)`` makes
    them of machines for two.

    The problem is not convex. No certificate of a global minimum exists: ``gradient_norm_`` only
    says that the answer is stationary, to ``tol``. The descent is therefore repeated from random
    starts, and the answer with the smallest E is kept. With two classes, an intercept and
    ``alpha=0`` there is no minimum at all: E falls towards a count of errors as w grows, and
    where it ends, so the length of w, is set by ``tol``. What then has a meaning are the direction
    of w, b over its length, and ``train_error_``; an ``alpha`` above zero gives the length one.
    Scaling of the columns does not matter, since descents run on standardised columns unless their
    ``step_size`` is given; ``coef_`` is in X's own units.

    Parameters
    ----------
    slope : float, default=1.0
        Steepness of the sigmoid. With ``alpha=0`` the length of w does the same work: twice the
        slope is twice as long a w, with the same predictions. The slope then only says how sharply
        the errors are counted at the start, where values are of size one.
    alpha : float, default=0.0
        Penalty on the weights of standardised columns, ``scale_j`` being column j's standard
        deviation; not available with ``solver="sgd"``.
    eta : float, default=1.0
        For more than two classes: how far the competitor that is ahead outweighs the others.
    solver : {"lbfgs", "gradient_descent", "sgd"} or Method, default="lbfgs"
        ``"lbfgs"`` is SciPy's quasi-Newton method, ``"gradient_descent"`` follows the gradient
        itself, ``"sgd"`` that of one row at a time, averaged; or a method of
        :mod:`maxmargin.solvers`.
    n_restarts : int, default=9
        Descents from random starts besides the first one. None are made once the classes are
        separated. Many columns or far outliers make poor local minima common: compare ``losses_``,
        and raise this if they differ much.
    tol : float, optional
        Largest entry of the gradient on standardised columns where a descent ends. By default 1e-4,
        and 2e-4 for ``"sgd"``.
    max_iter : int, default=1000
        Limit on the steps of each descent, for ``"sgd"`` passes over the rows.
    step_size : float, {"constant", "inverse_sqrt", "inverse"} or callable, optional
        ``eta`` of the lecture's steps, ``w <- w + eta sum_i s_i slope l(d_i) (1 - l(d_i)) y_i x_i``
        for ``"gradient_descent"``, the same with one row, row after row in random order, for
        ``"sgd"``; here ``s_i`` are the weights as they were given. A number, a schedule that begins
        with a safe size (:mod:`maxmargin.solvers.steps`), or a function of the number of the step,
        for ``"sgd"`` of the row, from 1 on; the last point is the answer. By default steps are made
        to fit the data: by a line search, or small enough for every row, falling and averaged.
    units : {"auto", "data", "standardised"}, default="auto"
        Of those steps: w and b as they are, or the weights of standardised columns, on the mean E
        in place of the sum. By default the first where ``step_size`` is given, and the second where
        it is not.
    init : {"least_squares", "zero"}, default="least_squares"
        Where the first descent starts: from some steps of a regression on the labels, or from zero.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Factors of the rows' weights for each class.
    random_state : int, RandomState or None, default=None
        Of the restarts, and of the order of the rows in ``"sgd"``.
    warm_start : bool, default=False
        Let the first descent start from the last fit of this object.
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
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    loss_ : float
        ``E`` at the answer.
    train_error_ : float
        What E stands for: the share of the training rows, by weight, that are misclassified.
    separated_ : bool
        Whether there are none. Without a penalty E then tends to zero as w grows.
    gradient_norm_ : float
        Largest entry of the gradient on standardised columns.
    certificate_ : GradientCertificate
        Loss, gradient and status: how near to a stationary point the answer is.
    status_ : Status
        ``"converged"``: the gradient is at most ``tol``, at a stationary point or, where there is
        none, where a longer w would hardly lower E; or why the descent that was kept has ended
        early.
    losses_ : array of shape (n_restarts_ + 1,)
        E at the end of each descent.
    loss_curve_ : list of float
        E at the start and after each step of the descent that was kept.
    n_restarts_ : int
        Descents from random starts that were made.
    n_iter_ : int
        Steps of the descent that was kept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Juang and Katagiri, Discriminative learning for minimum error classification, IEEE Trans. Signal
    Processing 40, 1992.

    Examples
    --------
    One row far on the wrong side turns a regression's boundary, and not this one:

    >>> from maxmargin.linear.mce import MCEClassifier
    >>> from maxmargin.linear.regression import LeastSquaresClassifier
    >>> X = [[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0], [-90.0]]
    >>> y = ["no", "no", "no", "yes", "yes", "yes", "yes"]
    >>> LeastSquaresClassifier().fit(X, y).score(X, y) < 0.6
    True
    >>> model = MCEClassifier(random_state=0).fit(X, y)
    >>> round(model.train_error_ * len(y))
    1
    """

    default_tol, default_tol_sgd = 1e-4, 2e-4

    _parameter_constraints: dict = {
        **DescentMachine._parameter_constraints,
        "slope": [POSITIVE],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "eta": [POSITIVE],
        "solver": [StrOptions({"lbfgs", "gradient_descent", "sgd"}), Method],
        "init": [StrOptions({"least_squares", "zero"})],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        slope: float = 1.0,
        alpha: float = 0.0,
        eta: float = 1.0,
        solver: Any = "lbfgs",
        n_restarts: int = 9,
        tol: float | None = None,
        max_iter: int = 1000,
        step_size: Any = None,
        units: str = "auto",
        init: str = "least_squares",
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.slope = slope
        self.alpha = alpha
        self.eta = eta
        self.solver = solver
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.step_size = step_size
        self.units = units
        self.init = init
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MCEClassifier:
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
        self : MCEClassifier
        """
        method = self._method(self.solver)
        X, y = self._validated(X, y)
        last = (self._dense_coef(), self.intercept_) if hasattr(self, "coef_") else (None, None)
        index = self._classes_of(y)
        weight = self._weights_with_classes(sample_weight, X, index)
        X, weight, index = with_weight(X, weight, index)
        self._fit_posed(
            method, lambda monitor: self._error(Columns(X, weight, self.fit_intercept), index), last
        )
        return self

    def _error(self, columns: Any, index: Any, kind: type | None = None) -> SmoothedError:
        """Return what is minimised, over columns and the class of each row."""
        loss = MinimumClassificationError(self.slope)
        classes, penalty = len(self.classes_), (self.eta, self.alpha, self.fit_intercept)
        return (kind or SmoothedError)(columns, index, classes, loss, *penalty)

    def _fit_posed(
        self, method: Method, posed: Callable[[Monitor], SmoothedError], last: tuple
    ) -> None:
        """Descend on an error that is posed once somebody watches, and warn."""
        with self._watched(self.n_restarts + 1) as monitor:
            monitor.which = "start {number} of {problems}, "
            self._descend(method, posed(monitor), last, monitor)
        if self.status_ is not Status.CONVERGED:
            warn(
                f"{self._advice(self.status_)}{growth(self)} The gradient is "
                f"{self.gradient_norm_:.2g}, and {100 * self.train_error_:.3g} % of the training "
                "rows are misclassified."
            )

    def _descend(self, method: Method, error: SmoothedError, last: tuple, monitor: Monitor) -> None:
        """Descend from each start, and keep the best."""
        random, own = check_random_state(self.random_state), error
        if self._in_data_units(method):
            own = error.plain()
        typical: np.ndarray | None = None
        best: Descent | None = None
        losses: list[float] = []
        while len(losses) <= self.n_restarts:
            this = ProblemMonitor(monitor, len(losses))
            monitor.readings[this.problem] = readings.of_standardised(own.columns)
            watch = Watch(self._tol(), self.max_iter, this)
            if losses:
                typical = error.columns.typical() if typical is None else typical
                start = _random_start(error, typical, random)
            else:
                start = self._first_start(error, last, watch)
            if isinstance(method, StochasticDescent):
                watch = replace(watch, seed=int(random.randint(1 << 31)))
            found: Descent = method.solve(own, watch, start=moved(start, error, own))
            found = replace(found, point=moved(found.point, own, error))
            monitor.finished()
            losses.append(found.value)
            if best is None or found.value < best.value:
                best = found
                self._keep(error, best)
            if monitor.stopped() or (self.separated_ and not self.alpha):
                break
        self.losses_ = np.array(losses)
        self.n_restarts_ = len(losses) - 1

    def _first_start(self, error: SmoothedError, last: tuple, watch: Watch) -> np.ndarray:
        """Return the last fit's machine, or that of a few steps of least squares on the labels."""
        columns, (coef, intercept) = error.columns, last
        shape = len(self.scheme_.code), columns.d
        if self.warm_start and coef is not None and coef.shape == shape:
            return error.point(coef, intercept)
        if self.init == "zero":
            return np.zeros((shape[0], shape[1] + 1))
        mean, squares = error.on_labels(self.scheme_)
        short = replace(watch, tol=_START_TOL, max_iter=_START_STEPS).untraced()
        found = ConjugateGradients(own_units=False).solve(squares, short)
        return np.column_stack([found.coef * columns.scale, mean])

    def _keep(self, error: SmoothedError, found: Descent) -> None:
        weights = error.weights(found.point)
        self.coef_, self.intercept_ = np.ascontiguousarray(weights[:, :-1]), weights[:, -1].copy()
        self.train_error_, wrong = error.wrong(found.point, self.scheme_)
        self.separated_ = not wrong
        self.loss_ = found.value
        self.gradient_norm_ = found.gradient_norm
        self.status_ = found.status
        self.certificate_ = GradientCertificate(
            objective=found.value,
            gradient_norm=found.gradient_norm,
            solver=self.solver if isinstance(self.solver, str) else type(self.solver).__name__,
            status=found.status,
            tol=self._tol(),
            convex=False,
            attained=bool(self.alpha) or not self.fit_intercept or len(self.classes_) > 2,
        )
        self.loss_curve_ = found.curve
        self.n_iter_ = max(found.n_iter, 1)


def moved(V: np.ndarray, error: SmoothedError, other: SmoothedError) -> np.ndarray:
    """Weights of the columns of one error, as those of another's columns."""
    if error is other:
        return V
    weights = error.weights(V)
    return other.point(weights[:, :-1], weights[:, -1])


def _random_start(error: SmoothedError, typical: np.ndarray, random: Any) -> np.ndarray:
    """Draw weights in a random direction, with values of a random size.

    Columns are weighed by their standard deviations, by their typical sizes, on which outliers have
    little influence, or by something between; the size of the values is their geometric mean.
    """
    m = 1 if error.n_classes == 2 else error.n_classes
    V = random.normal(size=(m, error.columns.d + 1))
    V[:, :-1] /= typical ** random.uniform()
    V[:, :-1] *= error.columns.scale > 0  # a constant column has no coefficient to be penalised
    V[:, -1] *= _OFF_CENTRE * error.intercept
    if m > 1:  # what all classes have in common has no effect
        V -= V.mean(axis=0)
    smallest = _RESOLVED * max(error.largest_value(V), np.finfo(np.float64).tiny)
    size = np.exp(error.log_value(V, smallest))
    return V * np.exp(random.uniform(*np.log(_LENGTHS))) / size

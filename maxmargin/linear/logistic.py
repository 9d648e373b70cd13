"""Logistic regression: probabilities from the logistic loss, for two classes or several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.backends.cpu.linear import Design
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import MULTICLASS, STEPS, growth, refuse_steps, stepped
from maxmargin.linear.risk_machine import RiskClassifier, RiskMachine
from maxmargin.losses import Logistic, Loss
from maxmargin.multiclass import OneVsRest, Scheme
from maxmargin.risk import L2, NO_PENALTY, Penalty, SoftmaxRisk
from maxmargin.solution import Status
from maxmargin.solvers import Method

_OURS = ("auto", "newton", "lbfgs", "gradient_descent", "sgd")
_THEIRS = {  # scikit-learn's names for the rest, and what they are here
    "liblinear": "auto",
    "newton-cg": "newton",
    "newton-cholesky": "newton",
    "sag": "auto",
    "saga": "auto",
}
_SOFTMAX = "softmax"
_FOR_L1 = ("auto", "liblinear", "saga")
_FOR_DUAL = ("auto", "liblinear")


def _times(factor: float, size: Callable[[int], float], t: int) -> float:
    return factor * size(t)


class LogisticRegression(RiskClassifier):
    """Logistic regression.

    For labels ``y_i`` of -1 or +1 and sample weights ``s_i``,

        minimise  R(w) + C sum_i s_i log(1 + exp(-y_i (w . x_i + b)))
        R(w) = l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||^2

    and for several classes the same with the softmax of one value for each, its own form for all of
    them at once, or machines for two after ``multiclass``. The intercept is not
    penalised (but with ``solver="liblinear"``). ``C=inf`` is maximum likelihood, without a penalty;
    data that can be separated then have no answer, since longer weights are always better, and a
    warning says so.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, optional
        The older way to say ``l1_ratio=1``, ``l1_ratio=0``, ``l1_ratio`` and ``C=inf``. The default
        ``"deprecated"``, scikit-learn's, leaves it to these two.
    C : float, default=1.0
        Weight of the likelihood against the penalty; ``inf`` for no penalty.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, 0 to 1. An l1 penalty makes weights zero.
    dual : bool, default=False
        Solve the dual, row by row; for machines for two classes and the l2 penalty.
    tol : float, default=1e-8
        Relative duality gap of an answer that counts as converged. The coefficients are off by up
        to about the root of it: 1e-4, as a gradient is measured, would be less exact than
        scikit-learn's default.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1
        With ``solver="liblinear"`` the intercept is a weight on a column of this number, penalised
        like the others. No other solver takes it.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of each class's rows; ``"balanced"`` makes all classes equally heavy.
    random_state : int, RandomState or None, default=None
        Of the order of the rows with ``dual=True`` and ``solver="sgd"``.
    solver : str or Method, default="auto"
        A way to the optimum, which is the same for all: a name, or a method of
        :mod:`maxmargin.solvers`. ``"newton"`` makes the matrix of second
        derivatives up to 1,500 features, or 300 where rows are fewer than features, and uses
        conjugate gradients beyond; ``"lbfgs"`` needs gradients only; ``"gradient_descent"`` and
        ``"sgd"`` are the lecture's (see ``step_size``), and ``"sgd"`` is never exact. ``"auto"`` is
        Newton for two classes, by coordinates where there is an l1 penalty, and for several up to
        400 weights in all or where rows are fewer than features, else ``"lbfgs"``. scikit-learn's
        other names are taken, too: ``"newton-cg"`` and ``"newton-cholesky"`` are
        ``"newton"``, ``"sag"`` and ``"saga"`` are ``"auto"``, and
        ``"liblinear"`` is LIBLINEAR's problem, with a penalised intercept and for two classes.
        ``solver_`` says which it was.
    max_iter : int, default=100
        Passes over the data allowed; -1 for no limit. A step of ``"gradient_descent"`` with a
        given ``step_size`` is one pass.
    verbose : bool or int, default=0
        Show a progress bar.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    lam : float, optional
        The lambda form in place of C: ``C = 1 / (2 N lam)``, N the sum of the weights; for the l2
        penalty that is mean loss plus ``lam ||w||^2``. ``partial_fit`` needs it.
    norm_bound : float, optional
        The form with a bound on ``||w||`` in place of C (Ivanov's), of a softmax on the norm of all
        its weights; ``C_`` is the one it comes to, ``certificate_`` that of this problem.
    time_limit : float, optional
        Seconds after which the solver stops where it is.
    callback : callable, optional
        Called with a :class:`~maxmargin.progress.Progress` some times a second; stops the fit by
        returning True. (scikit-learn's callbacks
        are set with ``set_callbacks``.)
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).
    multiclass : {"softmax", "ovr", "ovo", "dag", "ecoc"}, Scheme or subclass, default="softmax"
        How several classes are told apart: all at once, or by machines for two after a scheme of
        :mod:`maxmargin.multiclass`, by name, as an object or its class. Probabilities are then put
        together from those of the machines. (The hinges of ``"crammer_singer"`` and
        ``"weston_watkins"`` are ``LinearSVC``'s.)

    step_size : float, {"constant", "inverse_sqrt", "inverse"} or callable, optional
        ``eta`` of the lecture's steps: for ``"gradient_descent"`` against the gradient of the
        objective as it is stated above (or, with ``lam``, of mean loss plus ``lam ||w||^2``), which
        without a penalty is ``w <- w + eta sum_i s_i y_i (1 - l(y_i f(x_i))) x_i``,
        ``l(z) = 1 / (1 + exp(-z))``; for ``"sgd"`` against that of one row's part of it, the
        n-th part of the penalty included, row after row in random order. A number, a schedule
        that begins with a safe size (:mod:`maxmargin.solvers.steps`), or a function of the number
        of the step, for ``"sgd"`` of the row, from 1 on. The last point is the answer; steps that
        are too large diverge, and a warning says so. By default steps fit the data: by a line
        search, or Pegasos's (without a penalty: safe for every row, falling and averaged).
    units : {"auto", "data", "standardised"}, default="auto"
        Of those steps: w and b as they are, or the weights of standardised columns, on the mean
        of the losses, where one step size is good for all columns. By default the first where
        ``step_size`` is given, and the second where it is not. Stochastic steps with a penalty
        are always in X's own.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_machines, n_features)
        One row for each class, or for each row of ``scheme_.code``.
    intercept_ : array of shape (1,) or (n_machines,)
    scheme_ : Scheme
        How the functions make several classes; of a softmax, by the largest value.
    certificate_ : RiskCertificate
        Primal and dual objective, gap, status; the worst machine's, with ``parts`` for each.
        Not there after ``partial_fit``.
    n_iter_ : int array of shape (1,)
        Passes over the data.
    C_, lam_ : arrays of shape (1,) or (n_machines,)
        Cost of a row of weight one, and what it is in the lambda form.
    loss_curve_ : list of float
        Of ``"gradient_descent"`` and, but for Pegasos, ``"sgd"``: the objective at the start and
        after each step or pass. A list of such where there are several machines.
    solver_, solver_why_ : str
        Methods that were taken, and why.
    t_ : int
        Rows that ``partial_fit`` has seen.
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
    >>> sparse = LogisticRegression(l1_ratio=1.0, C=0.1).fit(X, y)
    >>> int((sparse.coef_ == 0).sum()), sparse.certificate_.converged
    (10, True)
    >>> steps = LogisticRegression(C=0.01, solver="gradient_descent", step_size=0.05, tol=1e-3)
    >>> steps.set_params(max_iter=3000).fit(X, y).certificate_.converged  # the lecture's way there
    True
    >>> bool(steps.loss_curve_[-1] < steps.loss_curve_[0])
    True
    """

    _parameter_constraints: dict = {
        **RiskMachine._parameter_constraints,
        **STEPS,
        "penalty": [StrOptions({"l1", "l2", "elasticnet", "deprecated"}), None],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "dual": ["boolean"],
        "intercept_scaling": [POSITIVE],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({*_OURS, *_THEIRS}), Method],
        "multiclass": [*MULTICLASS, StrOptions({_SOFTMAX})],
    }

    def __init__(
        self,
        penalty: str | None = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-8,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: Any = "auto",
        max_iter: int = 100,
        verbose: Any = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        lam: float | None = None,
        norm_bound: float | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
        multiclass: Any = _SOFTMAX,
        step_size: Any = None,
        units: str = "auto",
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
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
        self.trace = trace
        self.multiclass = multiclass
        self.step_size = step_size
        self.units = units

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.solver == "liblinear" and self._asked == _SOFTMAX:
            tags.classifier_tags.multi_class = False
        return tags

    @property
    def _loss(self) -> Loss:
        return Logistic()

    @property
    def _penalty(self) -> Penalty:
        if self.penalty is None or np.inf == self.C:
            return NO_PENALTY
        ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio or 0.0)
        return Penalty.mixed(ratio)

    @property
    def _cost(self) -> float:
        return 1.0 if self._penalty.none else self.C

    def _scheme_for(self, n_classes: int) -> Scheme:
        softmax = self._asked == _SOFTMAX
        return OneVsRest(n_classes) if softmax else super()._scheme_for(n_classes)

    @property
    def _solver_name(self) -> str:
        return _THEIRS.get(str(self.solver), str(self.solver))

    @property
    def _penalised_intercept(self) -> float | None:
        return self.intercept_scaling if self.solver == "liblinear" else None

    def _named(self, name: str, risk: Any) -> Method:
        """Method of a name; stochastic steps that nobody has stated are Pegasos's, if they can."""
        pegasos = name == "sgd" and self.step_size is None and not self._penalty.none
        if name not in ("gradient_descent", "sgd") or (pegasos and self.units != "standardised"):
            return super()._named(name, risk)
        size, factor = self.step_size, 1.0
        if self.lam is not None:  # from the objective to mean loss plus lam ||w||^2, or a row's
            factor = 2.0 * self.lam * (1.0 if name == "gradient_descent" else risk.n)
        if factor != 1.0 and size is not None and not isinstance(size, str):
            given = size
            size = partial(_times, factor, size) if callable(given) else factor * given
        return stepped(name, size, self.units)

    def _keep(self, design: Design, thetas: np.ndarray, passes: int) -> None:
        super()._keep(design, thetas, passes)
        self.n_iter_ = np.array([passes], dtype=np.int32)

    def _problems(self, X: Any, index: np.ndarray, weight: np.ndarray, factors: np.ndarray) -> list:
        if not self._softmax:
            return super()._problems(X, index, weight, factors)
        cost = weight * factors[index]
        return [SoftmaxRisk(self._design(X), index, len(self.classes_), cost, self._penalty)]

    @property
    def _softmax(self) -> bool:
        """Whether all classes are one problem; refuses what is for two."""
        if len(self.classes_) == 2 or self._asked != _SOFTMAX:
            return False
        if self.solver == "liblinear":
            raise ValueError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= "
                "3). Either use another solver or wrap the estimator in a OneVsRestClassifier to "
                "keep applying a one-versus-rest scheme."
            )
        if self.dual:
            raise ValueError(
                "dual=True goes row by row, which a softmax has no method for: such methods "
                "are for machines for two classes: use multiclass='ovr', or dual=False."
            )
        return True

    def _refuse_contradictions(self) -> None:
        self._refuse_two_forms()
        self._refuse_penalty()
        refuse_steps(self)
        if self.norm_bound is not None and self.step_size is not None:
            raise ValueError("norm_bound is found through exact answers: leave step_size=None.")
        solver, penalty = self.solver, self._penalty
        if isinstance(solver, Method):  # it says itself what it takes
            solver = "auto"
        if penalty.l1 and solver not in _FOR_L1:
            name = "elasticnet" if penalty.l2 else "l1"
            raise ValueError(
                f"Solver {solver} supports only 'l2' or None penalties, got {name} penalty. Use "
                "solver='auto', 'saga' or 'liblinear'."
            )
        if self.dual and solver not in _FOR_DUAL:
            raise ValueError(
                f"Solver {solver} supports only dual=False, got dual={self.dual}. Use "
                "solver='auto' or 'liblinear'."
            )
        if self.dual and penalty != L2:
            raise ValueError("dual=True is for the l2 penalty: use dual=False, or l1_ratio=0.")
        if penalty.none and solver == "liblinear":
            raise ValueError(
                "C=np.inf as well as penalty=None is not supported for the liblinear solver"
            )
        if solver != "liblinear" and self.intercept_scaling != 1:
            raise ValueError(
                f"intercept_scaling={self.intercept_scaling!r} is for solver='liblinear', which "
                "penalises the intercept; with other solvers it is free."
            )

    def _refuse_penalty(self) -> None:
        """Refuse what contradicts ``penalty``, or warn of it where scikit-learn only warns."""
        penalty, ratio = self.penalty, self.l1_ratio
        if penalty == "elasticnet" and ratio is None:
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        if self._penalty.none and self.lam is not None:
            raise ValueError("Without a penalty there is nothing for lam to weigh: leave it out.")
        if penalty is None and self.C not in (1.0, np.inf):
            message = "Setting penalty=None will ignore the C and l1_ratio parameters"
            warn(message, UserWarning)
        if penalty in ("l1", "l2") and ratio not in (0, None, int(penalty == "l1")):
            warn(f"Inconsistent values: penalty={penalty} with l1_ratio={ratio}.", UserWarning)

    def _unfinished(self) -> str:
        diverged = self.certificate_.status is Status.DIVERGED
        if self._penalty.none and not (diverged or growth(self)):
            return (
                "Without a penalty the likelihood has no maximum where the classes can be "
                "separated: longer weights are always better. These have a norm of "
                f"{np.linalg.norm(self.coef_):.3g} and stopped growing for want of digits or "
                "passes. Use penalty='l2' and a finite C; maxmargin.is_separable tells whether "
                "that is the case."
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
        values = self._values(X)
        if values.shape[1] == 1:
            return np.column_stack([expit(-values), expit(values)])
        if self._asked == _SOFTMAX:
            return softmax(values, axis=1)
        return np.exp(self.scheme_.log_probabilities(values))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
        """
        values = self._values(X)
        if values.shape[1] > 1 and self._asked != _SOFTMAX:
            return self.scheme_.log_probabilities(values)
        if values.shape[1] == 1:
            values = np.column_stack([np.zeros(len(values)), values])
        values = values - values.max(axis=1, keepdims=True)  # large ones have no digits to spare
        return values - np.logaddexp.reduce(values, axis=1)[:, None]

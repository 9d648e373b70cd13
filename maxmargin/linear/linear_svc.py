"""The linear support vector classifier: in the primal, for many rows or many features."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.evaluation import InseparableError
from maxmargin.linear.base import MULTICLASS, solver_names
from maxmargin.linear.hard_margin import hard_margin, hinged
from maxmargin.linear.risk_machine import RiskClassifier, RiskMachine
from maxmargin.linear.street import Street
from maxmargin.losses import Hinge, Loss, MarginLoss, SquaredHinge
from maxmargin.multiclass import Scheme
from maxmargin.risk import L1, L2, DirectRisk, LinearSolution, Penalty
from maxmargin.solvers import Watch

_LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}


class LinearSVC(Street, RiskClassifier):
    """Linear support vector classification.

    For labels ``y_i`` of -1 or +1 and sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i V(y_i (w . x_i + b))

    with the hinge or its square for V; for several classes, each against the rest or as
    ``multiclass`` says. The intercept is not penalised unless ``intercept_scaling`` is given.
    ``lam`` states the same problem as mean loss plus ``lam ||w||^2``, ``norm_bound`` as least loss
    with ``||w|| <= norm_bound``. ``C=numpy.inf`` is the hard margin, of both losses: the shortest
    w that leaves no row any slack.

    The direct forms for K classes, ``"crammer_singer"`` and ``"weston_watkins"``, are one problem
    for all functions ``f_k(x) = w_k . x + b_k``: with ``r_ik = 1 + f_k(x_i) - f_y(x_i)``, y being
    the row's own class and k another,

        minimise  1/2 sum_k (||w_k||^2 + b_k^2) + C sum_i s_i max(0, max_k r_ik)

    or, after Weston and Watkins, with ``sum_k max(0, r_ik)``. :class:`~maxmargin.SVC` with the
    linear kernel solves the same. The bias counts in the norm, as a weight on a column of
    ``intercept_scaling``, one by default.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ``"l1"`` is ``||w||_1`` in place of ``1/2 ||w||^2``, for the squared hinge: sparse weights.
    loss : {"squared_hinge", "hinge"} or MarginLoss, default="squared_hinge"
        By name, or a convex loss of the margin from :mod:`maxmargin.losses` or of your own, if it
        has a ``shape``.
    dual : "auto" or bool, default="auto"
        Solve the dual, row by row, or the primal; ``"auto"`` takes the primal up to 1,500 features,
        where there are more rows than features or few features.
        Where rows crawl and features are few, the primal takes over for the last half of
        ``max_iter``.
    tol : float, default=1e-4
        Relative duality gap of an answer that counts as converged.
    C : float, default=1.0
        Cost of slack. With ``numpy.inf`` no slack is allowed, weights of rows play no part unless
        they are zero, and data that cannot be separated raise
        :class:`~maxmargin.InseparableError` with a witness.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        scikit-learn's word for these two values of ``multiclass``.
    fit_intercept : bool, default=True
    intercept_scaling : float, optional
        By default the intercept has no penalty. A number is LIBLINEAR's problem: the intercept is
        a weight on a column of this number, penalised like the others. In the direct forms it
        always is, and None means one.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; ``"balanced"`` makes all classes equally heavy.
    class_weight_on : {"positive", "rows"}, default="positive"
        What they count on where there are more than two classes: ``"positive"``, as in scikit-learn
        and LIBLINEAR, the rows of a class in its own machine, where it is the positive one;
        ``"rows"``, the rows of a class in every machine. Other schemes than one-vs-rest always
        have the latter.
    verbose : bool or int, default=0
        Show a progress bar.
    random_state : int, RandomState or None, default=None
        Of the order of rows in ``"dual_descent"``.
    max_iter : int, default=1000
        Passes over the data allowed for each machine; -1 for no limit.
    lam : float, optional
        The lambda form in place of C. ``partial_fit`` is there only where it is given: a stream has
        no number of rows for C to be weighed against.
    norm_bound : float, optional
        The form with a bound on ``||w||`` in place of C (Ivanov's); ``C_`` is the one it comes to,
        and ``certificate_`` is of this problem: the sum of the losses, and a bound on it. An
        intercept that is penalised counts in the norm.
    solver : str or Method, default="auto"
        One of ``"auto"``, ``"newton"``, ``"multipliers"``, ``"dual_descent"``, ``"l1_descent"``,
        ``"sgd"`` and, for the direct forms, ``"class_descent"``, or a method of
        :mod:`maxmargin.solvers`; ``select_solver`` says what "auto" is.
        ``"newton"`` is for the squared hinge, ``"multipliers"`` for the hinge,
        ``"dual_descent"`` for sparse and wide data and both losses, ``"l1_descent"`` for the l1
        penalty; ``"sgd"`` (Pegasos) is never exact. ``solver_`` says which it was.
        Textbook methods, to compare and to watch: ``"qp"``, ``"subgradient"``.
    time_limit : float, optional
        Seconds after which the solver stops where it is.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended.
    callback : callable, optional
        Called with a :class:`~maxmargin.progress.Progress` some times a second; stops the fit by
        returning True. (scikit-learn's callbacks
        are set with ``set_callbacks``.)
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).
    multiclass : {"ovr", "ovo", "dag", "ecoc", "crammer_singer", "weston_watkins"}, optional
        How several classes are told apart, by name, by a scheme of :mod:`maxmargin.multiclass` or
        its class; by default as ``multi_class`` says. A machine that does not see all classes, as
        of a pair, has a copy of its rows. The direct forms have the l2 penalty and losses of their
        own, so that ``loss`` stays at its default or ``"hinge"``.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_machines, n_features)
        One row for each class, or for each row of ``scheme_.code``.
    intercept_ : array of shape (1,) or (n_machines,)
    scheme_ : Scheme
        How the machines make several classes.
    certificate_ : RiskCertificate
        Primal and dual objective, gap, status; the worst machine's, with ``parts`` for each. Not
        there after ``partial_fit``.
    n_iter_ : int
        Passes over the data, the most of any machine.
    C_, lam_ : arrays of shape (1,) or (n_machines,)
        Cost of a row of weight one, and what it is in the lambda form.
    margin_ : float, or array of shape (n_machines,)
        ``1 / ||w||``: the street is twice as wide.
    slack_ : array of shape (n_samples,) or (n_machines, n_samples)
        ``max(0, 1 - y_i f(x_i))`` of the training rows, of the direct forms their loss; nan for
        rows that a machine does not see, or of weight zero.
    support_ : int array of shape (n_SV,)
        Training rows beyond the street's edge or, of the hinge, on it: those that have a dual
        variable, in any machine.
    solver_, solver_why_ : str
        Methods that were taken, and why.
    t_ : int
        Rows that ``partial_fit`` has seen.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(loss="hinge").fit(X, y)
    >>> model.certificate_.converged, round(model.score(X, y), 2)
    (True, 0.96)
    >>> direct = LinearSVC(multiclass="crammer_singer").fit(X, y)
    >>> direct.certificate_.converged, direct.coef_.shape, bool(abs(direct.coef_.sum()) < 1e-9)
    (True, (3, 4), True)
    """

    _parameter_constraints: dict = {
        **RiskMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "penalty": [StrOptions({"l2", "l1"})],
        "loss": [StrOptions(set(_LOSSES)), MarginLoss],
        "dual": ["boolean", StrOptions({"auto"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "class_weight_on": [StrOptions({"positive", "rows"})],
        "solver": solver_names(
            "newton",
            "multipliers",
            "dual_descent",
            "l1_descent",
            "sgd",
            "class_descent",
            "qp",
            "subgradient",
        ),
        "multiclass": [*MULTICLASS, None],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
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
        class_weight_on: str = "positive",
        multiclass: Any = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
        self.class_weight_on = class_weight_on
        self.multiclass = multiclass

    @property
    def _loss(self) -> Loss:
        return _LOSSES[self.loss] if isinstance(self.loss, str) else self.loss

    @property
    def _penalty(self) -> Penalty:
        return L1 if self.penalty == "l1" else L2

    @property
    def _hard(self) -> bool:
        """Whether no slack is allowed."""
        return bool(np.isinf(self.C)) and self.lam is None and self.norm_bound is None

    @property
    def _cost(self) -> float:
        return 1.0 if self._hard else self.C

    def _solved(self, risk: Any, k: int, monitor: Any, cache: Any) -> tuple[Any, LinearSolution]:
        if not self._hard:
            return super()._solved(risk, k, monitor, cache)
        try:
            choice = self._choice(hinged(risk))
        except ValueError as error:
            raise ValueError(f"C=inf is found through the hinge, for any loss. {error}") from None
        monitor.fit.chosen.append(choice)
        watch = Watch(self.tol, self.max_iter, monitor)
        try:
            return risk, hard_margin(risk, choice.method, watch)
        except InseparableError as error:
            sides = [self.classes_[self.scheme_.code[k] * side > 0] for side in (1, -1)]
            names = " and ".join(" or ".join(map(str, side)) for side in sides)
            sides_and_distance = error.positive, error.negative, error.distance
            raise InseparableError(f"Classes {names}: {error}", *sides_and_distance) from None

    def _minimise(self, problems: list, caches: Any = None) -> None:
        super()._minimise(problems, caches)
        if self._hard:
            self.C_, self.lam_ = np.full(len(self.C_), np.inf), np.zeros(len(self.C_))

    @property
    def _asked(self) -> Any:
        return self.multi_class if self.multiclass is None else self.multiclass

    @property
    def _penalised_intercept(self) -> float | None:
        direct = self.intercept_scaling is None and self.scheme_.direct
        return 1.0 if direct else self.intercept_scaling

    def _refuse_scheme(self, scheme: Scheme) -> None:
        """Refuse what a direct form does not have."""
        if not scheme.direct:
            return
        if self._hard:
            raise ValueError(
                f"C=inf, the hard margin, is for machines for two classes; {scheme!r} needs a "
                "finite C: one so large that no slack is left says the same."
            )
        wants = {
            "penalty": self.penalty != "l2",
            "loss": not (isinstance(self.loss, str)),
            "dual": self.dual is False,
        }
        named = [f"{name}={getattr(self, name)!r}" for name, wanted in wants.items() if wanted]
        if named:
            raise ValueError(
                f"{scheme!r} has hinges of its own, the l2 penalty, and is solved in its dual; got "
                f"{', '.join(named)}: leave them at their defaults, or use multiclass='ovr'."
            )

    def _problems(self, X: Any, index: np.ndarray, weight: np.ndarray, factors: np.ndarray) -> list:
        scheme = self.scheme_
        if not scheme.direct:
            return super()._problems(X, index, weight, factors)
        cost = weight * factors[index]
        return [DirectRisk(self._design(X), index, scheme.n_classes, cost, scheme.summed)]

    def _refuse_contradictions(self) -> None:
        if self.multi_class != "ovr" and self.multiclass not in (None, self.multi_class):
            raise ValueError(
                f"multi_class={self.multi_class!r} and multiclass={self.multiclass!r} contradict "
                "each other: multi_class is scikit-learn's word for the same; give one of the two."
            )
        if self.penalty == "l1" and not self._loss.smooth:
            raise ValueError(
                f"penalty='l1' goes with loss='squared_hinge': the {self._loss.name} is not smooth."
            )
        if self._hard and (self.penalty == "l1" or not isinstance(self.loss, str)):
            raise ValueError(
                "C=inf, the hard margin, is the shortest w (penalty='l2') that leaves no slack to "
                f"the hinge or its square; got penalty={self.penalty!r} and loss={self.loss!r}."
            )
        if self._hard and self._inexact:
            raise ValueError(
                "C=inf has no slack to step by, and is found through exact answers: use "
                f"solver='auto'; got solver={self.solver!r}."
            )
        super()._refuse_contradictions()

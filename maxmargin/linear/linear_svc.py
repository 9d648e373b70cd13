"""The linear support vector classifier: in the primal, for many rows or many features."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import StrOptions

from maxmargin.linear.risk_machine import RiskClassifier, RiskMachine, solver_names
from maxmargin.losses import Hinge, Loss, MarginLoss, SquaredHinge
from maxmargin.risk import L1, L2, Penalty

_LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}


class LinearSVC(RiskClassifier):
    """Linear support vector classification.

    For labels ``y_i`` of -1 or +1 and sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i V(y_i (w . x_i + b))

    with the hinge or its square for V; for several classes, each against the rest. The intercept
    is not penalised unless ``intercept_scaling`` is given. ``lam`` states the same problem as mean
    loss plus ``lam ||w||^2``, ``norm_bound`` as least loss with ``||w|| <= norm_bound``.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ``"l1"`` is ``||w||_1`` in place of ``1/2 ||w||^2``, for the squared hinge: sparse weights.
    loss : {"squared_hinge", "hinge"} or MarginLoss, default="squared_hinge"
        By name, or a convex loss of the margin from :mod:`maxmargin.losses` or of your own, if it
        has a ``shape``.
    dual : "auto" or bool, default="auto"
        Solve the dual, row by row, or the primal; ``"auto"`` takes the primal up to 1,500 features.
        Where rows crawl and features are few, the primal takes over for the last half of
        ``max_iter``.
    tol : float, default=1e-4
        Relative duality gap of an answer that counts as converged.
    C : float, default=1.0
        Cost of slack.
    multi_class : {"ovr"}, default="ovr"
        Each class against the rest.
    fit_intercept : bool, default=True
    intercept_scaling : float, optional
        By default the intercept has no penalty. A number is LIBLINEAR's problem: the intercept is
        a weight on a column of this number, penalised like the others.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; ``"balanced"`` makes all classes equally heavy.
    class_weight_on : {"positive", "rows"}, default="positive"
        What they count on where there are more than two classes: ``"positive"``, as in scikit-learn
        and LIBLINEAR, the rows of a class in its own machine, where it is the positive one;
        ``"rows"``, the rows of a class in every machine.
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
        The form with a bound on ``||w||`` in place of C (Ivanov's); ``C_`` is the one it comes to.
        An intercept that is penalised counts in the norm.
    solver : str or Method, default="auto"
        One of ``"auto"``, ``"newton"``, ``"multipliers"``, ``"dual_descent"``, ``"l1_descent"`` and
        ``"sgd"``, or a method of :mod:`maxmargin.solvers`; ``select_solver`` says what "auto" is.
        ``"newton"`` is for the squared hinge, ``"multipliers"`` for the hinge,
        ``"dual_descent"`` for sparse and wide data and both losses, ``"l1_descent"`` for the l1
        penalty; ``"sgd"`` (Pegasos) is never exact. ``solver_`` says which it was.
    time_limit : float, optional
        Seconds after which the solver stops where it is.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended.
    callback : callable, optional
        Called with a :class:`~maxmargin.progress.Progress` some times a second; stops the fit by
        returning True. A :class:`~maxmargin.Trace` records every pass. (scikit-learn's callbacks
        are set with ``set_callbacks``.)

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    certificate_ : RiskCertificate
        Primal and dual objective, gap, status. Not there after ``partial_fit``.
    n_iter_ : int
        Passes over the data, the most of any machine.
    C_, lam_ : arrays of shape (1,) or (n_classes,)
        Cost of a row of weight one, and what it is in the lambda form.
    solver_ : str
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
    """

    _parameter_constraints: dict = {
        **RiskMachine._parameter_constraints,
        "penalty": [StrOptions({"l2", "l1"})],
        "loss": [StrOptions(set(_LOSSES)), MarginLoss],
        "dual": ["boolean", StrOptions({"auto"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "class_weight_on": [StrOptions({"positive", "rows"})],
        "solver": solver_names("newton", "multipliers", "dual_descent", "l1_descent", "sgd"),
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
        class_weight_on: str = "positive",
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
        self.class_weight_on = class_weight_on

    @property
    def _loss(self) -> Loss:
        return _LOSSES[self.loss] if isinstance(self.loss, str) else self.loss

    @property
    def _penalty(self) -> Penalty:
        return L1 if self.penalty == "l1" else L2

    def _refuse_contradictions(self) -> None:
        if self.multi_class == "crammer_singer":
            raise ValueError(
                "multi_class='crammer_singer' is not one problem for each class, which is what "
                "LinearSVC solves: use multi_class='ovr'."
            )
        if self.penalty == "l1" and not self._loss.smooth:
            raise ValueError(
                f"penalty='l1' goes with loss='squared_hinge': the {self._loss.name} is not smooth."
            )
        super()._refuse_contradictions()

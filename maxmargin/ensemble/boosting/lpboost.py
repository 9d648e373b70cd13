"""LPBoost: the vote of the largest soft margin, by a linear programme that grows by columns.

With weights s of the rows that sum to one and hypotheses ``h_j(x)`` of values -1 and +1,

    maximise  rho - 1/nu sum_i s_i xi_i
    subject to  y_i sum_j a_j h_j(x_i) >= rho - xi_i,   sum_j a_j = 1,   a >= 0,   xi >= 0

whose dual is a game: the distribution over the rows, nowhere above ``s_i / nu``, on which the best
hypothesis has the least edge,

    minimise  beta   subject to  sum_i u_i y_i h_j(x_i) <= beta for all j,   sum_i u_i = 1,
                                 0 <= u_i <= s_i / nu

Hypotheses are found one at a time. The programme over those so far has a value that no vote of them
exceeds, which its vote attains: a lower bound on the whole. The weak learner's best edge on its
distribution u is an upper bound, since u is feasible in the dual of all hypotheses. Where the two
meet, no hypothesis can help; a learner that is not exhaustive may miss one, and then the bound is
one for votes of what it can find. Both are recomputed from the data: the margin of any vote is

    max_rho  rho - 1/nu sum_i s_i max(0, rho - y_i f(x_i))

(the mean of the worst share nu of the margins), and u is brought into its box before its edge is
taken. At most a share nu of the rows, by weight, have a margin below rho, and at least a share nu
one of rho or less.

Reference: Demiriz, Bennett and Shawe-Taylor, Linear programming boosting via column generation,
Machine Learning 46, 2002.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval

from maxmargin.backends.threads import StoppedError
from maxmargin.ensemble.boosting.certificates import MarginCertificate
from maxmargin.ensemble.boosting.rounds import Sample
from maxmargin.ensemble.boosting.vote import WeightedVote
from maxmargin.ensemble.boosting.weak import giving_up, weak_learner
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import with_weight
from maxmargin.multiclass import read_class_weights, read_labels
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_NOTHING = 1e-9  # weight of a hypothesis, or soft margin, that is rounding


def soft_margin(margins: np.ndarray, weight: np.ndarray, nu: float) -> tuple[float, float]:
    """Return ``max_rho rho - 1/nu sum_i s_i max(0, rho - m_i)``, and the rho where it is attained.

    Parameters
    ----------
    margins, weight : float arrays of shape (n,)
        Weights are positive and have the sum one.
    nu : float
        In [0, 1]; for zero it is the least margin.

    Examples
    --------
    >>> soft_margin(np.array([0.1, 0.2, 0.6, 0.7]), np.full(4, 0.25), 0.5)
    (0.15000000000000002, 0.2)
    """
    order = np.argsort(margins, kind="stable")
    ordered, share = margins[order], np.cumsum(weight[order])
    k = min(int(np.searchsorted(share, nu * (1.0 - 1e-12))), len(ordered) - 1)
    rho = float(ordered[k])
    if nu == 0 or k == 0:
        return rho, rho
    below = weight[order[:k]] @ (rho - ordered[:k])
    return float(rho - below / nu), rho


@dataclass
class Columns:
    """What column generation has come to.

    ``hypotheses`` with their weights ``a``, the distribution ``u`` of the last programme, the soft
    margin of the vote, the least edge that was proven to be its bound, and rho.
    """

    hypotheses: list[Any] = field(default_factory=list)
    a: np.ndarray = field(default_factory=lambda: np.zeros(0))
    u: np.ndarray = field(default_factory=lambda: np.zeros(0))
    margin: float = -1.0
    bound: float = 1.0
    rho: float = -1.0
    margins_of_rounds: list[float] = field(default_factory=list)
    bounds_of_rounds: list[float] = field(default_factory=list)
    status: Status = Status.CONVERGED


@dataclass(frozen=True)
class ColumnGeneration(Method[Sample, Columns]):
    """Column generation for the largest soft margin.

    Parameters
    ----------
    nu : float
        Zero for the hard margin.
    """

    nu: float

    def accepts(self, problem: Sample) -> str | None:
        """Take two classes."""
        if problem.n_classes == 2:
            return None
        return (
            f"LPBoost is for two classes, and y has {problem.n_classes}: use "
            "SchemeClassifier(LPBoostClassifier()), or AdaBoostClassifier."
        )

    def begin(self, problem: Sample, watch: Watch) -> ColumnGenerationRun:
        """Begin with the weights of the rows as u."""
        return ColumnGenerationRun(problem, watch, self.nu)


class ColumnGenerationRun(Run):
    """Column generation at work. What is solved for is u; ``tol`` is of the gap."""

    words: ClassVar[str] = "round {steps}, soft margin {objective:.4g}, gap {gap:.2g}"

    def __init__(self, problem: Sample, watch: Watch, nu: float) -> None:
        self.problem, self.watch, self.nu = problem, watch, nu
        self.sign = np.where(problem.index == 1, 1.0, -1.0)
        self.cap = np.ones(len(self.sign)) if nu == 0 else np.minimum(problem.weight / nu, 1.0)
        self.found = Columns(u=problem.weight.copy())
        self.columns: list[np.ndarray] = []  # y_i h_j(x_i)

    def steps(self) -> Generator[None, None, None]:
        """Ask for the best hypothesis on u, and solve the programme with it."""
        found, problem = self.found, self.problem
        while True:
            seed = int(problem.seeds[self.n_iter])
            stopped = giving_up(self.watch, bool(self.columns))
            try:
                hypothesis, predicted = problem.learner.learn(found.u, seed, stopped)
            except StoppedError:
                self.status = self.watch.stopped() or Status.INTERRUPTED
                return
            column = np.where(predicted == problem.index, 1.0, -1.0)
            edges = found.u @ np.column_stack([*self.columns, column])
            found.bound = min(found.bound, float(edges.max()))
            if self.columns and found.bound - found.margin <= self.watch.tol:
                self._account()
                return
            if edges[-1] <= _NOTHING or edges[-1] <= edges[:-1].max(initial=-1.0):
                self.status = Status.STALLED if self.columns else Status.NO_EDGE
                return
            found.hypotheses.append(hypothesis)
            self.columns.append(column)
            self._solve()
            self._account()
            self.n_iter += 1
            if found.bound - found.margin <= self.watch.tol:
                return
            yield

    def _account(self) -> None:
        self.found.margins_of_rounds.append(self.found.margin)
        self.found.bounds_of_rounds.append(self.found.bound)

    def _solve(self) -> None:
        """Solve the programme over the hypotheses so far, as the game of u; a are its prices."""
        found, n, m = self.found, len(self.sign), len(self.columns)
        table = np.column_stack([np.array(self.columns), -np.ones(m)])
        cost = np.zeros(n + 1)
        cost[n] = 1.0
        ends = [*((0.0, c) for c in self.cap), (-1.0, 1.0)]
        answer = linprog(
            cost,
            A_ub=table,
            b_ub=np.zeros(m),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            bounds=ends,
            method="highs",
        )
        if answer.x is None:
            raise RuntimeError(f"HiGHS has not solved the programme of LPBoost: {answer.message}")
        found.u = self._feasible(answer.x[:n])
        a = np.maximum(-answer.ineqlin.marginals, 0.0)
        a = a / a.sum() if a.sum() > _NOTHING else np.full(m, 1.0 / m)
        margin, rho = soft_margin(a @ np.array(self.columns), self.problem.weight, self.nu)
        if margin >= found.margin or len(found.a) == 0:
            found.a, found.margin, found.rho = a, margin, rho
        else:  # rounding: the vote before is still one of these hypotheses
            found.a = np.append(found.a, 0.0)

    def _feasible(self, u: np.ndarray) -> np.ndarray:
        """Bring a distribution into its box to all digits."""
        u = np.clip(u, 0.0, self.cap)
        missing = 1.0 - u.sum()
        room = self.cap - u if missing > 0 else u
        total = room.sum()
        if total > 0:
            u = u + missing / total * room
        return np.clip(u, 0.0, self.cap)

    @property
    def usable(self) -> bool:
        """Whether a round was made."""
        return bool(self.found.hypotheses)

    @property
    def variables(self) -> np.ndarray:
        """The distribution over the rows."""
        return self.found.u

    def measure(self) -> Measure:
        """Soft margin, bound and gap."""
        gap = max(self.found.bound - self.found.margin, 0.0)
        return Measure(gap, self.found.margin, self.found.bound, gap)

    def solution(self, status: Status) -> Columns:
        """Return the vote."""
        found = self.found
        found.status = status
        if status is Status.CONVERGED and found.margin <= max(_NOTHING, self.watch.tol):
            found.status = Status.TRIVIAL
        return found


class LPBoostClassifier(WeightedVote):
    """LPBoost: the vote of the largest soft margin, with a proof that it is.

        maximise  rho - 1/nu sum_i s_i xi_i   subject to  y_i f(x_i) >= rho - xi_i,  f a vote

    over all weighted votes f of the weak learner's hypotheses, for two classes. It is to AdaBoost
    what the answer is to a descent, and to the support vector machine what the l1 norm of the
    weights is to their l2 norm.

    Parameters
    ----------
    estimator : classifier, optional
        The weak learner, as in :class:`AdaBoostClassifier`; by default :class:`DecisionStump`,
        which finds the best hypothesis there is, so that the certificate is of all of them.
    nu : float, default=0.1
        Share of the rows, by weight, whose margins may be below rho; zero for the hard margin, the
        largest least margin.
    n_estimators : int, default=1000
        Limit on the rounds, each a hypothesis and a linear programme.
    tol : float, default=1e-6
        Gap of soft margins at which the rounds end.
    random_state : int, RandomState or None, default=None
        Of weak learners that draw at random.
    n_jobs : int, optional
        Threads for coding the columns and for prediction with stumps and trees.
    verbose, time_limit, callback, trace
        As in :class:`AdaBoostClassifier`. In a trace the objective is the soft margin, the dual its
        bound, the variables are the distribution over the rows.

    Attributes
    ----------
    estimators_ : list of classifiers
        Hypotheses with a positive weight.
    estimator_weights_ : array of shape (n_hypotheses,)
        Their weights, of sum one.
    soft_margin_, rho_ : float
        The value of the programme, and the margin that rows have but for slack.
    D_ : array of shape (1, n_samples)
        The distribution over the rows on which the best hypothesis has the least edge: the
        multipliers of the rows. Rows with a margin above rho have zero.
    margin_path_, bound_path_ : arrays of shape (n_rounds,)
        Soft margin and its bound after each round.
    status_ : Status
    certificate_ : MarginCertificate
    classes_ : array of shape (2,)
    n_iter_ : int
        Rounds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Demiriz, Bennett and Shawe-Taylor, Linear programming boosting via column generation, Machine
    Learning 46, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import LPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LPBoostClassifier(nu=0.2).fit(X, y)
    >>> print(model.certificate_)
    converged: the largest soft margin of all votes, to a gap of ...
      soft margin     ...
      bound           ...
      gap             ... (tol 1e-06)
      hypotheses      ...
      weak learner    exhaustive
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "nu": [Interval(Real, 0.0, 1.0, closed="both")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "tol": [POSITIVE],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        **WATCHED,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        nu: float = 0.1,
        n_estimators: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.estimator = estimator
        self.nu = nu
        self.n_estimators = n_estimators
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LPBoostClassifier:
        """Find the vote.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : LPBoostClassifier
        """
        X, y = self._validated(X, y)
        classes, index = read_labels(y)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"y has {len(classes)} classes. Use SchemeClassifier(LPBoostClassifier()), or "
                "AdaBoostClassifier."
            )
        weight = self._validated_weight(sample_weight, X)
        read_class_weights(None, classes, index, weight)  # refuses classes without weight
        used = np.flatnonzero(weight)
        X, weight, index = with_weight(X, weight, index)
        with self._watched() as monitor:
            seeds = check_random_state(self.random_state).randint(1 << 31, size=self.n_estimators)
            workers = self._workers(float(X.shape[0]) * X.shape[1])
            learner = weak_learner(self.estimator, X, index, classes, workers)
            sample = Sample(learner, index, len(classes), weight / weight.sum(), seeds)
            watch = Watch(self.tol, self.n_estimators, ProblemMonitor(monitor))
            found: Columns = ColumnGeneration(self.nu).solve(sample, watch)
            if not found.hypotheses:
                raise ValueError(
                    "The weak learner is no better than chance on these data: no hypothesis has a "
                    "positive edge. Take a richer one, such as "
                    "DecisionTreeClassifier(max_depth=2)."
                )
            self._keep(found, classes, used, len(y), learner.exhaustive)
            monitor.end(str(self.certificate_).partition("\n")[0], self.certificate_.converged)
        if not self.status_.finished:
            advice = self.status_.advice_for("lpboost")
            gap, params = self.certificate_.gap, self.get_params(deep=False)
            warn(advice.format(**{**params, "gap": gap, "time_limit": self.time_limit or 0.0}))
        return self

    def _keep(
        self, found: Columns, classes: np.ndarray, used: np.ndarray, n: int, exhaustive: bool
    ) -> None:
        chosen = np.flatnonzero(found.a > _NOTHING)
        self.classes_ = classes
        self.estimators_ = [found.hypotheses[j] for j in chosen]
        self.estimator_weights_ = found.a[chosen] / found.a[chosen].sum()
        self.soft_margin_, self.rho_ = found.margin, found.rho
        self.D_ = np.zeros((1, n))
        self.D_[0, used] = found.u
        self.margin_path_ = np.array(found.margins_of_rounds)
        self.bound_path_ = np.array(found.bounds_of_rounds)
        self.n_iter_ = len(found.hypotheses)
        self.status_ = found.status
        self.certificate_ = MarginCertificate(
            status=found.status,
            tol=self.tol,
            margin=found.margin,
            bound=found.bound,
            exhaustive=exhaustive,
            hypotheses=len(chosen),
        )

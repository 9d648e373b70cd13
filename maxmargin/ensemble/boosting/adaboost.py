"""AdaBoost: hypotheses that each make up for the mistakes of those before, in a weighted vote.

The algorithm and its bound are at the top of :mod:`maxmargin.ensemble.boosting.rounds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.ensemble.boosting.certificates import BoostingCertificate
from maxmargin.ensemble.boosting.rounds import AdaBoost, Rounds, Sample
from maxmargin.ensemble.boosting.stump import DecisionStump
from maxmargin.ensemble.boosting.vote import StagedVote
from maxmargin.ensemble.boosting.weak import class_index, weak_learner
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import with_weight
from maxmargin.multiclass import read_class_weights, read_labels
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solvers.driver import Watch, drive

_KEPT = 1 << 22  # entries of distributions that are kept without being asked for: 32 MB


class TrainingBounds(NamedTuple):
    """The training error after each round, and what it is at most.

    ``error`` is the share of misclassified rows, by the weights of the rows; ``product`` is
    ``prod_s Z_s``, the mean exponential loss. For two classes and ``learning_rate=1`` there are
    ``exponential``, ``exp(-2 sum_s (1/2 - e_s)^2)``, and ``uniform``, ``exp(-2 gamma^2 t)`` with
    gamma the least ``1/2 - e_s`` so far; otherwise these are None. Each is at most the next.
    """

    error: np.ndarray
    product: np.ndarray
    exponential: np.ndarray | None
    uniform: np.ndarray | None


class AdaBoostClassifier(StagedVote):
    """AdaBoost: a weighted vote of weak classifiers, each trained on the mistakes of the others.

    Every round asks the weak learner for a hypothesis for the distribution D_t over the rows, gives
    it the weight alpha_t in the vote, and makes the rows that it misclassifies heavier,

        e_t = D_t[h_t(x) != y],   alpha_t = 1/2 log((1 - e_t) / e_t) + 1/2 log(K - 1)
        D_t+1(i) = D_t(i) exp(-alpha_t or +alpha_t) / Z_t

    for K classes: the lecture's algorithm for two, SAMME for more. The training error is at most
    ``prod_t Z_t``. A hypothesis without an error would have an infinite weight: the rounds end, and
    it decides alone. They end, too, when none is better than chance, ``e_t >= 1 - 1/K``.

    Parameters
    ----------
    estimator : classifier, optional
        The weak learner; by default :class:`DecisionStump`. Stumps and trees of this package code
        the columns once for all rounds. Others are fitted with the weights ``n D_t``, of mean one,
        or, if they take no weights, to n rows drawn from D_t.
    n_estimators : int, default=50
        Rounds.
    learning_rate : float, default=1.0
        Factor of every alpha_t.
    store_distributions : bool or "auto", default="auto"
        Whether ``D_`` has the distributions of all rounds, or only the last. By default all up to
        32 MB.
    random_state : int, RandomState or None, default=None
        Of weak learners that draw at random, and of samples.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, of the same data, to ``n_estimators`` of them; the
        answer is that of one fit.
    n_jobs : int, optional
        Threads for coding the columns and for prediction with stumps and trees. Rounds come one
        after the other. The answer does not depend on it.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which no further round is begun. There is always one.
    callback : callable, optional
        Called some times a second with a :class:`~maxmargin.progress.Progress`; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every round in ``trace_``: its objective is the mean exponential loss, its violation
        the training error, its variables the alphas.

    Attributes
    ----------
    estimators_ : list of classifiers
        The hypotheses.
    estimator_weights_ : array of shape (n_rounds,)
        alpha_t; infinite for a hypothesis without an error. scikit-learn has twice that.
    estimator_errors_ : array of shape (n_rounds,)
        e_t.
    normalisers_ : array of shape (n_rounds,)
        Z_t, for two classes ``2 sqrt(e_t (1 - e_t))``.
    train_errors_ : array of shape (n_rounds,)
        Training error of the vote after each round.
    D_ : array of shape (n_rounds + 1, n_samples) or (1, n_samples)
        D_1 to the one for a next round, or that alone; rows of weight zero have zero. After a
        hypothesis without an error there is no next one.
    minimum_margin_ : float
        Least margin of a training row.
    status_ : Status
        Why the rounds ended: ``"completed"``, ``"perfect"``, ``"no_edge"``, or early.
    certificate_ : BoostingCertificate
    feature_importances_ : array of shape (n_features,)
        Mean importance of the columns in the hypotheses, by their weights; where these have one.
    estimator_ : classifier
        The weak learner.
    classes_ : array of shape (n_classes,)
    n_classes_ : int
    n_iter_ : int
        Rounds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Freund and Schapire, A decision-theoretic generalization of on-line learning and an application
    to boosting, JCSS 55, 1997. Zhu, Zou, Rosset and Hastie, Multi-class AdaBoost, Statistics and
    Its Interface 2, 2009.

    Examples
    --------
    >>> from maxmargin import AdaBoostClassifier
    >>> X = [[1, 4], [2, 2], [5, 10], [7, 8], [8, 7], [3, 6], [4, 5], [6, 3], [9, 9], [10, 1]]
    >>> y = ["+"] * 5 + ["-"] * 5
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> model.estimator_errors_.round(2), model.estimator_weights_.round(2)
    (array([0.3 , 0.21, 0.14]), array([0.42, 0.65, 0.92]))
    >>> [stump.rule for stump in model.estimators_]
    ['x0 > 2.5: -, else +', 'x0 > 8.5: -, else +', 'x1 > 6.5: +, else -']
    >>> model.score(X, y), model.bounds().product.round(2)
    (1.0, array([0.92, 0.75, 0.52]))
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [POSITIVE],
        "store_distributions": ["boolean", StrOptions({"auto"})],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        **WATCHED,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        store_distributions: bool | str = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.store_distributions = store_distributions
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    @_fit_context(prefer_skip_nested_validation=False)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostClassifier:
        """Make the rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: D_1 is in proportion to them.

        Returns
        -------
        self : AdaBoostClassifier
        """
        X, y = self._validated(X, y)
        classes, index = read_labels(y, at_least=1)
        weight = self._validated_weight(sample_weight, X)
        read_class_weights(None, classes, index, weight)  # refuses classes without weight
        used = np.flatnonzero(weight)
        X, weight, index = with_weight(X, weight, index)
        known = self._known(classes, used, len(y))
        with self._watched() as monitor:
            seeds = check_random_state(self.random_state).randint(1 << 31, size=self.n_estimators)
            entries = float(X.shape[0]) * X.shape[1]
            learner = weak_learner(self.estimator, X, index, classes, self._workers(entries))
            sample = Sample(learner, index, len(classes), weight / weight.sum(), seeds)
            answers = self._answers(X, classes) if known else iter(())
            made = self._made(sample, monitor, known, answers, self._keeps(len(index)))
            self._keep(made, classes, used, len(y))
            monitor.end(str(self.certificate_).partition("\n")[0], self.status_.finished)
        self._warn_of_stop()
        return self

    def _made(
        self, sample: Any, monitor: Monitor, known: Rounds | None, answers: Any, keep: bool
    ) -> Rounds:
        """Make the rounds on a sample, wherever its rows lie."""
        method = AdaBoost(self.n_estimators, self.learning_rate, keep)
        watch = Watch(tol=0.0, monitor=ProblemMonitor(monitor))
        made = drive(method.begin(sample, watch, known, answers), watch)
        if not made.hypotheses:
            raise ValueError(self._no_edge(sample.n_classes))
        return made

    def _warn_of_stop(self) -> None:
        if not self.status_.finished:
            advice = self.status_.advice_for("boosting")
            said = {"time_limit": self.time_limit or 0.0, "n_estimators": self.n_estimators}
            warn(advice.format(**said, rounds=self.n_iter_))

    def _known(self, classes: np.ndarray, used: Any, n: int) -> Rounds | None:
        """Return the rounds of the last fit, to go on from."""
        if not self.warm_start or not hasattr(self, "estimators_"):
            return None
        made = len(self.estimators_)
        if self.n_estimators < made:
            raise ValueError(
                f"n_estimators={self.n_estimators} is fewer than the {made} rounds that were made, "
                "and warm_start=True goes on from these: raise it, or set warm_start=False."
            )
        first, now = self.estimators_[0], self.n_features_in_
        same = np.array_equal(classes, self.classes_) and self.D_.shape[1] == n
        if not same or getattr(first, "n_features_in_", now) != now:
            raise ValueError(
                "warm_start=True goes on with the rows of the last fit, and these are others: it "
                f"had {self.D_.shape[1]} rows of {getattr(first, 'n_features_in_', now)} features "
                f"and the classes {self.classes_.tolist()}. Set warm_start=False to begin anew."
            )
        return Rounds(
            hypotheses=list(self.estimators_),
            alphas=self.estimator_weights_.tolist(),
            errors=self.estimator_errors_.tolist(),
            normalisers=self.normalisers_.tolist(),
            train_errors=self.train_errors_.tolist(),
            distributions=[self.D_[-1][used]],
        )

    def _answers(self, X: Any, classes: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what the hypotheses so far say of the rows of X."""
        for hypothesis in self.estimators_:
            yield class_index(hypothesis, X, classes)

    def _keeps(self, n: int) -> bool:
        if self.store_distributions == "auto":
            return n * (self.n_estimators + 1) <= _KEPT
        return bool(self.store_distributions)

    def _no_edge(self, n_classes: int) -> str:
        """Say why there is not one hypothesis."""
        name = "DecisionStump" if self.estimator is None else type(self.estimator).__name__
        return (
            f"The weak learner ({name}) is no better than chance on these data, or worse than "
            f"random: in the first round its error is not below 1 - 1/{n_classes} of the weight, "
            "so that there is nothing to boost. Take a richer one, such as "
            "DecisionTreeClassifier(max_depth=2)."
        )

    def _keep(self, made: Rounds, classes: np.ndarray, used: Any, n: int) -> None:
        self.classes_, self.estimators_ = classes, made.hypotheses
        self.estimator_ = DecisionStump() if self.estimator is None else self.estimator
        self.n_classes_ = len(classes)
        self.estimator_weights_ = np.array(made.alphas)
        self.estimator_errors_ = np.array(made.errors)
        self.normalisers_ = np.array(made.normalisers)
        self.train_errors_ = np.array(made.train_errors)
        self.D_ = np.zeros((len(made.distributions), n))
        self.D_[:, used] = made.distributions
        self.minimum_margin_ = made.minimum_margin
        self.n_iter_ = len(made.hypotheses)
        self.status_ = made.status
        self.certificate_ = BoostingCertificate(
            status=made.status,
            tol=0.0,
            rounds=self.n_iter_,
            train_error=made.train_errors[-1],
            bound=made.bound,
            minimum_margin=made.minimum_margin,
        )

    def bounds(self) -> TrainingBounds:
        """Return the training error after each round, and the theorem's bounds on it.

        Returns
        -------
        bounds : TrainingBounds
            Arrays of shape (n_rounds,), each at most the next.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore"):  # status_ says that the rounds diverged
            product = np.cumprod(self.normalisers_)
        if len(self.classes_) > 2 or self.learning_rate != 1:
            return TrainingBounds(self.train_errors_, product, None, None)
        edge = 0.5 - self.estimator_errors_
        gamma, rounds = np.minimum.accumulate(edge), np.arange(1, len(edge) + 1)
        exponential = np.exp(-2.0 * np.cumsum(edge**2))
        return TrainingBounds(
            self.train_errors_, product, exponential, np.exp(-2.0 * gamma**2 * rounds)
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class by the link of the exponential loss.

            p_k(x)  proportional to  exp(2 sum of alpha_t over the votes for k)

        which is where the expected loss is least; for two classes ``1 / (1 + exp(-2 g(x)))`` with
        ``g = sum_t alpha_t h_t``. After many rounds it is far too sure: margins grow without end.
        scikit-learn's ``CalibratedClassifierCV`` makes better ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        total = np.inf if np.isinf(self.estimator_weights_).any() else self.estimator_weights_.sum()
        return _linked(self._votes(self._validated_points(X), self._shares()), total)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`predict_proba` after each round."""
        check_is_fitted(self)
        totals = np.cumsum(self.estimator_weights_)
        for votes, total in zip(self._staged_votes(self._validated_points(X)), totals, strict=True):
            yield _linked(votes, total)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean importance of the columns in the hypotheses, by their weights in the vote."""
        check_is_fitted(self)
        try:
            each = [hypothesis.feature_importances_ for hypothesis in self.estimators_]
        except AttributeError as error:
            raise AttributeError(
                "Unable to compute feature importances since estimator does not have a "
                "feature_importances_ attribute"
            ) from error
        return self._shares() @ np.array(each)


def _linked(votes: np.ndarray, total: float) -> np.ndarray:
    """Probabilities in proportion to ``exp(2 total votes)``, of votes whose sum is one."""
    behind = votes - votes.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        p = np.where(behind < 0, np.exp(2.0 * total * behind), 1.0)
    return p / p.sum(axis=1, keepdims=True)

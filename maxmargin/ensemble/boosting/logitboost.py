"""LogitBoost and GentleBoost: boosting that does not run after wrong labels.

The algorithm is at the top of :mod:`maxmargin.ensemble.boosting.newton`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import Workers
from maxmargin.ensemble.boosting.certificates import BoostingCertificate
from maxmargin.ensemble.boosting.newton import NewtonBoosting, Steps, Targets
from maxmargin.ensemble.learners import (
    may_be,
    member_of,
    refuse_wrong_parameters,
    takes_weights,
)
from maxmargin.ensemble.trees import BinnedColumns, DecisionTreeRegressor
from maxmargin.ensemble.trees.growth import Target
from maxmargin.estimators.base import WATCHED, Estimator
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import takes_collections
from maxmargin.estimators.parameters import POSITIVE, available_where
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import with_weight
from maxmargin.losses import Exponential, Logistic, MarginLoss
from maxmargin.multiclass import read_class_weights, read_labels
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solvers.driver import Watch

_LOSSES = {"logistic": Logistic(), "exponential": Exponential()}
_OWN_LIMITS = ("time_limit", "callback")


class _Trees:
    """Regression trees of this package, grown from columns that are coded once."""

    def __init__(self, prototype: DecisionTreeRegressor, X: Any, workers: Workers) -> None:
        self.prototype = prototype
        columns = BinnedColumns.of(X, prototype.max_bins, workers)
        self.grower = clone(prototype)._grower(columns, np.zeros(X.shape[0]))

    def learn(
        self, z: np.ndarray, w: np.ndarray, seed: int, stopped: Callable[[], Any]
    ) -> tuple[Any, np.ndarray]:
        tree = clone(self.prototype)
        tree.n_outputs_ = 1
        self.grower.target = Target.of_values(z, self.grower.target.criterion)
        leaves = tree._grown_on_all(self.grower, w * (len(w) / w.sum()), seed, stopped)
        return tree, tree.tree_.values_at(leaves)[:, 0]


class _Refitted:
    """Any regressor that takes weights, fitted anew."""

    def __init__(self, prototype: Any, X: Any) -> None:
        self.prototype, self.X = prototype, X

    def learn(
        self, z: np.ndarray, w: np.ndarray, seed: int, stopped: Callable[[], Any]
    ) -> tuple[Any, np.ndarray]:
        stopped()
        model = member_of(self.prototype, seed)
        model.fit(self.X, z, sample_weight=w * (len(w) / w.sum()))
        return model, np.asarray(model.predict(self.X), dtype=np.float64)


def is_own_tree(prototype: Any) -> bool:
    """Whether a regressor is a tree of this package that needs nothing of its own."""
    own = any(getattr(prototype, name, None) is not None for name in _OWN_LIMITS)
    signed = getattr(prototype, "criterion", None) != "poisson"  # as steps are
    return type(prototype) is DecisionTreeRegressor and signed and not own


class LogitBoostClassifier(ClassifierMixin, Estimator):
    """LogitBoost: additive logistic regression, by Newton steps of weighted regressions.

        minimise  sum_i s_i log(1 + exp(-y_i F(x_i))),   F(x) = sum_t f_t(x)

    one regression f_t a round, fitted to the Newton steps of the rows. With the exponential loss it
    is GentleBoost. A row on its wrong side pulls with ``|V'(u)|``, at most one for the logistic
    loss: wrong labels take the fit over less than AdaBoost's.

    Parameters
    ----------
    estimator : regressor, optional
        Fitted to the steps with weights; by default ``DecisionTreeRegressor(max_depth=1)``, whose
        columns are coded once, as those of every tree of this package.
    loss : {"logistic", "exponential"} or MarginLoss, default="logistic"
        Smooth and convex. More than two classes have the logistic loss only, with one function for
        each class.
    n_estimators : int, default=100
        Rounds.
    learning_rate : float, default=0.1
        Factor of every step. The paper has one; with wrong labels short steps are better, see
        docs/ensembles.md.
    largest_step : float, default=4.0
        Of a single row: where the curvature is so small that its Newton step would be longer, it
        is taken to be larger.
    random_state : int, RandomState or None, default=None
        Of regressors that draw at random.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, of the same data, to ``n_estimators`` of them.
    n_jobs : int, optional
        Threads for coding the columns. The answer does not depend on it.
    verbose, time_limit, callback, trace
        As in :class:`AdaBoostClassifier`; the objective of a trace is the mean loss.

    Attributes
    ----------
    estimators_ : list of lists of regressors
        For each round one, or one for each class.
    estimator_weights_ : array of shape (n_rounds,)
        How far each step was taken: ``learning_rate``, or less where that did not lower the loss.
    train_losses_, train_errors_ : arrays of shape (n_rounds,)
        Mean loss and training error after each round.
    D_ : array of shape (1, n_samples)
        How hard each row pulls in the end, ``s_i |V'(u_i)|``, of sum one: AdaBoost's last
        distribution if the loss is exponential.
    status_ : Status
    certificate_ : BoostingCertificate
        The training error is at most the mean loss over ``V(0)``.
    classes_ : array of shape (n_classes,)
    n_iter_ : int
        Rounds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Friedman, Hastie and Tibshirani, Additive logistic regression: a statistical view of boosting,
    Annals of Statistics 28, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import LogitBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogitBoostClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "loss": [StrOptions(set(_LOSSES)), MarginLoss],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [POSITIVE],
        "largest_step": [POSITIVE],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        **WATCHED,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: str | MarginLoss = "logistic",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        largest_step: float = 4.0,
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.largest_step = largest_step
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogitBoostClassifier:
        """Make the rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : LogitBoostClassifier
        """
        X, y = self._validated(X, y)
        classes, index = read_labels(y)
        weight = self._validated_weight(sample_weight, X)
        read_class_weights(None, classes, index, weight)  # refuses classes without weight
        used = np.flatnonzero(weight)
        X, weight, index = with_weight(X, weight, index)
        known = self._known(classes, X.shape[1])
        steps = None if known is None else (known, self._last(X))
        with self._watched() as monitor:
            seeds = check_random_state(self.random_state).randint(1 << 31, size=self.n_estimators)
            learner = self._regressions(X)
            targets = Targets(learner, index, len(classes), weight / weight.sum(), seeds)
            made = self._made(targets, monitor, steps)
            self._keep(made, classes, used, len(y))
            monitor.end(str(self.certificate_).partition("\n")[0], self.status_.finished)
        self._warn_of_stop()
        return self

    def _margin_loss(self) -> MarginLoss:
        return _LOSSES[self.loss] if isinstance(self.loss, str) else self.loss

    def _made(self, targets: Any, monitor: Monitor, known: tuple[Steps, Any] | None) -> Steps:
        """Make the rounds, wherever the rows lie."""
        how = self.n_estimators, self.learning_rate, self.largest_step
        watch = Watch(tol=0.0, monitor=ProblemMonitor(monitor))
        made = NewtonBoosting(self._margin_loss(), *how).solve(targets, watch, known=known)
        if not made.regressions:
            raise ValueError(
                "The regressor tells the classes apart no better than chance: in the first "
                "round no step lowers the mean loss. Take a richer one, such as "
                "DecisionTreeRegressor(max_depth=2)."
            )
        return made

    def _warn_of_stop(self) -> None:
        if self.status_.stopped:
            advice = self.status_.advice_for("boosting")
            said = {"time_limit": self.time_limit or 0.0, "n_estimators": self.n_estimators}
            warn(advice.format(**said, rounds=self.n_iter_))

    def _prototype(self) -> Any:
        """Return the regressor, checked."""
        prototype = self.estimator
        prototype = DecisionTreeRegressor(max_depth=1) if prototype is None else prototype
        if not may_be(prototype, "regressor"):
            raise ValueError(
                f"LogitBoost fits regressions, and {type(prototype).__name__} is no regressor: "
                "take one, such as DecisionTreeRegressor(max_depth=2)."
            )
        refuse_wrong_parameters(prototype)
        return prototype

    def _regressions(self, X: Any) -> _Trees | _Refitted:
        prototype = self._prototype()
        if is_own_tree(prototype):
            return _Trees(prototype, X, self._workers(float(X.shape[0]) * X.shape[1]))
        if not takes_weights(prototype):
            raise ValueError(
                f"LogitBoost fits regressions to weighted rows, and {type(prototype).__name__} "
                "takes no sample_weight: take another regressor, such as DecisionTreeRegressor."
            )
        return _Refitted(prototype, X)

    def _known(self, classes: np.ndarray, n_features: int) -> Steps | None:
        """Return the steps of the last fit, to go on from."""
        if not self.warm_start or not hasattr(self, "estimators_"):
            return None
        made = len(self.estimators_)
        if self.n_estimators < made:
            raise ValueError(
                f"n_estimators={self.n_estimators} is fewer than the {made} rounds that were made, "
                "and warm_start=True goes on from these: raise it, or set warm_start=False."
            )
        columns = getattr(self.estimators_[0][0], "n_features_in_", n_features)
        if not np.array_equal(classes, self.classes_) or columns != n_features:
            raise ValueError(
                f"warm_start=True goes on with the rows of the last fit, of {columns} features and "
                f"the classes {self.classes_.tolist()}. Set warm_start=False to begin anew."
            )
        return Steps(
            regressions=list(self.estimators_),
            sizes=self.estimator_weights_.tolist(),
            losses=self.train_losses_.tolist(),
            train_errors=self.train_errors_.tolist(),
        )

    def _last(self, X: Any) -> np.ndarray:
        """F after all rounds, at rows that were checked."""
        for F in self._staged(X):
            last = F
        return last

    def _keep(self, made: Steps, classes: np.ndarray, used: Any, n: int) -> None:
        unit = float(self._margin_loss().value(np.zeros(1))[0])
        self.classes_, self.estimators_ = classes, made.regressions
        self.estimator_weights_ = np.array(made.sizes)
        self.train_losses_ = np.array(made.losses)
        self.train_errors_ = np.array(made.train_errors)
        self.D_ = np.zeros((1, n))
        self.D_[0, used] = made.pull
        self.n_iter_ = len(made.regressions)
        self.status_ = made.status
        self.certificate_ = BoostingCertificate(
            status=made.status,
            tol=0.0,
            rounds=self.n_iter_,
            train_error=made.train_errors[-1],
            bound=made.losses[-1] / (np.log(2.0) if len(classes) > 2 else unit),
        )

    # -- values --------------------------------------------------------------------------------

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        """Yield F after each round, at rows that were checked."""
        K = len(self.classes_)
        F = np.zeros((X.shape[0], K) if K > 2 else X.shape[0])
        for models, size in zip(self.estimators_, self.estimator_weights_, strict=True):
            values = [_value(model, X) for model in models]
            if K > 2:
                table = np.stack(values, axis=1)
                F = F + size * ((K - 1.0) / K * (table - table.mean(axis=1, keepdims=True)))
            else:
                F = F + size * values[0]
            yield F

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`decision_function` after each round."""
        check_is_fitted(self)
        yield from self._staged(self._validated_points(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`predict` after each round."""
        for F in self.staged_decision_function(X):
            yield self._decided(F)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the accuracy after each round."""
        for labels in self.staged_predict(X):
            yield accuracy_score(y, labels, sample_weight=sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return F, for two classes of shape (n_samples,), for more (n_samples, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        """
        for F in self.staged_decision_function(X):
            last = F
        return last

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return self._decided(self.decision_function(X))

    def _decided(self, F: np.ndarray) -> np.ndarray:
        return self.classes_[F.argmax(axis=1) if F.ndim > 1 else (F > 0).astype(np.intp)]

    def _has_link(self) -> None:
        name = getattr(self.loss, "name", self.loss)
        if name not in _LOSSES:
            raise AttributeError(
                f"The {name} loss has no link to probabilities: take loss='logistic'."
            )

    @available_where(_has_link)
    @takes_collections
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        For the logistic loss ``1 / (1 + exp(-F))``, for the exponential one ``1 / (1 + exp(-2F))``;
        for several classes in proportion to ``exp(F_k)``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        F = self.decision_function(X)
        if F.ndim > 1:
            return softmax(F, axis=1)
        p = expit(F * (2.0 if getattr(self.loss, "name", self.loss) == "exponential" else 1.0))
        return np.stack([1.0 - p, p], axis=1)


def _value(model: Any, X: Any) -> np.ndarray:
    """Value of a regression at rows that were checked."""
    if type(model) is DecisionTreeRegressor:
        return model.tree_.values_at(model.tree_.apply(X))[:, 0]
    return np.asarray(model.predict(X), dtype=np.float64)

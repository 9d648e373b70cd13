"""A weighted vote of classifiers: its value, stage by stage, and its margins.

    f(x) = sum_t c_t h_t(x),   c_t = alpha_t / sum_s alpha_s

with ``h_t(x)`` of values -1 and +1 for two classes, so that ``y f(x)``, between -1 and 1, is the
margin of a row: the weight of the votes for its class less that of the votes against it. With more
classes it is the weight of the votes for its class less the largest weight that another has.

References: seed 000; Schapire, Freund, Bartlett and Lee, Boosting the margin: a new explanation for
the effectiveness of voting methods, Annals of Statistics 26, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import ALONE
from maxmargin.bounds import Bound, margin_bound
from maxmargin.ensemble.boosting.capacity import capacity
from maxmargin.ensemble.boosting.stump import DecisionStump
from maxmargin.ensemble.boosting.weak import OWN, class_index
from maxmargin.ensemble.learners import HasMembers
from maxmargin.estimators.base import Estimator

_BLOCK = 1 << 16  # rows that all hypotheses judge before the next ones


class WeightedVote(HasMembers, ClassifierMixin, Estimator):
    """A classifier that counts the weighted votes of others."""

    estimator: Any
    estimators_: list[Any]
    estimator_weights_: np.ndarray
    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- votes ---------------------------------------------------------------------------------

    def _shares(self, n_rounds: int | None = None) -> np.ndarray:
        """Weights of the first hypotheses in their vote, of sum one; an infinite one is alone."""
        alphas = self.estimator_weights_[:n_rounds]
        alone = np.isinf(alphas)
        return alone.astype(np.float64) if alone.any() else alphas / alphas.sum()

    def _votes(self, X: Any, shares: np.ndarray) -> np.ndarray:
        """Weight of the votes for each class at rows that were checked, (n, n_classes)."""
        n = X.shape[0]
        quick = all(type(one) in OWN for one in self.estimators_)  # others may have own threads
        workers = self._workers(float(n) * len(shares)) if quick else ALONE
        starts = range(0, n, max(min(_BLOCK, -(-n // workers.count)), 1)) if quick else [0]
        ends = [*starts[1:], n]
        parts = workers.map(
            lambda rows: self._counted(X[rows], shares),
            [slice(a, b) for a, b in zip(starts, ends, strict=True)],
        )
        return np.concatenate(parts)

    def _counted(self, X: Any, shares: np.ndarray) -> np.ndarray:
        votes = np.zeros((X.shape[0], len(self.classes_)))
        rows = np.arange(X.shape[0])
        for hypothesis, share in zip(self.estimators_, shares, strict=False):
            if share:
                votes[rows, class_index(hypothesis, X, self.classes_)] += share
        return votes

    def _values(self, votes: np.ndarray) -> np.ndarray:
        """Values of the classes, of votes whose weights sum to one; of two, that of the second."""
        K = votes.shape[1]
        if K == 1:  # as in scikit-learn
            return np.zeros_like(votes)
        return votes[:, 1] - votes[:, 0] if K == 2 else (K * votes - 1.0) / (K - 1.0)

    def _staged_votes(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the votes after each round, normalised; rows were checked."""
        votes = np.zeros((X.shape[0], len(self.classes_)))
        rows, total = np.arange(X.shape[0]), 0.0
        for hypothesis, alpha in zip(self.estimators_, self.estimator_weights_, strict=True):
            if np.isinf(alpha):
                votes[:], total, alpha = 0.0, 0.0, 1.0
            votes[rows, class_index(hypothesis, X, self.classes_)] += alpha
            total += alpha
            yield votes / total

    def _stage(self, n_rounds: int | None) -> np.ndarray:
        """Weights of the hypotheses after so many rounds."""
        made = len(self.estimators_)
        if n_rounds is not None and not 1 <= n_rounds <= made:
            raise ValueError(f"n_rounds must be from 1 to {made}, got {n_rounds!r}.")
        return self._shares(n_rounds)

    def decision_function(self, X: Any) -> np.ndarray:
        """Value of the vote, divided by the sum of its weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes ``sum_t alpha_t h_t(x) / sum_t alpha_t``, positive for ``classes_[1]``;
            scikit-learn has twice that. For more, as there, a vote counts one for its class and
            ``-1 / (K - 1)`` for each other.
        """
        check_is_fitted(self)
        X = self._validated_points(X)
        return self._values(self._votes(X, self._shares()))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes for each row of X; of equal ones, the first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._decided(self._values(self._votes(self._validated_points(X), self._shares())))

    def _decided(self, values: np.ndarray) -> np.ndarray:
        index = values.argmax(axis=1) if values.ndim > 1 else (values > 0).astype(np.intp)
        return self.classes_[index]

    # -- margins -------------------------------------------------------------------------------

    def margins(self, X: Any, y: Any, n_rounds: int | None = None) -> np.ndarray:
        """Margin of each row: the votes for its class less the most for another, of all votes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        n_rounds : int, optional
            After how many rounds; by default after the last.

        Returns
        -------
        margins : array of shape (n_samples,)
            Between -1 and 1, and for two classes ``y f(x)``; positive where the row is right.
        """
        check_is_fitted(self)
        shares, X, index = self._stage(n_rounds), *self._labelled(X, y)
        return _margins(self._votes(X, shares), index)

    def margin_distribution(
        self, X: Any, y: Any, thetas: Any, n_rounds: int | None = None
    ) -> np.ndarray:
        """Share of the rows whose margin is at most theta, for each of some thetas.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        thetas : array-like of shape (m,)
        n_rounds : int, optional
            After how many rounds; by default after the last.

        Returns
        -------
        shares : array of shape (m,)
        """
        margins = np.sort(self.margins(X, y, n_rounds))
        return np.searchsorted(margins, np.asarray(thetas), side="right") / len(margins)

    def margin_bound(
        self,
        X: Any,
        y: Any,
        *,
        n_base: float | None = None,
        vc_dim: float | None = None,
        theta: float | None = None,
        confidence: float = 0.95,
    ) -> Bound:
        """Bound the error on new points by the margins of the sample, however many vote.

        The theorem of Schapire, Freund, Bartlett and Lee; see
        :func:`maxmargin.bounds.margin_bound`.

        Parameters
        ----------
        X, y : the training rows
            Of two classes.
        n_base, vc_dim : float, optional
            How many hypotheses the weak learner can choose from, or their dimension. Known where
            these are stumps, trees of a ``max_depth`` or linear machines.
        theta : float, optional
            The margin, if it was chosen before seeing the data.
        confidence : float, default=0.95

        Returns
        -------
        bound : Bound
        """
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise ValueError(
                f"The margin bound is for two classes, and this vote is about {len(self.classes_)}."
            )
        margins = self.margins(X, y)
        if n_base is None and vc_dim is None:
            prototype = DecisionStump() if self.estimator is None else self.estimator
            n_base, vc_dim = capacity(prototype, len(margins), self.n_features_in_)
        return margin_bound(
            margins, n_base=n_base, vc_dim=vc_dim, theta=theta, confidence=confidence
        )

    def _labelled(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check rows and their labels; returns rows and the index of their classes."""
        X, y = self._validated_points(X), np.asarray(y)
        check_consistent_length(X, y)
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise ValueError(
                f"y has labels {strange.tolist()} that the vote does not know; its classes are "
                f"{self.classes_.tolist()}."
            )
        return X, np.searchsorted(self.classes_, y)


class StagedVote(WeightedVote):
    """A vote that grows by one hypothesis a round, so that it has stages."""

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`decision_function` after each round."""
        check_is_fitted(self)
        for votes in self._staged_votes(self._validated_points(X)):
            yield self._values(votes)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`predict` after each round."""
        for values in self.staged_decision_function(X):
            yield self._decided(values)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the accuracy after each round."""
        for labels in self.staged_predict(X):
            yield accuracy_score(y, labels, sample_weight=sample_weight)

    def staged_margins(self, X: Any, y: Any) -> Iterator[np.ndarray]:
        """Yield :meth:`margins` after each round."""
        check_is_fitted(self)
        X, index = self._labelled(X, y)
        for votes in self._staged_votes(X):
            yield _margins(votes, index)


def _margins(votes: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Votes for the class of each row less the most for another."""
    own = np.arange(len(votes)), index
    others = votes.copy()
    others[own] = -np.inf
    return np.clip(votes[own] - others.max(axis=1), -1.0, 1.0)

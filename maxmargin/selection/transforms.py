"""The transformers of a pipeline on one split, fitted once for all machines that follow."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone


class Transformers(BaseEstimator):
    """Transformers as an estimator of their own: fitting them transforms the training rows.

    They are anyone's code and may raise anything. scikit-learn's ``error_score`` says what becomes
    of that, so scikit-learn fits them here, as it would fit the pipeline: see
    :meth:`~maxmargin.selection.scikit_learn.Manners.transformed`.

    Attributes
    ----------
    steps_ : Pipeline
        The fitted transformers.
    train_, test_ : what they make of the training rows and of the others
    """

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> Transformers:
        """Fit the transformers, and keep what they make of the training rows."""
        self.steps_ = clone(self.steps)
        self.train_ = self.steps_.fit_transform(X, y)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Keep what they make of the rows held out; there is nothing to score yet."""
        self.test_ = self.steps_.transform(X)
        return 0.0

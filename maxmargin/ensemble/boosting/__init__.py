"""Boosting: weak hypotheses in a vote, and the margins of it."""

from maxmargin.ensemble.boosting.adaboost import AdaBoostClassifier, TrainingBounds
from maxmargin.ensemble.boosting.stump import DecisionStump

__all__ = [
    "AdaBoostClassifier",
    "DecisionStump",
    "TrainingBounds",
]

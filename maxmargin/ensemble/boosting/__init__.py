"""Boosting: weak hypotheses in a vote, and the margins of it."""

from maxmargin.ensemble.boosting.adaboost import AdaBoostClassifier, TrainingBounds
from maxmargin.ensemble.boosting.descent import boosting_descent, stump_dictionary
from maxmargin.ensemble.boosting.logitboost import LogitBoostClassifier
from maxmargin.ensemble.boosting.lpboost import LPBoostClassifier
from maxmargin.ensemble.boosting.stump import DecisionStump

__all__ = [
    "AdaBoostClassifier",
    "DecisionStump",
    "LPBoostClassifier",
    "LogitBoostClassifier",
    "TrainingBounds",
    "boosting_descent",
    "stump_dictionary",
]

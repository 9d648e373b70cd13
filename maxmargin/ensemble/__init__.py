"""Ensembles: trees, and what is made of many learners."""

from maxmargin.ensemble.boosting import (
    AdaBoostClassifier,
    DecisionStump,
    LogitBoostClassifier,
    LPBoostClassifier,
    boosting_descent,
    stump_dictionary,
)
from maxmargin.ensemble.trees import (
    BinnedColumns,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

__all__ = [
    "AdaBoostClassifier",
    "BinnedColumns",
    "DecisionStump",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "LPBoostClassifier",
    "LogitBoostClassifier",
    "boosting_descent",
    "stump_dictionary",
]

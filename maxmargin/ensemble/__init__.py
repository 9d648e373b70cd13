"""Ensembles: trees, and what is made of many learners."""

from maxmargin.ensemble.boosting import (
    AdaBoostClassifier,
    DecisionStump,
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
]

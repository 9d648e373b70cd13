"""Ensembles: trees, and what is made of many learners."""

from maxmargin.ensemble.bagging import (
    BaggingClassifier,
    BaggingRegressor,
    SquaredDecomposition,
    ZeroOneDecomposition,
    bias_variance,
)
from maxmargin.ensemble.trees import (
    BinnedColumns,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "SquaredDecomposition",
    "ZeroOneDecomposition",
    "bias_variance",
]

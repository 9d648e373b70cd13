"""Ensembles: trees, boosted words, and what is made of many learners."""

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
from maxmargin.ensemble.words import WordStumpBooster, WordTable

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "SquaredDecomposition",
    "WordStumpBooster",
    "WordTable",
    "ZeroOneDecomposition",
    "bias_variance",
]

"""Ensembles: trees, boosted words, and what is made of many learners."""

from maxmargin.aliases import attributes
from maxmargin.ensemble.bagging import (
    BaggingClassifier,
    BaggingRegressor,
    SquaredDecomposition,
    ZeroOneDecomposition,
    bias_variance,
)
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
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    KStudy,
    k_study,
)
from maxmargin.ensemble.words import WordStumpBooster, WordTable

__all__ = [
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BaggingRegressor",
    "BinnedColumns",
    "DecisionStump",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "KStudy",
    "LPBoostClassifier",
    "LogitBoostClassifier",
    "SquaredDecomposition",
    "WordStumpBooster",
    "WordTable",
    "ZeroOneDecomposition",
    "bias_variance",
    "boosting_descent",
    "k_study",
    "stump_dictionary",
]
__getattr__, __dir__ = attributes(__name__)

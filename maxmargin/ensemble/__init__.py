"""Ensembles: many learners in place of one."""

from maxmargin.ensemble.bagging_classifier import BaggingClassifier
from maxmargin.ensemble.bagging_regressor import BaggingRegressor
from maxmargin.ensemble.bias_variance import bias_variance
from maxmargin.ensemble.decomposition import SquaredDecomposition, ZeroOneDecomposition

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "SquaredDecomposition",
    "ZeroOneDecomposition",
    "bias_variance",
]

"""Bagging, and what it does to bias and variance: many replicates of one data set."""

from maxmargin.ensemble.bagging.bias_variance import bias_variance
from maxmargin.ensemble.bagging.classifier import BaggingClassifier
from maxmargin.ensemble.bagging.decomposition import SquaredDecomposition, ZeroOneDecomposition
from maxmargin.ensemble.bagging.regressor import BaggingRegressor

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "SquaredDecomposition",
    "ZeroOneDecomposition",
    "bias_variance",
]

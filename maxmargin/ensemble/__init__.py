"""Ensembles: many learners in place of one."""

from maxmargin.ensemble.bagging_classifier import BaggingClassifier
from maxmargin.ensemble.bagging_regressor import BaggingRegressor

__all__ = ["BaggingClassifier", "BaggingRegressor"]

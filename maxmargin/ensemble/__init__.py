"""Ensembles: trees, and what is made of many learners."""

from maxmargin.ensemble.trees import (
    BinnedColumns,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)

__all__ = [
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
]

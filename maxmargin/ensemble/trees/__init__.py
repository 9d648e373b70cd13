"""Decision trees, and forests of extremely randomised ones."""

from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from maxmargin.ensemble.trees.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
from maxmargin.ensemble.trees.k_study import KStudy, k_study

__all__ = [
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "KStudy",
    "k_study",
]

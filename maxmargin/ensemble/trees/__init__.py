"""Decision trees, and forests of extremely randomised ones."""

from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from maxmargin.ensemble.trees.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor

__all__ = [
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
]

"""Decision trees, and forests of extremely randomised ones."""

from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = [
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
]

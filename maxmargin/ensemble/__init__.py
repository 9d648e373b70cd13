"""Ensembles: trees, boosted words, and what is made of many learners."""

from maxmargin.ensemble.trees import (
    BinnedColumns,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from maxmargin.ensemble.words import WordStumpBooster, WordTable

__all__ = [
    "BinnedColumns",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "WordStumpBooster",
    "WordTable",
]

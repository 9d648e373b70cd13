"""Choosing parameters: searches whose fits share what they have in common, and say what that is."""

from maxmargin.selection.halving import HalvingGridSearchCV, HalvingRandomSearchCV
from maxmargin.selection.plan import Sharing
from maxmargin.selection.search import GridSearchCV, RandomizedSearchCV
from maxmargin.selection.svm_search import SVCSearchCV, SVRSearchCV

__all__ = [
    "GridSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "RandomizedSearchCV",
    "SVCSearchCV",
    "SVRSearchCV",
    "Sharing",
]

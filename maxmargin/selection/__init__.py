"""Choosing parameters: searches over a grid that share what their fits have in common."""

from maxmargin.selection.search import SVCSearchCV, SVRSearchCV

__all__ = ["SVCSearchCV", "SVRSearchCV"]

"""The estimators and functions of ``sklearn.tree`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes
from maxmargin.ensemble.trees.export import export_graphviz, export_text, plot_tree  # noqa: F401

__all__ = [*PATHS["tree"]]
__getattr__, __dir__ = attributes(__name__)

"""The estimators of ``sklearn.model_selection`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["model_selection"]]
__getattr__, __dir__ = attributes(__name__)

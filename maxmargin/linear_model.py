"""The estimators of ``sklearn.linear_model`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["linear_model"]]
__getattr__, __dir__ = attributes(__name__)

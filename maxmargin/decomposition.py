"""The estimators of ``sklearn.decomposition`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["decomposition"]]
__getattr__, __dir__ = attributes(__name__)

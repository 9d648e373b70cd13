"""The estimators of ``sklearn.gaussian_process`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["gaussian_process"]]
__getattr__, __dir__ = attributes(__name__)

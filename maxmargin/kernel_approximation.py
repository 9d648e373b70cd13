"""The estimators of ``sklearn.kernel_approximation`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["kernel_approximation"]]
__getattr__, __dir__ = attributes(__name__)

"""The estimators of ``sklearn.kernel_ridge`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes

__all__ = [*PATHS["kernel_ridge"]]
__getattr__, __dir__ = attributes(__name__)

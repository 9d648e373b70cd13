"""The estimators of ``sklearn.gaussian_process`` here; see :mod:`maxmargin.aliases`."""

from maxmargin.aliases import PATHS, attributes
from maxmargin.gaussian_process import kernels

__all__ = [*PATHS["gaussian_process"], "kernels"]
__getattr__, __dir__ = attributes(__name__)

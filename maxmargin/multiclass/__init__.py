"""Several classes from machines for two."""

from maxmargin.multiclass.one_vs_one import OneVsOne

__all__ = ["OneVsOne"]

"""Linear machines on Dask collections: the solvers of one machine over a distributed design."""

from maxmargin.dask.linear import fit

__all__ = ["fit"]

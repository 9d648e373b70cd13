"""Rows on many machines, or more than memory holds: every estimator on Dask collections.

There is nothing to import from here for that. ``SVC().fit(X, y)`` takes Dask arrays and dataframes
as it takes NumPy's, works on the active client, or without one on Dask's local scheduler, and has
the same answer with the same certificate; ``predict`` of any fitted machine is lazy and returns the
kind of collection it was given. ``distribution_`` of a machine says where it was fitted, and what
that took. :func:`read_npy` and :func:`read_svmlight` make collections of files.
"""

from maxmargin.dask.calls import called
from maxmargin.dask.cluster import Cluster, ClusterError, Distribution, PartitionError
from maxmargin.dask.rows import Partitions
from maxmargin.dask.storage import read_npy, read_svmlight

__all__ = [
    "Cluster",
    "ClusterError",
    "Distribution",
    "PartitionError",
    "Partitions",
    "called",
    "read_npy",
    "read_svmlight",
]

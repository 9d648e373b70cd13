"""Factorisations of large dense matrices, block by block: threads of our own, and a place to stop.

LAPACK's are one call that nobody can look into. These say between two blocks how far they are, obey
``n_jobs``, and are not slower: every product is one of BLAS, one thread to a tile.
"""

from maxmargin.backends.dense.band import BandReduction
from maxmargin.backends.dense.cholesky import BlockCholesky, NotPositiveError

__all__ = ["BandReduction", "BlockCholesky", "NotPositiveError"]

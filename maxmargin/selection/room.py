"""How the memory of a search is shared out among threads, kernel matrices and primitives."""

from __future__ import annotations

from maxmargin.selection.data_set import DataSet
from maxmargin.selection.matrices import Matrices

_AT_ONCE = 4  # matrices at a time, at most
SEVERAL = 4  # problems per thread from which on a thread has a problem to itself


def room(data: DataSet, matrices: Matrices, threads: int, one_by_one: bool) -> tuple[int, int, int]:
    """Threads, matrices at a time, and bytes left for the primitives.

    Without room for one matrix and one thread there are no threads. Several matrices at a time
    keep the threads busy where each has few problems; with a time limit, one after the other
    (``one_by_one``), so that some candidates are complete when it is over.
    """
    targets = data.targets
    size = matrices.dtype.itemsize * (targets.block_size + targets.n_variables**2)
    threads = max(min(threads, (data.budget - matrices.nbytes) // size), 0)
    left = data.budget - threads * size - matrices.nbytes
    more = int(min(left // 2 // matrices.nbytes, _AT_ONCE - 1))
    enough = targets.n_problems >= SEVERAL * threads or one_by_one
    if not threads or enough or more < 1:
        return threads, 1, left
    return threads, 1 + more, left - more * matrices.nbytes

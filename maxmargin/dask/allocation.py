"""Memory of a worker while it computes.

Dask has its workers give memory back to the system at once (``MALLOC_TRIM_THRESHOLD_``), so that
what they say of themselves is true. A solver that makes and drops arrays as long as the rows then
has the system clear the same pages again and again: 30,000 rows of covtype take 9.1 s in place of
6.7, with 210,000 page faults in place of 4,000. So it keeps what it has while it computes, and
gives it back at the end.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_TRIM, _MMAP = -1, -3  # numbers of mallopt's options
_KEPT, _AS_USUAL = 1 << 29, 1 << 17  # bytes on top of the heap; glibc's own
_LARGEST = 1 << 25  # of an array that is taken from the heap: the most that glibc allows
_lock = threading.Lock()
_at_work = 0


@contextmanager
def keeping_memory() -> Iterator[None]:
    """Keep memory that is freed while something computes; does nothing but with glibc and Dask."""
    library = _library()
    if library is None:
        yield
        return
    global _at_work
    with _lock:
        _at_work += 1
        if _at_work == 1:
            library.mallopt(_TRIM, _KEPT)
            library.mallopt(_MMAP, _LARGEST)
    try:
        yield
    finally:
        with _lock:
            _at_work -= 1
            if not _at_work:
                library.mallopt(_TRIM, int(os.environ["MALLOC_TRIM_THRESHOLD_"]))
                library.mallopt(_MMAP, _AS_USUAL)
                library.malloc_trim(0)


@cache
def _library() -> Any:
    """Return the C library where it has been told to give memory back, and can be told not to."""
    if not os.environ.get("MALLOC_TRIM_THRESHOLD_", "").isdigit():
        return None
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (AttributeError, OSError):
        return None

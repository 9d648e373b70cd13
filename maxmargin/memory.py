"""How much memory a fit may take: scikit-learn's ``cache_size`` in bytes."""

from __future__ import annotations

import math
import os
from pathlib import Path

SHARE_OF_FREE = 0.25
_FALLBACK = 1 << 30
_LEAST = 1 << 26


def budget(cache_size: float | str, wanted: float = math.inf) -> int:
    """Bytes that ``cache_size`` allows: so many MB, or for ``"auto"`` a quarter of what is free.

    Nobody looks how much that is for who wants less than there is in any case.

    >>> budget(200)
    209715200
    >>> budget("auto") >= 2**26
    True
    """
    if cache_size == "auto" and wanted <= _LEAST:
        return _LEAST
    if cache_size == "auto":
        return max(int(SHARE_OF_FREE * available()), _LEAST)
    return int(float(cache_size) * (1 << 20))


def megabytes(size: float) -> str:
    """So many bytes in MB, to three digits at least: for sentences about ``cache_size``.

    >>> megabytes(8 * 20_000**2), megabytes(8 * 50**2)
    ('3,052 MB', '0.0191 MB')
    """
    return f"{size / 2**20:,.0f} MB" if size >= 100 * 2**20 else f"{size / 2**20:.3g} MB"


def available() -> int:
    """Bytes of memory that this process can still use, as far as the system tells."""
    free = [limit for limit in (_kernel_says(), _control_group_says()) if limit is not None]
    return max(min(free, default=_FALLBACK), 0)


def _kernel_says() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _control_group_says() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        reclaimable = int(counts.get("inactive_file", 0))
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) - used + reclaimable

"""Numba's ``njit`` for machines where the compiled code cannot be kept.

With ``cache=True`` Numba keeps what it has compiled beside the source, or in the user's folder, and
refuses to compile where neither can be written to. Here it then compiles without keeping anything,
which takes seconds in every process; a line in the log says so, once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable], Any]:
    """Compile a function as ``numba.njit`` does, with its cache where there is room for one."""

    def compiled(function: Callable) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            _say_once()
            return numba.njit(**{**options, "cache": False})(function)

    return compiled


@cache
def _say_once() -> None:
    """Say in the log what is missing; a warning would end the import where warnings are errors."""
    logging.getLogger("maxmargin").warning(
        "maxmargin compiles its loops anew in every process, which takes seconds: neither the "
        "package's folder nor the user's can be written to. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can."
    )

"""Numba's ``njit`` for machines where the compiled code cannot be kept, or is that of another time.

With ``cache=True`` Numba keeps what it has compiled beside the source, or in the user's folder, and
refuses to compile where neither can be written to. Here it then compiles without keeping anything,
which takes seconds in every process; a line in the log says so, once.

An upgrade leaves the files of the version before in their place. Numba would compile anew, but
fails before that on the name of a type that is no longer there: what it cannot read counts as none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numba

INNER: dict[str, Any] = {  # of functions that only compiled code calls: with no way in from Python
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def njit(**options: Any) -> Callable[[Callable], Any]:
    """Compile a function as ``numba.njit`` does, with its cache where there is room for one."""

    def compiled(function: Callable) -> Any:
        try:
            dispatcher = numba.njit(**options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            _say_once()
            return numba.njit(**{**options, "cache": False})(function)
        index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if hasattr(index, "_load_index"):
            index._load_index = _forgiving(index._load_index)
        return dispatcher

    return compiled


def _forgiving(load_index: Callable[[], dict]) -> Callable[[], dict]:
    """Let an index be read that names types of another version: nothing in it is of use."""

    def load() -> dict:
        try:
            return load_index()
        except (AttributeError, ImportError):
            return {}

    return load


@cache
def _say_once() -> None:
    """Say in the log what is missing; a warning would end the import where warnings are errors."""
    logging.getLogger("maxmargin").warning(
        "maxmargin compiles its loops anew in every process, which takes seconds: neither the "
        "package's folder nor the user's can be written to. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can."
    )

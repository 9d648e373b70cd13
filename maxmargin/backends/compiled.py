"""Numba's ``njit`` for machines where the compiled code cannot be kept, or is that of another time.

With ``cache=True`` Numba keeps what it has compiled beside the source, or in the user's folder, and
refuses to compile where neither can be written to. Here it then compiles without keeping anything,
which takes seconds in every process; a line in the log says so, once.

An upgrade leaves the files of the version before in their place. Numba would compile anew, but
fails before that on the name of a type that is no longer there: what it cannot read counts as none.

Machine code holds the functions and numbers of other files that it was compiled with, while Numba
looks at the time of its own file only: after ``git pull`` the old code would run on. Here what is
kept is also that of these files.
"""

from __future__ import annotations

import logging
import os
import zlib
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
        _note_file(function)
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
            index._source_stamp = (index._source_stamp, _imported(function))
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


_files: dict[str, tuple] = {}  # of compiled functions: when written, and what they import


def _note_file(function: Any) -> None:
    """Keep what the code of a file depends on, when the first of its functions is compiled."""
    path = function.__code__.co_filename
    if path not in _files:
        written = os.stat(path) if os.path.exists(path) else None  # none of a notebook's cell
        imported = set()
        for name, value in function.__globals__.items():
            if isinstance(value, numba.core.dispatcher.Dispatcher):
                imported.add(value.py_func.__code__.co_filename)
            elif isinstance(value, int | float) and not name.startswith("__"):
                imported.add(f"{name} = {value!r}")
        own = () if written is None else (written.st_mtime, written.st_size)
        _files[path] = (own, *(_files.get(one, one) for one in sorted(imported - {path})))


def _imported(function: Any) -> int:
    """Return a number that is another one once the file of a function, or what it imports, is."""
    return zlib.crc32(repr(_files[function.__code__.co_filename]).encode())


@cache
def _say_once() -> None:
    """Say in the log what is missing; a warning would end the import where warnings are errors."""
    logging.getLogger("maxmargin").warning(
        "maxmargin compiles its loops anew in every process, which takes seconds: neither the "
        "package's folder nor the user's can be written to. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can."
    )

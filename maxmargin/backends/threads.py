"""BLAS on one thread while tiles are small.

A tile's product takes microseconds; a second BLAS thread gains little there and, as soon as another
process wants the core, waits for it: fits were measured to take 60 times as long.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Any)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def on_one_blas_thread(function: F) -> F:
    """Run a function with BLAS held to one thread, as scikit-learn does around its own loops."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited  # type: ignore[return-value]

"""Torch tensors at the edge of the machines: taken as arrays, answered with tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def takes_tensors(method: F) -> F:
    """Let a method take torch tensors for its arrays; who gives one gets one back.

    It is on the device of the first, and only if its type is one that torch has: class names stay
    an array. Nothing here imports torch: who has a tensor has done so.
    """

    @wraps(method)
    def adapted(self: Any, *args: Any, **kwargs: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return method(self, *args, **kwargs)
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
        if not tensors:
            return method(self, *args, **kwargs)
        given = {name: _as_array(value, torch) for name, value in kwargs.items()}
        answer = method(self, *(_as_array(value, torch) for value in args), **given)
        if isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub":
            return torch.from_numpy(np.ascontiguousarray(answer)).to(tensors[0].device)
        return answer

    return adapted  # type: ignore[return-value]


def _as_array(value: Any, torch: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value

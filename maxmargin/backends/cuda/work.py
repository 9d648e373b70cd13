"""Work on a GPU: in full precision, within a budget of memory, and again with less."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import torch

from maxmargin.backends.device import interpreted

SHARE_OF_FREE = 0.85  # of the device's memory that a fit may take when nobody says
_LEAST_MEMORY = 1 << 20  # bytes below which to make do with less is pointless
TILE_SHARE = 0.15  # of the budget, for a tile of values
LEAST_CELLS, MOST_CELLS = 1 << 20, 1 << 29  # of a tile

T = TypeVar("T")


class _FullPrecision:
    """Float32 products in full from the first who wants it to the last: fits may overlap."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.before: Any = None

    def __enter__(self) -> None:
        products = torch.backends.cuda.matmul
        with self.lock:
            if not self.holders:
                self.new = hasattr(products, "fp32_precision")  # torch 2.9 and later
                if self.new:
                    self.before, products.fp32_precision = products.fp32_precision, "ieee"
                else:
                    self.before, products.allow_tf32 = products.allow_tf32, False
            self.holders += 1

    def __exit__(self, *error: Any) -> None:
        products = torch.backends.cuda.matmul
        with self.lock:
            self.holders -= 1
            if not self.holders:
                setattr(products, "fp32_precision" if self.new else "allow_tf32", self.before)


_full_precision = _FullPrecision()


@contextmanager
def device_context(device: torch.device) -> Iterator[None]:
    """Launch on this device, and keep torch from rounding the factors of float32 products."""
    here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with here, _full_precision:
        yield


def torch_device(name: str) -> torch.device:
    """Torch's device of this name; the CPU where Triton's interpreter plays the GPU."""
    return torch.device("cpu" if interpreted() else name)


def budget(device: torch.device, cache_size: float | str) -> int:
    """Bytes of device memory that a fit may take beyond the data."""
    if cache_size != "auto":
        return int(float(cache_size) * (1 << 20))
    if device.type == "cpu":
        return 1 << 30
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(SHARE_OF_FREE * (free + held))


class Bounded:
    """What works within so many bytes of the device's memory, or within fewer."""

    memory: int

    def halve_budget(self) -> bool:
        """Make do with half of the memory; whether that was still possible."""
        self.memory //= 2
        torch.cuda.empty_cache()
        return self.memory >= _LEAST_MEMORY


def retry_with_less_memory(work: Callable[[], T], holder: Bounded) -> T:
    """Do some work; where memory runs out, since others have taken it, again with less."""
    while True:
        try:
            return work()
        except torch.OutOfMemoryError as error:
            short = error.with_traceback(None)  # which would keep the work's tensors alive
        if not holder.halve_budget():
            raise short

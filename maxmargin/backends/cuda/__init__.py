"""Kernel values on a GPU: torch's products, then the programme on the tile; sums by Triton.

The data lie on the device as they came, float32 or float64, dense where that fits and CSR where it
does not. Sums that a certificate or a prediction rests on are made in float64, tile by tile. What
the solver needs is float32: the whole matrix where it fits (:meth:`Matrix.resident`), otherwise
values that are made where they are summed and never written down.
"""

from maxmargin.backends.cuda.low_rank import Columns
from maxmargin.backends.cuda.matrix import Expansion, Matrix
from maxmargin.backends.cuda.points import Points
from maxmargin.backends.cuda.work import (
    budget,
    device_context,
    retry_with_less_memory,
    torch_device,
)

__all__ = [
    "Columns",
    "Expansion",
    "Matrix",
    "Points",
    "budget",
    "device_context",
    "retry_with_less_memory",
    "torch_device",
]

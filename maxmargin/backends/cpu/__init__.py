"""Kernel values on the CPU: BLAS products or sparse loops, then one pass in cache per tile.

A tile is a handful of rows of the left data set against a stretch of the right one, small enough
to stay in the cache from the product to the finished kernel value. Data stay as they are, dense
float32 or float64 or CSR: only the tile in work is widened to float64, and for distances at least
its left side is centred.
"""

from maxmargin.backends.cpu.cancellation import DEVIATION32
from maxmargin.backends.cpu.derivatives import Derivatives
from maxmargin.backends.cpu.loops import add_rows, asymmetry, total_asymmetry
from maxmargin.backends.cpu.operand import DensePoints, Operand, finite, variance
from maxmargin.backends.cpu.tiles import PANEL_ROWS, TILE_BYTES, rooms, spans, spread_out
from maxmargin.backends.cpu.values import (
    accumulate,
    accumulate_square,
    expand,
    kernel_diagonal,
    kernel_rows,
    kernel_square,
    kernel_values,
)
from maxmargin.backends.cpu.vectors import DenseVectors, Vectors

__all__ = [
    "DEVIATION32",
    "PANEL_ROWS",
    "TILE_BYTES",
    "DensePoints",
    "DenseVectors",
    "Derivatives",
    "Operand",
    "Vectors",
    "accumulate",
    "accumulate_square",
    "add_rows",
    "asymmetry",
    "expand",
    "finite",
    "kernel_diagonal",
    "kernel_rows",
    "kernel_square",
    "kernel_values",
    "rooms",
    "spans",
    "spread_out",
    "total_asymmetry",
    "variance",
]

"""Compiled loops of linear machines: products with all rows, losses, Newton steps, single rows."""

from maxmargin.backends.cpu.linear.design import LOOPED, Design

__all__ = ["LOOPED", "Design"]

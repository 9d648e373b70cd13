"""Gram matrices, on the host and on a GPU: rows, blocks and products of kernel values."""

from maxmargin.gram.base import Gram
from maxmargin.gram.device import DeviceGram
from maxmargin.gram.host import HostGram
from maxmargin.gram.spectrum import Definiteness, Spectrum
from maxmargin.gram.store import RowStore

__all__ = ["Definiteness", "DeviceGram", "Gram", "HostGram", "RowStore", "Spectrum"]

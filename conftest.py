"""Before anything is collected: who plays the GPU, and what needs packages that are not there."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a screen
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernels are imported

collect_ignore_glob = []
if find_spec("torch") is None or find_spec("triton") is None:
    collect_ignore_glob.append("maxmargin/backends/cuda*.py")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures that an example has drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

"""Before anything is collected: who plays the GPU, and what needs packages that are not there."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a screen
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernels are imported


def pytest_addoption(parser):
    """Offer the slow tier, and noise in the last bits of all products."""
    parser.addoption("--noise", type=int, metavar="SEED", help="see tests/noise.py")
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")


def pytest_configure(config):
    """Declare the markers of the two tiers."""
    config.addinivalue_line("markers", "slow: left out without --slow")
    config.addinivalue_line("markers", "fast: with every parameter in the fast tier")
    if config.getoption("noise") is not None:
        sys.path.insert(0, str(Path(__file__).parent / "tests"))
        import noise

        noise.install(config.getoption("noise"))


def fast_tier(items):
    """Yield the tests of the fast tier: none marked slow, the first parameters of the others."""
    begun = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("slow"):
            continue
        if test not in begun or item.get_closest_marker("fast"):
            yield item
        begun.add(test)


def pytest_collection_modifyitems(config, items):
    """Leave out what is slow, unless it is asked for: by --slow, or by its name."""
    by_name = any("::" in argument for argument in config.args)
    if config.getoption("slow") or by_name:
        return
    fast = list(fast_tier(items))
    left_out = set(items).difference(fast)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = fast


collect_ignore_glob = []
if find_spec("torch") is None or find_spec("triton") is None:
    collect_ignore_glob.append("maxmargin/backends/cuda*.py")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures that an example has drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

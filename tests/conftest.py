"""What tests share."""

import os
import signal

import numpy as np
import pytest


@pytest.fixture
def random():
    """A generator of its own for each test, so that order and worker do not matter."""
    return np.random.default_rng(7)


@pytest.fixture
def heard():
    """Let SIGINT raise KeyboardInterrupt, also where the tests run in the background."""
    if os.name == "nt":
        pytest.skip("kill means another thing there")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler

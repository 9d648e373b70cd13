"""What tests share."""

import numpy as np
import pytest


@pytest.fixture
def random():
    """A generator of its own for each test, so that order and worker do not matter."""
    return np.random.default_rng(7)

"""What tests share."""

import gc
import os
import signal

import numpy as np
import pytest


def pytest_collection_modifyitems(items):
    """Tests on worker processes, which have to start and to compile, are slow."""
    for item in items:
        if "processes" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


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
    gc.disable()  # Python swallows what is raised in a callback of the collector: Dask has one
    yield
    gc.enable()
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


@pytest.fixture(scope="session")
def _processes():
    """Two Dask workers, processes with one thread each: slow to start, so tests share them."""
    distributed = pytest.importorskip("distributed")
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**how) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def processes(_processes):
    """The client of two worker processes, active for one test."""
    import dask

    _processes.wait_for_workers(2)
    with dask.config.set(scheduler=None), _processes.as_current():
        yield _processes

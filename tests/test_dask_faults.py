"""A cluster in trouble in the middle of a fit: the same answer, or a sentence that says so."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
from dask.distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, LogisticRegression
from maxmargin.dask import Cluster, ClusterError
from maxmargin.dask.kernel import chunking
from maxmargin.dask.linear import fit

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(600, 4))
y = (X[:, 0] * X[:, 1] + 0.3 * RANDOM.normal(size=600) > 0).astype(int)


def rows():
    """The rows as a graph that can be made again: what a cluster loses is not lost."""
    return da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Have machines go about as with many rows."""
    monkeypatch.setattr(chunking, "_FEW", 0)
    monkeypatch.setattr(fit, "_better_here", lambda rows: False)


@pytest.fixture
def client(processes):
    return processes


@pytest.fixture
def at_round(monkeypatch):
    """Have something done before a round of a fit."""

    def plan(number, action):
        usual, done = Cluster.run, []

        def run(self, tasks, *args, **options):
            if self.distribution.rounds == number and not done:
                done.append(True)
                action()
            return usual(self, tasks, *args, **options)

        monkeypatch.setattr(Cluster, "run", run)
        return done

    return plan


def kill_one(client):
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def same_answer(model, undisturbed):
    certificate, other = model.certificate_, undisturbed.certificate_
    assert certificate.converged
    assert certificate.dual == pytest.approx(other.dual, rel=1e-6)
    assert certificate.primal == pytest.approx(other.primal, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [SVC(), LogisticRegression()])
@pytest.mark.parametrize("moment", [1, 2])
def test_a_killed_worker_changes_nothing(client, at_round, machine, moment):
    client.wait_for_workers(2)
    undisturbed = machine.fit(*rows())
    assert undisturbed.distribution_.workers == 2
    other = type(machine)()
    done = at_round(moment, lambda: kill_one(client))
    same_answer(other.fit(*rows()), undisturbed)
    assert done
    np.testing.assert_array_equal(other.predict(X), undisturbed.predict(X))


@pytest.mark.slow
def test_a_worker_that_comes_later_changes_nothing(client, at_round):
    undisturbed = LogisticRegression().fit(*rows())
    done = at_round(1, lambda: client.cluster.scale(3))
    same_answer(LogisticRegression().fit(*rows()), undisturbed)
    assert done
    client.wait_for_workers(3)  # else it may come, and be closed, in another test
    client.cluster.scale(2)
    while len(client.scheduler_info()["workers"]) > 2:
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [SVC, LogisticRegression])
def test_a_straggler_changes_nothing(client, at_round, machine):
    undisturbed = machine().fit(*rows())
    victim = next(iter(client.run(os.getpid).values()))
    later = threading.Timer(1.0, os.kill, [victim, signal.SIGCONT])

    def sleep():
        os.kill(victim, signal.SIGSTOP)
        later.start()

    done = at_round(2, sleep)
    same_answer(machine().fit(*rows()), undisturbed)
    later.join()
    assert done


@pytest.mark.slow
def test_a_cluster_and_one_machine_agree(client):
    for machine in (SVC, LogisticRegression):
        same_answer(machine().fit(*rows()), machine().fit(X, y))


def test_a_time_limit_leaves_a_model(client):
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SVC(C=1000, tol=1e-6, time_limit=1e-3).fit(*rows())
    assert not model.certificate_.converged
    assert model.predict(X).shape == (600,)


def test_interrupts_leave_a_model_and_are_raised(client, at_round, heard):
    model = LogisticRegression(tol=1e-12)
    at_round(2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"), pytest.raises(KeyboardInterrupt):
        model.fit(*rows())
    assert model.predict(X).shape == (600,)


def test_an_interrupt_in_the_middle_of_a_solve_ends_it(client, monkeypatch, heard):
    """The model is there at once, and no worker goes on with what nobody waits for."""
    monkeypatch.setattr(chunking, "_FEW", 1 << 20)
    points, labels = RANDOM.normal(size=(6000, 4)), RANDOM.integers(0, 2, size=6000)
    model = SVC(C=1e6, tol=1e-10)  # takes minutes
    began = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    began.start()
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"), pytest.raises(KeyboardInterrupt):
        model.fit(da.from_array(points, chunks=(3000, 4)), da.from_array(labels, chunks=3000))
    assert model.predict(X).shape == (600,)
    for worker in client.scheduler_info(n_workers=-1)["workers"]:
        client.submit(int, workers=[worker], pure=False).result(timeout=20)


def test_nothing_stays_on_a_cluster(client, monkeypatch):
    """Also where Python does not look for cycles, as that of an error and its frames."""
    monkeypatch.setattr("maxmargin.dask.cluster._INTERVAL", 1e-3)
    gc.collect()
    gc.disable()
    try:
        for machine in (SVC, LogisticRegression):
            machine().fit(*rows())
        until = time.monotonic() + 20.0
        while client.futures and time.monotonic() < until:
            time.sleep(0.01)
        assert not client.futures
    finally:
        gc.enable()


def test_a_closed_client_is_said():
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        points = da.from_array(X, chunks=(300, 4)).persist()
    with pytest.raises(ValueError, match="X lies on a cluster whose client is closed"):
        LogisticRegression().fit(points, y)


@pytest.mark.slow
def test_a_lost_scheduler_is_said_and_another_cluster_goes_on(client, tmp_path, at_round):
    where, left = tmp_path / "scheduler.json", tmp_path / "fit"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(where)]
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not where.exists():
        time.sleep(0.05)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"]
    command += ["--no-dashboard", "--scheduler-file", str(where)]
    worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    machine = SVC(C=10, checkpoint=left, checkpoint_interval=0)
    try:
        with Client(scheduler_file=str(where)) as other, other.as_current():
            other.wait_for_workers(1)
            at_round(7, scheduler.kill)  # there is a checkpoint by then
            with pytest.raises(ClusterError, match="was lost after"):
                machine.fit(*rows())
            other.close(timeout=1)
    finally:
        scheduler.kill()
        worker.kill()
        scheduler.wait()
        worker.wait()
    assert left.exists()
    machine.fit(*(part.rechunk({0: 150}) for part in rows()))
    undisturbed = SVC(C=10).fit(*rows())
    assert machine.distribution_.where == undisturbed.distribution_.where
    same_answer(machine, undisturbed)
    assert sum(machine.n_iter_) < 0.8 * sum(undisturbed.n_iter_)  # the first round was not in vain
    assert not left.exists()

"""Long fits: seen while they run, stopped when asked, gone on with afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from maxmargin import (
    SVC,
    SVR,
    LinearSVC,
    MCEClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    SVCSearchCV,
    duals,
)
from maxmargin.estimators.checkpoint import Checkpoint
from maxmargin.progress import Monitor, Progress, ProgressBar, watched
from maxmargin.solution import Status
from maxmargin.solvers.dual import small
from maxmargin.svm import out_of_fold

random = np.random.default_rng(0)
X = random.normal(size=(1500, 4))
y = np.where(X[:, 0] * X[:, 1] + 0.5 * random.normal(size=1500) > 0, 1, 0)
SLOW = {"kernel": "rbf", "gamma": 0.5, "C": 1e5, "tol": 1e-11}  # some seconds of steps


@pytest.fixture(autouse=True)
def reports_at_once(monkeypatch):
    original = Monitor.__init__

    def eager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)


@pytest.mark.parametrize("rows", [300, 1500])  # SMO and the engine
def test_a_callback_sees_the_work_and_can_stop_it(rows, monkeypatch):
    monkeypatch.setattr(small.SmallBatch, "accepts", lambda *_: "no")
    seen = []
    SVC(**{**SLOW, "tol": 1e-4}, callback=seen.append).fit(X[:rows], y[:rows])
    assert all("KKT violation" in str(progress) for progress in seen)
    assert seen[-1].violation < seen[0].violation
    assert seen[-1].support_vectors > 0
    assert seen[-1].gap >= 0
    with pytest.warns(ConvergenceWarning, match="stopped early, by Ctrl-C or by a callback"):
        model = SVC(**SLOW, callback=lambda progress: True).fit(X[:rows], y[:rows])
    assert model.certificate_.status is Status.INTERRUPTED
    assert model.fit_status_ == 1
    assert model.predict(X).shape == (1500,)


def test_a_batch_of_small_problems_can_be_stopped(monkeypatch):
    monkeypatch.setattr(small, "_SLICE", 12_000)  # entries: a few problems at a time
    labels, seen = np.arange(90) % 6, []

    def third(progress):
        seen.append(progress)
        return len(seen) == 3

    whole = SVC(callback=seen.append).fit(X[:90], labels)
    assert len(seen) > 3
    assert seen[-1].violation <= 1e-3
    assert [progress.problem for progress in seen] == sorted({p.problem for p in seen})
    seen.clear()
    with pytest.warns(ConvergenceWarning, match="stopped early, by Ctrl-C or by a callback"):
        model = SVC(callback=third).fit(X[:90], labels)
    statuses = [part.status for part in model.certificate_.parts]
    solved = statuses.index(Status.INTERRUPTED)
    assert solved == seen[-1].problem + 1 < 15
    assert statuses == [Status.CONVERGED] * solved + [Status.INTERRUPTED] * (15 - solved)
    np.testing.assert_array_equal(model.intercept_[:solved], whole.intercept_[:solved])
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        SVC(max_iter=2).fit(X[:90], labels)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        SVC(time_limit=1e-9).fit(X[:90], labels)


def test_the_time_limit_is_kept():
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0.2 s"):
        model = SVC(**SLOW, time_limit=0.2).fit(X, y)
    assert time.monotonic() - began < 5.0  # compiling and a busy machine included
    assert model.certificate_.status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    "model", [SVC(C=100.0), NuSVC(nu=0.4), SVR(C=100.0), OneClassSVM(nu=0.3)], ids=str
)
def test_a_warm_start_goes_on_from_the_last_fit(model):
    cold = model.fit(X, y)
    steps = np.sum(cold.n_iter_)
    certificate = cold.certificate_
    warm = model.set_params(warm_start=True).fit(X, y)
    assert np.sum(warm.n_iter_) < 0.1 * steps
    assert warm.certificate_.dual == pytest.approx(certificate.dual, rel=1e-4)
    again = model.fit(X[:1000], y[:1000])  # other data: a start of its own
    assert again.certificate_.converged


def test_a_warm_start_after_an_interrupt_and_with_another_cost():
    with pytest.warns(ConvergenceWarning, match="max_iter=500"):
        model = SVC(C=10.0, max_iter=500, warm_start=True).fit(X, y)
    dual = model.certificate_.dual
    model.set_params(max_iter=-1).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.dual > dual
    for C in (1.0, 50.0):  # the start is brought into the new box
        warm = model.set_params(C=C).fit(X, y).certificate_
        assert warm.converged
        assert warm.infeasibility < 1e-9 * C * len(X)
        assert warm.dual == pytest.approx(SVC(C=C).fit(X, y).certificate_.dual, rel=1e-4)


def test_starting_near_a_point_is_feasible():
    problems = [
        duals.c_svc(np.arange(8), np.tile([1.0, -1.0], 4), np.linspace(0.5, 2.0, 8)),
        duals.nu_svc(np.arange(8), np.tile([1.0, -1.0], 4), np.ones(8), 0.5),
        duals.epsilon_svr(np.arange(8), np.arange(8.0), np.ones(8), 0.1),
        duals.one_class(np.arange(8), np.ones(8), 0.4),
        duals.c_svc(np.arange(8), np.tile([1.0, -1.0], 4), np.ones(8), bias=False),
    ]
    for problem in problems:
        start = problem.started_near(random.normal(0.0, 1.5, size=len(problem))).start
        assert (start >= problem.lower).all()
        assert (start <= problem.upper).all()
        for j in range(problem.n_groups):
            member = problem.group == j
            drift = (start - problem.start)[member].sum()
            assert drift == pytest.approx(0.0, abs=1e-12)


def run(script, **options):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    code = textwrap.dedent(script)
    return subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **options)


FIT = """
    import signal, time, warnings
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    import numpy as np
    from maxmargin import SVC
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * random.normal(size=1500) > 0, 1, 0)
    SVC(C=10).fit(X, y)  # compiled and loaded
    began = time.monotonic()
    reports = []
    def told(progress):
        if reports and reports[-1] > 0.2:  # the last report was written down
            print("working", flush=True)
        reports.append(progress.seconds)
    model = SVC(gamma=0.5, C=1e5, tol=1e-11, callback=told, checkpoint=None,
                checkpoint_interval=0.2)
"""


@pytest.mark.slow
def test_ctrl_c_leaves_a_usable_model_and_is_raised():
    process = run(
        FIT
        + """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for _ in range(100):
                model.fit(X, y)
        except KeyboardInterrupt:
            print("raised", end=" ")
    print(model.certificate_.status, caught[-1].category.__name__, model.score(X, y) > 0.6)
    """,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline().strip() == "working"
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    output, _ = process.communicate(timeout=60)
    assert output.split("\n")[-2] == "raised interrupted ConvergenceWarning True"
    assert time.monotonic() - asked < 5.0  # a second on a machine that is not busy


class CtrlC:
    """A listener that presses Ctrl-C once, at the first report."""

    def __init__(self):
        self.pressed = False

    def __call__(self, progress):
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


TARGETS = y + (X[:, 2] > 0)


@pytest.mark.usefixtures("heard")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "machine",
    [
        SVC(**SLOW),
        SVC(**SLOW, probability=True),
        SVC(tol=1e-12, approximation="nystroem", probability=True, random_state=0),
        NuSVC(nu=0.2, tol=1e-9),
        SVR(**SLOW),
        NuSVR(**SLOW),
        OneClassSVM(tol=1e-12),
    ],
    ids=str,
)
def test_kernel_machines_raise_ctrl_c_and_keep_their_models(machine):
    machine = clone(machine).set_params(callback=CtrlC())
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, TARGETS)
    ended = machine.status_ if hasattr(machine, "status_") else machine.certificate_.status
    assert ended == "interrupted"
    assert np.isfinite(machine.predict(X)).all()


@pytest.mark.usefixtures("heard")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ctrl_c_stops_searches():
    machine = SVC(**{**SLOW, "tol": 1e-5}, callback=CtrlC())
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(machine, {"C": [1e4, 1e5]}, cv=3).fit(X, y)
    scored = []

    def scorer(machine, X, y):
        scored.append(machine.score(X, y))
        if len(scored) == 4:
            CtrlC()(None)
        return scored[-1]

    for machine in (SVC(), SVC(max_iter=10**6)):  # with work that is shared, and without
        scored.clear()
        search = SVCSearchCV(machine, {"gamma": [0.1, 1.0, 10.0]}, cv=3, scoring=scorer)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X[:200], y[:200])
        found = search.cv_results_["mean_test_score"]
        assert found[0] == pytest.approx(np.mean(scored[:3]))
        assert np.isnan(found[1:]).all()
        assert not hasattr(search, "best_estimator_")


@pytest.mark.usefixtures("heard")
def test_a_warning_that_is_an_error_does_not_hide_ctrl_c():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyboardInterrupt):
            SVC(**SLOW, callback=CtrlC()).fit(X, y)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path):
    path = tmp_path / "fit.npz"
    script = FIT.replace("checkpoint=None", f"checkpoint={str(path)!r}")
    process = run(script + "\n    model.fit(X, y)\n", stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == "working"
    process.kill()
    process.wait()
    process.stdout.close()
    assert path.exists()
    model = SVC(gamma=0.5, C=1e5, tol=1e-2, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another fit"):
        model.fit(X + 1e-3, y)
    with pytest.raises(ValueError, match="belongs to another fit"):
        SVC(gamma=0.4, C=1e5, checkpoint=path).fit(X, y)
    assert path.exists()
    duals = []
    for start in (shutil.copy(path, tmp_path / "copy.npz"), None):
        with pytest.warns(ConvergenceWarning):
            one_step = SVC(gamma=0.5, C=1e5, tol=1e-12, max_iter=1, checkpoint=start).fit(X, y)
        duals.append(one_step.certificate_.dual)
    assert duals[0] > 10 * duals[1]  # a step from the checkpoint is far beyond one from zero
    model.fit(X, y)
    assert model.certificate_.converged
    assert not path.exists()  # complete: nothing is left to go on with


def test_checkpoints_of_unfinished_fits_stay(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning):
        SVC(C=10.0, max_iter=4000, checkpoint=path).fit(X, y)
    assert path.exists()
    model = SVC(C=10.0, checkpoint=str(path)).fit(X, y)
    assert model.n_iter_[0] < SVC(C=10.0).fit(X, y).n_iter_[0]
    for content in ("something else", ""):
        path.write_text(content)
        with pytest.raises(ValueError, match="not a checkpoint"):
            SVC(C=10.0, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="no folder"):
        SVC(checkpoint=tmp_path / "missing" / "fit.npz").fit(X, y)
    problem = duals.one_class(np.arange(3), np.ones(3), 0.5)
    assert Checkpoint(tmp_path / "none", X, None, [problem]).read() is None


def odd_checkpoints(fingerprint, alpha):
    """Files that are nearly checkpoints, and what is said of each."""
    alphas = {
        "not all finite": np.full_like(alpha, np.nan),
        r"float64 of shape \(3,\)": alpha[:3],
        r"float64 of shape \(1, 1500\)": alpha[None],
        "complex128": alpha.astype(complex),
        "<U3": np.full(len(alpha), "abc"),
        "other than numbers": np.array([None] * len(alpha)),
    }
    for said, array in alphas.items():
        yield said, lambda file, array=array: np.savez(file, fingerprint=fingerprint, beta0=array)
    yield "single array", lambda file: np.save(file, alpha)
    yield "beta0", lambda file: np.savez(file, fingerprint=fingerprint)

    def of_terabytes(file):
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in (("fingerprint", fingerprint), ("beta0", None)):
                with archive.open(f"{name}.npy", "w") as member:
                    if array is None:
                        np.lib.format.write_array_header_1_0(member, header)
                    else:
                        np.save(member, array)

    yield "not a checkpoint", of_terabytes


def test_files_that_are_nearly_checkpoints(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning):
        SVC(C=10.0, max_iter=10, checkpoint=path).fit(X, y)
    with np.load(path) as file:
        fingerprint, beta = file["fingerprint"], file["beta0"]
    for said, write in odd_checkpoints(fingerprint, beta):
        with path.open("wb") as file:
            write(file)
        with pytest.raises(ValueError, match=f"not a checkpoint.*({said})|{said}"):
            SVC(C=10.0, checkpoint=path).fit(X, y)


def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_fit(tmp_path, monkeypatch):
    worked = []
    for path in (tmp_path, tmp_path / ("long" * 100)):
        with pytest.raises(ValueError, match="cannot be written"):
            SVC(checkpoint=path, callback=worked.append).fit(X, y)
    assert not worked  # it was tried before

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    model = SVC(C=10.0, checkpoint=tmp_path / "fit.npz", checkpoint_interval=0.0)
    with pytest.warns(UserWarning, match="No space left on device.*goes on without") as said:
        model.fit(X, y)
    assert model.certificate_.converged
    assert len(said) == 1
    assert not list(tmp_path.iterdir())  # nor half a file


def test_what_a_killed_process_left_half_written_goes(tmp_path):
    path = tmp_path / "fit.npz"
    checkpoint = Checkpoint(path, X, None, [duals.one_class(np.arange(3), np.ones(3), 0.5)])
    checkpoint.write(checkpoint.betas)
    path.with_name("fit.npz.tmp").write_bytes(b"half")
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_knows_costs_and_weights(tmp_path):
    path, weight = tmp_path / "fit.npz", np.ones(len(y))
    with pytest.warns(ConvergenceWarning):
        SVC(C=1.0, max_iter=100, checkpoint=path).fit(X, y)
    weight[0] = 2.0
    for model, weights in [(SVC(C=2.0), None), (SVC(C=1.0), weight)]:
        with pytest.raises(ValueError, match="belongs to another fit"):
            model.set_params(checkpoint=path).fit(X, y, weights)
    SVC(C=1.0, checkpoint=path).fit(X, y)


def test_a_checkpoint_knows_nu_and_the_kernel(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning):
        NuSVC(nu=0.4, max_iter=100, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="belongs to another fit"):
        NuSVC(nu=0.5, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="must know its kernel again"):
        SVC(kernel=lambda A, B: A @ B.T, checkpoint=path).fit(X, y)


def test_the_folds_of_probabilities_have_the_time_that_is_left(monkeypatch):
    limits = []

    class Watched(out_of_fold.Monitor):
        def __init__(self, time_limit=None, **options):
            limits.append(time_limit)
            super().__init__(time_limit, **options)

    monkeypatch.setattr(out_of_fold, "Monitor", Watched)
    SVC(probability=True, time_limit=600.0).fit(X, y)
    SVC(probability=True).fit(X, y)
    some, none = limits
    assert 0 < some < 600
    assert none is None


def test_the_folds_of_probabilities_are_not_the_fit(tmp_path):
    """They report to nobody: a checkpoint and a callback belong to the problems of the fit."""
    path, seen = tmp_path / "fit.npz", []
    model = SVC(C=10.0, probability=True, checkpoint=path, callback=seen.append)
    model.fit(X, y).predict_proba(X)
    assert {progress.problem for progress in seen} == {0}
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    model = SVC(C=10.0, n_jobs=2).fit(X, y)
    child = os.fork()
    if not child:
        os._exit(int(not model.fit(X, y).certificate_.converged))
    for _ in range(600):
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
    assert finished
    assert os.waitstatus_to_exitcode(status) == 0


def test_overlapping_fits_leave_blas_as_it_was():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    fits = [threading.Thread(target=SVC(C=float(C)).fit, args=(X, y)) for C in range(1, 5)]
    for fit in fits:
        fit.start()
    for fit in fits:
        fit.join()
    assert threads() == before
    with pytest.raises(ValueError, match="n_jobs=0"):
        SVC(n_jobs=0).fit(X, y)


def test_other_threads_run_during_a_fit():
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.002):
            ticks.append(time.monotonic())

    clock = threading.Thread(target=tick)
    clock.start()
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning):
        SVC(**SLOW, time_limit=1.0, n_jobs=1).fit(X, y)
    took = time.monotonic() - began
    done.set()
    clock.join()
    assert len(ticks) > 50 * took  # of 500 a second, on a free machine


@pytest.mark.parametrize("installed", [True, False])
def test_the_bar_moves_forward_and_closes(installed, monkeypatch, capsys):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    bar = ProgressBar()
    for k, violation in enumerate([2.0, 4.0, 0.5, 0.02, 0.001]):
        words = "violation {violation:.2g}, {support_vectors} support vectors"
        where = {"variables": np.ones(7), "solves_for": "multipliers", "seconds": 2.0 * k}
        bar(Progress(0, "", k, violation, 1e-3, words=words, **where))
    assert bar.share[0] == pytest.approx(1.0)
    bar.close("converged", whole=True)
    shown = capsys.readouterr()
    assert "converged" in shown.out + shown.err
    assert ("7 support vectors" in shown.out) == (not installed)


def test_a_bar_is_full_only_at_the_end_and_cuts_no_number(capsys):
    pytest.importorskip("tqdm")
    sentence = "converged: optimal to a relative gap of 0.000123456789"
    words = "KKT violation {violation:.2g}, gap {gap:.2g}, 123456789 support vectors"
    progress = Progress(0, "", 1, 0.03, 1e-3, gap=1.0, seconds=1.0, words=words)
    for whole in (False, True):
        bar = ProgressBar()
        bar.bar.ncols = 60
        bar(replace(progress, violation=1.0))
        bar(progress)
        bar.close(sentence, whole)
        shown = capsys.readouterr().err
        assert sentence in shown
        assert ("100%" in shown) == whole
        assert max(map(len, shown.replace("\r", "\n").split("\n"))) <= 60
        assert "gap 1" in shown
        assert "1234567" not in shown.replace("123456789", "")


def test_whoever_watches_says_how_it_ended(capsys):
    with watched(1e-9, None, verbose=True) as monitor:
        assert monitor.stopped() is Status.TIME_LIMIT
    stopped = "".join(capsys.readouterr())
    assert "100%" not in stopped
    with watched(None, None, verbose=True) as monitor:
        monitor.end("mine", whole=True)
    with pytest.raises(ZeroDivisionError), watched(None, None, verbose=True):
        _ = 1 / 0
    shown = stopped + "".join(capsys.readouterr())
    assert [word in shown for word in ("time_limit", "mine", "failed")] == [True] * 3


@pytest.mark.filterwarnings("ignore:Maximum number")
@pytest.mark.parametrize(
    ("machine", "slow"),
    [
        (SVC(C=10.0), SVC(**SLOW)),
        (LinearSVC(loss="hinge"), LinearSVC(solver="sgd", tol=1e-12, max_iter=10_000)),
        (MCEClassifier(), MCEClassifier(tol=1e-15, max_iter=10_000)),
        (Perceptron(max_iter=3), Perceptron(tol=None, max_iter=10_000)),
    ],
    ids=["SVC", "LinearSVC", "MCEClassifier", "Perceptron"],
)
def test_scikit_learn_callbacks_are_called(machine, slow):
    pytest.importorskip("sklearn.callback")

    class Counting:
        def __init__(self, stop=False):
            self.calls, self.stop = [], stop

        def setup(self, estimator, context):
            self.calls.append("setup")

        def teardown(self, estimator, context):
            self.calls.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.calls.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.calls.append(f"end {context.task_name}")
            if context.task_name == "fit":
                assert fitted_estimator.predict(X).shape == (1500,)
            return self.stop

    counting = Counting()
    machine.set_callbacks(counting).fit(X, y)
    assert counting.calls[:2] == ["setup", "begin fit"]
    assert counting.calls[-2:] == ["end fit", "teardown"]
    assert counting.calls.count("begin report") == counting.calls.count("end report") > 0
    with pytest.warns(ConvergenceWarning, match="callback"):
        slow.set_callbacks(Counting(stop=True)).fit(X, y)


def test_a_fit_without_memory_names_cache_size(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2

    def empty(*args, **options):
        raise MemoryError("Unable to allocate 549. MiB")

    monkeypatch.setattr("maxmargin.gram.host.HostGram.prepare", empty)
    with pytest.raises(MemoryError, match=r"549. MiB. The fit of SVC .* lower cache_size"):
        SVC(cache_size=20).fit(X, y)


def test_qp_keeps_cache_size():
    """It took 1,650 MB at cache_size=20."""
    X, y = np.random.default_rng(0).normal(size=(700, 2)), np.arange(700) % 2
    with pytest.raises(ValueError, match=r"takes 29.9 MB, and cache_size allows 20 MB: raise"):
        SVC(solver="qp", cache_size=20).fit(X, y)
    assert SVC(solver="qp", cache_size=20).fit(X[:100], y[:100]).certificate_.converged

"""Child processes, threads, ignored signals, no home folder, and imports without a warning."""

import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC, ExtraTreesClassifier, LogisticRegression

X, y = load_iris(return_X_y=True)
POSIX = pytest.mark.skipif(os.name == "nt", reason="SIGINT means another thing there")


def answers():
    """Return values of fits that compute in kernels, in linear algebra, and in threads."""
    models = (
        SVC(C=10.0),
        LogisticRegression(),
        ExtraTreesClassifier(5, random_state=0, n_jobs=2),
    )
    return [
        getattr(model, "decision_function", getattr(model, "predict_proba", None))(X)
        for model in (model.fit(X, y) for model in models)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_child_processes_give_the_same_answers(method):
    expected = answers()
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found = pool.submit(answers).result(timeout=300)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_give_the_same_answers():
    expected = answers()
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: answers(), range(3)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


@POSIX
@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_a_signal_that_is_ignored_or_handled_elsewhere_stops_no_fit(handler):
    """Jobs that a shell starts in the background ignore SIGINT; the choice is not ours."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        model = SVC(callback=lambda progress: signal.raise_signal(signal.SIGINT)).fit(X, y)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.certificate_.converged


@POSIX
def test_tests_of_ctrl_c_set_the_handler_they_need(heard):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


QUIET = """
import warnings
import numpy, pandas, polars
import maxmargin
from maxmargin.testing import all_estimators

X = numpy.random.default_rng(0).normal(size=(30, 3))
y = (X[:, 0] > 0).astype(int)
frames = [pandas.DataFrame(X, columns=list("abc")), polars.DataFrame(X, schema=list("abc"))]
for frame, labels in zip(frames, (pandas.Series(y), polars.Series(y))):
    for model in (maxmargin.SVC(), maxmargin.LinearSVC(), maxmargin.DecisionTreeClassifier()):
        model.fit(frame, labels).predict(frame)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
for name in maxmargin.__all__:
    getattr(maxmargin, name)
all_estimators()
"""


@pytest.mark.slow
def test_without_a_home_and_with_warnings_as_errors(tmp_path):
    """Every public name is imported; pandas and polars are those installed, the newest."""
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    kept = ("PATH", "PYTHONPATH", "NUMBA_CACHE_DIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["HOME"] = str(tmp_path / "none")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", QUIET],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())

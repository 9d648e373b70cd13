"""Fits in other threads and in forked children: BLAS has one thread there, too."""

import os
import threading
import warnings

import numpy as np
import pytest
from contracts.common import count_calls
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification

import maxmargin
from maxmargin import SVC, SVR, LinearSVC, LogisticRegression
from maxmargin.backends.threads import (
    _blas_libraries,
    around_fit,
    on_one_blas_thread,
    thread_count,
)

X, y = make_classification(1200, 20, flip_y=0.1, random_state=0)


def blas_threads():
    return [library.num_threads for library in _blas_libraries(per_thread=False)]


def in_threads(*functions):
    """Results of functions that run at once, each in a thread of its own."""
    results = [None] * len(functions)

    def run(k):
        results[k] = functions[k]()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_blas_is_limited_in_whichever_thread():
    before, count = blas_threads(), thread_count(None)
    limited = on_one_blas_thread(blas_threads)
    assert set(limited()) == {1}  # the main thread has set a number, and could claim to own it
    assert set(in_threads(limited)[0]) == {1}
    assert blas_threads() == before
    entered, go_on = threading.Event(), threading.Event()

    @on_one_blas_thread
    def outlast():
        entered.set()
        go_on.wait()
        return blas_threads(), thread_count(None)

    @on_one_blas_thread
    def overlap():
        entered.wait()

    def other():
        entered.wait()
        return thread_count(None)

    def end():
        overlap()  # ends while the other goes on
        later = other()
        go_on.set()
        return later

    (inside, nested), outside = in_threads(outlast, end)
    assert set(inside) == {1}
    assert nested == 1  # no threads of ours inside of ours
    assert outside == count  # but a fit that happens to run elsewhere takes none away
    assert blas_threads() == before


@pytest.mark.parametrize(
    "machine", [SVC(), SVR(), LinearSVC(), LogisticRegression()], ids=lambda m: type(m).__name__
)
def test_a_thread_computes_the_same_bits_as_the_main_one(machine):
    def values():
        fitted = clone(machine).fit(X, y)
        return getattr(fitted, "decision_function", fitted.predict)(X)

    expected = values()
    for found in in_threads(values, values, values):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_forked_during_a_fit_of_another_thread_starts_afresh():
    before = blas_threads()
    entered, go_on = threading.Event(), threading.Event()

    @on_one_blas_thread
    def fit():
        entered.set()
        go_on.wait()

    thread = threading.Thread(target=fit)
    thread.start()
    entered.wait()
    limited = on_one_blas_thread(blas_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        child = os.fork()
    if not child:
        fresh = blas_threads() == before and set(limited()) == {1} and blas_threads() == before
        os._exit(int(not fresh))
    _, status = os.waitpid(child, 0)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert blas_threads() == before


ESTIMATORS = [
    cls
    for cls in (getattr(maxmargin, name) for name in maxmargin.__all__)
    if isinstance(cls, type) and issubclass(cls, BaseEstimator) and hasattr(cls, "fit")
]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_fit_holds_blas_to_one_thread(cls):
    before, count = blas_threads(), thread_count(None)

    class Probe(cls):
        def __init__(self):
            pass

        def fit(self, inner=None):
            self.seen = blas_threads(), thread_count(None)
            return self if inner is None else inner.fit()

    outer = Probe()
    nested = outer.fit(Probe())
    assert outer.seen == ([1] * len(before), count)  # its own threads may be as many as before
    assert nested.seen == ([1] * len(before), 1)
    assert blas_threads() == before
    assert thread_count(None) == count


def test_ctrl_c_anywhere_leaves_blas_as_it_was(heard):
    """Between any two calls of entering and leaving, too: later fits would be slow for ever."""
    before, count = blas_threads(), thread_count(None)
    calls = count_calls(around_fit(blas_threads))
    for moment in range(1, calls + 1):
        with pytest.raises(KeyboardInterrupt):
            count_calls(around_fit(blas_threads), interrupt_at=moment)
        assert blas_threads() == before
        assert thread_count(None) == count

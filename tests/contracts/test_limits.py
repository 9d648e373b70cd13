"""Fits that are limited, watched or stopped: the model answers, and says what it is."""

import signal
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from contracts.common import applies, assert_same, count_calls, ended, fit, is_usable, quietly
from maxmargin.backends import threads
from maxmargin.backends.cpu.linear import design
from maxmargin.estimators import base
from maxmargin.progress import Monitor


def takes(parameter):
    """Condition: the estimator has this parameter."""
    return lambda instance: parameter in instance.estimator.get_params(deep=False)


@pytest.fixture
def reports_at_once(monkeypatch):
    """Let every report reach its listeners, not a few in a second."""
    original = Monitor.__init__

    def eager(self, *args, **options):
        original(self, *args, **options)
        self.interval = 0.0

    monkeypatch.setattr(Monitor, "__init__", eager)


def is_same(ours, theirs, X):
    """Whether two models answer alike."""
    try:
        assert_same(ours, theirs, X, rtol=1e-9)
    except AssertionError:
        return False
    return True


def fit_and_hear(model, sample):
    """Fit; return the sentences of its warnings that it has not converged, or of its refusal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(sample.X, sample.y)
        except (TimeoutError, ValueError) as error:
            if "stopped" not in str(error) and "was over" not in str(error):
                raise
            return [str(error)]
    early = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert {w.filename for w in early} <= {__file__}  # where fit was called
    return [str(w.message) for w in early]


def is_marked(model, sample, sentences, *reasons):
    """Whether the model answers, and says that it ended for one of the reasons if it warns so."""
    told = [sentence for sentence in sentences if any(reason in sentence for reason in reasons)]
    if not is_usable(model, sample.new):
        assert sentences, "neither a model nor a word"
        return
    if ended(model) in reasons:
        assert sentences, "marked, and no word of it"
    if told and ended(model) is not None:
        assert ended(model) in reasons or "parts" in dir(model.certificate_), "a word, and no mark"


@applies(takes("n_jobs"))
def test_n_jobs_change_nothing(instance, monkeypatch):
    for module, least in ((threads, "_SHARE"), (design, "_SHARE"), (base, "SHARED_FROM")):
        monkeypatch.setattr(module, least, 1)  # so that little work is shared, too
    sample = instance.sample()
    one, two = (fit(instance.make_exact(n_jobs=n), sample) for n in (1, 2))
    assert_same(one, two, sample.new, rtol=1e-9)


@applies(takes("time_limit"))
def test_time_limit_leaves_a_marked_model(instance):
    sample = instance.sample()
    model = instance.make(time_limit=1e-9)
    is_marked(model, sample, fit_and_hear(model, sample), "time_limit", "time limit")
    with pytest.raises(ValueError, match="time_limit"):
        quietly(instance.make(time_limit=-1.0).fit, sample.X, sample.y)


@applies(takes("max_iter"))
def test_max_iter_leaves_a_marked_model(instance):
    sample = instance.sample()
    model = instance.make(max_iter=1)
    is_marked(model, sample, fit_and_hear(model, sample), "max_iter", "max_iter=1")


@applies(takes("callback"))
@pytest.mark.usefixtures("reports_at_once")
def test_callback_sees_and_stops(instance):
    sample, seen = instance.sample(), []
    plain = fit(instance.make(), sample)
    watched = fit(instance.make(callback=seen.append), sample)
    assert_same(watched, plain, sample.new, rtol=1e-3)
    for progress in seen:
        assert progress.steps >= 0
        assert len(str(progress)) > 3
    model = instance.make(callback=lambda progress: True)
    sentences = fit_and_hear(model, sample)
    is_marked(model, sample, sentences, "interrupted", "callback")

    def broken(progress):
        raise LookupError("mine")

    if seen:
        model = fit(instance.make(), sample)
        with pytest.raises(LookupError, match="mine"):
            fit(model.set_params(callback=broken), sample.rows(range(4, 42), instance.pairwise))
        assert_same(model, plain, sample.new, rtol=1e-9)


@applies(takes("trace"))
def test_trace_changes_nothing_and_has_steps(instance):
    sample = instance.sample()
    plain, traced = fit(instance.make(), sample), fit(instance.make(trace=True), sample)
    assert_same(traced, plain, sample.new, rtol=1e-3)
    steps = len(getattr(traced, "theta_", [0]))  # none, where a Gaussian process has no parameters
    assert len(traced.trace_) >= (steps > 0)
    assert not hasattr(plain, "trace_")


@applies(takes("verbose"))
def test_verbose_says_something(instance, capsys):
    sample, out, err = instance.sample(), sys.stdout, sys.stderr
    model = fit(instance.make(verbose=1), sample)
    said = capsys.readouterr()
    assert len(said.out + said.err) > 5
    assert (sys.stdout, sys.stderr) == (out, err)
    assert_same(model, fit(instance.make(verbose=0), sample), sample.new, rtol=1e-3)
    said = capsys.readouterr()
    assert said.out + said.err == ""


@applies(takes("callback"))
@pytest.mark.usefixtures("reports_at_once", "heard")
def test_ctrl_c_in_a_report_leaves_a_marked_model(instance):
    sample, seen = instance.sample(), []
    plain = fit(instance.make(), sample)

    def press(progress):
        seen.append(progress)
        if len(seen) == 1:  # a second one would not be caught
            signal.raise_signal(signal.SIGINT)

    model = instance.make(callback=press)
    try:
        fit(model, sample)
    except KeyboardInterrupt:
        assert seen
        assert not is_usable(model, sample.new) or ended(model) in ("interrupted", ended(plain))
    else:
        assert not seen


def test_ctrl_c_raises_and_leaves_a_model_or_none(instance, heard):
    """In a second fit: the model of the first, or what a solver had found of its own."""
    sample, other = instance.sample(), instance.sample(1)
    # with several threads the number of calls in this one hangs on how long it waits for the others
    one_thread = {"n_jobs": 1} if takes("n_jobs")(instance) else {}
    plain = fit(instance.make(**one_thread), sample)  # compiled
    calls = count_calls(partial(fit, instance.make(**one_thread), sample))
    for moment in np.random.default_rng(calls).uniform(0.0, 0.9, 3):
        model = instance.make(**one_thread)
        with pytest.raises(KeyboardInterrupt):
            count_calls(partial(fit, model, sample), 1 + int(moment * calls))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        is_usable(model, sample.new)
        assert_same(fit(model, sample), plain, sample.new, rtol=1e-9)
        try:
            count_calls(partial(fit, model, other), 1 + int(moment * calls))
        except KeyboardInterrupt as stop:  # other rows may be solved with fewer calls
            held = "the model holds what was found" in str(stop)
            if is_usable(model, sample.new) and not held:
                whole = fit(instance.make(**one_thread), other)
                assert is_same(model, plain, sample.new) or is_same(model, whole, sample.new)

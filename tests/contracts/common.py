"""What contracts share: whom they apply to, quiet fits, and comparing answers."""

import inspect
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

import maxmargin


def applies(condition):
    """Restrict a contract to the instances for which the condition is true."""

    def decorate(contract):
        contract.applies = condition
        return contract

    return decorate


def has(*methods):
    """Condition: the estimator has all of these methods or parameters."""

    def condition(instance):
        estimator = instance.estimator
        parameters = estimator.get_params(deep=False)
        return all(hasattr(estimator, name) or name in parameters for name in methods)

    return condition


def takes_weights(instance):
    """Condition: ``fit`` takes ``sample_weight``."""
    return has_fit_parameter(instance.estimator, "sample_weight")


def names_classes(instance):
    """Condition: ``predict`` returns one of ``classes_`` for each row."""
    return is_classifier(instance.estimator) and instance.target in ("classes", "two classes")


def of_numbers(instance):
    """Condition: X is a matrix of numbers with columns of its own."""
    return instance.data in ("numbers", "counts")


def quietly(call, *arguments, **options):
    """Return what a call returns, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **options)


def fit(estimator, sample, **options):
    """Fit without warnings."""
    return quietly(estimator.fit, sample.X, sample.y, **options)


def numbers_of(model, X):
    """Return the real-valued answers of a model, by the method they come from."""
    found = {}
    for method in ("decision_function", "predict_proba", "transform", "score_samples"):
        try:
            values = getattr(model, method)(X)
            for k, one in enumerate(values if isinstance(values, list) else [values]):
                found[f"{method} of {k}" if k else method] = np.asarray(one, dtype=float)
        except NotFittedError:
            raise
        except (AttributeError, NotImplementedError):
            continue
    if hasattr(model, "predict") and not is_classifier(model) and not is_outlier_detector(model):
        found["predict"] = np.asarray(model.predict(X), dtype=float)
    return found


def labels_of(model, X):
    """Return the predicted labels of a classifier or outlier detector, or None."""
    if hasattr(model, "predict") and (is_classifier(model) or is_outlier_detector(model)):
        labels = model.predict(X)
        return [sorted(one) for one in labels] if isinstance(labels, list) else np.asarray(labels)
    return None


def assert_same(ours, theirs, X, other=None, rtol=1e-4):
    """Two models answer alike: numbers to a part of their scale, labels where these do not tie."""
    other = X if other is None else other
    one, two = numbers_of(ours, X), numbers_of(theirs, other)
    assert one.keys() == two.keys()
    for method, values in one.items():
        assert values.shape == two[method].shape, method
        scale = max(1e-3, np.abs(two[method]).max(initial=0.0))
        np.testing.assert_allclose(values, two[method], rtol=0, atol=rtol * scale, err_msg=method)
    labels = labels_of(ours, X)
    if labels is not None:
        pairs = zip(labels, labels_of(theirs, other), strict=True)
        same = np.array([np.array_equal(a, b) for a, b in pairs])
        assert (same | near_tie(one, rtol)).all(), "predict"


def near_tie(numbers, rtol):
    """Return the rows on which the two largest values of a decision are equal but for rounding."""
    method = "decision_function" if "decision_function" in numbers else "predict_proba"
    near = False
    for values in [numbers[name] for name in numbers if name.startswith(method)]:  # of each output
        scale = 4 * rtol * max(1e-3, np.abs(values).max(initial=0.0))
        if values.ndim == 1:
            near |= np.abs(values) <= scale
        else:
            top = np.sort(values, axis=1)
            near |= top[:, -1] - top[:, -2] <= scale
    return near


def is_usable(model, X):
    """Whether a model answers; a model that is not fitted says so in the usual way."""
    try:
        found = quietly(numbers_of, model, X)
        if hasattr(model, "predict"):
            found["predict"] = quietly(model.predict, X)
    except NotFittedError:
        return False
    for method, values in found.items():
        if not isinstance(values, list) and np.asarray(values).dtype.kind == "f":
            assert np.isfinite(values).all(), method
    return True


def ended(model):
    """Return why a fit ended, as the model says, or None."""
    for holder in (model, getattr(model, "certificate_", None)):
        for name in ("status_", "status"):
            if hasattr(holder, name):
                return str(getattr(holder, name))
    return None


HOME = str(Path(maxmargin.__file__).parent)


def count_calls(work, interrupt_at=None):
    """Do some work; return how many calls it made in this package, with a Ctrl-C at one of them."""
    calls = 0

    def profile(frame, event, argument):
        nonlocal calls
        code = frame.f_code
        generates = code.co_flags & inspect.CO_GENERATOR  # Python ignores errors at their ends
        if event == "call" and code.co_filename.startswith(HOME) and not generates:
            calls += 1
            if calls == interrupt_at:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls

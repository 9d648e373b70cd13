"""Copies of an estimator answer as it does: pickle, joblib, skops, deepcopy, clone, repr."""

import copy
import copyreg
import io
import pickle

import joblib
import numpy as np
import pytest
import sklearn
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.discovery import all_estimators as all_of_scikit_learn

import maxmargin
from contracts.common import assert_same, fit
from maxmargin import kernels, multiclass


@pytest.fixture
def pair(instance):
    sample = instance.sample()
    return fit(instance.make(), sample), sample.new


def test_pickle_joblib_and_deepcopy(instance, pair, tmp_path):
    model, new = pair
    joblib.dump(model, tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in (*copies, joblib.load(tmp_path / "model")):
        assert_same(other, model, new, rtol=1e-12)
        assert str(getattr(other, "certificate_", "")) == str(getattr(model, "certificate_", ""))


def swap_bytes(array):
    """Reduce an array, for pickling, to one of the other byte order."""
    if array.dtype.hasobject:
        return array.__reduce__()
    return array.byteswap().view(array.dtype.newbyteorder()).__reduce__()


def test_pickles_of_a_computer_with_the_other_byte_order(instance, pair):
    model, new = pair
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.ndarray: swap_bytes}
    pickler.dump(model)
    assert_same(pickle.loads(file.getvalue()), model, new, rtol=1e-12)


def test_skops(instance, pair):
    model, new = pair
    dumped = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=dumped)
    known = ("maxmargin.", "scipy.sparse.", "sklearn.")
    assert all(name.startswith(known) for name in untrusted)
    assert_same(skops.io.loads(dumped, trusted=untrusted), model, new, rtol=1e-12)


def test_clone_is_not_fitted(instance, pair):
    model, new = pair
    other = clone(model)
    assert repr(other) == repr(instance.estimator)
    ask = other.predict if hasattr(other, "predict") else other.transform
    with pytest.raises(NotFittedError):
        ask(new)


def test_repr_rebuilds(instance):
    names = dict(all_of_scikit_learn())
    for holder in (kernels, multiclass, maxmargin):
        names.update({name: getattr(holder, name) for name in holder.__all__})
    names.update(inf=np.inf, nan=np.nan, array=np.array)
    for changed_only in (True, False):
        with sklearn.config_context(print_changed_only=changed_only):
            text = instance.estimator.__repr__(N_CHAR_MAX=10_000)
            rebuilt = eval(text, names)
            assert rebuilt.__repr__(N_CHAR_MAX=10_000) == text
    assert type(rebuilt) is type(instance.estimator)

"""Input that is no data is refused in words, before it reaches compiled code."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from contracts.common import applies, fit, of_numbers, quietly, takes_weights
from contracts.test_containers import takes_sparse
from maxmargin import Gram, is_separable
from maxmargin.bounds import mistake_bound
from maxmargin.kernels import RBF, Linear

HUGE = 10**400
OUT_OF_REACH = 1e308, 1e-320  # of products in float64


def refusal(call, *arguments, **options):
    """Return the sentence that a call is refused with, or None where it is not."""
    try:
        quietly(call, *arguments, **options)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def all_refused(call, cases):
    """Every case is refused in a sentence; say which are not."""
    said = {name: refusal(call, *arguments) for name, arguments in cases.items()}
    assert not [name for name, sentence in said.items() if sentence is None], "answered"
    assert not {name: s for name, s in said.items() if len(s.split()) < 4}, "no sentence"


def with_entry(X, value, dtype=None):
    """Return a copy with this value in its fourth row."""
    changed = np.array(X, dtype=dtype or X.dtype)
    changed[3, 1] = value
    return changed


def matrices(instance, X):
    """Yield what is no matrix of finite numbers, by name."""
    days = (np.asarray(X) * 10).astype("datetime64[D]")
    cases = {
        "infinite": with_entry(X, np.inf),
        "complex": X + 1j,
        "dates": days,
        "times": days - days[0],
        "frame of dates": pd.DataFrame(days.astype("datetime64[ns]")),
        "polars of dates": pl.DataFrame(days.astype("datetime64[us]")),
        "words": with_entry(X.astype(object), "word", object),
        "integer beyond float64": with_entry(X.astype(object), HUGE, object),
        "one axis": X[:, 0],
        "three axes": X[:, :, None],
        "no columns": X[:, :0],
        "None": None,
    }
    if not get_tags(instance.estimator).input_tags.allow_nan:
        cases["NaN"] = with_entry(X, np.nan)
    yield from cases.items()


@applies(of_numbers)
def test_matrices_that_are_no_data_are_refused(instance):
    sample = instance.sample()
    cases = dict(matrices(instance, sample.X))
    all_refused(instance.make().fit, {name: (X, sample.y) for name, X in cases.items()})
    none = None if sample.y is None else sample.y[:0]
    all_refused(instance.make().fit, {"no rows": (sample.X[:0], none)})
    model = fit(instance.make(), sample)
    ask = model.predict if hasattr(model, "predict") else model.transform
    new = {**cases, "too few columns": sample.new[:, :3], "no rows": sample.new[:0]}
    all_refused(ask, {name: (X,) for name, X in new.items()})


def corrupt(X):
    """Yield sparse matrices whose arrays point beyond themselves, by name."""

    def changed(container, name, position, value):
        S = container(X)
        getattr(S, name)[position] = value
        return S

    yield "beyond", changed(sp.csr_matrix, "indices", 5, 99)
    yield "negative", changed(sp.csr_matrix, "indices", 5, -1)
    yield "falling", changed(sp.csr_matrix, "indptr", 4, 1)
    yield "long", changed(sp.csr_matrix, "indptr", -1, 10**6)
    yield "columns", changed(sp.csc_array, "indices", 5, 99)
    yield "triplets", changed(sp.coo_matrix, "row", 5, 10**6)


@applies(takes_sparse)
def test_corrupt_sparse_matrices_are_refused(instance):
    sample = instance.sample()
    model = fit(instance.make(), sample)
    ask = model.predict if hasattr(model, "predict") else model.transform
    for name, S in corrupt(sample.X):
        assert "is broken" in str(refusal(instance.make().fit, S, sample.y)), name
        assert "is broken" in str(refusal(ask, S)), name
        if hasattr(model, "partial_fit"):
            classes = {"classes": np.unique(sample.y)} if is_classifier(model) else {}
            assert "is broken" in str(refusal(instance.make().partial_fit, S, sample.y, **classes))


@pytest.mark.parametrize(
    "use",
    [
        lambda S, y: RBF(1.0)(S),
        lambda S, y: RBF(1.0)(np.ones((3, 4)), S),
        lambda S, y: Linear().diag(S),
        lambda S, y: Gram.of(S, RBF(1.0)),
        lambda S, y: mistake_bound(S, y, w=np.ones(4), b=0.0),
        lambda S, y: is_separable(S, y),
    ],
    ids=["kernel", "right side", "diagonal", "Gram", "bound", "separability"],
)
def test_corrupt_sparse_matrices_are_refused_beside_the_estimators(use):
    X = np.random.default_rng(0).normal(size=(20, 4))
    for name, S in corrupt(X):
        assert "is broken" in str(refusal(use, S, np.arange(20) % 2)), name


@applies(lambda instance: instance.target in ("classes", "two classes", "number"))
def test_targets_that_are_none_are_refused(instance):
    sample = instance.sample()
    X, y, n = sample.X, sample.y, len(sample.y)
    cases = {
        "too few": (X, y[:-1]),
        "None": (X, None),
        "three axes": (X, np.ones((n, 2, 2))),
        "complex": (X, np.arange(n) + 1j),
        "NaN": (X, np.where(np.arange(n) == 2, np.nan, 1.0)),
        "infinite": (X, np.where(np.arange(n) == 2, np.inf, 1.0)),
    }
    if is_classifier(instance.estimator):
        cases["numbers"] = (X, np.random.default_rng(0).normal(size=n))
        cases["mixed types"] = (X, np.array([1, "a"] * (n // 2), dtype=object))
    if is_regressor(instance.estimator):
        cases["words"] = (X, np.array(["a", "b"] * (n // 2)))
        cases["beyond float64"] = (X, np.array([HUGE, 1] * (n // 2), dtype=object))
    all_refused(instance.make().fit, cases)


@applies(takes_weights)
def test_weights_that_are_none_are_refused(instance):
    sample = instance.sample()
    ones = np.ones(len(sample.X))
    at = np.arange(len(ones)) == 3
    cases = {
        "negative": np.where(at, -1.0, 1.0),
        "NaN": np.where(at, np.nan, 1.0),
        "infinite": np.where(at, np.inf, 1.0),
        "all zero": 0.0 * ones,
        "too few": ones[:-1],
        "two axes": np.column_stack([ones, ones]),
        "words": ones.astype(str).astype(object) + "a",
        "complex": ones + 1j,
        "1e308": np.where(at, 1e308, 1.0),
        "1e-320": np.where(at, 1e-320, 1.0),
        "all 1e308": 1e308 * ones,
        "all 1e-320": 1e-320 * ones,
    }

    def weighted(weights):
        instance.make().fit(sample.X, sample.y, sample_weight=weights)

    all_refused(weighted, {name: (weights,) for name, weights in cases.items()})


def real_parameters(instance):
    """Yield the parameters of an estimator that are real numbers, or may be."""
    for name, value in instance.estimator.get_params(deep=False).items():
        real = type(value) is float and value == value  # error_score=nan takes any number
        if name in ("gamma", "lam", "time_limit", "norm_bound") or real:
            yield name


def test_parameters_that_float64_cannot_hold_are_refused(instance):
    sample = instance.sample()
    for name in real_parameters(instance):
        for number in (HUGE, -HUGE, np.nan, "word", *OUT_OF_REACH):
            sentence = refusal(instance.make(**{name: number}).fit, sample.X, sample.y)
            assert name in str(sentence), f"{name}={str(number)[:9]}"


@applies(of_numbers)
def test_extreme_numbers_never_end_in_nan(instance):
    """Finite, however large or equal they are: refused in words, or answered with numbers."""
    sample = instance.sample()
    X, y = sample.X, sample.y
    one = None if y is None else y[:1]
    few = None if y is None else np.repeat(y[:1], len(y), axis=0)
    cases = {
        "1e308": (np.where(X > 0, 1e308, -1e308), y),
        "one entry of 1e308": (with_entry(X, 1e308), y),
        "1e-320": (1e-320 * X, y),
        "constant": (np.ones_like(X), y),
        "zero": (np.zeros_like(X), y),
        "one row": (X[:1], one),
        "one label": (X, few),
    }
    if is_regressor(instance.estimator):
        cases |= {f"targets of {size}": (X, size * (y + 1.0)) for size in (1e300, 1e160)}
    for name, (points, labels) in cases.items():
        model = instance.make()
        sentence = refusal(model.fit, points, labels)
        if sentence is not None:
            assert len(sentence.split()) > 3, name
            continue
        ask = model.predict if hasattr(model, "predict") else model.transform
        try:
            answers = quietly(ask, points)
        except ValueError as error:
            if len(str(error).split()) > 3:
                continue
            raise
        if np.asarray(answers).dtype.kind == "f":
            assert np.isfinite(answers).all(), name


@applies(lambda instance: "class_weight" in instance.estimator.get_params(deep=False))
def test_class_weights_that_are_none_are_refused(instance):
    sample = instance.sample()
    for weight in (HUGE, np.inf, np.nan, -1.0, *OUT_OF_REACH):
        given = [{label: weight} for label in np.atleast_1d(sample.y[0])]  # for each output
        model = instance.make(class_weight=given if sample.y.ndim > 1 else given[0])
        assert "class_weight" in str(refusal(model.fit, sample.X, sample.y)), str(weight)[:9]

"""The same numbers in other containers give the same answer."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.utils import _indexing, get_tags

from contracts.common import applies, assert_same, fit, of_numbers, quietly

NAMES = ["a", "b", "c", "d"]


def read_only(X, folder):
    """Return the values in a file that is mapped, and cannot be written to."""
    path = folder / f"{len(X)}.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def strided(X):
    """Return the values as every other row and column of a larger matrix."""
    larger = np.full((2 * X.shape[0], 2 * X.shape[1]), np.nan, dtype=X.dtype)
    larger[::2, ::2] = X
    return larger[::2, ::2]


def is_same(instance, convert, rtol=1e-6):
    sample = instance.sample()
    plain = fit(instance.make_exact(), sample)
    X, new = convert(sample.X), convert(sample.new)
    other = quietly(instance.make_exact().fit, X, sample.y)
    assert_same(other, plain, new, sample.new, rtol=rtol)


def takes_sparse(instance):
    """Condition: X may be a sparse matrix of numbers."""
    return of_numbers(instance) and get_tags(instance.estimator).input_tags.sparse


@applies(takes_sparse)
def test_sparse_is_dense(instance):
    for convert in (sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        is_same(instance, convert, rtol=1e-5)


@applies(takes_sparse)
def test_mostly_zero_is_dense(instance):
    """Entries by column, which are compiled loops of their own; above, rows may be written out."""

    def padded(X):
        return np.insert(X, [2] * 36, 0.0, axis=1)

    sample = instance.sample()
    sample = sample._replace(X=padded(sample.X), new=padded(sample.new))
    dense = fit(instance.make_exact(), sample)
    sparse = fit(instance.make_exact(), sample._replace(X=sp.csr_array(sample.X)))
    assert_same(sparse, dense, sp.csr_array(sample.new), sample.new, rtol=1e-5)
    assert_same(sparse, dense, sample.new, rtol=1e-5)
    assert_same(dense, sparse, sp.csr_array(sample.new), rtol=1e-5)


@pytest.mark.slow
@applies(takes_sparse)
def test_long_indices_are_short_ones(instance):
    def with_long_indices(X):
        S = sp.csr_array(X)
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        return S

    is_same(instance, with_long_indices, rtol=1e-5)


@applies(lambda instance: of_numbers(instance) or instance.pairwise)
def test_float32_is_near(instance):
    is_same(instance, lambda X: X.astype(np.float32), rtol=2e-3)


@pytest.mark.slow  # each is compiled anew
@applies(lambda instance: of_numbers(instance) or instance.pairwise)
def test_layouts_are_equal(instance, tmp_path):
    is_same(instance, np.asfortranarray)
    is_same(instance, strided)
    is_same(instance, lambda X: read_only(X, tmp_path))
    is_same(instance, lambda X: X.tolist())


@applies(of_numbers)
def test_frames_are_equal(instance):
    def pandas(X):
        return pd.DataFrame(X, columns=NAMES, index=range(7, 7 + len(X)))

    def nullable(X):
        return pandas(X).convert_dtypes().astype({"a": "Float64", "b": "Float32[pyarrow]"})

    def categorical(X):
        return pandas(X).assign(a=pandas(X)["a"].astype("category"))

    for convert in (pandas, nullable, categorical):
        is_same(instance, convert, rtol=1e-4)
    is_same(instance, lambda X: pl.DataFrame(X, schema=NAMES))
    if hasattr(_indexing, "is_pyarrow_data"):  # older versions of scikit-learn split no table
        is_same(instance, lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))))


@applies(lambda instance: instance.target in ("classes", "two classes", "number"))
def test_targets_in_other_containers(instance):
    sample = instance.sample()
    plain = fit(instance.make_exact(), sample)
    index = range(7, 7 + len(sample.y))
    kinds = [sample.y.tolist(), pd.Series(sample.y, index=index), pl.Series(sample.y)]
    if instance.target == "number":
        kinds += [pd.Series(sample.y, dtype="Float64"), sample.y[:, None]]
    else:
        kinds += [pd.Series(sample.y, dtype="category"), pd.Series(sample.y, dtype="string")]
        kinds += [sample.y.astype(object)]
    for y in kinds:
        other = fit(instance.make_exact(), sample._replace(y=y))
        if np.ndim(y) == 2:
            other_new = np.ravel(other.predict(sample.new))
            np.testing.assert_allclose(other_new, plain.predict(sample.new), rtol=1e-6)
        else:
            assert_same(other, plain, sample.new, rtol=1e-6)


@applies(of_numbers)
def test_nothing_that_was_given_is_changed(instance):
    sample = instance.sample()
    X, y = sample.X.copy(), None if sample.y is None else sample.y.copy()
    parameters = repr(instance.estimator)
    model = instance.make()
    fit(model, sample)
    np.testing.assert_array_equal(sample.X, X)
    if y is not None:
        np.testing.assert_array_equal(sample.y, y)
    assert repr(model) == parameters

"""Regression with several outputs: as many machines as outputs, over the same data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.exceptions import DataConversionWarning

from maxmargin import SVR, GridSearchCV, LinearSVR, NuSVR
from maxmargin.plotting import plot_tube

X, y = load_diabetes(return_X_y=True)
X, y = X[:120] / X.std(axis=0), (y[:120] - y.mean()) / y.std()
T = np.column_stack([y, np.sin(3 * X[:, 2]), 0.5 * y + X[:, 8] ** 2])
WEIGHT = np.arange(120) % 4
MACHINES = {
    "SVR": SVR(gamma=0.05, C=2.0),
    "NuSVR": NuSVR(gamma=0.05, C=2.0, nu=0.4),
    "linear kernel": SVR(kernel="linear", C=0.1),
    "hard tube": SVR(gamma=0.5, C=np.inf, epsilon=0.3),
    "LinearSVR": LinearSVR(epsilon=0.2),
}


def outputs(values):
    """One array for each output, however the attribute has them."""
    return list(np.atleast_2d(values.T if np.ndim(values) == 2 else values))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("name", MACHINES)
def test_each_output_is_a_machine_of_its_own(name, weight):
    """Objectives agree as far as both certificates know them, and so do the values."""
    model = MACHINES[name].fit(X, T, sample_weight=weight)
    assert model.predict(X).shape == T.shape
    parts, values = model.certificate_.parts, model.predict(X)
    assert len(parts) == 3
    assert model.certificate_.converged
    assert model.intercept_.shape == (3,)
    for k in range(3):
        alone = MACHINES[name].fit(X, T[:, k], sample_weight=weight)
        assert alone.predict(X).ndim == 1
        assert parts[k].dual <= alone.certificate_.primal * (1 + 1e-9) + 1e-9
        assert alone.certificate_.dual <= parts[k].primal * (1 + 1e-9) + 1e-9
        np.testing.assert_allclose(values[:, k], alone.predict(X), atol=0.02)


def test_what_a_machine_knows_of_its_outputs():
    model = NuSVR(gamma=0.05, nu=0.4).fit(X, T)
    assert model.dual_coef_.shape == (3, len(model.support_))
    np.testing.assert_array_equal(model.n_support_, np.count_nonzero(model.dual_coef_, axis=1))
    assert model.slack_.shape == T.shape
    off = np.abs(model.predict(X) - T) - model.epsilon_
    np.testing.assert_allclose(model.slack_, np.maximum(0.0, off), atol=1e-9)
    norms = [a @ model.kernel_(X[model.support_]) @ a for a in model.dual_coef_]
    np.testing.assert_allclose(model.margin_, 1 / np.sqrt(norms), rtol=1e-6)
    assert model.n_iter_.shape == (3,)
    sparse = SVR(kernel="linear", C=0.1).fit(sp.csr_array(X), T)
    assert sp.issparse(sparse.dual_coef_)
    dense = SVR(kernel="linear", C=0.1).fit(X, T)
    np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-3)
    values = X @ dense.coef_.T + dense.intercept_
    np.testing.assert_allclose(dense.predict(X), values, atol=1e-9)
    again = SVR(gamma=0.05, warm_start=True).fit(X, T).fit(X, T)
    assert again.n_iter_.max() <= 2
    with pytest.raises(ValueError, match="draws one curve"):
        plot_tube(SVR().fit(X[:, :1], T), X[:, :1], T)


def test_one_column_is_one_output_as_in_scikit_learn():
    with pytest.warns(DataConversionWarning):
        model = SVR(gamma=0.05).fit(X, T[:, :1])
    assert model.predict(X).shape == (120,)


def test_streams_keep_their_outputs():
    model = LinearSVR(lam=0.1, solver="sgd").partial_fit(X, T).partial_fit(X, T)
    assert model.predict(X).shape == T.shape
    with pytest.raises(ValueError, match="2 outputs, and the rows before had 3"):
        model.partial_fit(X, T[:, :2])


@pytest.mark.parametrize(
    "machine", [SVR(gamma=0.05), LinearSVR(epsilon=0.2)], ids=["SVR", "linear"]
)
def test_a_search(machine):
    """Kernel machines are then fitted one by one, and the search says so; linear ones share."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(machine, {"C": [0.1, 1.0]}, cv=2).fit(X, T)
    assert search.predict(X).shape == T.shape
    if isinstance(machine, SVR):
        assert "y should be a 1d array" in search.sharing_.why(0)
    else:
        assert search.sharing_.shared.all()

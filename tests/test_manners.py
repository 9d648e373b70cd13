"""scikit-learn's manners: search, pipelines, data frames, persistence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, Perceptron
from maxmargin.kernels import RBF, Linear, Polynomial

X, y = load_iris(return_X_y=True)


def test_grid_search_reaches_into_kernels():
    grid = {"kernel__k1__gamma": [1e-4, 0.5], "kernel__k2__degree": [1, 2], "C": [1, 10]}
    search = GridSearchCV(SVC(kernel=0.5 * RBF() + Polynomial(degree=2)), grid, cv=3).fit(X, y)
    best = search.best_estimator_
    assert best.kernel.k1.kernel.gamma == search.best_params_["kernel__k1__gamma"]
    assert best.kernel_.k2.degree == search.best_params_["kernel__k2__degree"]
    assert search.best_score_ > 0.95
    kernels = GridSearchCV(SVC(), {"kernel": ["linear", RBF(0.1), Linear() + 1]}, cv=3).fit(X, y)
    assert kernels.best_score_ > 0.95


def test_the_pairwise_tag_follows_through_compositions():
    from maxmargin.kernels import Precomputed

    K = X @ X.T
    plain = cross_val_score(SVC(kernel="linear"), X, y, cv=3)
    for kernel in ("precomputed", Precomputed(), 1.0 * Precomputed() + 0.0):
        np.testing.assert_array_equal(cross_val_score(SVC(kernel=kernel), K, y, cv=3), plain)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_column_names_reach_the_kernel(frame):
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame(dict(zip(names, X.T, strict=True)))
    kernel = RBF(0.5).on(["petal length", "petal width"]) + Linear().on("sepal width")
    model = SVC(kernel=kernel).fit(table, y)
    same = SVC(kernel=RBF(0.5).on([2, 3]) + Linear().on(1)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(table), same.decision_function(X))
    assert model.feature_names_in_.tolist() == names
    assert model.kernel_.k1.columns == (2, 3)
    piped = make_pipeline(StandardScaler().set_output(transform="pandas"), SVC(kernel=kernel))
    assert piped.fit(table, y).score(table, y) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]])


def test_float32_stays_float32():
    model = SVC().fit(X.astype(np.float32), y)
    assert model.support_vectors_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float64


def test_sklearn_parameters_are_all_there():
    from sklearn import svm

    for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM):
        theirs = getattr(svm, machine.__name__)().get_params()
        ours = machine().get_params()
        assert set(theirs) <= set(ours)
        same = {name for name in theirs if theirs[name] == ours[name]}
        assert set(theirs) - same <= {"cache_size", "probability"}
        machine(**theirs).fit(X[:100], y[:100])


@pytest.mark.filterwarnings("ignore:Attribute `prob")
def test_sklearn_attributes_are_all_there():
    from sklearn import svm

    for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM):
        parameters = {"nu": 0.2} if "Nu" in machine.__name__ else {}
        theirs = getattr(svm, machine.__name__)(**parameters).fit(X, y)
        ours = machine(**parameters).fit(X, y)
        for name in dir(theirs):
            if name.endswith("_") and not name.startswith("_") and name not in ("coef_",):
                value = getattr(theirs, name)
                if name not in ("support_", "support_vectors_", "dual_coef_"):  # ties
                    assert np.shape(getattr(ours, name)) == np.shape(value), name
                assert np.ndim(getattr(ours, name)) == np.ndim(value), name
                assert np.asarray(getattr(ours, name)).dtype.kind == np.asarray(value).dtype.kind


def test_multiclass_shapes_of_margin_and_slack():
    model = SVC(kernel="linear").fit(X, y)
    assert model.margin_.shape == (3,)
    np.testing.assert_allclose(model.margin_, 1 / np.linalg.norm(model.coef_, axis=1))
    assert model.slack_.shape == (3, 150)
    np.testing.assert_array_equal(np.isnan(model.slack_[0]), y == 2)
    binary = SVC(kernel="linear").fit(X[:100], y[:100])
    assert isinstance(binary.margin_, float)
    assert binary.slack_.shape == (100,)


@pytest.mark.parametrize("machine", [SVC(), OneClassSVM(), LinearSVC(), Perceptron()])
def test_columns_of_the_same_name_are_refused(machine):
    twins = pd.DataFrame(X, columns=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match=r"same name, 'a' \(2 times\).*rename"):
        machine.fit(twins, y)

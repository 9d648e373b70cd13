"""Estimators as scikit-learn's, and the default accuracy of logistic regression."""

import numpy as np
import pytest
import sklearn.linear_model
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from maxmargin import (
    SVC,
    SVR,
    LeastSquaresClassifier,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    Ridge,
)
from maxmargin.kernels import RBF, Laplacian, Polynomial

X, y = load_iris(return_X_y=True)
MODELS = [LogisticRegression(), LinearSVC(), LinearSVR(), LinearRegression(), Ridge(), Perceptron()]


@pytest.mark.filterwarnings("ignore:.*failed to converge")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_what_is_exported_predicts_the_same(model, classes):
    rows = y < classes
    ours = clone(model).fit(X[rows], y[rows])
    theirs = ours.to_sklearn()
    assert type(theirs).__module__.startswith("sklearn.")
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(ours, name) and hasattr(theirs, name):
            answer = getattr(theirs, name)(X[rows])
            np.testing.assert_allclose(answer, getattr(ours, name)(X[rows]), atol=1e-12)
    clone(theirs).fit(X[rows], y[rows])  # its parameters are valid


KERNELS = ["rbf", "linear", "poly", "sigmoid", "precomputed", RBF(0.3), Polynomial(2, coef0=1.0)]
SVMS = [SVC(), NuSVC(nu=0.1), SVR(), NuSVR(), OneClassSVM()]


@pytest.mark.filterwarnings("ignore:The kernel Sigmoid", "ignore:The only solution here")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("model", SVMS, ids=str)
def test_what_a_kernel_exports_predicts_the_same(model, kernel, classes):
    rows = y < classes
    points = scale(X[rows])
    new = points + 0.1  # on margins, where signs are those of rounding, a training row may be
    containers = [np.asarray, csr_matrix]
    if kernel == "precomputed":
        points, new, containers = points @ points.T, new @ points.T, [np.asarray]
    for container in containers:
        data = container(points)
        ours = clone(model).set_params(kernel=kernel).fit(data, y[rows])
        theirs = ours.to_sklearn()
        assert type(theirs).__module__.startswith("sklearn.")
        new_data, sure = container(new), slice(None)
        if hasattr(ours, "decision_function"):
            values = ours.decision_function(new_data)
            np.testing.assert_allclose(theirs.decision_function(new_data), values, atol=1e-9)
            sure = np.abs(values) > 1e-9 if values.ndim == 1 else sure  # zero with w = 0
        answers = (each.predict(new_data)[sure] for each in (ours, theirs))
        np.testing.assert_allclose(*answers, atol=1e-9)
        clone(theirs).fit(data, y[rows])  # its parameters are valid


def test_what_scikit_learn_does_not_have_is_not_exported():
    with pytest.raises(TypeError, match="has no class for this LeastSquaresClassifier"):
        LeastSquaresClassifier().fit(X, y).to_sklearn()
    with pytest.raises(TypeError, match="by multiclass='ovo'"):
        LinearSVC(multiclass="ovo").fit(X, y).to_sklearn()
    for model, why in (
        (SVC(kernel=Laplacian(0.5)), "none of LIBSVM's"),
        (SVC(kernel=Polynomial(2.5)), "of whole degrees"),
        (SVC(multiclass="ovr"), "by multiclass='ovr'"),
        (SVC(multiclass="dag"), "by multiclass='dag'"),
        (SVC(approximation="nystroem"), "features in place"),
    ):
        with pytest.raises(TypeError, match=why):
            model.fit(X, y).to_sklearn()
    with pytest.raises(TypeError, match="2 outputs"):
        SVR().fit(X, X[:, :2]).to_sklearn()


@pytest.mark.parametrize("base", [SVC, LinearSVC, LogisticRegression])
def test_subclasses_are_exported(base):
    model = type("Own", (base,), {})().fit(X, y)
    assert type(model.to_sklearn()).__name__ == base.__name__


def test_an_export_says_whether_the_fit_was_finished():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        ours = SVC(max_iter=2, class_weight={0: 3.0}).fit(X, y)
    theirs = ours.to_sklearn()
    assert theirs.fit_status_ == ours.fit_status_ == 1
    assert theirs.class_weight_.tolist() == [3.0, 1.0, 1.0]


def test_trace_says_what_to_do():
    model = LinearSVC().fit(X, y)
    assert not hasattr(model, "trace_")
    with pytest.raises(AttributeError, match="fit it with trace=True"):
        _ = model.trace_


@pytest.mark.parametrize("C", [1e-3, 1e-2, 0.1, 1.0, 100.0])
def test_the_default_is_at_least_as_exact_as_scikit_learns(C):
    truth = LogisticRegression(C=C, tol=1e-12, max_iter=-1).fit(X, y).coef_
    ours = LogisticRegression(C=C).fit(X, y).coef_
    theirs = sklearn.linear_model.LogisticRegression(C=C, max_iter=1000).fit(X, y).coef_
    assert np.linalg.norm(ours - truth) <= np.linalg.norm(theirs - truth)

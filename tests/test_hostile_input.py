"""Input that would reach other people's memory, or end in nan: every machine refuses it."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_regressor

from maxmargin import (
    SVC,
    SVR,
    Gram,
    LeastSquaresClassifier,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    SVCSearchCV,
    is_separable,
)
from maxmargin.bounds import mistake_bound
from maxmargin.kernels import RBF, Linear

RANDOM = np.random.default_rng(0)
X = np.round(RANDOM.normal(size=(20, 3)), 1)
y = np.arange(20) % 2
KERNEL = [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()]
LINEAR = [
    LinearSVC(lam=0.1),
    LinearSVC(dual=True),
    LogisticRegression(lam=0.1),
    LinearSVR(lam=0.1),
    Perceptron(),
    Perceptron(kernel=RBF(1.0)),
    LinearRegression(),
    LeastSquaresClassifier(),
    MCEClassifier(),
]
machines = pytest.mark.parametrize("machine", KERNEL + LINEAR, ids=repr)


def broken(how):
    S = sp.csr_matrix(X)
    if how == "beyond":
        S.indices[5] = 99
    elif how == "negative":
        S.indices[5] = -1
    elif how == "falling":
        S.indptr[4] = S.indptr[3] - 2
    elif how == "long":
        S.indptr[-1] = 10**6
    elif how == "columns":
        S = S.tocsc()
        S.indices[5] = 99
    else:
        S = S.tocoo()
        S.row[5] = 10**6
    return S


BROKEN = ["beyond", "negative", "falling", "long", "columns", "triplets"]


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    "use",
    [
        lambda S: RBF(1.0)(S),
        lambda S: RBF(1.0)(X, S),
        lambda S: Linear().diag(S),
        lambda S: Gram.of(S, RBF(1.0)),
        lambda S: SVCSearchCV({"C": [1.0]}, cv=2).fit(S, y),
        lambda S: mistake_bound(S, y, w=np.ones(3), b=0.0),
        lambda S: is_separable(S, y),
    ],
    ids=["kernel", "right side", "diagonal", "Gram", "search", "bound", "separability"],
)
def test_corrupt_sparse_data_beside_the_machines(use, how):
    with pytest.raises(ValueError, match="is broken"):
        use(broken(how))


def numbers_of(machine):
    """Names of a machine's parameters that are real numbers, or may be."""
    for name, value in machine.get_params(deep=False).items():
        if name in ("gamma", "lam", "time_limit", "norm_bound") or type(value) is float:
            yield name


@machines
@pytest.mark.parametrize("number", [10**400, 1e308, 1e-320], ids=["10**400", "1e308", "1e-320"])
def test_parameters_that_float64_cannot_compute_with(machine, number):
    for name in numbers_of(machine):
        with pytest.raises(ValueError, match=name):
            clone(machine).set_params(**{name: number}).fit(X, y)


@machines
def test_weights_and_targets_that_float64_cannot_compute_with(machine):
    if "sample_weight" in inspect.signature(machine.fit).parameters:
        for weight in (1e308, 1e-320):
            for rows in (slice(None), slice(3, 4)):
                weights = np.ones(20)
                weights[rows] = weight
                with pytest.raises(ValueError, match="sample_weight"):
                    clone(machine).fit(X, y, sample_weight=weights)
    if "class_weight" in machine.get_params():
        for weight in (np.inf, 1e308, 1e-320, 10**400):
            with pytest.raises(ValueError, match="class_weight"):
                clone(machine).set_params(class_weight={0: weight}).fit(X, y)
    if is_regressor(machine):
        for scale in (1e300, 1e160):
            with pytest.raises(ValueError, match="scale y"):
                clone(machine).fit(X, scale * (y + 1.0))

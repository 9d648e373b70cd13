"""Bad input, and the sentence that each gets."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.kernels import RBF, FunctionKernel, Polynomial, Precomputed, Sigmoid

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(20, 3))
y = np.arange(20) % 2
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
CLASSIFIERS = [SVC, NuSVC]


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_one_class_and_continuous_labels(machine, random):
    with pytest.raises(ValueError, match="1d array"):
        machine().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        machine().fit(X, np.ones(20))
    with pytest.raises(ValueError, match="Unknown label type"):
        machine().fit(X, random.normal(size=20))


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_a_class_whose_weights_are_all_zero(machine):
    with pytest.raises(ValueError, match="belong to the same class"):
        machine().fit(X, y, sample_weight=y)
    three = np.arange(20) % 3
    with pytest.raises(ValueError, match=r"class\(es\) \[1\] have weight zero"):
        machine().fit(X, three, sample_weight=three != 1)
    with pytest.raises(ValueError, match=r"class\(es\) \[0\] have weight zero"):
        machine(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, three)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (SVC(lam=0.1, C=2.0), "Give C or lam, not both"),
        (SVR(lam=0.1, C=2.0), "Give C or lam, not both"),
        (SVC(kernel=RBF(), gamma=0.1), "gamma cannot be set beside the kernel object"),
        (SVC(kernel=RBF(), degree=2, coef0=1.0), "degree, coef0 cannot be set beside"),
        (SVC(kernel=RBF().on(["age"])), "no column names"),
        (SVC(break_ties=True, decision_function_shape="ovo"), "break_ties must be False"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_parameters(machine, message):
    with pytest.raises(ValueError, match=message):
        machine.fit(X, y).predict(X)


def test_infeasible_nu_names_the_feasible_range():
    few = (np.arange(20) < 4).astype(int)
    with pytest.raises(ValueError, match=r"nu is infeasible.*0 < nu <= 0\.4$"):
        NuSVC(nu=0.5).fit(X, few)
    assert NuSVC(nu=0.4).fit(X, few).certificate_.converged
    with pytest.warns(ConvergenceWarning, match="w = 0.*Raise nu"):
        model = NuSVC(nu=0.01, kernel="linear").fit(X[:, :1], y)
    assert model.certificate_.status == "trivial"
    assert model.fit_status_ == 1
    assert np.isfinite(model.decision_function(X[:, :1])).all()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF, r"write RBF\(\)"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "returned NaN"),
        (lambda a, b: np.exp(1e4 * (a @ b.T) ** 2), "returned infinity"),
        (lambda a, b: a[:, :1] + 0 * b[:, 0], "not symmetric"),
        (lambda a, b: np.ones(3), "must return one value per pair"),
        (lambda a, b: (a @ b.T).astype(complex), "Complex data not supported"),
        (FunctionKernel(lambda a, b: (a @ b.T).astype(str)), "must return real numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_kernels_that_are_no_kernels_are_found_before_the_solve(kernel, message, monkeypatch):
    monkeypatch.setattr(
        "maxmargin.svm.base.solve_certified", None
    )  # it would be an error to get there
    with pytest.raises(ValueError, match=message):
        SVC(kernel=kernel).fit(X, y)


@pytest.mark.parametrize("machine", ALL)
def test_precomputed_matrices(machine):
    K = RBF(gamma=1.0)(X)
    with pytest.raises(ValueError, match=r"must be a square matrix\. Input is a 20x3 matrix"):
        machine(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        machine(kernel=2 * Precomputed()).fit(sp.csr_matrix(K), y)
    with pytest.raises(ValueError, match="not symmetric"):
        machine(kernel="precomputed").fit(K + np.triu(np.ones_like(K)), y)


@pytest.mark.parametrize("machine", ALL)
def test_coefficients_need_the_linear_kernel(machine):
    model = machine().fit(X, y)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = model.coef_


def test_what_float64_cannot_resolve_says_so():
    with pytest.warns(ConvergenceWarning, match="StandardScaler"):
        model = SVC(kernel="linear", C=1e4).fit(X * 1e6 + 1e7, y)
    assert model.certificate_.status == "stalled"
    assert model.fit_status_ == 1


def test_a_failing_kernel_function_is_told_what_it_gets():
    with pytest.raises(ValueError, match=r"aligned|mismatch") as caught:
        SVC(kernel=lambda a, b: np.dot(a, b)).fit(X, y)
    assert "raised by the kernel function" in "".join(caught.value.__notes__)


def test_numbers_that_overflow_are_not_called_converged():
    for machine in ALL:
        with pytest.raises(ValueError, match=r"infinity|not finite|NaN"):
            machine(kernel="linear").fit(X * 3e160, y)
    model = SVC(kernel=Polynomial(degree=200, coef0=0.0)).fit(X / 10, y)
    with pytest.raises(ValueError, match="returned"):
        model.predict(X * 1e4)


def test_large_kernel_values_are_not_called_trivial(random):
    points = random.normal(size=(100, 3)) * 1e3
    with pytest.warns(ConvergenceWarning, match="Solver terminated early"):
        model = SVC(kernel="linear", C=1e6).fit(points, random.integers(2, size=100))
    assert model.certificate_.status == "stalled"
    assert "not optimal" in str(model.certificate_)


def test_negative_class_weights_and_indefinite_hard_margins():
    with pytest.raises(ValueError, match="must not be negative"):
        SVC(class_weight={0: -1.0, 1: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="positive semidefinite kernel"):
        SVC(kernel=Sigmoid(1.0, -1.0), C=np.inf).fit(X, y)


def test_the_one_class_machine_of_centred_data_and_a_linear_kernel_is_trivial():
    with pytest.warns(ConvergenceWarning, match="w = 0"):
        model = OneClassSVM(kernel="linear", nu=0.2).fit(X - X.mean(axis=0))
    assert model.certificate_.status == "trivial"


@pytest.mark.parametrize("degree", [3, 4])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_one_huge_row_does_not_blur_the_others(degree, weight, random):
    points = random.normal(size=(200, 3)) + 3
    points[0] = 300.0
    weights = np.where(np.arange(200) == 0, weight, 1.0)
    settings = {"kernel": "poly", "degree": degree, "gamma": 1.0, "coef0": 1.0}
    model = OneClassSVM(**settings, nu=0.1, tol=1e-6).fit(points, sample_weight=weights)
    assert model.certificate_.converged
    assert 15 <= (model.predict(points) == -1).sum() <= 21
    classes = (points[:, 0] > 3).astype(int)
    assert NuSVC(**settings, nu=0.3).fit(points, classes).certificate_.converged


def test_a_small_margin_is_not_called_trivial():
    random = np.random.default_rng(178)
    points = random.normal(size=(20, 8))
    classes = (points[:, 0] + 0.5 * random.normal(size=20) > 0).astype(int)
    model = NuSVC(kernel="linear", nu=0.4).fit(points * 0.01, classes)
    assert model.certificate_.converged
    exact = NuSVC(kernel="linear", nu=0.4, tol=1e-9).fit(points * 0.01, classes)
    assert (model.predict(points) == exact.predict(points)).all()

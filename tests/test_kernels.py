"""Kernels: values, construction rules, validity, manners."""

import operator
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.gaussian_process import kernels as processes
from sklearn.metrics import pairwise

import maxmargin.kernels as kernels
from maxmargin import SVC, Gram
from maxmargin.backends import cpu
from maxmargin.gram.matrices import Matrices
from maxmargin.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    ExpSineSquared,
    FunctionKernel,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    QuadraticForm,
    RationalQuadratic,
    Sigmoid,
    Validity,
    as_kernel,
    check_valid,
    exp,
    gram_features,
    quadratic_features,
)
from maxmargin.kernels.sequences import SequenceKernel
from maxmargin.testing import check_kernel

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(30, 5))
Z = RANDOM.normal(size=(7, 5))
A = np.cov(X.T)
STRETCH = np.array([1.0, 2.0, 0.5, 3.0, 1.0])


def length(points):
    return np.linalg.norm(points, axis=1)


def doubled(points):
    return points * 2


def inner(a, b):
    return a @ b.T


def name(value):
    return str(value) if isinstance(value, Kernel) else None


EXAMPLES = [
    Linear(),
    Polynomial(),
    Polynomial(2, 0.5, "scale"),
    Polynomial(0),
    Polynomial(2, -1.0),
    RBF(),
    RBF(gamma=0.3),
    RBF(gamma="auto"),
    RBF(sigma=1.5),
    RBF(gamma=0.0),
    Laplacian(),
    Laplacian(0.2),
    Sigmoid(0.1, -0.2),
    QuadraticForm(A),
    Precomputed(),
    FunctionKernel(inner),
    2 * RBF(0.1),
    RBF(0.1) + 3,
    RBF(0.1) - Linear(),
    Linear() ** 3,
    Linear().polynomial([1, 0, 0.5]),
    exp(0.1 * Linear()),
    RBF(0.1) * Linear() + Polynomial(2),
    Linear().conformal(length),
    RBF(0.2).after(doubled),
    RBF(0.2).after(quadratic_features).on([0, 2, 1]),
    RBF("scale").on(slice(0, 2)) * Linear().on([2, -1]),
    (Linear().on([True, False, True, False, False]) + 1) ** 2,
    3 * Precomputed() ** 2 + 1,
    2 * (Polynomial(2) + RBF(0.2)).normalized() + 1,
    FunctionKernel(inner) + RBF(0.5),
    Matern(2.0, 0.5),
    Matern(),
    Matern(0.7, 2.5),
    RationalQuadratic(1.3, 0.7),
    RationalQuadratic() ** 0.5,
    RBF(length_scale=1.5),
    Matern(0.7, 3.5),
    Matern(1.2, 0.8),
    Matern(1.2, np.inf),
    ExpSineSquared(0.8, 1.7),
    Chi2(0.3).after(np.abs),
    AdditiveChi2().after(np.abs),
    Polynomial(2.5).after(np.abs),
    RBF(0.3).stretched([1.0, 2.0, 0.5, 0.0, -1.0]),
    (Matern().stretched() + Linear().stretched([1.0, 2.0])).on([0, 3]),
]


@pytest.mark.parametrize("kernel", EXAMPLES, ids=name)
def test_contract(kernel):
    check_kernel(kernel)


def test_every_public_kernel_is_among_the_examples():
    def parts(kernel):
        yield type(kernel)
        for value in kernel.get_params(deep=False).values():
            if isinstance(value, Kernel):
                yield from parts(value)

    seen = {kind for kernel in EXAMPLES for kind in parts(kernel)}
    public = {getattr(kernels, name) for name in kernels.__all__}
    expected = {k for k in public if isinstance(k, type) and issubclass(k, Kernel)} - {Kernel}
    expected = {k for k in expected if not issubclass(k, SequenceKernel)}  # test_sequences.py
    assert expected <= seen


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Linear(), lambda a, b: pairwise.linear_kernel(a, b)),
        (RBF(0.3), lambda a, b: pairwise.rbf_kernel(a, b, gamma=0.3)),
        (Laplacian(0.3), lambda a, b: pairwise.laplacian_kernel(a, b, gamma=0.3)),
        (Polynomial(4, 0.5, 0.2), lambda a, b: pairwise.polynomial_kernel(a, b, 4, 0.2, 0.5)),
        (Sigmoid(0.1, 0.2), lambda a, b: pairwise.sigmoid_kernel(a, b, 0.1, 0.2)),
        (QuadraticForm(A), lambda a, b: a @ A @ b.T),
        (RBF(sigma=2.0), lambda a, b: pairwise.rbf_kernel(a, b, gamma=1 / 8)),
        (Matern(1.5, 0.5), processes.Matern(1.5, nu=0.5)),
        (Matern(1.5, 1.5), processes.Matern(1.5, nu=1.5)),
        (Matern(1.5, 2.5), processes.Matern(1.5, nu=2.5)),
        (Matern(1.5, 3.5), processes.Matern(1.5, nu=3.5)),
        (Matern(1.5, 0.3), processes.Matern(1.5, nu=0.3)),
        (Matern(1.5, 11.2), processes.Matern(1.5, nu=11.2)),
        (Matern(1.5, np.inf), processes.RBF(1.5)),
        (RBF(length_scale=1.5), processes.RBF(1.5)),
        (ExpSineSquared(1.5, 0.7), processes.ExpSineSquared(1.5, 0.7)),
        (RationalQuadratic(1.5, 0.7), processes.RationalQuadratic(1.5, 0.7)),
        (RBF(0.5).stretched(STRETCH), processes.RBF(1 / STRETCH)),
    ],
    ids=name,
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_values_are_those_of_the_formula(kernel, reference, container):
    np.testing.assert_allclose(kernel(container(X), container(Z)), reference(X, Z), rtol=1e-10)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), Polynomial(2), Laplacian(0.2)], ids=name)
@pytest.mark.parametrize("width", [40, 4000, 1 << 23])
def test_mostly_empty_rows_are_compared_as_full_ones_are(kernel, width):
    """Few entries meet, most columns are used by nobody, and new rows have others still."""
    if width > 4000 and not isinstance(kernel, Linear | Polynomial):
        pytest.skip("distances look at every column")
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(width, 40, replace=False))
    data = sp.random_array((70, 40), density=0.06, random_state=random, format="csr")
    wide = sp.csr_array((data.data, columns[data.indices], data.indptr), shape=(70, width))
    K = kernel(data.toarray())
    np.testing.assert_allclose(kernel(wide), K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(wide[:30], wide[30:]), K[:30, 30:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(wide), np.diag(K), rtol=1e-12)
    if width < 1e6:
        dense = wide.toarray()
        np.testing.assert_allclose(kernel(wide, dense), K, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel(dense, wide), K, rtol=1e-12, atol=1e-14)
    y = np.arange(70) % 2
    model = SVC(kernel=kernel).fit(wide[:50], y[:50])
    expected = SVC(kernel=kernel).fit(data[:50].toarray(), y[:50])
    values = expected.decision_function(data.toarray())
    np.testing.assert_allclose(model.decision_function(wide), values, atol=5e-3)


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (2.5 * RBF(0.1), lambda k, m: 2.5 * k),
        (np.float32(2.5) * RBF(0.1), lambda k, m: 2.5 * k),
        (RBF(0.1) * np.int64(2), lambda k, m: 2 * k),
        (RBF(0.1) / 4, lambda k, m: k / 4),
        (np.float64(1) + RBF(0.1), lambda k, m: 1 + k),
        (RBF(0.1) + Linear(), lambda k, m: k + m),
        (RBF(0.1) - Linear(), lambda k, m: k - m),
        (RBF(0.1) * Linear(), lambda k, m: k * m),
        (RBF(0.1) ** 3, lambda k, m: k**3),
        (np.exp(RBF(0.1)), lambda k, m: np.exp(k)),
        (RBF(0.1).polynomial([1, 2, 3]), lambda k, m: 1 + 2 * k + 3 * k**2),
        (-RBF(0.1), lambda k, m: -k),
        (1 - RBF(0.1), lambda k, m: 1 - k),
    ],
    ids=name,
)
def test_algebra_is_done_on_the_values(kernel, reference):
    expected = reference(RBF(0.1)(X, Z), Linear()(X, Z))
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-14)


def test_construction_rules_on_points():
    np.testing.assert_allclose(
        Linear().conformal(length)(X, Z), length(X)[:, None] * (X @ Z.T) * length(Z)
    )
    np.testing.assert_allclose(RBF(0.1).after(doubled)(X, Z), RBF(0.4)(X, Z))
    k = Linear().on([0, 1]) * RBF(0.5).on(slice(2, None))
    np.testing.assert_allclose(k(X, Z), Linear()(X[:, :2], Z[:, :2]) * RBF(0.5)(X[:, 2:], Z[:, 2:]))


@pytest.mark.parametrize("selection", ["b", ["b"], [1], 1, -2, slice(1, 2), [False, True, False]])
def test_columns_by_name_index_slice_or_mask(selection):
    table = {"a": [1.0, 2.0], "b": [3.0, 5.0], "c": [7.0, 11.0]}
    expected = np.array([[9.0, 15.0], [15.0, 25.0]])
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        np.testing.assert_allclose(Linear().on(selection)(frame), expected)


@pytest.mark.parametrize("selection", [["missing"], [9], [True], [1.5], []])
def test_columns_that_do_not_exist_are_refused(selection):
    with pytest.raises(ValueError, match="column"):
        Linear().on(selection)(pd.DataFrame(X, columns=list("abcde")))


def test_names_need_named_data():
    with pytest.raises(ValueError, match="no column names"):
        Linear().on(["a"])(X)


@pytest.mark.parametrize(
    ("kernel", "validity"),
    [
        (RBF(), Validity.VALID),
        (Polynomial(3, 0.0), Validity.VALID),
        (Polynomial(3, -1.0), Validity.UNPROVEN),
        (Sigmoid(), Validity.INVALID),
        (RBF() - Linear(), Validity.UNPROVEN),
        (RBF() + Linear() * Polynomial(), Validity.VALID),
        (Sigmoid() + RBF(), Validity.UNPROVEN),
        (2 * RBF() + 1, Validity.VALID),
        (-2 * RBF(), Validity.UNPROVEN),
        (RBF() - 1, Validity.UNPROVEN),
        (RBF().polynomial([1, 2]), Validity.VALID),
        (RBF().polynomial([1, -2]), Validity.UNPROVEN),
        (exp(Sigmoid()), Validity.UNPROVEN),
        (exp(Linear()).conformal(length).on([0]), Validity.VALID),
        (Precomputed(), Validity.UNPROVEN),
        (FunctionKernel(inner), Validity.UNPROVEN),
    ],
    ids=name,
)
def test_validity_by_construction(kernel, validity):
    assert kernel.validity is validity


def test_numerical_validity():
    good = check_valid(RBF(0.5), X)
    assert good
    assert good.smallest_eigenvalue > -good.tolerance
    bad = check_valid(Sigmoid(1.0, -1.0), X)
    assert not bad
    assert bad.smallest_eigenvalue < -bad.tolerance
    eigenvalues = np.linalg.eigvalsh(Sigmoid(1.0, -1.0)(X))
    np.testing.assert_allclose(bad.smallest_eigenvalue, eigenvalues[0])
    lopsided = check_valid(Precomputed(), np.array([[1.0, 0.5], [0.0, 1.0]]))
    assert not lopsided
    assert "not symmetric" in str(lopsided)
    assert check_valid(RBF(0.5), np.vstack([X] * 4), max_points=50).n_points == 50


def test_gram_features_rebuild_the_matrix():
    K = RBF(0.3)(X)
    phi = gram_features(K)
    np.testing.assert_allclose(phi @ phi.T, K, atol=1e-10)
    with pytest.raises(ValueError, match="no feature map"):
        gram_features(Sigmoid(1.0, -1.0)(X))


def test_resolved_parameters_are_scikit_learns():
    assert RBF().resolve(X).gamma == pytest.approx(1 / (5 * X.var()))
    assert RBF().resolve(sp.csr_matrix(X)).gamma == pytest.approx(1 / (5 * X.var()))
    assert RBF().resolve(X.astype(np.float32)).gamma == pytest.approx(1 / (5 * X.var()), rel=1e-6)
    assert RBF("auto").resolve(X).gamma == 0.2
    assert RBF().resolve(np.ones((3, 2))).gamma == 1.0
    assert (Linear() + RBF().on([0])).resolve(X).k2.kernel.gamma == pytest.approx(1 / X[:, 0].var())


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBF(gamma=-1.0),
        lambda: RBF(gamma="wide"),
        lambda: RBF(gamma=1.0, sigma=1.0),
        lambda: RBF(sigma=0.0),
        lambda: RBF(gamma=np.nan),
        lambda: Laplacian(-1.0),
        lambda: Polynomial(np.nan),
        lambda: Polynomial(-1),
        lambda: Polynomial(coef0=np.inf),
        lambda: Sigmoid("wide"),
        lambda: Linear() ** -1,
        lambda: Linear().polynomial([]),
        lambda: Linear().polynomial([np.nan]),
        lambda: Matern(nu=0.0),
        lambda: Matern(0.0),
        lambda: RationalQuadratic(alpha=-1.0),
    ],
)
def test_parameters_are_checked_when_a_kernel_is_made(make):
    with pytest.raises(ValueError, match=r"must be|only one of|at least"):
        make()


def test_parameters_that_were_set_are_checked_with_the_data():
    for kernel in (RBF(), Laplacian(), Polynomial(), Sigmoid()):
        wrong = kernel.set_params(gamma="wide")
        with pytest.raises(ValueError, match="gamma must be"):
            wrong(X)
    for name in ("coef0", "gamma"):
        assert clone(Polynomial()).set_params(**{name: 0.5}).get_params()[name] == 0.5


@pytest.mark.parametrize(
    "kernel",
    [
        QuadraticForm(-np.eye(5)),
        QuadraticForm(np.triu(np.ones((5, 5)))),
        QuadraticForm(np.eye(3)),
        Linear().conformal(lambda a: a),
        Linear().after(lambda a: a[:2]),
        Linear().stretched([1.0, 2.0]),
        FunctionKernel(lambda a, b: np.ones(3)),
    ],
    ids=name,
)
def test_nonsense_is_refused(kernel):
    with pytest.raises(ValueError):
        kernel(X)


def test_a_quadratic_form_is_judged_by_its_matrix():
    for wrong in (-np.eye(2), [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]):
        assert QuadraticForm(wrong).validity is Validity.INVALID
        assert (QuadraticForm(wrong) + Linear()).validity is Validity.UNPROVEN
    for right in (np.eye(2), [[1.0, 1.0], [1.0, 1.0]], np.zeros((2, 2))):
        assert QuadraticForm(right).validity is Validity.VALID


def test_what_is_no_kernel_yet_is_shown_the_way():
    with pytest.raises(TypeError, match=r"FunctionKernel\(doubled\)"):
        RBF(1.0) + doubled
    with pytest.raises(TypeError, match=r"as_kernel\('linear'\)"):
        "linear" * RBF(1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        RBF(1.0) - [1]


def test_precomputed_does_not_mix_with_kernels_of_points():
    for compose in (
        lambda: Precomputed() + RBF(),
        lambda: Linear() * Precomputed(),
        lambda: Precomputed().on([0]).input,
        lambda: Precomputed().conformal(length).input,
        lambda: Precomputed().after(doubled).input,
        lambda: (2 * Precomputed() + 1).set_params(kernel=RBF()) + Precomputed(),
    ):
        with pytest.raises(ValueError, match=r"matrix"):
            compose()
    assert (2 * Precomputed() ** 2 + 1).pairwise
    assert not (RBF() + 1).pairwise


def test_nested_parameters():
    k = 0.5 * RBF(gamma=0.1) + Linear() * Polynomial(degree=2)
    k.set_params(k1__kernel__gamma=7.0, k1__constant=2.0, k2__k2__degree=4)
    assert str(k) == "2 * RBF(gamma=7.0) + Linear() * Polynomial(degree=4)"
    assert k != clone(k).set_params(k1__constant=3.0)
    assert pickle.loads(pickle.dumps(k)) == k
    k.set_params(k1=Polynomial(), k1__degree=5)
    assert k.k1 == Polynomial(5)
    for unknown in ("k3", "k1__gama", "k1__degree__x"):
        with pytest.raises(ValueError, match="is not a parameter of"):
            k.set_params(**{unknown: 1})
    assert repr(SVC(kernel=0.5 * RBF(gamma=0.1) + Linear())) == (
        "SVC(kernel=0.5 * RBF(gamma=0.1) + Linear())"
    )


def test_names_of_parameters_are_short():
    k = 0.5 * RBF(gamma=0.1) + Linear() + (RBF(gamma=0.2).on([0]) + 2.0) * Polynomial() * Linear()
    numbers = {name: v for name, v in k.get_params().items() if not isinstance(v, Kernel)}
    assert numbers == {
        "k1__constant": 0.5,
        "k1__gamma": 0.1,
        "k1__sigma": None,
        "k1__length_scale": None,
        "k3__k1__constant": 2.0,
        "k3__k1__columns": [0],
        "k3__k1__gamma": 0.2,
        "k3__k1__sigma": None,
        "k3__k1__length_scale": None,
        "k3__k2__degree": 3,
        "k3__k2__coef0": 1.0,
        "k3__k2__gamma": 1.0,
    }
    assert "k4" not in k.get_params()
    for key, value in k.get_params().items():
        assert clone(k).set_params(**{key: value}) == k
    k.set_params(k3__k1__gamma=5.0, k1__gamma=6.0)
    assert str(k) == (
        "0.5 * RBF(gamma=6.0) + Linear() + (RBF(gamma=5.0).on([0]) + 2) * Polynomial(degree=3)"
        " * Linear()"
    )
    twice = 2.0 * (Linear() + 1.0)  # the same name twice: the inner one in full
    assert twice.get_params()["kernel__constant"] == 1.0
    assert str(twice.set_params(constant=3.0, kernel__constant=4.0)) == "3 * (Linear() + 4)"
    assert pickle.loads(pickle.dumps(k)) == clone(k) == k


@pytest.mark.parametrize(
    "kernel",
    [(RBF(0.5) + 1) ** 2, 2 * (RBF(0.5) + Linear()) * Linear(), exp(RBF(0.5)) * 3, -RBF(0.5) - 1],
)
def test_printed_form_means_the_kernel(kernel):
    again = eval(str(kernel), {**vars(kernels)})
    np.testing.assert_allclose(again(X), kernel(X))


def test_as_kernel():
    assert as_kernel("rbf", gamma=2.0) == RBF(2.0)
    assert as_kernel("poly", degree=2, coef0=1.0) == Polynomial(2, 1.0, "scale")
    assert as_kernel("sigmoid", coef0=1.0) == Sigmoid("scale", 1.0)
    assert as_kernel(inner) == FunctionKernel(inner)
    for extra in ({"gamma": 0.1}, {"degree": 2}, {"coef0": 1.0}):
        with pytest.raises(ValueError, match="beside the kernel object"):
            as_kernel(RBF(), **extra)
    with pytest.raises(ValueError, match="kernel must be"):
        as_kernel("gaussian")


def test_a_kernel_of_objects():
    words = ["kernel", "margin", "vector", "slack", "dual", "gap"]
    k = FunctionKernel(lambda a, b: np.array([[len(set(u) & set(v)) for v in b] for u in a]))
    assert k(words, ["kern"]).tolist() == [[4.0], [2.0], [2.0], [1.0], [0.0], [0.0]]
    check_kernel(k, words)


def test_frames_with_other_columns_do_not_mix():
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(ValueError, match="has columns"):
        Linear().on("a")(frame, frame[list("bacde")])


def test_feature_maps_of_any_kind():
    @dataclass
    class Scale:  # not hashable
        factor: float

        def __call__(self, points):
            return (points * self.factor).astype(np.longdouble)

    k = RBF(0.1).after(Scale(2.0)) + Linear().after(Scale(2.0))
    np.testing.assert_allclose(k(X), RBF(0.1)(2 * X) + Linear()(2 * X))
    assert k == k.resolve(X)
    with pytest.raises(ValueError, match="real number per row"):
        Linear().conformal(lambda points: points[:, 0] * 1j)(X)


def test_a_kernel_by_name_can_be_tested():
    assert check_valid("rbf", X)
    with pytest.raises(ValueError, match=r"write RBF\(\)"):
        check_valid(RBF, X)


def test_numbers_and_arrays_beside_a_kernel():
    assert str(sum([RBF(0.5), Linear()])) == "RBF(gamma=0.5) + Linear()"
    assert np.array(2.0) * RBF(0.5) == 2 * RBF(0.5)
    assert np.float64(1.0) != RBF(0.5)
    assert str(0.123456789 * Linear()) == "0.123456789 * Linear()"
    for nonsense in (lambda: np.ones(3) * RBF(0.5), lambda: RBF(0.5) + np.ones(3)):
        with pytest.raises(TypeError):
            nonsense()


def test_what_depends_on_data_is_taken_from_the_reference_points():
    whole = RBF()(Z, X)
    np.testing.assert_allclose(RBF()(Z[:1], X), whole[:1])
    np.testing.assert_allclose(whole, RBF(1 / (5 * X.var()))(Z, X))
    theirs = sklearn.svm.SVC(kernel=RBF()).fit(X, X[:, 0] > 0)
    ours = SVC(kernel=RBF()).fit(X, X[:, 0] > 0)
    np.testing.assert_allclose(
        theirs.decision_function(Z[:1]), ours.decision_function(Z)[:1], atol=5e-3
    )


def test_scale_of_float32_sparse_data_far_from_zero(random):
    far = (random.normal(size=(500, 5)) + 1000).astype(np.float32)
    dense = RBF().resolve(far).gamma
    assert RBF().resolve(sp.csr_matrix(far)).gamma == pytest.approx(dense, rel=1e-9)


FAR = {
    "all rows": lambda X, s: X + s,
    "one column": lambda X, s: X + s * np.eye(1, X.shape[1]),
    "one row": lambda X, s: X + s * np.eye(1, len(X), 3).T,
    "two clusters": lambda X, s: X + s * (np.arange(len(X)) % 2)[:, None],
}
DISTANCES = {
    "rbf": (RBF(1.0), lambda D: np.exp(-(D**2).sum(axis=2))),
    "laplacian": (Laplacian(1.0), lambda D: np.exp(-abs(D).sum(axis=2))),
    "sum": (
        0.5 * RBF(2.0) + RBF(0.5) * Laplacian(0.5),
        lambda D: (
            0.5 * np.exp(-2 * (D**2).sum(axis=2))
            + np.exp(-0.5 * (D**2).sum(axis=2) - 0.5 * abs(D).sum(axis=2))
        ),
    ),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kernel", DISTANCES)
@pytest.mark.parametrize("far", FAR)
def test_distances_are_true_far_from_the_origin(far, kernel, form):
    """Also between points that lie together far from all others; in every way to get values."""
    k, formula = DISTANCES[kernel]
    points = np.random.default_rng(5).normal(size=(40, 3))
    for distance in (1e3, 1e7, 1e11):
        X = form(FAR[far](points, distance))
        dense = (X.toarray() if sp.issparse(X) else X).astype(np.longdouble)
        true = formula(dense[:, None] - dense[None]).astype(np.float64)
        gram = Gram.of(X, k)
        close = {"atol": 1e-13, "rtol": 0}
        np.testing.assert_allclose(gram.rows(np.arange(40)), true, **close)
        np.testing.assert_allclose(k(X, X[5:9]), true[:, 5:9], **close)
        part = np.arange(3, 30)
        np.testing.assert_allclose(
            gram.take(part).rows([0, 5]), true[part[[0, 5]]][:, part], **close
        )
        kept = Matrices(X, np.float64)
        kept.prepare([k, k], memory=1 << 20)
        np.testing.assert_allclose(kept.of(k), true, **close)
        float32 = np.empty((40, 40), dtype=np.float32)
        cpu.kernel_square(gram.program, gram.float32_points(), np.arange(40), float32)
        assert np.abs(float32 - true).max() < 0.02  # near enough for the engine


@pytest.mark.parametrize("rule", [operator.add, operator.mul])
def test_a_combination_is_valid_only_if_all_its_parts_are(rule):
    good, bad = RBF(1.0), Sigmoid()
    assert rule(good, good).validity is Validity.VALID
    for kernel in (rule(good, bad), rule(bad, good), rule(rule(good, bad), good)):
        assert kernel.validity is not Validity.VALID


def test_views_are_taken_from_the_outside_in(random):
    X = random.normal(size=(6, 4))
    inner = RBF(0.5).on([1, 0])
    np.testing.assert_allclose(inner.on([3, 2])(X), RBF(0.5)(X[:, [2, 3]]))
    np.testing.assert_allclose(inner.on([3, 0, 1])(X), RBF(0.5)(X[:, [0, 3]]))
    np.testing.assert_allclose(inner.after(np.square)(X), RBF(0.5)(np.square(X)[:, [1, 0]]))
    np.testing.assert_allclose(RBF(0.5).after(np.square).on([2])(X), RBF(0.5)(np.square(X)[:, [2]]))

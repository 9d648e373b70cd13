"""Several classes from machines for two: one-vs-rest, schemes of one's own, labels and weights."""

from functools import partial

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, InseparableError, LinearSVC, NuSVC, Perceptron, SVCSearchCV
from maxmargin.bounds import leave_one_out, xi_alpha
from maxmargin.multiclass import OneVsOne, OneVsRest, Scheme
from maxmargin.testing import check_scheme


class Ladder(Scheme):
    """For classes in an order: each against those above it. The first that is won decides."""

    unanimous = True

    def _code(self):
        return (np.eye(self.n_classes) - np.triu(np.ones((self.n_classes,) * 2), 1))[:-1]

    def decode(self, values):
        won = np.diag(self.code) * values > 0
        return np.where(won.any(axis=1), won.argmax(axis=1), self.n_classes - 1)


class Digits(Scheme):
    """A question for each binary digit of the class's number."""

    def _code(self):
        digits = np.arange((self.n_classes - 1).bit_length())
        return 2 * (np.arange(self.n_classes) >> digits[:, None] & 1) - 1


def data(load, n=300):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


# -- one-vs-rest -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", ["SVC", "NuSVC"])
def test_one_vs_rest_is_scikit_learns(name, kind):
    X, y = data(DATA[name])
    theirs = {"SVC": sklearn.svm.SVC, "NuSVC": partial(sklearn.svm.NuSVC, nu=0.1)}[kind]
    ours = {"SVC": SVC, "NuSVC": partial(NuSVC, nu=0.1)}[kind]
    reference = OneVsRestClassifier(theirs(gamma=0.05, tol=1e-8)).fit(X, y)
    model = ours(gamma=0.05, tol=1e-8, multiclass="ovr").fit(X, y)
    values = reference.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), values, atol=2e-5 * np.abs(values).max())
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))


def test_every_class_has_its_machine_and_its_certificate():
    X, y = data(load_wine)
    model = SVC(kernel="linear", multiclass="ovr").fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert len(certificate.parts) == 3
    assert model.scheme_ == OneVsRest(3)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert (np.diff(y[model.support_]) >= 0).all()
    assert model.n_support_.tolist() == np.bincount(y[model.support_]).tolist()
    for k in range(3):
        alone = SVC(kernel="linear").fit(X, y == k)
        part, other = certificate.parts[k], alone.certificate_
        assert part.dual <= other.primal + 1e-9
        assert other.dual <= part.primal + 1e-9
        assert model.margin_[k] == pytest.approx(alone.margin_, rel=1e-2)
        np.testing.assert_allclose(model.slack_[k], alone.slack_, atol=5e-3)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=5e-3)
    values = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-10)


@pytest.mark.parametrize("multiclass", ["ovr", Ladder, Digits])
def test_probabilities(multiclass):
    X, y = data(load_wine)
    model = SVC(probability=True, random_state=0, multiclass=multiclass).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    assert model.probA_.shape == model.probB_.shape == (len(model.scheme_.code),)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(y[1::2], p) < 0.3
    if multiclass == "ovr":
        each = 1 / (1 + np.exp(model.decision_function(X[1::2]) * model.probA_ + model.probB_))
        np.testing.assert_allclose(p, each / each.sum(axis=1, keepdims=True), atol=1e-6)


def test_weights_count_in_every_machine():
    X, y = data(load_iris)
    factors, tight = {0: 1.0, 1: 5.0, 2: 0.5}, SVC(tol=1e-8, gamma=0.1, multiclass="ovr")
    weight = np.array([factors[k] for k in y])
    by_row = clone(tight).fit(X, y, weight)
    alone = SVC(tol=1e-8, gamma=0.1).fit(X, y == 2, weight)
    values = alone.decision_function(X)
    np.testing.assert_allclose(by_row.decision_function(X)[:, 2], values, atol=1e-6)
    some = np.arange(len(y)) % 3 > 0
    without = clone(tight).set_params(class_weight="balanced").fit(X[some], y[some])
    zero = clone(tight).set_params(class_weight="balanced").fit(X, y, some)
    np.testing.assert_allclose(zero.class_weight_, without.class_weight_)
    values = without.decision_function(X)
    np.testing.assert_allclose(zero.decision_function(X), values, atol=1e-6)


def test_classes_that_cannot_be_separated_from_the_rest_are_named():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = ["low", "mid", "mid", "high"]
    assert SVC(kernel="linear", C=np.inf).fit(X, y).score(X, y) == 1
    with pytest.raises(InseparableError, match="Classes mid and high or low") as caught:
        SVC(kernel="linear", C=np.inf, multiclass="ovr").fit(X, y)
    assert set(caught.value.positive[0]) <= {1, 2}


@pytest.mark.parametrize("multiclass", ["ovr", Ladder])
def test_left_out_rows(multiclass):
    X, y = (array[::3] for array in data(load_iris))
    model = SVC(gamma=0.1, C=10, multiclass=multiclass).fit(X, y)
    errors = 1 - cross_val_score(model, X, y, cv=LeaveOneOut()).mean()
    assert errors <= xi_alpha(model, X).value <= leave_one_out(model).value
    with pytest.raises(ValueError, match="unanimous"):
        leave_one_out(SVC(gamma=0.1, C=10, multiclass=Digits).fit(X, y))


# -- search ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_searches_have_the_scores_of_scikit_learn(name, scoring, monkeypatch):
    X, y = data(DATA[name], 200)
    tol = 1e-3 if name == "iris" else 1e-6  # over float32 values, and to certificates
    machine = SVC(probability=scoring != "accuracy", random_state=0, tol=tol)
    grid = {"C": [1, 10], "gamma": [0.02], "multiclass": ["ovr", Ladder, Digits, "ovo"]}
    options = {"scoring": scoring, "cv": 3, "refit": False, "return_train_score": True}
    reference = GridSearchCV(machine, grid, **options).fit(X, y)
    if tol == 1e-3 or scoring == "accuracy":  # inner folds are shared over float32 values only

        def refuse(self, X, y):
            raise AssertionError("really fitted")

        monkeypatch.setattr(SVC, "fit", refuse)
    search = SVCSearchCV(machine, grid, **options).fit(X, y)
    for key in ("mean_test_score", "mean_train_score"):
        theirs = reference.cv_results_[key]
        np.testing.assert_allclose(search.cv_results_[key], theirs, atol=2e-3, err_msg=key)


# -- schemes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [OneVsOne, OneVsRest, Ladder, Digits])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
def test_schemes_keep_their_contract(scheme, n_classes):
    check_scheme(scheme(n_classes))


def test_a_broken_scheme_is_found():
    class Boastful(Digits):
        unanimous = True

        def decode(self, values):
            return np.argmax(np.abs(values) @ (self.code > 0), axis=1)

    class Lossy(Ladder):
        layout = np.zeros((3, 4), dtype=int)

    class Reversed(OneVsOne):
        def combine(self, sums):
            return super().combine(sums)[:, ::-1]

    class Impossible(OneVsRest):
        def probabilities(self, r):
            return r

    for broken in (Boastful, Lossy, Reversed, Impossible):
        with pytest.raises(AssertionError):
            check_scheme(broken(4))

    class Blind(Scheme):
        def _code(self):
            return np.ones((2, self.n_classes), dtype=int)

    with pytest.raises(ValueError, match="needs both a 1 and a -1"):
        SVC(multiclass=Blind).fit(*data(load_iris))


@pytest.mark.parametrize("multiclass", ["ovr", OneVsRest(2), Ladder, Digits])
def test_with_two_classes_all_schemes_are_one_machine(multiclass):
    X, y = data(load_iris, 100)
    one = SVC(probability=True, random_state=0).fit(X, y)
    other = SVC(probability=True, random_state=0, multiclass=multiclass).fit(X, y)
    np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)
    np.testing.assert_array_equal(other.decision_function(X), one.decision_function(X))
    np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
    assert (other.decision_function(X[y == 1]) > 0).all()


def test_manners():
    X, y = data(load_iris)
    model = SVC(multiclass=Ladder(3))
    before = model.fit(X, y).predict(X)
    model.set_params(multiclass="ovo")  # holds from the next fit on
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="y has 3 classes"):
        SVC(multiclass=Ladder(4)).fit(X, y)
    with pytest.raises(ValueError, match="y has 3 classes"):
        SVC(multiclass=float).fit(X, y)


# -- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LinearSVC(lam=0.1), Perceptron()])
def test_classes_of_a_stream(model):
    X, y = data(load_iris)
    model = clone(model)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        model.partial_fit(X[:9], y[:9], classes=[0])
    model.partial_fit(X[:9], y[:9], classes=[2, 0, 1])
    with pytest.raises(ValueError, match=r"labels \[7\] that are not among classes=\[0, 1, 2\]"):
        model.partial_fit(X, np.where(y == 2, 7, y))
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1])
    assert set(model.partial_fit(X, y).predict(X)) <= {0, 1, 2}

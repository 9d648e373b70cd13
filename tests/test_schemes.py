"""DAGSVM, error-correcting codes, votes, balanced tasks, and schemes around any classifier."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVCSearchCV
from maxmargin.multiclass import (
    DAG,
    ErrorCorrectingCode,
    OneVsOne,
    OneVsRest,
    SchemeClassifier,
    as_scheme,
)
from maxmargin.plotting import plot_scheme
from maxmargin.testing import check_scheme


def digits(n=600):
    X, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


SCHEMES = [
    DAG,
    ErrorCorrectingCode,
    lambda K: OneVsRest(K, decoding="votes"),
    lambda K: OneVsOne(K, balanced=True),
    lambda K: ErrorCorrectingCode(K, "dense", n_tasks=min(20, 2 ** (K - 1) - 1)),
    lambda K: ErrorCorrectingCode(K, "sparse", n_tasks=min(30, 3 * 2 ** (K - 2))),
    lambda K: ErrorCorrectingCode(K, "bch", decoding="hamming"),
]


@pytest.mark.parametrize("make", SCHEMES)
@pytest.mark.parametrize("n_classes", [2, 3, 5, 11])
def test_schemes_keep_their_contract(make, n_classes):
    check_scheme(make(n_classes))


# -- DAGSVM ------------------------------------------------------------------------------------


def test_the_graph_is_platts():
    assert DAG(4).levels == [[(0, 3)], [(0, 2), (1, 3)], [(0, 1), (1, 2), (2, 3)]]
    for n_classes in (3, 4, 7):
        scheme, rng = DAG(n_classes), np.random.default_rng(n_classes)
        values = rng.normal(size=(200, len(scheme.code)))
        pairs = list(combinations(range(n_classes), 2))
        expected = []
        for row in values:
            left = list(range(n_classes))
            while len(left) > 1:
                first_wins = row[pairs.index((left[0], left[-1]))] > 0
                left.remove(left[-1] if first_wins else left[0])
            expected += left
        assert scheme.decode(values).tolist() == expected
        assert scheme.scores(values).argmax(axis=1).tolist() == expected
        asked = np.zeros(len(values), dtype=int)

        def ask(questions, asked=asked, values=values):
            for _, rows in questions:
                asked[rows] += 1
            return [values[rows, task] for task, rows in questions]

        assert scheme.decide(ask, len(values)).tolist() == expected
        assert set(asked) == {n_classes - 1} == {scheme.n_asked}
        # who wins all its pairs, wins both ways
        sure = np.abs(values) * scheme.code[:, 1]
        assert set(scheme.decode(np.where(sure == 0, values, sure))) == {1}


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_dag_machine_asks_only_the_machines_it_needs(kernel, monkeypatch):
    X, y = digits()
    K = np.exp(-0.02 * ((X[:, None] - X) ** 2).sum(axis=2)) if kernel == "precomputed" else X
    model = SVC(kernel=kernel, gamma=0.02, multiclass="dag").fit(K, y)
    pairs = SVC(kernel=kernel, gamma=0.02).fit(K, y)
    np.testing.assert_array_equal(model.dual_coef_, pairs.dual_coef_)
    monkeypatch.setattr("maxmargin.svm.classification._ASKED", np.inf)
    by_all_values = model.predict(K)
    monkeypatch.setattr("maxmargin.svm.classification._ASKED", 0)

    def refuse(self, X):
        raise AssertionError("all machines were asked")

    monkeypatch.setattr(SVC, "_machine_values", refuse)
    np.testing.assert_array_equal(model.predict(K), by_all_values)
    assert model.score(K, y) > 0.98


# -- codes -------------------------------------------------------------------------------------


def test_the_lectures_code():
    scheme = ErrorCorrectingCode(5)
    words = scheme.code.T
    assert words.shape == (5, 15)
    assert {tuple(task) for task in scheme.code} == {
        (1, *signs)
        for signs in np.ndindex(2, 2, 2, 2)
        for signs in [tuple(2 * np.array(signs) - 1)]
    } - {(1, 1, 1, 1, 1)}
    distances = [(words[i] != words[j]).sum() for i, j in combinations(range(5), 2)]
    assert set(distances) == {8}
    assert (scheme.row_distance, scheme.errors_mended) == (8.0, 0)
    assert ErrorCorrectingCode(5, decoding="hamming").errors_mended == 3
    values = np.where(np.arange(15) == 0, -14.0, 1.0) * words[0]  # one value far on a wrong side
    assert scheme.decode(values[None]) != [0]
    assert ErrorCorrectingCode(5, decoding="hamming").decode(values[None]) == [0]


@pytest.mark.parametrize(
    "scheme",
    [
        ErrorCorrectingCode(4, decoding="hamming"),
        ErrorCorrectingCode(5, decoding="hamming"),
        ErrorCorrectingCode(6, "sparse", n_tasks=80, decoding="hamming"),
        ErrorCorrectingCode(11, "bch", decoding="hamming"),
    ],
)
def test_so_many_wrong_machines_are_mended(scheme):
    rng, mended = np.random.default_rng(0), scheme.errors_mended
    assert mended > 0
    for own in range(scheme.n_classes):
        word = scheme.code[:, own]
        seen = np.flatnonzero(word)
        signs = np.where(word == 0, rng.choice([-1, 1], size=(300, len(word))), word)
        for row in signs:
            row[rng.choice(seen, mended, replace=False)] *= -1
        assert (scheme.decode(signs.astype(float)) == own).all()
    if (scheme.code != 0).all():  # and no more: halfway to the closest word lies another class
        words = scheme.code.T
        pairs = combinations(range(scheme.n_classes), 2)
        i, j = min(pairs, key=lambda pair: (words[pair[0]] != words[pair[1]]).sum())
        differ = np.flatnonzero(words[i] != words[j])
        half = words[j].copy()
        half[differ[: (len(differ) + 1) // 2]] = words[i][differ[: (len(differ) + 1) // 2]]
        assert scheme.decode(half[None].astype(float))[0] != j


@pytest.mark.parametrize("kind", ["exhaustive", "dense", "sparse", "bch"])
@pytest.mark.parametrize("n_classes", [6, 9])
def test_codes_separate_words_and_tasks(kind, n_classes):
    scheme = ErrorCorrectingCode(n_classes, kind)
    code = scheme.code
    assert len({tuple(task * task[task.nonzero()[0][0]]) for task in code}) == len(code)
    for i, j in combinations(range(n_classes), 2):
        assert (code[:, i] * code[:, j] < 0).sum() >= 3
    assert (ErrorCorrectingCode(n_classes, kind).code == code).all()  # the same each time
    if kind != "exhaustive":
        assert not np.array_equal(ErrorCorrectingCode(n_classes, kind, random_state=1).code, code)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": [[1, 1], [1, 1], [-1, 1], [1, -1]]}, "classes number 0 and 1"),
        ({"kind": [[1, 1, -1], [1, -1, -1], [-1, 1, 1], [-1, -1, 1]]}, "sides exchanged"),
        ({"kind": [[1, 1], [1, -1]]}, "4 columns"),
        ({"kind": "gray"}, "kind must be"),
        ({"decoding": "viterbi"}, "decoding must be"),
        ({"n_tasks": 20}, "n_tasks is for"),
        ({"kind": "dense", "n_tasks": 8}, "only 7 different dense tasks"),
        ({"kind": "sparse", "n_tasks": 1}, "cannot tell them apart"),
    ],
)
def test_codes_that_will_not_do(options, message):
    with pytest.raises(ValueError, match=message):
        _ = ErrorCorrectingCode(4, **options).code
    with pytest.raises(ValueError, match=r"16,383|kind"):
        _ = ErrorCorrectingCode(15, "exhaustive").code
    assert len(ErrorCorrectingCode(4, "dense", n_tasks=7).code) == 7  # all that there are


# -- machines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["dag", "ecoc", ErrorCorrectingCode(10, "sparse")])
def test_machines_and_searches_take_every_scheme(multiclass):
    X, y = digits(400)
    model = SVC(gamma=0.02, multiclass=multiclass, probability=True, random_state=0).fit(X, y)
    assert model.certificate_.converged
    assert len(model.certificate_.parts) == len(model.scheme_.code) == len(model.intercept_)
    proba = model.predict_proba(X)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(X)).mean() > 0.97
    grid = {"C": [1.0, 10.0], "multiclass": [multiclass, "ovo"]}
    search = SVCSearchCV(SVC(gamma=0.02), grid, cv=3).fit(X, y)
    first = search.cv_results_["mean_test_score"][search.cv_results_["param_multiclass"] != "ovo"]
    assert (first > 0.9).all()


def test_votes_are_counted_and_ties_go_to_the_first():
    values = np.array([[-0.5, -2.0, -0.1], [-1.0, 0.2, 0.9], [-1.0, -0.1, 0.9]])
    votes = OneVsRest(3, decoding="votes")
    assert votes.decode(values).tolist() == [0, 1, 2]
    assert votes.ambiguous(values).tolist() == [True, True, False]
    assert OneVsRest(3).ambiguous(values).tolist() == [False] * 3
    pairs = OneVsOne(3)  # 0 beats 1, 1 beats 2, 2 beats 0: a circle
    circle = np.array([[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]])
    assert pairs.ambiguous(circle).tolist() == [True, False]
    assert pairs.decode(circle).tolist() == [0, 0]
    assert not DAG(3).ambiguous(circle).any()
    X, y = digits()
    model = SVC(gamma=0.02, multiclass=OneVsRest(10, decoding="votes")).fit(X[::2], y[::2])
    values = (model.decision_function(X[1::2]) > 0).sum(axis=1)
    by_value = SVC(gamma=0.02, multiclass="ovr").fit(X[::2], y[::2])
    assert (values != 1).any()
    assert by_value.score(X[1::2], y[1::2]) > model.score(X[1::2], y[1::2])


def test_balanced_tasks_weigh_both_sides_alike():
    scheme = OneVsRest(4, balanced=True)
    labels, weight = np.array([1.0, -1, -1, -1]), np.array([1.0, 2.0, 1.0, 0.0])
    own = scheme.weigh(labels, weight)
    assert own[labels > 0].sum() == own[labels < 0].sum() == weight.sum() / 2
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(c, 1.0, size=(m, 2)) for c, m in [((0, 0), 400), ((1.5, 1.5), 30)]])
    X = np.vstack([X, rng.normal((-2, 2), 1.0, size=(400, 2))])
    y = np.repeat([0, 1, 2], [400, 30, 400])
    plain = SVC(kernel="linear", multiclass="ovr").fit(X, y)
    even = SVC(kernel="linear", multiclass=OneVsRest(3, balanced=True)).fit(X, y)
    rare = {"labels": [1], "average": "macro"}
    assert (
        recall_score(y, even.predict(X), **rare) > 0.5 > recall_score(y, plain.predict(X), **rare)
    )
    _, labels = even.scheme_.tasks(y)[1]
    alone = SVC(kernel="linear", class_weight="balanced", tol=1e-6).fit(X, labels)
    tight = SVC(kernel="linear", multiclass=OneVsRest(3, balanced=True), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(tight.coef_[1], alone.coef_[0], atol=1e-4)
    linear = SVC(kernel="linear", tol=1e-6)
    around = SchemeClassifier(linear, multiclass=OneVsRest(3, balanced=True)).fit(X, y)
    np.testing.assert_allclose(around.estimators_[1].coef_[0], alone.coef_[0], atol=1e-4)


# -- any classifier ----------------------------------------------------------------------------


def test_a_scheme_around_probabilities():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    model, alone = SchemeClassifier(GaussianNB()).fit(X, y), GaussianNB().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_allclose(model.decision_function(X), 2 * alone.predict_proba(X)[:, 1] - 1)


@pytest.mark.slow
def test_schemes_around_any_classifier():
    X, y = digits()
    theirs = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    ours = SchemeClassifier(LogisticRegression(), multiclass="ovr").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    machine = SVC(gamma=0.02, tol=1e-6)
    wrapped = SchemeClassifier(machine, multiclass="ecoc").fit(X, y)
    direct = SVC(gamma=0.02, tol=1e-6, multiclass="ecoc").fit(X, y)
    np.testing.assert_allclose(wrapped.decision_function(X), direct.decision_function(X), atol=1e-3)
    K = X @ X.T / 64
    given = SchemeClassifier(SVC(kernel="precomputed"), multiclass="dag").fit(K, y)
    pairs = SVC(kernel="precomputed", multiclass="dag").fit(K, y)
    np.testing.assert_array_equal(given.predict(K), pairs.predict(K))
    neighbours = SchemeClassifier(KNeighborsClassifier(), multiclass=OneVsRest(10, balanced=True))
    with pytest.raises(TypeError, match="does not take sample_weight"):
        neighbours.fit(X, y)
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        SchemeClassifier(GaussianNB(), multiclass="ecoc").fit(X[:5], np.ones(5))


class Silent(GaussianNB):
    """An estimator whose fit returns nothing."""

    def fit(self, X, y):
        super().fit(X, y)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "ecoc", "dag"])
def test_what_fit_returns_is_not_used(multiclass):
    X, y = digits()
    silent, usual = (SchemeClassifier(c, multiclass=multiclass) for c in (Silent(), GaussianNB()))
    np.testing.assert_array_equal(silent.fit(X, y).predict(X), usual.fit(X, y).predict(X))


# -- pictures ----------------------------------------------------------------------------------


def test_pictures():
    X, y = load_iris(return_X_y=True)
    ax = plot_scheme(ErrorCorrectingCode(5))
    assert "differ in 8 entries" in ax.get_title()
    cells = ax.collections[0].get_array().reshape(5, 15)
    assert cells.tolist() == ErrorCorrectingCode(5).code.T.tolist()
    model = SVC(multiclass="dag").fit(X, np.array(["red", "blue", "green"])[y])
    texts = [text.get_text() for text in plot_scheme(model).texts]
    assert {"blue / red", "blue / green", "green / red", "not red"} <= set(texts)
    fitted = SVC(multiclass=ErrorCorrectingCode).fit(X, y)
    labels = [label.get_text() for label in plot_scheme(fitted).get_xticklabels()]
    assert labels == [f"{margin:.2g}" for margin in fitted.margin_]
    assert as_scheme("ecoc", 3) == ErrorCorrectingCode(3)

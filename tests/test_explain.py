"""``explain``: what it says of a fitted machine is what the machine has."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as Reference

from maxmargin import (
    SVC,
    SVR,
    GridSearchCV,
    KernelRidge,
    LinearSVC,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    WordStumpBooster,
    explain,
)
from maxmargin.kernels import Sigmoid
from maxmargin.multiclass import SchemeClassifier

X, y = load_iris(return_X_y=True)
X = X[:, :2]
NAMES = np.array(["<b>setosa</b>", "versicolor & co", '"virginica"'])[y]
TWO = y > 0


def test_numbers_of_two_classes():
    model = SVC(gamma=0.7, C=2.5).fit(X, TWO)
    found, said = explain(model), str(explain(model))
    alpha = np.abs(model.dual_coef_[0])
    bounded = int((alpha >= 2.5).sum())
    assert found.support.total == len(model.support_)
    assert found.support[3:5] == (len(alpha) - bounded, bounded)
    assert found.support.by_class == dict(
        zip(["False", "True"], model.n_support_.tolist(), strict=True)
    )
    assert f"{len(alpha)} of 150: {len(alpha) - bounded} free" in said
    wrong = int((model.predict(X) != TWO).sum())
    assert (found.slack.positive, found.slack.wrong) == ((model.slack_ > model.tol).sum(), wrong)
    assert found.slack.counts.sum() == 150
    inside = (model.slack_ > 0.5) & (model.slack_ <= 1.0)
    assert found.slack.counts[2] == inside.sum()
    assert re.search(rf"\n +0.5 to 1 +{inside.sum()} #", said)
    worst = np.argsort(-model.slack_)[:5]
    assert [one.row for one in found.most_slack] == worst.tolist()
    assert [one.label for one in found.most_slack] == [str(TWO[row]) for row in worst]
    assert f"row {worst[0]} ({TWO[worst[0]]}): {model.slack_[worst[0]]:.4g}" in said
    assert f"1 / ||w|| = {model.margin_:.4g}: the street is {2 * model.margin_:.4g}" in said
    assert "with C = 2.5\n" in said
    assert "RBF(gamma=0.7): a valid kernel" in said
    assert f"primal {model.certificate_.primal:.10g}, dual" in said
    assert found.certificate is model.certificate_
    assert model.certificate_.claim in found.sections()["certificate"]
    assert found.seconds == model.fit_time_ > 0
    assert max(map(len, said.splitlines())) <= 96
    assert repr(found) == said


def test_free_and_bounded_follow_weights():
    weight = np.linspace(0.5, 2.0, len(y))
    model = SVC(gamma=0.7).fit(X, TWO, weight)
    at = np.isclose(np.abs(model.dual_coef_[0]), weight[model.support_], rtol=1e-12)
    assert explain(model).support[3:5] == (len(at) - at.sum(), at.sum())
    regression = SVR(epsilon=0.1).fit(X, y)
    alpha = np.abs(regression.dual_coef_[0])
    assert explain(regression).support[3:5] == ((alpha < 1).sum(), (alpha >= 1).sum())
    several = SVC(gamma=0.7).fit(X, y)
    expansions = np.abs(several.scheme_.expansions(several.dual_coef_, several.n_support_))
    free, bounded, machines = explain(several).support[3:]
    assert (free, bounded) == (((expansions > 0) & (expansions < 1)).sum(), (expansions >= 1).sum())
    assert machines == 3


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (SVC(lam=0.01), "with lam = 0.01: C = 1 / (2 N lam)"),
        (SVC(fit_intercept=False), "with C = 1, b = 0"),
        (SVC(multiclass="weston_watkins"), "sum_k max(0, 1 + f_k(x_i) - f_y(x_i))"),
        (SVC(multiclass="ovr"), "for each of 3 machines, OneVsRest"),
        (SVC(approximation="nystroem", random_state=0), "features of Nystroem: off by"),
        (NuSVC(nu=0.3), "with nu = 0.3"),
        (SVC(solver="smo"), "smo: it was asked for ("),
        (LinearSVC(loss="hinge", C=3.0), "with C = 3, V the hinge"),
        (LinearSVC(norm_bound=2.0), "||w|| <= 2 in place of the penalty, V the squared_hinge"),
        (LogisticRegression(norm_bound=2.0), "<= 2 in place of the penalty: C = "),
        (LogisticRegression(), "for all 3 classes together"),
        (SVC(kernel=Sigmoid(), C=0.1), "Sigmoid(gamma="),
        (Perceptron(kernel="rbf", eta0=0.5), "eta0 = 0.5"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_words(machine, words):
    assert words in " ".join(str(explain(machine.fit(X, y))).split())


@pytest.mark.parametrize("machine", [LinearSVC(), LinearSVC(multiclass="ovo"), SVC()], ids=str)
def test_rows_that_no_machine_sees_have_no_slack(machine):
    weight = np.where(np.arange(150) % 3, 1.0, 0.0)
    found = explain(machine.fit(X, y, weight))
    assert found.slack.counts.sum() == found.support.rows == 150
    assert found.support.total == len(machine.support_)
    assert np.isfinite(found.slack.edges).all()
    if isinstance(machine, LinearSVC):
        assert found.slack.positive == np.sum(np.nan_to_num(machine.slack_).max(axis=0) > 1e-4)
        assert all(one.row % 3 for one in found.most_slack)


@pytest.mark.filterwarnings("ignore:Solver terminated")
def test_a_machine_of_nothing_and_one_between_two_costs():
    nothing = explain(SVC(time_limit=1e-9, kernel="linear", C=1e6).fit(X[:100], y[:100]))
    assert nothing.margin == np.inf
    hard = explain(SVC(C=np.inf).fit(X[:100], y[:100]))  # whose slack is rounding
    assert not hard.slack.positive
    assert not hard.most_slack
    few = SVC(approximation="nystroem").fit(X[:20] + np.arange(20)[:, None], np.arange(20) % 2)
    assert "nan" not in explain(few).kernel
    bounded = explain(SVC(norm_bound=2.0).fit(X[50:], y[50:]))
    assert bounded.support.free is None  # of an expansion that is not a dual answer


@pytest.mark.filterwarnings("ignore")
def test_words_of_regression():
    assert "with nu = 0.2, C = 3" in str(explain(NuSVR(nu=0.2, C=3.0).fit(X, y)))
    two = explain(SVR().fit(X, np.column_stack([y, -y])))
    assert two.slack.counts.sum() == 150
    assert not two.slack.wrong
    ridge = KernelRidge(alpha=np.array([1.0, 1.0])).fit(X, np.column_stack([y, 2 * y]))
    largest = explain(ridge).most_alpha[0]
    assert largest.value == np.abs(ridge.dual_coef_).max()
    assert largest.row == np.argmax(np.abs(ridge.dual_coef_).max(axis=1))
    assert "street" not in str(explain(OneClassSVM(nu=0.1).fit(X)))


def test_pipelines_searches_and_others():
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    assert str(explain(pipeline)).startswith("machine           StandardScaler, then SVC: ")
    judged = explain(pipeline, X, y)
    assert judged.score == pipeline.score(X, y)
    wrong = pipeline.predict(X) != y
    assert f"({wrong.sum()} of 150 wrong)" in str(judged)
    assert all(wrong[one.row] for one in judged.mistakes)
    search = GridSearchCV(SVC(), {"C": [0.1, 5.0]}, cv=2).fit(X, y)
    assert f"C = {search.best_params_['C']:g}" in explain(search).problem
    regression = SVR().fit(X, X[:, 1])
    off = np.abs(regression.predict(X) - y)
    assert explain(regression, X, y).mistakes[0][:2] == (np.argmax(off), off.max())
    assert "2 features, 3 classes" in str(explain(SchemeClassifier(Reference()).fit(X, y)))
    with pytest.raises(NotFittedError):
        explain(SVC())
    with pytest.raises(ValueError, match="give both, or neither"):
        explain(pipeline, X)


def test_several_labels_for_a_row():
    documents, topics = (
        ["oil gas", "oil", "gas tin", "tin"] * 3,
        np.array([[1, 0], [1, 0], [0, 1], [1, 1]] * 3),
    )
    model = WordStumpBooster(1).fit(documents, topics)
    wrong = (model.predict(documents) != topics).any(axis=1)
    assert 0 < wrong.sum() == len(explain(model, documents, topics).mistakes)


def test_a_notebook_shows_it_below_the_diagram():
    machine = SVC()
    assert "maxmargin-explanation" not in machine._repr_html_()
    machine.fit(X, NAMES)
    page = machine._repr_html_()
    assert page.index("sk-top-container") < page.index("maxmargin-explanation")
    assert machine._repr_mimebundle_()["text/html"].endswith(explain(machine)._repr_html_())
    shown = explain(machine)._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;setosa&lt;/b&gt;" in shown
    assert len(shown) < 5000
    with config_context(display="text"):
        assert not hasattr(machine, "_repr_html_")
        assert "text/html" not in machine._repr_mimebundle_()

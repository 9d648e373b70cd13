"""Boosting: the lecture's rounds, bound and margins; SAMME; LogitBoost; descent; LPBoost."""

import signal

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_classification,
    make_gaussian_quantiles,
    make_moons,
)
from sklearn.ensemble import AdaBoostClassifier as ScikitLearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier as ScikitLearnTree

from maxmargin import (
    SVC,
    AdaBoostClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    LinearSVC,
    LogitBoostClassifier,
    LPBoostClassifier,
    Perceptron,
)
from maxmargin.bounds import margin_bound
from maxmargin.ensemble import boosting_descent, stump_dictionary
from maxmargin.ensemble.boosting.lpboost import soft_margin
from maxmargin.losses import Hinge, Logistic
from maxmargin.multiclass import SchemeClassifier
from maxmargin.solution import Status

TOY = np.array(
    [[1, 4], [2, 2], [5, 10], [7, 8], [8, 7], [3, 6], [4, 5], [6, 3], [9, 9], [10, 1]], float
)
SIDE = np.repeat([1, -1], 5)
CANCER, MALIGNANT = load_breast_cancer(return_X_y=True)
IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def boosted():
    return AdaBoostClassifier(n_estimators=40).fit(CANCER, MALIGNANT)


# -- the lecture -------------------------------------------------------------------------------


def test_the_toy_example():
    model = AdaBoostClassifier(n_estimators=3).fit(TOY, SIDE)
    assert [(h.feature_, h.threshold_, h.labels_) for h in model.estimators_] == [
        (0, 2.5, (1, -1)),
        (0, 8.5, (1, -1)),
        (1, 6.5, (-1, 1)),
    ]
    np.testing.assert_allclose(model.estimator_errors_, [3 / 10, 3 / 14, 3 / 22])
    np.testing.assert_allclose(model.estimator_weights_, [0.4236, 0.6496, 0.9229], atol=5e-5)
    np.testing.assert_allclose(model.normalisers_, [0.9165, 0.8207, 0.6863], atol=5e-5)
    first, second, third, _ = model.D_
    np.testing.assert_allclose(first, 0.1)
    np.testing.assert_allclose(np.sort(second), [1 / 14] * 7 + [1 / 6] * 3)
    np.testing.assert_allclose(np.sort(third), [1 / 22] * 4 + [7 / 66] * 3 + [1 / 6] * 3)
    bounds = model.bounds()
    np.testing.assert_allclose(bounds.error, [0.3, 0.3, 0])
    assert round(bounds.product[-1], 4) == 0.5162
    assert round(bounds.exponential[-1], 4) == 0.6019
    assert model.status_ == "completed"
    assert model.score(TOY, SIDE) == 1.0


def test_margins_and_distribution_are_one_identity(boosted):
    """exp(-y g_t) = N prod Z D_t+1, at every stage."""
    y = np.where(MALIGNANT == 1, 1.0, -1.0)
    alphas, product = np.cumsum(boosted.estimator_weights_), np.cumprod(boosted.normalisers_)
    for t, f in enumerate(boosted.staged_decision_function(CANCER)):
        expected = len(y) * product[t] * boosted.D_[t + 1]
        np.testing.assert_allclose(np.exp(-y * alphas[t] * f), expected, rtol=1e-8)


def test_each_bound_is_below_the_next(boosted):
    error, product, exponential, uniform = boosted.bounds()
    scores = list(boosted.staged_score(CANCER, MALIGNANT))
    np.testing.assert_allclose(error, 1 - np.array(scores))
    assert (error <= product + 1e-12).all()
    assert (product <= exponential + 1e-12).all()
    assert (exponential <= uniform + 1e-12).all()
    e = boosted.estimator_errors_
    np.testing.assert_allclose(boosted.normalisers_, 2 * np.sqrt(e * (1 - e)))
    np.testing.assert_allclose(e, [d[h.predict(CANCER) != MALIGNANT].sum() for d, h in zip(
        boosted.D_, boosted.estimators_, strict=False)])  # fmt: skip


def test_it_is_coordinate_descent_on_the_exponential_loss():
    X, y = make_moons(60, noise=0.3, random_state=0)
    model = AdaBoostClassifier(n_estimators=12).fit(X, y)
    H, tests = stump_dictionary(X)
    way = boosting_descent(H, y, max_iter=12)
    steps = np.abs(np.diff(way.points, axis=0)).max(axis=1)
    np.testing.assert_allclose(steps, model.estimator_weights_, rtol=1e-8)
    stumps = [(h.feature_, h.threshold_) for h in model.estimators_]
    np.testing.assert_allclose([tests[j] for j in way.coordinates], stumps)
    np.testing.assert_allclose(-way.values[1:], model.bounds().product, rtol=1e-9)
    weight = np.arange(60) % 3 + 1
    weighed = boosting_descent(H, y, sample_weight=weight, max_iter=5)
    repeated = boosting_descent(np.repeat(H, weight, axis=0), np.repeat(y, weight), max_iter=5)
    np.testing.assert_allclose(weighed.points, repeated.points, atol=1e-9)
    smooth = boosting_descent(H, y, loss=Logistic(), max_iter=5)
    assert (np.diff(smooth.values) > 0).all()
    with pytest.raises(ValueError, match="-1 and \\+1"):
        boosting_descent(0.5 * H, y)
    with pytest.raises(ValueError, match="without end"):
        boosting_descent(np.where(y == 1, 1.0, -1.0)[:, None], y)


# -- margins -----------------------------------------------------------------------------------


def test_margins(boosted):
    y = np.where(MALIGNANT == 1, 1.0, -1.0)
    margins = boosted.margins(CANCER, MALIGNANT)
    np.testing.assert_allclose(margins, y * boosted.decision_function(CANCER), atol=1e-12)
    assert boosted.minimum_margin_ == pytest.approx(margins.min())
    staged = list(boosted.staged_margins(CANCER, MALIGNANT))
    np.testing.assert_allclose(staged[4], boosted.margins(CANCER, MALIGNANT, n_rounds=5))
    shares = boosted.margin_distribution(CANCER, MALIGNANT, [-1.1, 0.0, 1.0], n_rounds=5)
    assert shares[0] == 0
    assert shares[1] == pytest.approx(np.mean(staged[4] <= 0))
    assert shares[2] == 1
    with pytest.raises(ValueError, match="from 1 to 40"):
        boosted.margins(CANCER, MALIGNANT, n_rounds=41)
    with pytest.raises(ValueError, match=r"labels \[7\]"):
        boosted.margins(CANCER[:1], [7])


def test_margin_bound_knows_the_weak_learners(boosted):
    n, d = CANCER.shape
    known = boosted.margin_bound(CANCER, MALIGNANT)
    assert known.value == boosted.margin_bound(
        CANCER, MALIGNANT, n_base=2 * (d * (n - 1) + 1)
    ).value  # fmt: skip
    tree = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3)
    margins = tree.fit(CANCER, MALIGNANT).margins(CANCER, MALIGNANT)
    most = (d * (n - 1) + 1.0) ** 3 * 2**4
    assert tree.margin_bound(CANCER, MALIGNANT).value == pytest.approx(
        margin_bound(margins, n_base=most).value
    )
    linear = AdaBoostClassifier(LinearSVC(), n_estimators=2).fit(IRIS[50:], SPECIES[50:])
    assert linear.margin_bound(IRIS[50:], SPECIES[50:]).value == pytest.approx(
        margin_bound(linear.margins(IRIS[50:], SPECIES[50:]), vc_dim=5).value
    )
    model = AdaBoostClassifier(SVC(), n_estimators=2).fit(CANCER[::9], MALIGNANT[::9])
    with pytest.raises(ValueError, match="give n_base"):
        model.margin_bound(CANCER[::9], MALIGNANT[::9])
    with pytest.raises(ValueError, match="two classes"):
        AdaBoostClassifier(n_estimators=2).fit(IRIS, SPECIES).margin_bound(IRIS, SPECIES)


# -- several classes ---------------------------------------------------------------------------


def test_the_same_rounds_as_scikit_learns_samme():
    """With its trees: twice our alphas, the same values and classes."""
    tree = ScikitLearnTree(max_depth=2, random_state=0)
    for X, y in ((IRIS, SPECIES), (CANCER, MALIGNANT)):
        ours = AdaBoostClassifier(tree, n_estimators=8, random_state=0).fit(X, y)
        theirs = ScikitLearn(tree, n_estimators=8, random_state=0).fit(X, y)
        np.testing.assert_allclose(2 * ours.estimator_weights_, theirs.estimator_weights_)
        np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_)
        unit = 0.5 if len(ours.classes_) == 2 else 1.0  # theirs of two is between -2 and 2
        values = unit * theirs.decision_function(X)
        np.testing.assert_allclose(ours.decision_function(X), values, atol=1e-12)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_bound_and_margins_of_several_classes():
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=15)
    model.fit(IRIS, SPECIES)
    error, product, exponential, uniform = model.bounds()
    assert (error <= product).all()
    assert exponential is None is uniform
    np.testing.assert_allclose(error, 1 - np.array(list(model.staged_score(IRIS, SPECIES))))
    e = model.estimator_errors_
    np.testing.assert_allclose(model.normalisers_, 3 * np.sqrt(e * (1 - e) / 2))
    alphas = model.estimator_weights_
    answers = np.array([h.predict(IRIS) for h in model.estimators_])
    votes = np.array([alphas @ (answers == k) for k in range(3)]).T
    u = 2 * votes[np.arange(150), SPECIES] - alphas.sum()
    np.testing.assert_allclose(np.exp(-u), 150 * product[-1] * model.D_[-1], rtol=1e-8)
    margins = model.margins(IRIS, SPECIES)
    assert ((margins > 0) == (model.predict(IRIS) == SPECIES)).all()
    np.testing.assert_allclose(model.predict_proba(IRIS).sum(axis=1), 1)
    with pytest.raises(ValueError, match="no better than chance"):  # error 2/3 is chance here
        AdaBoostClassifier().fit(np.ones((9, 1)), np.arange(9) % 3)


# -- how rounds end ----------------------------------------------------------------------------


def test_a_perfect_hypothesis_decides_alone():
    X, y = np.arange(6.0)[:, None], np.array(["a", "a", "a", "b", "b", "b"])
    model = AdaBoostClassifier().fit(X, y)
    assert model.status_ == "perfect"
    assert "decides alone" in model.status_.advice
    assert model.estimator_weights_ == [np.inf]
    assert model.minimum_margin_ == 1.0
    assert (model.margins(X, y) == 1).all()
    np.testing.assert_array_equal(model.predict_proba(X), np.repeat(np.eye(2), 3, axis=0))
    assert model.D_.shape == (1, 6)

    class Late(DecisionStump):
        """Becomes perfect in the third round."""

        rounds = 0

        def fit(self, X, y, sample_weight=None):
            Late.rounds += 1
            self.rule_ = Late.rounds
            return super().fit(X, y, sample_weight)

        def predict(self, X):
            return np.where(np.arange(len(X)) < 5, 1, -1) if self.rule_ == 3 else super().predict(X)

    model = AdaBoostClassifier(Late()).fit(TOY, SIDE)
    assert (model.status_, model.n_iter_) == ("perfect", 3)
    assert model.bounds().product[-1] == 0
    np.testing.assert_array_equal(model.decision_function(TOY), SIDE)
    np.testing.assert_array_equal(list(model.staged_decision_function(TOY))[-1], SIDE)


def test_a_learner_without_an_edge():
    xor = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(ValueError, match=r"no better than chance.*max_depth=2"):
        AdaBoostClassifier().fit(xor, [0, 1, 1, 0])
    assert AdaBoostClassifier(DecisionTreeClassifier(max_depth=2)).fit(xor, [0, 1, 1, 0]).score(
        xor, [0, 1, 1, 0]
    ) == 1  # fmt: skip
    constant = AdaBoostClassifier().fit(np.ones((5, 2)), [0, 0, 0, 1, 1])
    assert (constant.status_, constant.n_iter_) == ("no_edge", 1)
    assert constant.estimators_[0].rule == "always 0"
    assert constant.certificate_.converged  # an end, and no warning


def test_labels_weights_and_data():
    names = np.array(["benign", "malignant"])[1 - MALIGNANT]
    model = AdaBoostClassifier(n_estimators=5).fit(CANCER, names)
    weight = np.random.default_rng(0).integers(0, 3, len(names)).astype(float)
    weighted = AdaBoostClassifier(n_estimators=5).fit(CANCER, names, weight)
    assert (weighted.D_[:, weight == 0] == 0).all()
    np.testing.assert_allclose(weighted.D_.sum(axis=1), 1)
    last = AdaBoostClassifier(n_estimators=5, store_distributions=False).fit(CANCER, names)
    np.testing.assert_array_equal(last.D_, model.D_[-1:])


def test_the_stump_is_the_best_there_is():
    """Of all tests and classes, for two classes and more, dense and sparse."""
    rng = np.random.default_rng(1)
    for K in (2, 4):
        X = rng.integers(0, 5, (80, 6)).astype(float) * (rng.random((80, 6)) < 0.4)
        y, w = rng.integers(0, K, 80), rng.random(80)
        H, _ = stump_dictionary(X)
        mass = [[np.bincount(y[h == s], w[h == s], K).max() for s in (-1, 1)] for h in H.T[1:]]
        best = max(np.bincount(y, w, K).max(), np.sum(mass, axis=1).max())
        for data in (X, sp.csr_array(X), X.astype(np.float32)):
            stump = DecisionStump().fit(data, y, w)
            assert stump.error_ == pytest.approx(1 - best / w.sum())
            assert w[stump.predict(data) == y].sum() == pytest.approx(best)
    x, y = np.arange(12.0)[:, None], np.arange(12) > 8
    assert DecisionStump().fit(x, y).error_ == 0 < DecisionStump(max_bins=2).fit(x, y).error_


@pytest.mark.parametrize(
    "estimator",
    [
        ScikitLearnTree(max_depth=1),
        DecisionTreeClassifier(max_depth=2, splitter="random"),
        DecisionTreeClassifier(max_depth=2, class_weight="balanced"),
        LinearSVC(max_iter=200),
        Perceptron(tol=None, max_iter=5, variant="pocket"),
        SVC(C=1.0),
        KNeighborsClassifier(15),  # takes no weights: rows are drawn
    ],
    ids=lambda e: type(e).__name__ + type(e).__module__[:4],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_classifier_can_be_boosted(estimator):
    X = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
    model = AdaBoostClassifier(estimator, n_estimators=6, random_state=3).fit(
        X[::2], MALIGNANT[::2]
    )
    assert model.score(X[1::2], MALIGNANT[1::2]) > 0.9
    again = AdaBoostClassifier(estimator, n_estimators=6, random_state=3).fit(
        X[::2], MALIGNANT[::2]
    )
    np.testing.assert_array_equal(model.estimator_errors_, again.estimator_errors_)


def test_a_hypothesis_with_strange_labels():
    class Strange(DecisionStump):
        """Has other labels than it was given."""

        def predict(self, X):
            return np.full(len(X), 7)

    with pytest.raises(ValueError, match=r"labels that are none of \[-1, 1\]"):
        AdaBoostClassifier(Strange()).fit(TOY, SIDE)


def test_shared_trees_are_fitted_trees():
    """Columns that are coded once give the trees that a fit would."""
    tree = DecisionTreeClassifier(max_depth=2)
    shared = AdaBoostClassifier(tree, n_estimators=4).fit(IRIS, SPECIES)

    class Fitted(DecisionTreeClassifier):
        """The same, of a type that is not known."""

    own = AdaBoostClassifier(Fitted(max_depth=2), n_estimators=4).fit(IRIS, SPECIES)
    np.testing.assert_allclose(shared.estimator_errors_, own.estimator_errors_)
    np.testing.assert_array_equal(shared.predict(IRIS), own.predict(IRIS))


# -- long work ---------------------------------------------------------------------------------


def test_more_rounds():
    tree = DecisionTreeClassifier(max_depth=2, splitter="random")
    for make in (
        lambda n: AdaBoostClassifier(tree, n_estimators=n, warm_start=True, random_state=1),
        lambda n: LogitBoostClassifier(n_estimators=n, warm_start=True),
    ):
        whole = make(9).fit(CANCER, MALIGNANT)
        parts = make(4).fit(CANCER, MALIGNANT)
        parts.set_params(n_estimators=9).fit(CANCER, MALIGNANT)
        np.testing.assert_array_equal(parts.train_errors_, whole.train_errors_)
        np.testing.assert_array_equal(
            parts.decision_function(CANCER), whole.decision_function(CANCER)
        )
        np.testing.assert_allclose(parts.D_[-1], whole.D_[-1])
        with pytest.raises(ValueError, match="fewer than the 9 rounds"):
            parts.set_params(n_estimators=5).fit(CANCER, MALIGNANT)
        parts.set_params(n_estimators=12)
        with pytest.raises(ValueError, match="rows of the last fit"):
            parts.fit(CANCER[::-1] + 1.0, MALIGNANT)
        with pytest.raises(ValueError, match="of 30 features"):
            parts.fit(CANCER[:, :20], MALIGNANT)


@pytest.mark.parametrize("make", [AdaBoostClassifier, LogitBoostClassifier, LPBoostClassifier])
def test_stops_progress_and_traces(make, capsys):
    model = make(n_estimators=4, trace=True, verbose=True)
    if make is LPBoostClassifier:
        with pytest.warns(ConvergenceWarning, match="not reached in n_estimators=4"):
            model.fit(CANCER, MALIGNANT)
        assert model.certificate_.gap > 0
    else:
        model.fit(CANCER, MALIGNANT)
        np.testing.assert_array_equal(model.trace_.curve("violation")[1:], model.train_errors_)
    assert list(model.trace_.curve("steps")) == [0, 1, 2, 3, 4]
    captured = capsys.readouterr()
    assert "margin" in captured.err or "after 4 rounds" in captured.err
    stopped = make(n_estimators=10**5, callback=lambda progress: progress.steps > 2)
    X, y = make_classification(3000, 30, flip_y=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="topped early"):
        stopped.fit(X, y)
    assert stopped.status_ == "interrupted"
    assert 2 < stopped.n_iter_ < 10**4
    with pytest.raises(ValueError, match="no thread at all"):
        make(n_jobs=0).fit(CANCER, MALIGNANT)


@pytest.mark.parametrize("make", [AdaBoostClassifier, LogitBoostClassifier, LPBoostClassifier])
def test_the_first_round_is_made_whoever_stops(make, heard):
    least = make(time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit=1e-09 s"):
        least.fit(CANCER, MALIGNANT)
    assert (least.n_iter_, least.status_) == (1, "time_limit")
    assert least.score(CANCER, MALIGNANT) > 0.85
    if make is not LPBoostClassifier:  # a limit that has passed is none for rounds that are made
        assert make(n_estimators=1, time_limit=1e-9).fit(CANCER, MALIGNANT).status_ == "completed"

    class Pressing(DecisionTreeRegressor if make is LogitBoostClassifier else DecisionStump):
        def fit(self, X, y, sample_weight=None):
            signal.raise_signal(signal.SIGINT)
            return super().fit(X, y, sample_weight)

    pressed = make(Pressing())
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"), pytest.raises(KeyboardInterrupt):
        pressed.fit(CANCER, MALIGNANT)
    assert (pressed.n_iter_, pressed.status_) == (1, "interrupted")
    assert pressed.score(CANCER, MALIGNANT) > 0.85


def test_threads_change_nothing():
    X, y = make_classification(70_000, 16, random_state=0)
    one, two = (AdaBoostClassifier(n_estimators=20, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.D_, two.D_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


# -- LogitBoost --------------------------------------------------------------------------------


def test_logitboost_lowers_its_loss():
    model = LogitBoostClassifier(n_estimators=30, learning_rate=0.5).fit(
        CANCER[::2], MALIGNANT[::2]
    )
    F = model.decision_function(CANCER[::2])
    u = np.where(MALIGNANT[::2] == 1, F, -F)
    assert (np.diff(model.train_losses_) < 0).all()
    assert model.train_losses_[-1] == pytest.approx(Logistic().value(u).mean())
    pull = -Logistic().slope(u)
    np.testing.assert_allclose(model.D_[0], pull / pull.sum())
    assert model.certificate_.train_error <= model.certificate_.bound
    assert model.score(CANCER[1::2], MALIGNANT[1::2]) > 0.94
    stages = list(model.staged_score(CANCER[::2], MALIGNANT[::2]))
    np.testing.assert_allclose(1 - np.array(stages), model.train_errors_)


def test_every_regression_goes_downhill():
    """Also where rows are far on their wrong side, whose curvature is small."""
    X, y = make_classification(1500, 30, flip_y=0.2, random_state=0)
    model = LogitBoostClassifier(n_estimators=40, learning_rate=1.0).fit(X, y)
    assert model.status_ == "completed"
    assert (model.estimator_weights_ == 1.0).all()
    assert (np.diff(model.train_losses_) < 0).all()


def test_the_first_steps_by_hand():
    """GentleBoost fits y with weights exp(-u); LogitBoost 4 times half the label, all alike."""
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([-1.0, 1.0, -1.0])
    gentle = LogitBoostClassifier(loss="exponential", n_estimators=1, learning_rate=1.0)
    gentle.fit(x, y)
    np.testing.assert_allclose(gentle.decision_function(x), [-1, 0, 0])
    logit = LogitBoostClassifier(n_estimators=1, learning_rate=1.0).fit(x, y)
    np.testing.assert_allclose(logit.decision_function(x), [-2, 0, 0])
    p = logit.predict_proba(x)[:, 1]
    np.testing.assert_allclose(p, 1 / (1 + np.exp([2.0, 0, 0])))


def test_logitboost_of_several_classes():
    model = LogitBoostClassifier(n_estimators=30).fit(IRIS, SPECIES)
    assert model.score(IRIS, SPECIES) > 0.95
    np.testing.assert_allclose(model.decision_function(IRIS).sum(axis=1), 0, atol=1e-9)
    p = model.predict_proba(IRIS)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert model.train_losses_[-1] == pytest.approx(log_loss(SPECIES, p))
    with pytest.raises(ValueError, match="is of two classes"):
        LogitBoostClassifier(loss="exponential").fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="need a loss with a curvature"):
        LogitBoostClassifier(loss=Hinge()).fit(CANCER, MALIGNANT)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        LogitBoostClassifier(KNeighborsRegressor()).fit(CANCER, MALIGNANT)
    with pytest.raises(ValueError, match="is no regressor"):
        LogitBoostClassifier(DecisionStump()).fit(CANCER, MALIGNANT)
    with pytest.raises(ValueError, match="KNeighborsRegressor is none"):
        AdaBoostClassifier(KNeighborsRegressor()).fit(CANCER, MALIGNANT)


def test_wrong_labels_do_not_take_logitboost_over():
    X, clean = make_gaussian_quantiles(n_samples=2500, n_features=5, n_classes=2, random_state=0)
    noisy = np.random.default_rng(0).random(500) < 0.1
    y = np.where(noisy, 1 - clean[:500], clean[:500])
    ada = AdaBoostClassifier(n_estimators=150).fit(X[:500], y)
    logit = LogitBoostClassifier(n_estimators=150).fit(X[:500], y)
    assert ada.D_[-1][noisy].max() > logit.D_[-1][noisy].max()
    right = [model.score(X[500:], clean[500:]) for model in (ada, logit)]
    assert right[1] > right[0] + 0.02


# -- LPBoost -----------------------------------------------------------------------------------


def whole_programme(X, y, nu):
    """The largest soft margin over the dictionary of all stumps, at once."""
    H, _ = stump_dictionary(X)
    Y = y[:, None] * np.hstack([H, -H])
    n, m = Y.shape
    cost = np.concatenate([np.zeros(m), [-1.0], np.full(n, 1 / (nu * n) if nu else 0.0)])
    top = None if nu else 0.0
    rows = np.hstack([-Y, np.ones((n, 1)), -np.eye(n)])
    answer = linprog(
        cost,
        A_ub=rows,
        b_ub=np.zeros(n),
        A_eq=np.concatenate([np.ones(m), np.zeros(n + 1)])[None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * m, (None, None), *[(0, top)] * n],
    )
    return -answer.fun


@pytest.mark.parametrize("nu", [0.0, 0.1, 0.5])
def test_lpboost_finds_the_largest_soft_margin(nu):
    X, y = make_moons(80, noise=0.25, random_state=3)
    y = 2 * y - 1
    model = LPBoostClassifier(nu=nu).fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.exhaustive
    assert certificate.gap <= 1e-6
    assert certificate.margin == pytest.approx(whole_programme(X, y, nu), abs=2e-6)
    margins = model.margins(X, y)
    value, rho = soft_margin(margins, np.full(80, 1 / 80), nu)
    assert value == pytest.approx(model.soft_margin_, abs=1e-7)
    assert rho == pytest.approx(model.rho_, abs=1e-7)
    if nu:  # the share of slack
        assert np.mean(margins < model.rho_ - 1e-7) <= nu + 1e-9
        assert np.mean(margins <= model.rho_ + 1e-7) >= nu - 1e-9
        assert model.D_.max() <= 1 / (nu * 80) + 1e-12
    assert (np.diff(model.margin_path_) >= 0).all()
    assert (model.bound_path_ >= model.soft_margin_ - 1e-9).all()
    assert model.D_[0] @ (margins > model.rho_ + 1e-6) == pytest.approx(0, abs=1e-9)


def test_adaboost_approaches_the_largest_margin():
    X, y = CANCER[::4], MALIGNANT[::4]
    best = LPBoostClassifier(nu=0.0).fit(X, y)
    few, many = (AdaBoostClassifier(n_estimators=n).fit(X, y) for n in (20, 1500))
    assert few.minimum_margin_ < many.minimum_margin_ < best.soft_margin_ + 1e-6
    assert many.minimum_margin_ > 0.6 * best.soft_margin_
    assert len(best.estimators_) < 100


def test_lpboost_says_what_its_gap_is_about():
    tree = LPBoostClassifier(DecisionTreeClassifier(max_depth=2), nu=0.3).fit(CANCER, MALIGNANT)
    assert not tree.certificate_.exhaustive
    assert "what the weak learner has found" in tree.certificate_.claim
    with pytest.raises(ValueError, match="SchemeClassifier"):
        LPBoostClassifier().fit(IRIS, SPECIES)
    scheme = SchemeClassifier(LPBoostClassifier(nu=0.2), multiclass="ovr").fit(IRIS, SPECIES)
    assert scheme.score(IRIS, SPECIES) > 0.9
    xor = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(ValueError, match="no better than chance"):
        LPBoostClassifier().fit(xor, [0, 1, 1, 0])
    near = np.vstack([xor, [[0.0, 0.0]]])  # an edge, and no margin
    with pytest.warns(ConvergenceWarning, match="No vote of these hypotheses"):
        model = LPBoostClassifier(nu=0.0).fit(near, [0, 1, 1, 0, 0])
    assert model.status_ == "trivial"


# -- pictures ----------------------------------------------------------------------------------


def test_pictures_of_boosting(boosted):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    from maxmargin import plotting

    toy = AdaBoostClassifier(n_estimators=3).fit(TOY, SIDE)
    ax = Figure().subplots()
    display = plotting.BoostingDisplay.from_estimator(toy, TOY, SIDE, ax, state=1)
    assert len(display) == 4
    assert ax.get_title() == "round 2: error 0.21, alpha 0.65"
    sizes = np.concatenate([points.get_sizes() for points in ax.collections[-3:-1]])
    np.testing.assert_allclose(sizes.max() / sizes.min(), (1 / 6) / (1 / 14))
    assert sizes.mean() == pytest.approx(90.0)  # of a row of mean weight
    assert display.wrong.sum(axis=1).tolist() == [3, 3, 3, 0]
    assert plotting.plot_boosting(toy, TOY, SIDE).get_title() == "the vote of 3: 0 of 10 wrong"
    last = AdaBoostClassifier(n_estimators=3, store_distributions=False).fit(TOY, SIDE)
    with pytest.raises(ValueError, match="store_distributions=True"):
        plotting.plot_boosting(last, TOY, SIDE)
    with pytest.raises(TypeError, match="plot_boosting draws AdaBoost"):
        plotting.plot_boosting(LogitBoostClassifier().fit(TOY, SIDE), TOY, SIDE)
    with pytest.raises(ValueError, match="fitted on 30"):
        plotting.plot_boosting(boosted, CANCER, MALIGNANT)

    rounds = plotting.RoundsDisplay.from_estimator(
        boosted, ax=Figure().subplots(), others={"test": (CANCER[:50], MALIGNANT[:50])}
    )
    assert list(rounds.bounds) == ["product", "exponential", "uniform"]
    assert rounds.errors["test"][-1] == 1 - boosted.score(CANCER[:50], MALIGNANT[:50])
    with pytest.raises(TypeError, match="plot_rounds draws"):
        plotting.plot_rounds(DecisionStump().fit(TOY, SIDE))

    ax = Figure().subplots()
    margins = plotting.MarginDisplay.from_estimator(
        boosted, CANCER, MALIGNANT, rounds=[1, 40], cumulative=True, ax=ax
    )
    assert list(margins.margins) == ["1 round", "40 rounds"]
    np.testing.assert_allclose(margins.margins["40 rounds"], boosted.margins(CANCER, MALIGNANT))
    assert ax.get_xlim() == (-1, 1)
    with pytest.raises(ValueError, match="rounds are those of a booster"):
        plotting.plot_margins(
            LinearSVC().fit(CANCER[::9], MALIGNANT[::9]), CANCER, MALIGNANT, rounds=[1]
        )

    marked = np.arange(len(CANCER)) < 9
    weights = plotting.RowWeightsDisplay.from_estimators(
        {"AdaBoost": boosted}, marked, ax=Figure().subplots()
    )
    assert weights.weights["AdaBoost"].mean() == pytest.approx(1)
    with pytest.raises(ValueError, match="some of the rows"):
        plotting.plot_row_weights({"AdaBoost": boosted}, ~marked | marked)
    with pytest.raises(ValueError, match="no weights D_ of 3 rows"):
        plotting.plot_row_weights({"AdaBoost": boosted}, [True, False, False])


# -- as in scikit-learn ------------------------------------------------------------------------


def test_attributes_that_scikit_learn_has():
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=9)
    model.fit(CANCER, MALIGNANT)
    theirs = ScikitLearn(ScikitLearnTree(max_depth=1), n_estimators=9).fit(CANCER, MALIGNANT)
    np.testing.assert_allclose(model.feature_importances_, theirs.feature_importances_)
    *_, last = model.staged_predict_proba(CANCER)
    np.testing.assert_allclose(last, model.predict_proba(CANCER))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(CANCER)), last)
    assert model.n_classes_ == 2
    assert model.estimator_.max_depth == 1
    assert list(model) == model.estimators_
    assert len(model) == 9
    stumps = AdaBoostClassifier(n_estimators=9).fit(CANCER, MALIGNANT)
    assert stumps.feature_importances_.sum() == pytest.approx(1)
    assert not hasattr(
        AdaBoostClassifier(SVC(), n_estimators=2).fit(IRIS, SPECIES), "feature_importances_"
    )


@pytest.mark.parametrize("y", [MALIGNANT, SPECIES], ids=["two classes", "three"])
def test_probabilities_are_the_link_of_the_exponential_loss(y):
    """As docs/migrating.md says: of the sum of the votes; scikit-learn's is of their mean."""
    X = CANCER if y is MALIGNANT else IRIS
    model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    votes = sum(
        alpha * (stump.predict(X)[:, None] == model.classes_)
        for alpha, stump in zip(model.estimator_weights_, model.estimators_, strict=True)
    )
    if len(model.classes_) == 2:
        g = votes[:, 1] - votes[:, 0]
        np.testing.assert_allclose(model.decision_function(X) * model.estimator_weights_.sum(), g)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * g)))
    expected = np.exp(2 * votes)
    np.testing.assert_allclose(
        model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True)
    )


def test_one_class_is_one_perfect_stump():
    model = AdaBoostClassifier().fit(IRIS, np.ones(150))
    np.testing.assert_array_equal(model.predict_proba(IRIS), np.ones((150, 1)))
    np.testing.assert_array_equal(model.decision_function(IRIS), np.zeros((150, 1)))
    assert model.status_ is Status.PERFECT


@pytest.mark.parametrize("learning_rate", [23.0, 1e6])
def test_weights_beyond_float64_end_the_rounds(learning_rate):
    model = AdaBoostClassifier(n_estimators=30, learning_rate=learning_rate)
    with pytest.warns(ConvergenceWarning, match="infinite values.*lowering the learning rate"):
        model.fit(IRIS, SPECIES)
    assert model.status_ is Status.DIVERGED
    assert np.isfinite(model.predict_proba(IRIS)).all()


def test_a_product_beyond_float64_is_one_warning():
    """Of finite normalisers."""
    model = AdaBoostClassifier(learning_rate=23.0)
    with pytest.warns(ConvergenceWarning, match="infinite values") as said:
        model.fit(*load_wine(return_X_y=True))
    assert [w.category for w in said] == [ConvergenceWarning]
    assert np.isfinite(model.normalisers_).all()
    assert np.isinf(model.bounds().product[-1])


def test_scores_of_the_exponential_loss_are_its_link():
    x, y = TOY[:, :1], SIDE
    model = LogitBoostClassifier(loss="exponential", n_estimators=5).fit(x, y)
    F = model.decision_function(x)
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], 1 / (1 + np.exp(-2 * F)))


class WithoutReturn:
    """A classifier for two classes whose fit returns nothing, as LightGBM's once did."""

    def fit(self, X, y, sample_weight=None):
        self.tree = DecisionTreeClassifier(max_depth=2).fit(X, y, sample_weight)

    def predict(self, X):
        return self.tree.predict(X)

    def predict_proba(self, X):
        return self.tree.predict_proba(X)


def test_lpboost_and_logitboost_take_any_object():
    model = LPBoostClassifier(WithoutReturn(), n_estimators=3)
    with pytest.warns(ConvergenceWarning, match="n_estimators=3"):
        model.fit(TOY, SIDE)
    assert model.score(TOY, SIDE) > 0.7

    class Regression(WithoutReturn):
        def fit(self, X, y, sample_weight=None):
            self.tree = DecisionTreeRegressor(max_depth=2).fit(X, y, sample_weight)

    model = LogitBoostClassifier(Regression(), n_estimators=3).fit(TOY, SIDE)
    assert model.score(TOY, SIDE) > 0.7

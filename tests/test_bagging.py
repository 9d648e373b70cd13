"""Bagging, and bias and variance by bootstrap replicates."""

import pickle
import signal
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier as TheirClassifier
from sklearn.ensemble import BaggingRegressor as TheirRegressor
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as TheirTree
from sklearn.tree import DecisionTreeRegressor as TheirTreeRegressor

from maxmargin import SVC, SVR, AdaBoostClassifier, LinearSVC, NuSVC, NuSVR
from maxmargin.backends.threads import Workers
from maxmargin.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    bias_variance,
)
from maxmargin.ensemble.bagging.noise import estimate_noise
from maxmargin.kernels import Spectrum
from maxmargin.plotting import (
    BiasVarianceDisplay,
    ErrorPairsDisplay,
    LearnersDisplay,
    plot_bias_variance,
    plot_error_pairs,
    plot_learners,
)

IRIS = load_iris(return_X_y=True)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), y / y.std()


# -- the same as scikit-learn's -------------------------------------------------------------------


@pytest.mark.parametrize("learner", [TheirTree(), KNeighborsClassifier(1)], ids=["tree", "1-nn"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 2, "n_jobs": 2},
        {"max_samples": 40, "bootstrap_features": True},
        {"bootstrap": False, "max_samples": 0.5, "oob_score": False},
    ],
)
def test_members_and_soft_votes_are_those_of_scikit_learn(learner, options):
    X, y = IRIS
    options = {"n_estimators": 20, "random_state": 3, "oob_score": True} | options
    ours = BaggingClassifier(learner, voting="soft", **options).fit(X, y)
    theirs = TheirClassifier(learner, **(options | {"n_jobs": 1})).fit(X, y)
    for name in ("estimators_samples_", "estimators_features_"):
        for a, b in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if options["oob_score"]:
        assert ours.oob_score_ == theirs.oob_score_
        own = ours.oob_decision_function_
        np.testing.assert_allclose(own, theirs.oob_decision_function_, atol=1e-12)


def test_means_are_those_of_scikit_learn():
    X, y = diabetes()
    options = {"n_estimators": 30, "random_state": 1, "oob_score": True}
    ours = BaggingRegressor(TheirTreeRegressor(), **options).fit(X, y)
    theirs = TheirRegressor(TheirTreeRegressor(), **options).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.oob_prediction_, theirs.oob_prediction_)
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_)
    both = BaggingRegressor(TheirTreeRegressor(), **options).fit(X, np.column_stack([y, 2 * y]))
    assert both.predict(X).shape == (len(y), 2)
    np.testing.assert_allclose(both.predict(X)[:, 1], 2 * both.predict(X)[:, 0])


def test_hard_votes_are_counted():
    X, y = IRIS
    model = BaggingClassifier(KNeighborsClassifier(3), 7, random_state=0).fit(X, y)
    said = np.array([member.predict(X) for member in model.estimators_])
    counts = np.array([(said == k).sum(axis=0) for k in model.classes_]).T
    np.testing.assert_array_equal(model.predict_proba(X), counts / 7)
    np.testing.assert_array_equal(model.predict(X), model.classes_[counts.argmax(axis=1)])


# -- how replicates reach the learner -------------------------------------------------------------


def certified_alike(a, b):
    """Whether two certified answers allow each other: no dual above the other's primal."""
    parts = [(one.parts or (one,)) for one in (a, b)]
    room = 1e-9
    return all(
        p.dual <= q.primal + room * abs(q.primal) and q.dual <= p.primal + room * abs(p.primal)
        for p, q in zip(*parts, strict=True)
    )


@pytest.mark.parametrize(
    "learner",
    [
        SVC(),
        SVC(C=100.0, class_weight="balanced"),
        SVC(lam=0.01, multiclass="ovr"),
        SVC(fit_intercept=False, kernel="linear"),
        SVC(C=np.inf, gamma=0.5),
        SVC(multiclass="crammer_singer"),
        NuSVC(nu=0.1),
        SVR(),
        NuSVR(),
    ],
    ids=repr,
)
def test_kernel_machines_over_one_gram_matrix_are_those_of_weighted_fits(learner):
    regression = isinstance(learner, SVR | NuSVR)
    X, y = diabetes() if regression else IRIS
    if np.isinf(learner.C if hasattr(learner, "C") else 1.0):
        X, y = X[50:], y[50:]
        X = np.hstack([X, 0.5 * np.eye(len(X))])  # separable
    kind = BaggingRegressor if regression else BaggingClassifier
    model = kind(learner, 4, random_state=1, n_jobs=2).fit(X, y)
    assert "Gram" in model.sharing_
    together = model._answers(X, "predict")
    for (member, answer, _), rows in zip(together, model.estimators_samples_, strict=True):
        counts = np.bincount(rows, minlength=len(y)).astype(float)
        alone = clone(member).fit(X, y, sample_weight=counts)
        assert member.certificate_.converged
        assert member.certificate_.kkt_violation <= learner.tol
        assert certified_alike(member.certificate_, alone.certificate_)
        assert counts[member.support_].min() != 0
        if regression:
            np.testing.assert_allclose(answer, member.predict(X), atol=1e-10)
            np.testing.assert_allclose(answer, alone.predict(X), atol=5 * learner.tol)
        else:
            np.testing.assert_array_equal(answer, member.predict(X))
            differ = np.abs(member.decision_function(X) - alone.decision_function(X))
            assert differ.max() <= 5 * learner.tol


def test_tables_sparse_rows_and_given_kernels_share_too():
    X, y = IRIS
    dense = BaggingClassifier(SVC(), 4, random_state=0, voting="hard").fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = BaggingClassifier(SVC(), 4, random_state=0).fit(frame, y)
    assert list(named.estimators_[0].feature_names_in_) == list("abcd")
    sparse = BaggingClassifier(SVC(), 4, random_state=0).fit(sp.csr_array(X), y)
    gamma = dense.estimators_[0].kernel_.gamma
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    given = BaggingClassifier(SVC(kernel="precomputed"), 4, random_state=0).fit(K, y)
    single = BaggingClassifier(SVC(), 4, random_state=0).fit(X.astype(np.float32), y)
    for other, points in ((named, frame), (sparse, sp.csr_array(X)), (given, K), (single, X)):
        np.testing.assert_allclose(other.predict_proba(points), dense.predict_proba(X), atol=0.3)
        assert (other.predict(points) == dense.predict(X)).mean() > 0.98
    revived = pickle.loads(pickle.dumps(dense))
    np.testing.assert_array_equal(revived.predict_proba(X), dense.predict_proba(X))
    np.testing.assert_allclose(
        dense.decision_function(X),
        np.mean([member.decision_function(X) for member in dense.estimators_], axis=0),
        atol=1e-10,
    )


def test_machines_that_are_watched_are_fitted_one_by_one():
    X, y = IRIS
    for options in ({"time_limit": 100.0}, {"callback": lambda progress: None}):
        model = BaggingClassifier(SVC(**options), 2, random_state=0).fit(X, y)
        assert "takes weights" in model.sharing_
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = BaggingClassifier(SVC(max_iter=1, gamma=5.0), 2, random_state=0).fit(X, y)
    assert all(member.fit_status_ == 1 for member in model.estimators_)


def test_soft_votes_of_kernel_machines():
    X, y = IRIS
    learner = SVC(probability="consistent")
    model = BaggingClassifier(learner, 3, random_state=0, voting="soft").fit(X, y)
    mean = np.mean([member.predict_proba(X) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-10)


def test_texts_and_sequences():
    words, random = ["large margin kernel", "tree leaf root wood"], np.random.default_rng(0)
    y = np.arange(40) % 2
    texts = [" ".join(random.choice(words[k].split(), 4)) for k in y]
    pipeline = make_pipeline(TfidfVectorizer(), LinearSVC())
    assert BaggingClassifier(pipeline, 4, random_state=0).fit(texts, y).score(texts, y) == 1.0
    sequences = np.array(
        ["".join(random.choice(list(["AC", "GT"][k]), 6)) for k in y], dtype=object
    )
    model = BaggingClassifier(SVC(kernel=Spectrum(2)), 4, random_state=0, n_jobs=2)
    model.fit(sequences, y)
    assert "Gram" in model.sharing_
    assert model.score(sequences, y) == 1.0
    found = bias_variance(SVC(kernel=Spectrum(2)), list(sequences), y, 10, random_state=0)
    assert found.totals["error"].value == 0.0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_trees_from_columns_that_are_coded_once_are_those_of_weighted_fits(n_jobs):
    X, y = IRIS
    learner = DecisionTreeClassifier(max_features=2, class_weight="balanced")
    model = BaggingClassifier(learner, 5, random_state=0, n_jobs=n_jobs).fit(X, y)
    assert "coded once" in model.sharing_
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        alone = clone(member).fit(X, y, sample_weight=np.bincount(rows, minlength=len(y)))
        np.testing.assert_array_equal(member.predict_proba(X), alone.predict_proba(X))
    X, y = diabetes()
    model = BaggingRegressor(DecisionTreeRegressor(), 3, random_state=0, n_jobs=n_jobs).fit(X, y)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        alone = clone(member).fit(X, y, sample_weight=np.bincount(rows, minlength=len(y)))
        np.testing.assert_array_equal(member.predict(X), alone.predict(X))


def test_weights_and_rows_are_the_same_where_weights_are_exact():
    X, y = IRIS
    model = BaggingClassifier(LinearSVC(tol=1e-10), 3, random_state=0).fit(X, y)
    assert "takes weights" in model.sharing_
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        copied = clone(member).fit(X[rows], y[rows])
        np.testing.assert_allclose(member.coef_, copied.coef_, atol=1e-4)
    pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier())
    rows = BaggingClassifier(pipeline, 3, random_state=0).fit(X, y)
    assert "takes no weights" in rows.sharing_
    assert rows.score(X, y) > 0.9


@pytest.mark.parametrize(
    "learner", [SVC(), DecisionTreeClassifier(splitter="random"), KNeighborsClassifier()], ids=repr
)
def test_the_same_for_any_number_of_jobs(learner):
    X, y = IRIS
    models = [
        BaggingClassifier(learner, 9, random_state=5, n_jobs=n).fit(X, y) for n in (None, 1, 2, 3)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_threads_within_threads_come_to_an_end():
    X, y = IRIS
    inner = BaggingClassifier(SVC(n_jobs=2), 3, random_state=0, n_jobs=2)
    model = BaggingClassifier(inner, 4, random_state=0, n_jobs=2).fit(X, y)
    assert model.score(X, y) > 0.9


def test_rows_are_drawn_in_proportion_to_their_weights():
    X, y = IRIS
    weight = np.where(np.arange(len(y)) % 3, 0.0, 2.0)
    model = BaggingClassifier(DecisionTreeClassifier(), 20, random_state=0)
    model.fit(X, y, sample_weight=weight)
    drawn = np.concatenate(model.estimators_samples_)
    assert (weight[drawn] > 0).all()


# -- classes that a replicate has not drawn -------------------------------------------------------


@pytest.mark.parametrize(
    "learner", [SVC(C=100.0), DecisionTreeClassifier(), KNeighborsClassifier(1)], ids=repr
)
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_replicates_without_a_class(learner, voting):
    X, y = IRIS
    X, y = X[[*range(20), *range(50, 70), 100]], np.array(["b"] * 20 + ["c"] * 20 + ["a"])
    if isinstance(learner, SVC) and voting == "soft":
        learner = clone(learner).set_params(probability=True)
    model = BaggingClassifier(learner, 12, random_state=0, voting=voting).fit(X, y)
    seen = [len(np.unique(y[rows])) for rows in model.estimators_samples_]
    assert min(seen) == 2
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert p[-1, 0] > 0
    assert (model.predict(X[:40]) == y[:40]).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert set(model.predict(X)) <= set("abc")
    if hasattr(model, "decision_function"):
        with pytest.raises(ValueError, match="has not seen every class"):
            model.decision_function(X)


def test_a_replicate_with_one_class_says_that_class():
    X, y = np.arange(12.0)[:, None], np.r_[np.zeros(11), 1]
    model = BaggingClassifier(SVC(), 10, random_state=0).fit(X, y)
    constant = [isinstance(member, DummyClassifier) for member in model.estimators_]
    alone = [len(np.unique(y[rows])) == 1 for rows in model.estimators_samples_]
    assert constant == alone
    assert any(alone)
    assert not all(alone)
    assert model.predict(X)[0] == 0.0


# -- bad input ------------------------------------------------------------------------------------


def test_what_cannot_be_is_said():
    X, y = IRIS
    with pytest.raises(ValueError, match="asks for 151 rows in each replicate, and there are 150"):
        BaggingClassifier(max_samples=151).fit(X, y)
    with pytest.raises(ValueError, match="no more rows than the data"):
        BaggingClassifier(max_samples=1.5).fit(X, y)
    with pytest.raises(ValueError, match="is none"):
        BaggingClassifier(max_samples=0.001).fit(X, y)
    with pytest.raises(ValueError, match="max_features must be <= n_features"):
        BaggingClassifier(max_features=5).fit(X, y)
    with pytest.raises(ValueError, match="bootstrap=True"):
        BaggingClassifier(bootstrap=False, oob_score=True).fit(X, y)
    with pytest.raises(AttributeError, match=r"voting='soft' averages probabilities"):
        BaggingClassifier(SVC(), voting="soft").fit(X, y)
    with pytest.raises(ValueError, match="no features to draw from"):
        BaggingClassifier(SVC(kernel="precomputed"), max_features=0.5).fit(X @ X.T, y)
    with pytest.warns(UserWarning, match="drawn by every member"):
        model = BaggingClassifier(n_estimators=1, oob_score=True, random_state=0).fit(X, y)
    assert np.isfinite(model.oob_score_)
    assert np.isnan(model.oob_decision_function_[model.oob_count_ == 0]).all()


@pytest.mark.parametrize(
    "make", [BaggingClassifier, BaggingRegressor, ExtraTreesClassifier, ExtraTreesRegressor]
)
def test_rows_that_no_member_was_left_without(make):
    """Of one member on two rows: where its replicate has both, there is no score out of bag."""
    options = {"n_estimators": 1, "bootstrap": True, "oob_score": True}
    scores = []
    for seed in range(8):
        with pytest.warns(UserWarning, match=r"[12] of 2 rows were drawn by every member"):
            model = make(**options, random_state=seed).fit([[0.0], [1.0]], [0, 1])
        scores.append(model.oob_score_)
    assert np.isnan(scores).any()
    if make in (BaggingClassifier, ExtraTreesClassifier):  # r2 needs two rows
        assert 0.0 in scores


class Moody(ClassifierMixin, BaseEstimator):
    """A classifier that is slow, or fails on some replicates."""

    def __init__(self, fails=False, seconds=0.0, random_state=None):
        self.fails, self.seconds, self.random_state = fails, seconds, random_state

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.fails and self.random_state % 5 == 0:
            raise RuntimeError("no mood")
        self.classes_, self.said_ = np.unique(y), y[0]
        return self

    def predict(self, X):
        return np.full(len(X), self.said_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_says_in_which_replicate(n_jobs):
    with pytest.raises(RuntimeError, match="no mood") as raised:
        BaggingClassifier(Moody(fails=True), 40, random_state=0, n_jobs=n_jobs).fit(*IRIS)
    assert "in the fit to replicate" in raised.value.__notes__[0]


# -- long work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_time_limit_leaves_an_ensemble_that_goes_on(n_jobs):
    X, y = IRIS
    options = {"random_state": 0, "n_jobs": n_jobs, "warm_start": True}
    model = BaggingClassifier(Moody(seconds=0.02), 30, time_limit=0.1, **options)
    with pytest.warns(ConvergenceWarning, match="of 30 members"):
        model.fit(X, y)
    assert 1 <= len(model.estimators_) < 30
    assert model.fit_status_ == 1
    assert model.status_ == "time_limit"
    assert model.predict(X).shape == y.shape
    model.set_params(time_limit=None, estimator=Moody()).fit(X, y)
    assert model.fit_status_ == 0
    assert len(model.estimators_) == 30
    whole = BaggingClassifier(Moody(), 30, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal"):
        model.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match=r"like those of the last fit \(150 of 150 rows"):
        model.set_params(n_estimators=40).fit(X[::2], y[::2])
    with pytest.raises(ValueError, match=r"vote for the classes \[0, 1, 2\], and y has \[0, 1\]"):
        model.fit(X, np.minimum(y, 1))
    assert model.predict_proba(X).shape == (150, 3)


def test_a_time_limit_leaves_at_least_one_kernel_machine():
    X, y = IRIS
    with pytest.warns(ConvergenceWarning, match="1 of 500 members"):
        model = BaggingClassifier(SVC(), 500, time_limit=1e-9, random_state=0).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.predict(X).shape == y.shape


def test_ctrl_c_leaves_a_usable_ensemble(heard):
    def press(progress):
        signal.raise_signal(signal.SIGINT)

    model = BaggingClassifier(Moody(seconds=0.02), 200, random_state=0, callback=press)
    with pytest.warns(ConvergenceWarning, match="Ctrl-C"), pytest.raises(KeyboardInterrupt):
        model.fit(*IRIS)
    assert model.status_ == "interrupted"
    assert 1 <= len(model.estimators_) < 200
    assert model.predict(IRIS[0]).shape == (150,)


@pytest.mark.parametrize(("learner", "kept"), [(DecisionTreeClassifier(), 1), (SVC(), 0)])
def test_shared_work_is_stopped_in_its_midst(learner, kept):
    X, y = load_breast_cancer(return_X_y=True)
    counts = np.array([np.bincount(np.arange(569) // k, minlength=569) for k in (1, 2, 3)])
    common, asked = learner._replicate_fits(X, y), []

    def stopped():
        asked.append(len(asked))
        return len(asked) > 1  # before the second tree, in the first solve of all machines

    found = common.fit([clone(learner) for _ in counts], counts, Workers(1), stopped)
    assert len(found) == kept
    assert len(common.fit([clone(learner) for _ in counts], counts, Workers(1))) == 3


def test_few_replicates_where_there_is_little_time():
    X = np.random.default_rng(0).normal(size=(2000, 40))
    with pytest.warns(ConvergenceWarning, match="of 200 replicates"):
        found = bias_variance(DecisionTreeRegressor(), X, X[:, 0] * X[:, 1], 200, time_limit=0.02)
    assert 2 <= found.n_replicates < 50


def test_a_callback_sees_members_and_stops():
    seen = []

    def callback(progress):
        seen.append(str(progress))
        return len(seen) == 2

    with pytest.warns(ConvergenceWarning, match="callback"):
        BaggingClassifier(Moody(seconds=0.03), 100, callback=callback).fit(*IRIS)
    assert "of 100 members" in seen[0]


# -- bias and variance ----------------------------------------------------------------------------


def by_hand(estimator, X, y, count, seed, size=None):
    """The lecture's loop, written out: predictions on the points left out of each replicate."""
    from maxmargin.ensemble.bagging.replicates import Replicates, seeds_of
    from maxmargin.ensemble.learners import member_of

    n = len(y)
    predictions = np.full((count, n), np.nan)
    for b, own in enumerate(seeds_of(seed, count)):
        rows = Replicates(n, X.shape[1], size or n, X.shape[1]).drawn(own)[1]
        left = np.setdiff1d(np.arange(n), rows)
        model = member_of(estimator, own).fit(X[rows], y[rows])
        predictions[b, left] = model.predict(X[left])
    return predictions


@pytest.mark.parametrize("size", [None, 100])
def test_squared_error_as_in_the_lecture(size):
    X, y = diabetes()
    learner = KNeighborsRegressor(2)
    found = bias_variance(learner, X, y, 30, random_state=4, max_samples=size, n_jobs=2)
    h = by_hand(learner, X, y, 30, 4, size)
    np.testing.assert_array_equal(found.K, np.isfinite(h).sum(axis=0))
    np.testing.assert_allclose(found.mean, np.nanmean(h, axis=0))
    np.testing.assert_allclose(found.bias, y - np.nanmean(h, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.variance, np.nanvar(h, axis=0, ddof=1))
    np.testing.assert_allclose(found.error, np.nanmean((y - h) ** 2, axis=0))
    assert found.K.mean() / 30 == pytest.approx((1 - 1 / len(y)) ** (size or len(y)), abs=0.02)
    totals = found.totals
    assert totals["variance"].value == pytest.approx(found.variance.mean())
    assert totals["variance"].standard_error == pytest.approx(
        found.variance.std(ddof=1) / len(y) ** 0.5
    )
    bagged = found.bagged()
    assert bagged.totals["variance"].value == 0.0
    assert bagged.totals["error"].value == pytest.approx(totals["squared_bias"].value)
    assert list(found.to_frame().columns) == ["y", "K", "mean", "bias", "variance", "error"]


@pytest.mark.parametrize("noise", [None, "neighbors"])
def test_zero_one_loss_adds_up(noise):
    X, y = IRIS
    X = X[:, :2]
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    learner = KNeighborsClassifier(1)
    found = bias_variance(learner, X, names, 40, random_state=0, noise=noise)
    h = by_hand(learner, X, y, 40, 0)
    np.testing.assert_allclose(
        found.error, np.nanmean(np.where(np.isnan(h), np.nan, h != y), axis=0)
    )
    votes = np.array([(h == k).sum(axis=0) for k in range(3)]).T
    np.testing.assert_array_equal(found.votes, votes)
    total = {name: one.value for name, one in found.totals.items()}
    right = total["bias"] + total["net_variance"] + total.get("noise_effect", 0.0)
    assert total["error"] == pytest.approx(right)
    assert total["net_variance"] == pytest.approx(
        total["unbiased_variance"] - total["biased_variance"]
    )
    assert found.bagged().totals["variance"].value == 0.0
    if noise is None:
        assert found.bagged().totals["error"].value == pytest.approx(total["bias"])
    for line in str(found).splitlines():
        assert "nan" not in line


def test_two_classes_after_domingos():
    """Of two classes, what variance takes away on biased points is the variance there."""
    X, y = load_breast_cancer(return_X_y=True)
    found = bias_variance(DecisionTreeClassifier(max_depth=1), X, y, 30, random_state=0)
    biased = found.bias == 1
    total = found.totals
    assert total["biased_variance"].value == pytest.approx(
        np.where(biased, found.variance, 0.0).mean()
    )


def test_noise():
    random = np.random.default_rng(0)
    x = np.repeat(np.linspace(0, 1, 150), 4)
    y = x**2 + 0.5 * random.standard_normal(len(x))
    same = bias_variance(LinearRegression(), x[:, None], y, 20, random_state=0, noise="repeated")
    assert same.totals["noise"].value == pytest.approx(0.25, rel=0.15)
    left = same.bias**2 - same.variance / same.K
    assert same.totals["squared_bias_less_noise"].value == pytest.approx(
        left[same.known].mean() - same.totals["noise"].value
    )
    assert abs(same.totals["squared_bias_less_noise"].value) < 0.03
    near = bias_variance(LinearRegression(), x[:, None], y, 20, random_state=0, noise="neighbors")
    assert near.totals["noise"].value == pytest.approx(0.25, rel=0.15)
    assert "nearest neighbour" in str(near)
    labels = (random.random(600) < 0.2).astype(int)
    flipped = estimate_noise(np.zeros((600, 1)), labels, "repeated", None, labels=True)
    assert flipped.of_row.mean() == pytest.approx(labels.mean())
    assert not flipped.best.any()
    with pytest.raises(ValueError, match="no two rows of X are equal"):
        bias_variance(LinearRegression(), random.random((50, 2)), y[:50], 10, noise="repeated")
    with pytest.raises(ValueError, match="there are 49"):
        estimate_noise(random.random((50, 2)), y[:50], "neighbors", 50, labels=False)


def test_points_that_were_never_left_out_are_reported():
    X, y = IRIS
    found = bias_variance(KNeighborsClassifier(1), X, y, 4, random_state=0)
    missing = int((found.K < 2).sum())
    assert missing > 0
    assert f"{missing} points have fewer than two predictions" in str(found)
    assert np.isnan(found.variance[~found.known]).all()
    assert all(np.isfinite(total.value) for total in found.totals.values())


def test_bad_questions():
    X, y = IRIS
    with pytest.raises(ValueError, match="two replicates or more"):
        bias_variance(DecisionTreeClassifier(), X, y, 1)
    with pytest.raises(ValueError, match="there are 150"):
        bias_variance(DecisionTreeClassifier(), X, y, 10, max_samples=200)
    for option in ({"time_limit": -1.0}, {"callback": 3}):
        with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
            bias_variance(DecisionTreeClassifier(), X, y, 10, **option)
    with pytest.raises(ValueError, match="noise must be one of"):
        bias_variance(DecisionTreeClassifier(), X, y, 10, noise="loud")
    with pytest.raises(ValueError, match="greater than one"):
        bias_variance(DecisionTreeClassifier(), X, np.zeros(150), 10)
    with pytest.raises(ValueError, match="one target"):
        bias_variance(DecisionTreeRegressor(), X, np.zeros((150, 2)), 10)
    with pytest.raises(ValueError, match="NaN"):
        bias_variance(SVC(), np.where(X > 7, np.nan, X), y, 10)
    with pytest.raises(ValueError, match="none has a variance"):
        bias_variance(DecisionTreeRegressor(), X[:3], y[:3] + np.arange(3.0), 2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="of 100 replicates"):
        found = bias_variance(Moody(seconds=0.02), X, y, 100, time_limit=0.2, random_state=0)
    assert 2 <= found.n_replicates < 100


class Stable(RegressorMixin, BaseEstimator):
    """Says the same whatever it has seen."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), 0.25)


@pytest.mark.slow
def test_who_gains_by_bagging():
    """An unpruned tree loses variance; what does not vary cannot."""
    X, y = diabetes()
    tree = bias_variance(DecisionTreeRegressor(), X, y, 60, random_state=0).totals
    many = BaggingRegressor(DecisionTreeRegressor(), 15, random_state=0)
    bagged = bias_variance(many, X, y, 60, random_state=0).totals
    assert bagged["variance"].value < 0.35 * tree["variance"].value
    assert bagged["error"].value < 0.75 * tree["error"].value
    still = bias_variance(Stable(), X, y, 20, random_state=0)
    assert still.totals["variance"].value == 0.0
    np.testing.assert_allclose(still.bias, y - 0.25)


def test_kernel_machines_and_trees_share_here_too():
    X, y = make_blobs(120, centers=3, cluster_std=3.0, random_state=0)
    found = bias_variance(SVC(gamma=0.1), X, y, 20, random_state=0)
    h = by_hand(SVC(gamma=0.1), X, y, 20, 0)
    said = np.where(np.isnan(h), np.nan, h != y)
    np.testing.assert_allclose(found.error, np.nanmean(said, axis=0), atol=0.26)
    assert found.totals["error"].value == pytest.approx(np.nanmean(said), abs=0.01)


# -- pictures -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_keep_what_they_draw():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = diabetes()
    tree = bias_variance(DecisionTreeRegressor(max_depth=4), X[:, :1], y, 10, random_state=0)
    names = bias_variance(KNeighborsClassifier(3), *IRIS, 10, random_state=0)
    errors = {"one": (0.2, 0.1), "two": (0.1, 0.1), "three": (0.1, 0.3)}
    for make, short, data in (
        (BiasVarianceDisplay.from_decomposition, plot_bias_variance, (tree, X[:, :1])),
        (BiasVarianceDisplay.from_decomposition, plot_bias_variance, (tree,)),
        (BiasVarianceDisplay.from_decomposition, plot_bias_variance, (names,)),
        (LearnersDisplay.from_decompositions, plot_learners, ({"a": tree, "b": tree.bagged()},)),
        (LearnersDisplay.from_decompositions, plot_learners, ({1: names, 30: names.bagged()},)),
        (ErrorPairsDisplay.from_errors, plot_error_pairs, (errors, "a tree", "a wood")),
    ):
        display = make(*data)
        first = display.ax_
        assert display.plot().ax_ is not first
        assert short(*data).get_title() == first.get_title() != ""
        first.figure.canvas.draw()
        plt.close("all")
    both = LearnersDisplay.from_decompositions({"a": tree, "b": tree.bagged()})
    tops = [bar.get_height() for bar in both.ax_.patches]
    totals = tree.totals["squared_bias"].value, tree.totals["variance"].value
    assert tops == pytest.approx([totals[0], totals[0], totals[1], 0.0])
    assert ErrorPairsDisplay.from_errors(errors, "a tree", "a wood").better == 1
    over = BiasVarianceDisplay.from_decomposition(tree, pd.DataFrame(X), feature=2)
    np.testing.assert_array_equal(over.x, X[:, 2])
    line = over.ax_.lines[0]
    order = np.argsort(X[:, 2], kind="stable")
    order = order[tree.known[order]]
    np.testing.assert_array_equal(line.get_ydata(), tree.mean[order])
    plt.close("all")


def test_pictures_that_cannot_be():
    X, y = diabetes()
    tree = bias_variance(DecisionTreeRegressor(max_depth=2), X, y, 6, random_state=0)
    names = bias_variance(KNeighborsClassifier(3), *IRIS, 6, random_state=0)
    with pytest.raises(TypeError, match="plot_bias_variance draws what"):
        plot_bias_variance(y)
    with pytest.raises(ValueError, match="10 features: say with feature="):
        plot_bias_variance(tree, X)
    with pytest.raises(ValueError, match="no feature named"):
        plot_bias_variance(tree, X, feature="age")
    with pytest.raises(ValueError, match="no mean prediction"):
        plot_bias_variance(names, IRIS[0])
    with pytest.raises(TypeError, match="all of one kind"):
        plot_learners({"a": tree, "b": names})
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_learners({})
    with pytest.raises(ValueError, match="a pair of errors"):
        plot_error_pairs({"a": (0.1, 0.2, 0.3)}, "this", "that")
    with pytest.raises(ValueError, match="not negative"):
        plot_error_pairs({"a": (0.1, -0.2)}, "this", "that")


class Plain:
    """A learner that is nobody's subclass, and whose fit returns nothing."""

    def fit(self, X, y, sample_weight=None):
        self.tree = DecisionTreeClassifier(max_depth=2).fit(X, y, sample_weight)

    def predict(self, X):
        return self.tree.predict(X)


class Weightless(Plain):
    def fit(self, X, y):
        super().fit(X, y)


class OwnFit(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.called_ = True


def test_any_object_with_fit_and_predict_is_a_member():
    X, y = load_iris(return_X_y=True)
    for learner in (Plain(), Weightless()):
        assert BaggingClassifier(learner, 3).fit(X, y).score(X, y) > 0.9
        model = AdaBoostClassifier(learner, n_estimators=3, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.9
    assert all(member.called_ for member in BaggingClassifier(OwnFit(), 3).fit(X, y))


def test_members_judge_missing_values_and_one_class():
    X, y = load_iris(return_X_y=True)
    X[::7, 0] = np.nan
    imputing = make_pipeline(SimpleImputer(), SVC())
    assert BaggingClassifier(imputing, 3, random_state=0).fit(X, y).score(X, y) > 0.9
    assert BaggingClassifier(n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    model = BaggingClassifier(n_estimators=3).fit(X, np.ones(150))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((150, 1)))
    assert (len(model), model.n_classes_, len(list(model)), len(model[:2])) == (3, 1, 3, 2)


class Listening(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the metadata it is given."""

    def __init__(self, weights=True):
        self.weights = weights

    def fit(self, X, y, mark=None, flag=None):
        self.classes_, self.rows_, self.mark_, self.flag_ = np.unique(y), X[:, 0], mark, flag
        return self

    def predict(self, X, shift=0):
        return self.classes_[(X[:, 0].astype(int) + shift) % 2]


class WeightedListening(Listening):
    """The same with weights."""

    def fit(self, X, y, sample_weight=None, mark=None, flag=None):
        return super().fit(X, y, mark, flag)


@pytest.mark.parametrize("learner", [Listening, WeightedListening])
@pytest.mark.parametrize("bagging", [BaggingClassifier, BaggingRegressor])
def test_metadata_are_routed_to_members(bagging, learner):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    model = bagging(learner(), 3, random_state=0)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        model.fit(X, y, mark=X[:, 0])
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError):
            clone(model).fit(X, y, mark=X[:, 0])
        asking = learner().set_fit_request(mark=True, flag=True).set_predict_request(shift=True)
        model = bagging(asking, 3, random_state=0).fit(X, y, mark=X[:, 0] * 2, flag="a")
        for member in model.estimators_:
            np.testing.assert_array_equal(member.mark_, 2 * member.rows_)
            assert member.flag_ == "a"
        assert (model.predict(X, shift=1) != model.predict(X)).all()
        alone = bagging(asking, 6, max_samples=1, random_state=0).fit(X, y)  # of a class each
        assert len(alone.predict(X, shift=1)) == 40
        model.set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"n_estimators": [1, 2]}, cv=2, scoring=lambda m, X, y: 1.0)
        search.fit(X, y, sample_weight=np.ones(40), mark=X[:, 0] * 2)
        member = search.best_estimator_.estimators_[0]
        np.testing.assert_array_equal(member.mark_, 2 * member.rows_)


def test_members_that_share_a_fit_take_metadata_apart():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    with config_context(enable_metadata_routing=True):
        together = BaggingClassifier(SVC(), 2, random_state=0).fit(X, y)
        assert "Gram matrix" in together.sharing_
        with pytest.raises(TypeError, match="mark"):
            BaggingClassifier(SVC(), 2).fit(X, y, mark=X[:, 0])

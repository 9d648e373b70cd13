"""Searches over Dask's workers: the same scores as in memory, whatever is done where."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV as TheirGridSearchCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import maxmargin
from maxmargin import SVC, SVR, LogisticRegression, SVCSearchCV, SVRSearchCV
from maxmargin.multiclass import SchemeClassifier

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
joblib = pytest.importorskip("joblib")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

GRID = {"C": [0.1, 10, 1000], "gamma": [0.01, 0.1, "scale"]}
FIXED = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each, in this process: quick to start."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def breast_cancer(n=300):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], np.array(["benign", "malign"])[y[:n]]


def pieces(X, y, rows=110):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


def assert_same_search(found, reference):
    assert found.cv_results_.keys() == reference.cv_results_.keys()
    for name, values in reference.cv_results_.items():
        if name.endswith("_gap"):  # of other iterates, equally far within tol
            np.testing.assert_allclose(found.cv_results_[name], values, atol=0.02)
        elif name not in FIXED:
            np.testing.assert_array_equal(found.cv_results_[name], values, err_msg=name)
    assert found.best_params_ == reference.best_params_
    assert found.best_score_ == reference.best_score_
    assert found.sharing_.how == reference.sharing_.how
    assert found.sharing_.reasons == reference.sharing_.reasons
    assert found.n_pruned_ == reference.n_pruned_


def spread(search, X, y, **params):
    with joblib.parallel_config(backend="dask"):
        search.fit(X, y, **params)
    assert search.distribution_.rows == len(X)
    assert search.distribution_.where.startswith(("tcp://", "inproc://"))
    return search


def searches():
    X, y = load_iris(return_X_y=True)
    scaled = make_pipeline(StandardScaler(), SVC())
    yield "kernels", SVCSearchCV(GRID, return_train_score=True), X, y
    yield "no grid, behind a scaler", SVCSearchCV(scaled, cv=3), X[::2], y[::2]
    yield "pruned", SVCSearchCV(GRID, prune_margin=0.05), X, y
    alone = {"C": [1.0, float("inf")], "gamma": [0.1, 1.0]}
    yield "some one by one", SVCSearchCV(alone, error_score=0.0), X, y
    linear = {"C": [0.1, 1.0], "fit_intercept": [True, False]}
    yield "linear", maxmargin.GridSearchCV(LogisticRegression(), linear), X, y
    trees = {"max_depth": [1, 3]}
    tree = DecisionTreeClassifier(random_state=0)
    yield "others", maxmargin.GridSearchCV(tree, trees), X, y
    halving = maxmargin.HalvingGridSearchCV(SVC(), GRID, cv=3, random_state=0)
    yield "halving", halving, *breast_cancer(200)
    several = SVCSearchCV(GRID, scoring=["accuracy", "f1_macro"], refit="f1_macro")
    yield "scores", several, *breast_cancer(120)


CASES = {name: case for name, *case in searches()}


@pytest.mark.parametrize("name", CASES)
def test_in_memory_by_joblibs_backend(client, name):
    search, X, y = CASES[name]
    from sklearn.base import clone

    reference = clone(search).fit(X, y)
    found = spread(clone(search), X, y)
    if name == "halving":
        np.testing.assert_array_equal(found.n_resources_, reference.n_resources_)
    if name == "scores":
        found.n_pruned_ = reference.n_pruned_
    assert_same_search(found, reference)
    np.testing.assert_array_equal(found.predict(X), reference.predict(X))


def test_pieces_are_kernels_on_splits():
    X, y = load_iris(return_X_y=True)
    asked = {}

    class Counting(maxmargin.selection.scoring.Place):
        def results(self, scoring, work, watch):
            asked["few"] = scoring.pieces(work, threads=2)
            asked["many"] = scoring.pieces(work, threads=0.1)
            return super().results(scoring, work, watch)

    SVCSearchCV({**GRID, "C": [1.0, 10.0, float("inf")]}, error_score=0)._search(
        X, y, {}, Counting()
    )
    sizes = [(len(piece.candidates), piece.splits) for piece in asked["few"]]
    assert sizes == [(2, [s]) for _ in range(3) for s in range(5)] + [
        (1, [s]) for _ in range(3) for s in range(5)
    ]
    assert [len(piece.candidates) for piece in asked["many"]] == [2, 2, 2, 1, 1, 1]
    assert all(piece.splits == list(range(5)) for piece in asked["many"])


def test_matrices_are_shared_by_a_worker(client, monkeypatch):
    """Distances are computed at most once by each worker, kernels not once for every split."""
    counts = {"primitives": 0, "matrices": 0}
    kept = maxmargin.gram.matrices.KeptMatrices
    prepare, made = maxmargin.gram.matrices.Matrices.prepare, kept._room

    def prepared(self, *args):
        counts["primitives"] += 1
        return prepare(self, *args)

    def room(self, place):
        counts["matrices"] += 1
        return made(self, place)

    monkeypatch.setattr(maxmargin.gram.matrices.Matrices, "prepare", prepared)
    monkeypatch.setattr(kept, "_room", room)
    X, y = breast_cancer()
    spread(SVCSearchCV({"C": [1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}), X, y)
    assert counts["primitives"] <= 2
    assert counts["matrices"] <= 2 * 3  # of fifteen pieces


def test_scoring_is_a_function_of_what_is_sent():
    """A copy that went through pickle has nothing kept, and the same scores."""
    import pickle

    X, y = load_iris(return_X_y=True)
    seen = []

    class Copying(maxmargin.selection.scoring.Place):
        def results(self, scoring, work, watch):
            scoring.keeps = True
            for piece in scoring.pieces(work, 2):
                list(scoring.results(piece, watch))
            copied = pickle.loads(pickle.dumps(scoring))
            seen.append((len(scoring._data), len(copied._data)))
            return copied.results(work, watch)

    reference = SVCSearchCV(GRID).fit(X, y)
    found = SVCSearchCV(GRID)._search(X, y, {}, Copying())
    assert seen == [(1, 0)]
    assert_same_search(found, reference)


@pytest.mark.parametrize("where", ["client", "here"])
def test_collections(client, where):
    X, y = breast_cancer()
    weight = np.linspace(0.5, 1.5, len(y))
    reference = SVCSearchCV(GRID).fit(X, y, sample_weight=weight)
    dX, dy = pieces(X, y)
    with dask.config.set(scheduler="synchronous" if where == "here" else None):
        found = SVCSearchCV(GRID).fit(dX, dy, sample_weight=da.from_array(weight, chunks=300))
        assert_same_search(found, reference)
        assert found.best_estimator_.certificate_.converged
        assert found.distribution_.rows == len(y)
        predicted = found.predict(dX)
        assert isinstance(predicted, da.Array)
        np.testing.assert_array_equal(predicted.compute(), reference.predict(X))
        assert found.score(dX, dy) == pytest.approx(reference.score(X, y))


@pytest.mark.slow
def test_dataframes_of_unknown_sizes(client):
    pd = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True)
    frame = pd.DataFrame(X[:150]).rename(columns="x{}".format)
    target = pd.Series((y[:150] - 150) / 77)
    grid = {"C": [1.0, 10.0], "epsilon": [0.1], "gamma": [1.0, 10.0]}
    scoring = "neg_mean_absolute_error"
    reference = SVRSearchCV(SVR(), grid, scoring=scoring).fit(frame, target)
    dX, dy = dd.from_pandas(frame, npartitions=3), dd.from_pandas(target, npartitions=3)
    for labels in (dy, target.to_numpy()):
        found = SVRSearchCV(SVR(), grid, scoring=scoring).fit(dX, labels)
        assert_same_search(found, reference)
        assert list(found.feature_names_in_) == list(frame.columns)
    assert found.score(dX, dy) == pytest.approx(reference.score(frame, target))


def test_a_pipeline_is_fitted_where_its_rows_are(client):
    X, y = breast_cancer(200)
    scaled = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [0.1, 1.0]}
    reference = SVCSearchCV(scaled, grid).fit(X, y)
    dX, dy = pieces(X, y)
    found = SVCSearchCV(scaled, grid).fit(dX, dy)
    assert_same_search(found, reference)
    np.testing.assert_array_equal(found.predict(dX).compute(), reference.predict(X))
    assert found.score(dX, dy) == reference.score(X, y)


def test_what_cannot_be(client):
    X, y = breast_cancer()
    dX, dy = pieces(X, y)
    bad = X.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match="Partition 2: Input X contains NaN"):
        SVCSearchCV(GRID).fit(*pieces(bad, y))
    with (
        dask.config.set({"maxmargin.memory-per-worker": "10 kB"}),
        pytest.raises(MemoryError, match="Search over a part of the rows"),
    ):
        SVCSearchCV(GRID).fit(dX, dy)

    class Looking:
        def split(self, X, y, groups=None):
            yield X[:10], X[10:]

        def get_n_splits(self, *args):
            return 1

    with pytest.raises(TypeError, match="lie on its workers"):
        SVCSearchCV(GRID, cv=Looking()).fit(dX, dy)
    failing = {"C": [1.0, -1.0]}
    with pytest.raises(ValueError, match="'C' parameter"):
        spread(SVCSearchCV(failing, error_score="raise"), X, y)


def test_time_limit(client):
    X, y = breast_cancer(569)

    class Slow(DecisionTreeClassifier):
        def fit(self, X, y, check_input=True):  # named in its request for metadata
            time.sleep(2.0 if self.min_samples_leaf > 1 else 0.0)
            return super().fit(X, y)

    grid = {"min_samples_leaf": [1, 2]}
    spread(maxmargin.GridSearchCV(Slow(), {"min_samples_leaf": [1]}, cv=3), X, y)  # loads it all
    # three slow fits on two workers take 4 s; a quick one may have to wait for a slow one
    search = maxmargin.GridSearchCV(Slow(), grid, cv=3, time_limit=3.0)
    with pytest.warns(ConvergenceWarning, match="stopped at time_limit=3 s"):
        spread(search, X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).any()
    assert np.isnan(scores).any()
    search = maxmargin.GridSearchCV(Slow(), grid, cv=3, time_limit=1e-3)
    with pytest.raises(TimeoutError, match="was over before any"):
        spread(search, X, y)


class Interrupting(SVC):
    """Sends Ctrl-C at its twelfth fit."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Interrupting.fits += 1
        if Interrupting.fits == 12:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        return super().fit(X, y, sample_weight)


def test_ctrl_c(client, heard):
    X, y = breast_cancer(100)
    grid = {"C": np.logspace(-1, 3, 40).tolist()}
    search = maxmargin.GridSearchCV(Interrupting(), grid, cv=3)
    with pytest.raises(KeyboardInterrupt, match="stopped by Ctrl-C"):
        spread(search, X, y)
    scores = search.cv_results_["split0_test_score"]
    assert np.isfinite(scores).any()
    assert np.isnan(scores).any()
    assert not hasattr(search, "best_params_")


def test_the_rest_by_joblibs_backend(client):
    """scikit-learn's own searches and scores, around machines of ours; a search inside of them."""
    X, y = load_iris(return_X_y=True)
    inner = SVCSearchCV({"C": [1.0, 10.0], "gamma": [0.1]}, cv=3)
    expected = cross_val_score(inner, X, y, cv=3)
    theirs = TheirGridSearchCV(SVC(), {"C": [1.0, 10.0]}).fit(X, y)
    voted = SchemeClassifier(LogisticRegression(), n_jobs=2).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        np.testing.assert_array_equal(cross_val_score(inner, X, y, cv=3), expected)
        found = TheirGridSearchCV(SVC(), {"C": [1.0, 10.0]}).fit(X, y)
        spread_out = SchemeClassifier(LogisticRegression(), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(spread_out.predict(X), voted.predict(X))


def test_a_killed_worker(processes):
    """Its pieces are done again, rows that were only its own are sent again."""
    X, y = breast_cancer(569)
    grid = {"C": np.logspace(-1, 2, 4).tolist(), "gamma": np.logspace(-3, 0, 6).tolist()}
    reference = SVCSearchCV(grid).fit(X, y)
    victim = min(processes.run(os.getpid).values())
    search = SVCSearchCV(grid)
    dX, dy = pieces(X, y)

    def kill():
        while not any(processes.processing().values()):
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    search.fit(dX, dy)
    thread.join()
    assert_same_search(search, reference)

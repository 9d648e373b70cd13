"""``SVC(approximation=...)``: exactly the linear machine on features, and it says so."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from maxmargin import (
    SVC,
    SVR,
    ExplicitFeatures,
    GridSearchCV,
    LinearSVC,
    LinearSVR,
    Nystroem,
)
from maxmargin.bounds import leave_one_out
from maxmargin.kernels import RBF, Polynomial, Spectrum

X, y = load_digits(return_X_y=True)
X, y = X[y < 4][:200] / 16, y[y < 4][:200]
GAMMA = 0.02
ALL = Nystroem(n_components=200, random_state=0)  # every row a landmark: no approximation at all
SOME = Nystroem(n_components=60, random_state=0)


def test_many_rows_are_the_pipeline_of_map_and_linear_machine():
    points, labels = make_classification(20_000, 8, n_informative=6, random_state=0)
    model = SVC(gamma=0.1, approximation="nystroem", random_state=0, tol=1e-4)
    model.fit(points, labels)
    same = make_pipeline(Nystroem(gamma=0.1, random_state=0), LinearSVC(loss="hinge"))
    same.fit(points, labels)
    np.testing.assert_allclose(
        model.decision_function(points), same.decision_function(points), atol=1e-12
    )
    w, certificate = model.feature_coef_[0], model.certificate_
    f = model.feature_map_.transform(points) @ w + model.intercept_
    losses = np.maximum(0, 1 - (2 * labels - 1) * f)
    assert certificate.primal == pytest.approx(0.5 * w @ w + losses.sum(), rel=1e-9)
    assert certificate.converged
    assert certificate.dual <= certificate.primal
    assert certificate.dual == pytest.approx(same[-1].certificate_.dual)
    np.testing.assert_allclose(model.slack_, losses, atol=1e-9)
    assert model.margin_ == pytest.approx(1 / np.linalg.norm(w))
    rows = np.random.default_rng(0).choice(len(points), 400, replace=False)
    phi, K = model.feature_map_.transform(points[rows]), RBF(0.1)(points[rows])
    measured = np.linalg.norm(phi @ phi.T - K) / np.linalg.norm(K)
    assert certificate.approximation_error == pytest.approx(measured, rel=0.3)
    assert f"{certificate.approximation_error:.2g}" in certificate.claim
    assert "approximated kernel" in str(certificate)
    assert "nothing is proved" in str(certificate)


FORMS = [
    {"multiclass": name}
    for name in ("ovo", "ovr", "dag", "ecoc", "crammer_singer", "weston_watkins")
] + [{"lam": 0.01}, {"fit_intercept": False, "class_weight": "balanced"}, {"break_ties": True}]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_with_every_row_a_landmark_it_is_the_exact_machine(form):
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    exact = SVC(gamma=GAMMA, tol=1e-6, **form).fit(X, y, weight)
    model = SVC(gamma=GAMMA, tol=1e-9, approximation=ALL, **form).fit(X, y, weight)
    ours, theirs = model.certificate_, exact.certificate_
    for one, other in zip(ours.parts or (ours,), theirs.parts or (theirs,), strict=True):
        assert one.dual <= other.primal * (1 + 1e-8)
        assert other.dual <= one.primal * (1 + 1e-8)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.995
    np.testing.assert_allclose(model.margin_, exact.margin_, rtol=1e-3)
    assert model.slack_.shape == exact.slack_.shape
    np.testing.assert_allclose(np.isnan(model.slack_), np.isnan(exact.slack_))
    np.testing.assert_allclose(np.nansum(model.slack_), np.nansum(exact.slack_), rtol=2e-2)
    assert np.isnan(ours.approximation_error)
    assert "no row was left" in ours.claim


@pytest.mark.parametrize("kind", [True, "isotonic", "temperature", "consistent"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer"])
def test_probabilities(kind, scheme):
    options = {"gamma": GAMMA, "probability": kind, "random_state": 0, "multiclass": scheme}
    exact = SVC(**options).fit(X, y).predict_proba(X)
    model = SVC(approximation=ALL, **options).fit(X, y)
    p = model.predict_proba(X)
    assert np.abs(p - exact).mean() < 0.01
    np.testing.assert_array_equal(p, clone(model).fit(X, y).predict_proba(X))
    if kind == "consistent":
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_probabilities_of_a_class_that_a_fold_has_not_seen():
    few = np.r_[np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:1]]
    model = SVC(gamma=GAMMA, probability=True, random_state=0, approximation=ALL, tol=1e-7)
    p = model.fit(X[few], y[few]).predict_proba(X[few])
    exact = clone(model).set_params(approximation=None).fit(X[few], y[few])
    np.testing.assert_allclose(p, exact.predict_proba(X[few]), atol=0.01)
    free = clone(model).set_params(fit_intercept=False).fit(X[few], y[few])
    exact = clone(free).set_params(approximation=None).fit(X[few], y[few])
    np.testing.assert_allclose(free.predict_proba(X), exact.predict_proba(X), atol=0.01)
    four = np.r_[few[:2], few[-1:], np.flatnonzero(y == 1)[1:2]]
    for some in (four, four[[0, -1]]):
        assert np.isfinite(model.fit(X[some], y[some]).predict_proba(X)).all()


def test_regression_with_one_output_and_two():
    targets = np.column_stack([y, np.sqrt(y)])
    model = SVR(gamma=GAMMA, C=2.0, epsilon=0.2, approximation=SOME, tol=1e-5).fit(X, targets)
    features = clone(SOME).set_params(kernel=RBF(GAMMA)).fit(X)
    same = LinearSVR(C=2.0, epsilon=0.2, tol=1e-5).fit(features.transform(X), targets)
    np.testing.assert_allclose(model.predict(X), same.predict(features.transform(X)), atol=1e-9)
    assert len(model.certificate_.parts) == 2
    assert model.certificate_.converged
    off = np.maximum(0, np.abs(model.predict(X) - targets) - 0.2)
    np.testing.assert_allclose(model.slack_, off, atol=1e-9)
    single = clone(model).fit(X, targets[:, 1])
    np.testing.assert_allclose(single.predict(X), model.predict(X)[:, 1], atol=1e-9)
    weight = np.arange(len(y)) % 2
    half = clone(model).set_params(approximation="random_fourier")
    weighted = clone(half).fit(X, y, sample_weight=weight).predict(X)
    alone = half.fit(X[1::2], y[1::2])
    np.testing.assert_allclose(weighted, alone.predict(X), atol=0.1)


@pytest.mark.slow
def test_any_data_and_kernel():
    small = SVC(gamma=GAMMA, approximation=SOME).fit(X.astype(np.float32), y)
    assert small.feature_coef_.dtype == np.float64
    words = ["ACGTACGT", "ACGTTCGT", "TTTTGGGG", "TTTAGGGG"] * 5
    named = SVC(kernel=Spectrum(2), approximation=Nystroem(n_components=3, random_state=0))
    assert named.fit(words, [0, 0, 1, 1] * 5).score(words, [0, 0, 1, 1] * 5) == 1.0
    exact = ExplicitFeatures(Polynomial(2))
    model = SVC(kernel=Polynomial(2), approximation=exact, tol=1e-6).fit(X[:, 20:24], y)
    assert model.certificate_.approximation_error < 1e-12
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"pixel {k}" for k in range(64)])
    kernel = RBF(GAMMA).on([f"pixel {k}" for k in range(40)])
    model = SVC(kernel=kernel, approximation=SOME).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert list(model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": np.inf}, "finite C"),
        ({"solver": "smo"}, "solver='smo' solves the dual of the kernel itself"),
        ({"checkpoint": "state"}, "keeps no checkpoint"),
        ({"device": "cuda"}, "solved on the CPU"),
        ({"kernel": "poly", "approximation": "random_fourier"}, "Nystroem takes any kernel"),
        ({"approximation": Nystroem(RBF(2.0))}, "the kernel is the machine's"),
        ({"approximation": Nystroem(gamma=3.0)}, "gamma=3.0"),
        ({"approximation": "cosines"}, "approximation"),
        ({"approximation": Nystroem(n_components=0)}, "'n_components' parameter of Nystroem"),
    ],
)
@pytest.mark.parametrize("machine", [SVC, SVR])
def test_what_does_not_go_together(machine, options, words):
    with pytest.raises(ValueError, match=words):
        machine(**{"approximation": "nystroem", **options}).fit(X @ X.T, y)


def test_sequences_have_no_frequencies():
    words = np.array(["ACGT", "ACGG", "TTTT", "TTGT"] * 5)
    with pytest.raises(ValueError, match="Nystroem takes any kernel"):
        SVC(kernel=Spectrum(2), approximation="random_fourier").fit(words, [0, 0, 1, 1] * 5)
    SVC(kernel=Spectrum(2), approximation="nystroem").fit(words, [0, 0, 1, 1] * 5)


def test_there_is_no_expansion_and_it_says_so():
    model = SVC(gamma=GAMMA, approximation=SOME).fit(X, y)
    for name in ("dual_coef_", "support_", "support_vectors_", "n_support_"):
        with pytest.raises(AttributeError, match=f"{name} belongs to an expansion"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="feature_coef_"):
        leave_one_out(model)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing
    exact = model.set_params(approximation=None).fit(X, y)  # and back
    assert exact.dual_coef_.shape[1] == len(exact.support_)
    assert exact.feature_map_ is None
    assert not hasattr(exact, "feature_coef_")
    fresh = SVC(gamma=GAMMA).fit(X, y)
    np.testing.assert_allclose(exact.decision_function(X), fresh.decision_function(X))
    again = exact.set_params(approximation=SOME).fit(X, y)
    assert not hasattr(again, "support_")


def test_manners():
    model = SVC(gamma=GAMMA, approximation=SOME, warm_start=True).fit(X, y)
    steps = model.n_iter_.sum()
    assert model.fit(X, y).n_iter_.sum() < steps
    assert model.fit(X[:500], y[:500]).certificate_.converged
    grid = {"approximation__n_components": [5, 60], "C": [1.0, 10.0]}
    search = GridSearchCV(SVC(gamma=GAMMA, approximation=SOME), grid, cv=2).fit(X, y)
    assert search.best_params_["approximation__n_components"] == 60
    assert "for a fit of its own" in search.sharing_.why(0)
    assert SOME.n_components == 60
    assert not hasattr(SOME, "components_")


def test_limits():
    options = {"gamma": GAMMA, "approximation": SOME}
    traced = SVR(trace=True, **options).fit(X, y)
    assert len(traced.trace_) >= traced.n_iter_ > 0
    assert (traced.solver_, "kinks" in traced.solver_why_) == ("multipliers", True)
    with pytest.warns(ConvergenceWarning) as caught:
        SVC(max_iter=3, tol=1e-8, probability=True, random_state=0, **options).fit(X, y)
    assert "in the folds for probability=True" in str(caught[1].message)
    assert all("relative duality gap" in str(one.message) for one in caught)


def test_features_of_another_kernel_warn():
    with pytest.warns(UserWarning, match=r"off by \d+%.*n_components=12"):
        SVC(gamma=1.0, approximation=Nystroem(n_components=3, random_state=0)).fit(X, y)

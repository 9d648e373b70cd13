"""The way into every estimator: kernels resolved once, warnings that point at the caller."""

import pickle
import warnings

import cloudpickle
import numpy as np
import pytest
from sklearn.base import RegressorMixin, _fit_context, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import maxmargin
from maxmargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    OneClassSVM,
    Perceptron,
)
from maxmargin.estimators import base
from maxmargin.estimators.expansion import KernelExpansion
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.gram import Gram
from maxmargin.kernels import RBF, Linear
from maxmargin.testing import all_estimators

X, y = load_iris(return_X_y=True)
X, y = X[50:], y[50:]


class Counted:
    """A feature map that keeps the number of rows of each of its calls."""

    def __init__(self):
        self.rows = []

    def __call__(self, points):
        self.rows.append(len(points))
        return np.hstack([points, points[:, :1] * points[:, 1:2]])

    def __deepcopy__(self, memo):
        return self  # estimators copy their kernels


@pytest.mark.parametrize(
    "machine",
    [SVC(), NuSVC(), SVR(), OneClassSVM(), Perceptron(variant="pocket"), SVC(probability=True)],
)
def test_a_feature_map_runs_once_per_data_set(machine):
    seen = Counted()
    inner = RBF() + 0.1 * Linear() + RBF(gamma=0.1).on([0, 2])  # "scale" needs the features, too
    machine = machine.set_params(kernel=inner.after(seen)).fit(X, y)
    assert seen.rows == [len(X)]
    seen.rows.clear()
    machine.predict(X[:30])
    assert seen.rows == [len(machine.support_), 30]  # support vectors the first time only
    machine.predict(X[:7])
    assert seen.rows[2:] == [7]


def test_calling_a_kernel_maps_each_side_once():
    seen = Counted()
    kernel = RBF().after(seen)
    kernel(X)
    kernel(X[:5], X)
    kernel.diag(X)
    assert seen.rows == [100, 100, 5, 100]


def unfinished():
    """Yield fits that end too early, alone and inside of what others call."""
    tight = SVC(gamma=3.0, max_iter=1)
    yield "SVC", tight
    yield "probabilities", SVC(gamma=3.0, max_iter=1, probability=True)
    yield "LinearSVC", LinearSVC(max_iter=1, tol=1e-12, loss="hinge")
    yield "Perceptron", Perceptron(max_iter=1, tol=None)
    yield "MCEClassifier", MCEClassifier(max_iter=1, n_restarts=0)  # random ones may end in time
    yield "pipeline", make_pipeline(StandardScaler(), tight)
    yield "search", GridSearchCV(tight, {"C": [1.0, 2.0]}, cv=2)


@pytest.mark.parametrize("machine", [pytest.param(m, id=name) for name, m in unfinished()])
def test_warnings_point_at_whoever_called(machine):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, y)
    early = [w for w in caught if w.category is ConvergenceWarning]
    assert early
    assert {w.filename for w in early} == {__file__}


def test_paths_warn_their_caller_too():
    with pytest.warns(ConvergenceWarning) as caught:
        maxmargin.C_path(LinearSVC(max_iter=1, tol=1e-12, loss="hinge"), X, y, [1.0])
    assert caught[0].filename == __file__


def test_the_kernel_perceptron_honours_threads_and_memory(monkeypatch):
    many = np.tile(X, (100, 1))
    threads, budgets, expansions = [], [], []
    monkeypatch.setattr(base, "thread_count", lambda n_jobs: threads.append(n_jobs) or 2)
    of, at = Gram.of_resolved, KernelExpansion.at
    monkeypatch.setattr(
        Gram, "of_resolved", lambda *a, memory, **k: budgets.append(memory) or of(*a, memory=memory)
    )
    monkeypatch.setattr(
        KernelExpansion, "at", lambda self, X, **k: expansions.append(k) or at(self, X, **k)
    )
    model = Perceptron(kernel="rbf", n_jobs=3, cache_size=0.5, tol=None, variant="pocket")
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=2).fit(X, y)
    assert budgets == [2**19]
    several = model.decision_function(many)
    assert threads == [3]  # of the values
    assert expansions[0]["workers"].count == 2
    assert (expansions[0]["device"], expansions[0]["cache_size"]) == ("cpu", 0.5)
    np.testing.assert_array_equal(several[: len(X)], model.decision_function(X))


class Ridge(RegressorMixin, KernelEstimator):
    """Kernel ridge regression: a kernel estimator that solves no quadratic programme."""

    _parameter_constraints: dict = KernelEstimator._parameter_constraints | {"alpha": [float]}

    def __init__(self, alpha=1.0, *, kernel="rbf", gamma="scale", cache_size="auto", n_jobs=None):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.cache_size = cache_size
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Solve ``(K + alpha I) a = y``."""
        X, y = self._validated(X, y, self._validated_kernel(), y_numeric=True)
        gram = self._gram(X, self._validated_kernel())
        rows = np.arange(gram.n)
        self.dual_coef_ = np.linalg.solve(gram.rows(rows) + self.alpha * np.eye(gram.n), y)[None]
        self._keep_support_vectors(X, rows)
        return self

    def predict(self, X):
        """Return the expansion's values."""
        check_is_fitted(self)
        return self._expansion_at(X, self.dual_coef_)[:, 0]


@parametrize_with_checks([Ridge(), Ridge(kernel="precomputed")])
def test_a_kernel_estimator_has_scikit_learns_manners(estimator, check):
    check(estimator)


def test_a_kernel_estimator_is_what_its_coefficients_say():
    ours = Ridge(0.5, gamma=0.3).fit(X, y)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, y)
    np.testing.assert_allclose(ours.predict(X[:9] + 0.1), theirs.predict(X[:9] + 0.1), rtol=1e-9)
    assert ours.kernel_ == RBF(gamma=0.3)


# -- a bound on the norm, in feature space --------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("bound", [0.05, 0.5, 50.0])
def test_a_bound_on_the_norm_is_certified(tol, bound, random):
    weight, numbers = random.uniform(0.5, 2.0, size=len(X)), X[:, 3]
    how = {"norm_bound": bound, "tol": tol}
    machines = [
        SVC(kernel="linear", **how),
        LinearSVC(loss="hinge", **how),
        SVC(kernel="linear", fit_intercept=False, class_weight={1: 3.0}, **how),
        LinearSVC(loss="hinge", fit_intercept=False, class_weight={1: 3.0}, **how),
        SVR(kernel="linear", **how),
        LinearSVR(epsilon=0.1, **how),
        SVC(gamma=2.0, **how),
        SVR(gamma=2.0, **how),
    ]
    for machine in machines:
        target = numbers if isinstance(machine, RegressorMixin) else y
        model = machine.fit(X[:, :3], target, weight)
        certificate = model.certificate_
        assert certificate.converged
        assert certificate.claim.startswith(f"least loss with ||w|| <= {bound:g}: optimal")
        assert certificate.gap <= tol * certificate.primal
        tripled = model.get_params().get("class_weight") is not None
        factors = weight * np.where((target == 1) & tripled, 3.0, 1.0)
        assert certificate.primal == pytest.approx(factors @ model.slack_, rel=1e-9)
        assert 1 / model.margin_ <= bound * (1 + 1e-12)
        assert model.lam_ == pytest.approx(0.5 / (factors.sum() * model.C_))
    for kernel, linear in zip(machines[0:6:2], machines[1:6:2], strict=True):  # neither is above
        assert kernel.certificate_.dual <= linear.certificate_.primal * (1 + 1e-12)
        assert linear.certificate_.dual <= kernel.certificate_.primal * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e6])
def test_a_bound_on_the_norm_is_met_in_any_units(scale, weight):
    for machine in (
        SVC(kernel="linear"),
        SVR(kernel="linear"),
        LinearSVC(loss="hinge"),
        LinearSVC(),
        LogisticRegression(),
    ):
        target = X[:, 3] if isinstance(machine, RegressorMixin) else y
        plain, other = (clone(machine).set_params(tol=1e-6) for _ in "ab")
        plain.set_params(norm_bound=0.5).fit(X[:, :3], target)
        other.set_params(norm_bound=0.5 / scale)
        other.fit(scale * X[:, :3], target, np.full(len(X), weight))
        assert other.certificate_.converged
        assert np.linalg.norm(other.coef_) <= 0.5 / scale * (1 + 1e-12)
        one, two = plain.certificate_, other.certificate_
        assert two.dual <= weight * one.primal * (1 + 1e-9)
        assert weight * one.dual <= two.primal * (1 + 1e-9)


@pytest.mark.parametrize("machine", [SVR(), SVR(epsilon=0.0), LinearSVR()], ids=str)
def test_a_bound_on_the_norm_where_there_is_nothing_to_lose(machine):
    model = clone(machine).set_params(norm_bound=1.0).fit(X, np.ones(len(X)))
    assert model.certificate_.converged
    assert model.certificate_.primal == 0.0
    assert model.margin_ == np.inf
    np.testing.assert_allclose(model.predict(X), 1.0)


def test_a_bound_on_the_norm_with_all_else():
    data, labels = load_iris(return_X_y=True)
    for scheme in ("ovo", "ovr", "dag", "ecoc"):
        model = SVC(norm_bound=3.0, multiclass=scheme, probability=True, random_state=0)
        model.fit(data, labels)
        assert len(model.certificate_.parts) == len(model.C_) == 3
        assert (1 / model.margin_ <= 3.0 * (1 + 1e-12)).all()
        assert model.predict_proba(data).argmax(axis=1).tolist().count(0) == 50
        assert model.score(data, labels) > 0.9
    warm = SVC(norm_bound=3.0, warm_start=True).fit(data, labels)
    steps = warm.n_iter_.sum()
    assert warm.fit(data, labels).n_iter_.sum() < 0.5 * steps
    several = SVR(norm_bound=1.0).fit(data[:, :2], data[:, 2:])
    assert several.C_.shape == (2,)
    search = maxmargin.GridSearchCV(SVC(), {"norm_bound": [0.1, 1.0]}, cv=2).fit(data, labels)
    assert "norm_bound=0.1 is for a fit of its own" in search.sharing_.why(0)
    assert search.best_estimator_.C_.shape == (3,)
    assert not hasattr(warm.set_params(norm_bound=None).fit(data, labels), "C_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 2.0}, "Give one of C, lam and norm_bound"),
        ({"C": np.inf}, "Give one of C, lam and norm_bound"),
        ({"lam": 2.0}, "Give one of C, lam and norm_bound"),
        ({"checkpoint": "a.file"}, "keeps no checkpoint"),
        ({"kernel": "sigmoid", "coef0": -5.0}, "is indefinite on these data"),
        ({"multiclass": "crammer_singer"}, "is for machines for two classes"),
    ],
)
def test_what_does_not_go_with_a_bound_is_refused(parameters, message):
    three = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        SVC(**{"norm_bound": 1.0, **parameters}).fit(*three)
    if parameters.keys() <= {"C", "lam"}:
        with pytest.raises(ValueError, match=message):
            SVR(norm_bound=1.0, **parameters).fit(*three)
    fitted = SVC(norm_bound=1.0).fit(X, y)
    with pytest.raises(ValueError, match="norm_bound does not"):
        maxmargin.bounds.leave_one_out(fitted)


def test_a_bound_that_is_not_reached_in_time_says_so():
    with pytest.warns(ConvergenceWarning, match="The relative duality gap is"):
        model = SVC(norm_bound=10.0, tol=1e-8, max_iter=3).fit(X, y)
    assert model.certificate_.claim.startswith("least loss with ||w|| <= 10: not optimal")


def test_a_class_of_a_notebook_can_be_sent_to_workers():
    """cloudpickle sends the functions of a class that cannot be imported, and what they use."""
    for instance in all_estimators():
        if instance.first:

            class Own(type(instance.estimator)):
                def fit(self, *data, **options):
                    return super().fit(*data, **options)

            sent = pickle.loads(cloudpickle.dumps(Own(**instance.estimator.get_params(deep=False))))
            assert repr(sent).startswith("Own(")

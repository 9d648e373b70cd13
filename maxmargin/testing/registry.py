"""Registry of all public estimators: small instances of each, their data, what they cannot do.

One entry puts an estimator under all contracts in ``tests/contracts`` and under scikit-learn's
checks. The first instance of a class is in the fast tier of the tests, all are in the slow one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

_ROWS, _NEW = 42, 14
_WORDS = ["corn", "wheat", "oil", "ship", "bank", "gold", "rate", "trade"]
_CLASSES = np.array(["blue", "green", "red"])


class Sample(NamedTuple):
    """Training data and new points of one instance."""

    X: Any
    y: Any
    new: Any

    def rows(self, index: Any, pairwise: bool = False) -> Sample:
        """Return the sample with these training rows, in this order."""
        y: Any = None if self.y is None else [self.y[i] for i in index]
        y = np.asarray(y) if isinstance(self.y, np.ndarray) else y
        if isinstance(self.X, list):
            return Sample([self.X[i] for i in index], y, self.new)
        X = self.X[np.ix_(index, index)] if pairwise else self.X[index]
        return Sample(X, y, self.new[:, index] if pairwise else self.new)


@dataclass(frozen=True)
class Instance:
    """A small instance of a public estimator.

    Attributes
    ----------
    name : str
        Unique; begins with the name of the class.
    estimator : BaseEstimator
        Not fitted: contracts fit clones.
    data : {"numbers", "counts", "gram", "text", "sequences"}
        What X is: a matrix of numbers, of counts (not negative), or of kernel values (square), a
        list of documents, or of sequences.
    target : {"classes", "two classes", "columns of classes", "number", "numbers", "topics", None}
        What y is; ``"numbers"`` and ``"columns of classes"`` have two columns, the latter one of
        three classes and one of two, ``"topics"`` are sets of labels.
    cannot : mapping of str to str
        Contracts and scikit-learn checks that do not hold, each with the reason. They are run all
        the same, and have to fail.
    exact : mapping of str to object
        Parameters with which two fits of the same problem agree to some 1e-5.
    first : bool
        Whether it is the first instance of its class.
    """

    name: str
    estimator: BaseEstimator
    data: str = "numbers"
    target: str | None = "classes"
    cannot: Mapping[str, str] = field(default_factory=dict)
    exact: Mapping[str, Any] = field(default_factory=dict)
    first: bool = False

    @property
    def pairwise(self) -> bool:
        """Whether X is a square matrix of kernel values."""
        return self.data == "gram"

    def make(self, **parameters: Any) -> Any:
        """Return a new estimator, with these parameters set."""
        return clone(self.estimator).set_params(**parameters)

    def make_exact(self, **parameters: Any) -> Any:
        """Return a new estimator whose answers can be compared, with these parameters set."""
        return self.make(**{**self.exact, **parameters})

    def sample(self, seed: int = 0) -> Sample:
        """Return data that the instance takes: 42 rows and 14 new points."""
        random = np.random.default_rng(seed)
        points = np.round(random.normal(size=(_ROWS + _NEW, 4)), 3)
        index = np.arange(_ROWS + _NEW) % 3
        points[:, 0] += 1.5 * (index == 1)
        points[:, 1] += 1.5 * (index == 2)
        X: Any = points
        if self.data == "counts":
            X = np.round(np.abs(points))
        elif self.data == "gram":
            squares = ((points[:, None] - points[None, :_ROWS]) ** 2).sum(axis=2)
            X = np.exp(-0.2 * squares)
        elif self.data == "text":
            X = [_document(int(k), random) for k in index]
        elif self.data == "sequences":
            X = [_sequence(int(k), random) for k in index]
        return Sample(X[:_ROWS], self._target(points[:_ROWS], index[:_ROWS]), X[_ROWS:])

    def _target(self, points: np.ndarray, index: np.ndarray) -> Any:
        numbers = np.round(np.sin(points[:, 0]) + 0.5 * points[:, 1], 3)
        return {
            "classes": _CLASSES[index],
            "two classes": _CLASSES[(index > 0).astype(int)],
            "columns of classes": _CLASSES[np.column_stack([index, (numbers > 0).astype(int)])],
            "number": numbers,
            "numbers": np.column_stack([numbers, numbers - points[:, 2]]),
            "topics": [[str(_CLASSES[k])] + ["odd"] * (i % 2) for i, k in enumerate(index)],
            None: None,
        }[self.target]


def _document(k: int, random: np.random.Generator) -> str:
    words = random.choice(_WORDS, size=6).tolist()
    return " ".join([*words, *[_WORDS[k]] * 2])


def _sequence(k: int, random: np.random.Generator) -> str:
    return "".join(random.choice(list("ACGT"), size=12)) + ("ACGAC", "TTGTT", "GGCGG")[k]


def all_estimators() -> list[Instance]:
    """Return small instances of every public estimator, those of one class together.

    Examples
    --------
    >>> from maxmargin.testing import all_estimators
    >>> instance = all_estimators()[0]
    >>> X, y, new = instance.sample()
    >>> instance.name, instance.make().fit(X, y).predict(new[:3]).tolist()
    ('SVC', ['green', 'green', 'red'])
    """
    instances: list[Instance] = []
    for instance in _instances():
        known = {type(other.estimator) for other in instances}
        first = type(instance.estimator) not in known
        instances.append(Instance(**{**vars(instance), "first": first}))
    return instances


# -- what is declared, and why ---------------------------------------------------------------------

_WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
_SCALE = 'gamma="scale" is a property of X and does not see weights, as in scikit-learn'
_NU = "the check's data or weights make nu=0.5 infeasible, as in scikit-learn"
_BOUNDARY = "the check predicts on the boundary itself, where the sign is rounding's"
_ORDER = "rows come in random order: one of weight two is not two rows of weight one"
_SEPARABLE = "the check's classes can be separated: there is no answer without a penalty"
_STEP = "a weight scales the step, which is not the same as visiting a row twice"
_LUCK = "by the seed 0.64 to 1.0 of the rows; scikit-learn's Perceptron 0.48 to 1.0"
_DRAWN = "a row given twice is drawn twice as often: equal in distribution, as in scikit-learn"
_DISTANCES = "the check takes distances for a kernel's values: an indefinite matrix, refused"
_SQUARE = "the check's data are no square matrix, and its tags are not asked"
_VOTES = "break_ties=False, as in scikit-learn: of classes with as many votes, the first"
_PLATT = "probabilities are calibrated on folds, apart from the decision, as in scikit-learn"
_FOLDS = "the folds of cross-validation follow the order of the rows"
_VISITS = "rows are visited in their order, or in one drawn for each binary problem"
_LANDMARKS = "rows are drawn as landmarks by their position"
_EQUAL_SPLITS = "of splits that are equally good, rounding or the order chooses"
_LOCAL = "one of several local minima, by the order of the classes"
_PRIOR = "predicts from its prior before it is fitted, as in scikit-learn"
_INTERVAL = "the hinge leaves an interval of intercepts, all of them optimal"
_AXES = "y with three axes ends in Python's own words: unhashable type"
_WRAPPED = "weights are judged by the wrapped estimator: GaussianNB takes negative ones"
_CONSTANT = "probabilities of scikit-learn's GaussianNB are NaN where all columns are constant"
_CALIBRATED = "weights of rows count in the calibration, those of classes do not"
_MATRIX = "a given matrix has a column for every row, which partitions of rows do not have"
_SOLVER = "the solver visits single rows, or all at once: refused where they lie in partitions"
_CARRIED = "on Dask the rows are drawn partition by partition, or the order is refused"
_BOUND = "norm_bound is refused for partitions of rows"
_LEFT_OUT = "to leave out a row is to leave out all of its weight"


def _no_weights(reason: str) -> dict[str, str]:
    return dict.fromkeys((*_WEIGHT_CHECKS, "weight_is_repetition"), reason)


def _drawn() -> dict[str, str]:
    names = "weights_of_one_are_none", "order_of_rows_is_nothing"
    return {**_no_weights(_DRAWN), **dict.fromkeys(names, _DRAWN)}


def _instances() -> Iterator[Instance]:
    yield from _kernel_svms()
    yield from _linear()
    yield from _kernel_methods()
    yield from _ensembles()
    yield from _searches()


def _kernel_svms() -> Iterator[Instance]:
    from maxmargin import SVC, SVR, NuSVC, NuSVR, Nystroem, OneClassSVM, RandomFourier
    from maxmargin.kernels import RBF, Linear, Precomputed, Spectrum

    tight = {"tol": 1e-9}
    own = _no_weights(_SCALE)
    votes = {"predict_agrees_with_decision_function": _VOTES}
    renamed = {**votes, "names_of_classes_are_nothing": _VOTES}
    matrix = {"dask_equals_memory": _MATRIX}
    folds = {"order_of_rows_is_nothing": _FOLDS}
    yield Instance("SVC", SVC(), cannot=own | renamed, exact=tight)
    yield Instance("SVC-ties", SVC(break_ties=True), cannot=own, exact=tight)
    yield Instance("SVC-gamma", SVC(gamma=0.5), exact=tight)
    given = SVC(kernel="precomputed")
    yield Instance("SVC-precomputed", given, "gram", cannot=renamed | matrix, exact=tight)
    yield Instance("SVC-sum", SVC(kernel=RBF(gamma=0.5) + Linear()), cannot=votes, exact=tight)
    yield Instance("SVC-sequences", SVC(kernel=Spectrum(3)), "sequences", exact=tight)
    classes = {"class_weight_is_weight": _CALIBRATED}
    platt = {"predict_agrees_with_probabilities": _PLATT} | classes | own | renamed | folds
    yield Instance("SVC-proba", SVC(probability=True, random_state=0), cannot=platt, exact=tight)
    consistent = SVC(probability="consistent", random_state=0, multiclass="ovr")
    yield Instance("SVC-consistent", consistent, cannot=own | classes | folds, exact=tight)
    yield Instance("SVC-lam", SVC(lam=0.01), cannot=own | votes, exact=tight)
    bounded = own | renamed | {"dask_equals_memory": _BOUND}
    yield Instance("SVC-norm", SVC(norm_bound=1.0, tol=1e-9), cannot=bounded)
    yield Instance("SVC-origin", SVC(fit_intercept=False), cannot=own | renamed, exact=tight)
    yield Instance("SVC-ovr", SVC(gamma=0.5, multiclass="ovr"), exact=tight)
    yield Instance("SVC-dag", SVC(gamma=0.5, multiclass="dag"), exact=tight)
    yield Instance("SVC-ecoc", SVC(gamma=0.5, multiclass="ecoc"), exact=tight)
    yield Instance("SVC-direct", SVC(gamma=0.5, multiclass="crammer_singer", tol=1e-9))
    summed = SVC(gamma=0.5, multiclass="weston_watkins", tol=1e-9)
    yield Instance("SVC-summed", summed)
    fourier = RandomFourier(n_components=40, random_state=0)
    approximate = SVC(gamma=0.5, tol=1e-9, approximation=fourier)
    yield Instance("SVC-fourier", approximate, cannot=votes)
    landmarks = Nystroem(random_state=0)
    approximate = SVC(kernel=Linear() + 1, tol=1e-9, approximation=landmarks)
    yield Instance("SVC-nystroem", approximate, cannot=votes)
    infeasible = {**_no_weights(_NU), "check_class_weight_classifiers": _NU}
    yield Instance("NuSVC", NuSVC(), cannot=infeasible | votes, exact=tight)
    yield Instance("NuSVC-origin", NuSVC(fit_intercept=False), cannot=own | renamed, exact=tight)
    yield Instance("SVR", SVR(), target="number", cannot=own, exact=tight)
    yield Instance("SVR-gamma", SVR(gamma=0.5), target="number", exact=tight)
    yield Instance("SVR-columns", SVR(gamma=0.5), target="numbers", exact=tight)
    given = SVR(kernel=2 * Precomputed())
    yield Instance("SVR-precomputed", given, "gram", "number", cannot=matrix, exact=tight)
    yield Instance("SVR-origin", SVR(fit_intercept=False), target="number", cannot=own, exact=tight)
    nystroem = SVR(kernel=Linear() + 1, tol=1e-9, approximation=landmarks)
    yield Instance("SVR-nystroem", nystroem, target="number")
    yield Instance("NuSVR", NuSVR(), target="number", cannot=own, exact=tight)
    yield Instance("NuSVR-origin", NuSVR(fit_intercept=False), target="number", cannot=own)
    yield Instance("NuSVR-gamma", NuSVR(gamma=0.5, tol=1e-10), target="number")
    outliers = own | dict.fromkeys(_WEIGHT_CHECKS, _BOUNDARY)
    nu = NuSVR(gamma=0.5, tol=1e-10)
    yield Instance("NuSVR-columns", nu, target="numbers")
    yield Instance("OneClassSVM", OneClassSVM(), target=None, cannot=outliers, exact=tight)
    given = OneClassSVM(kernel="precomputed")
    checks = dict.fromkeys(("check_outliers_train", "check_outliers_fit_predict"), _SQUARE)
    yield Instance("OneClassSVM-gram", given, "gram", None, cannot=matrix | checks, exact=tight)


def _linear() -> Iterator[Instance]:
    from maxmargin import (
        LeastSquaresClassifier,
        LinearRegression,
        LinearSVC,
        LinearSVR,
        LogisticRegression,
        MCEClassifier,
        Perceptron,
        Ridge,
    )

    shuffled = _no_weights(_ORDER)
    separable = dict.fromkeys(_WEIGHT_CHECKS, _SEPARABLE)
    visits = {"order_of_rows_is_nothing": _VISITS}
    apart = {"dask_equals_memory": _SOLVER}
    yield Instance("LinearSVC", LinearSVC(tol=1e-10))
    yield Instance("LinearSVC-hinge", LinearSVC(loss="hinge", tol=1e-10, lam=0.01))
    yield Instance("LinearSVC-l1", LinearSVC(penalty="l1", tol=1e-10))
    descent = LinearSVC(solver="dual_descent", random_state=0)
    yield Instance("LinearSVC-dual", descent, cannot=shuffled | visits | apart)
    yield Instance("LinearSVC-scaled", LinearSVC(intercept_scaling=1.0, tol=1e-10))
    bounded = LinearSVC(loss="hinge", norm_bound=0.3, tol=1e-10)
    yield Instance("LinearSVC-norm", bounded, cannot={"weight_is_repetition": _INTERVAL})
    pairs = LinearSVC(multiclass="ovo", tol=1e-10, lam=0.01)
    votes = {"predict_agrees_with_decision_function": _VOTES}
    yield Instance("LinearSVC-ovo", pairs, cannot=votes)
    direct = LinearSVC(multiclass="crammer_singer", tol=1e-10, max_iter=-1, random_state=0)
    yield Instance("LinearSVC-direct", direct)
    summed = LinearSVC(multiclass="weston_watkins", intercept_scaling=3.0, tol=1e-10, max_iter=-1)
    yield Instance("LinearSVC-summed", summed.set_params(random_state=0))
    yield Instance("LinearSVR", LinearSVR(tol=1e-10, lam=0.01), target="number")
    yield Instance("LinearSVR-columns", LinearSVR(tol=1e-10, lam=0.01), target="numbers")
    squared = LinearSVR(loss="squared_epsilon_insensitive", tol=1e-10)
    yield Instance("LinearSVR-squared", squared, target="number")
    yield Instance("LogisticRegression", LogisticRegression(tol=1e-12, lam=0.01))
    free = LogisticRegression(C=np.inf)
    yield Instance("LogisticRegression-free", free, cannot=separable)
    quasi = LogisticRegression(solver="lbfgs", tol=1e-12, max_iter=1000)
    yield Instance("LogisticRegression-lbfgs", quasi)
    yield Instance("LogisticRegression-ecoc", LogisticRegression(multiclass="ecoc", tol=1e-12))
    slow = LogisticRegression(solver="gradient_descent", tol=1e-10, max_iter=1000)
    yield Instance("LogisticRegression-descent", slow, cannot=apart)
    stochastic = LogisticRegression(solver="sgd", C=np.inf, random_state=0)
    yield Instance("LogisticRegression-sgd", stochastic, cannot=shuffled | visits | apart)
    yield Instance("LinearRegression", LinearRegression(), target="number")
    yield Instance("LinearRegression-columns", LinearRegression(), target="numbers")
    origin = LinearRegression(fit_intercept=False)
    yield Instance("LinearRegression-origin", origin, target="number")
    positive = LinearRegression(positive=True)
    yield Instance("LinearRegression-positive", positive, target="number")
    conjugate = LinearRegression(solver="conjugate_gradient", tol=1e-10)
    yield Instance("LinearRegression-cg", conjugate, target="number")
    descent = LinearRegression(solver="gradient_descent", tol=1e-10)
    yield Instance("LinearRegression-descent", descent, target="number")
    constant = LinearRegression(solver="gradient_descent", step_size="constant", units="data")
    yield Instance("LinearRegression-constant", constant, target="number")
    stochastic = LinearRegression(solver="sgd", random_state=0)
    drawn = shuffled | visits | apart
    yield Instance("LinearRegression-sgd", stochastic, target="number", cannot=drawn)
    yield Instance("LeastSquaresClassifier", LeastSquaresClassifier())
    local = {"names_of_classes_are_nothing": _LOCAL}
    yield Instance("MCEClassifier", MCEClassifier(random_state=0), cannot=local)
    weighted = MCEClassifier(alpha=1e-3, n_restarts=1, random_state=0)
    yield Instance("MCEClassifier-alpha", weighted)
    descent = MCEClassifier(solver="gradient_descent", n_restarts=1, random_state=0)
    yield Instance("MCEClassifier-descent", descent, exact={"alpha": 0.01})
    stochastic = MCEClassifier(solver="sgd", n_restarts=1, random_state=0)
    yield Instance("MCEClassifier-sgd", stochastic, cannot=shuffled | visits | apart)
    steps = _no_weights(_STEP) | visits
    named = steps | {"names_of_classes_are_nothing": _VISITS, "dask_equals_memory": _CARRIED}
    yield Instance("Perceptron", Perceptron(), cannot=named)
    pocket = named | {"check_class_weight_classifiers": _LUCK}
    yield Instance("Perceptron-pocket", Perceptron(variant="pocket"), cannot=pocket)
    averaged = steps | {"dask_equals_memory": _CARRIED}
    yield Instance("Perceptron-averaged", Perceptron(variant="averaged"), cannot=averaged)
    drawn = Perceptron(order="random", penalty="l2")
    yield Instance("Perceptron-random", drawn, cannot=named)
    yield Instance("Perceptron-rbf", Perceptron(kernel="rbf", order="cyclic"), cannot=steps)
    yield Instance("Perceptron-gram", Perceptron(kernel="precomputed"), "gram", cannot=steps)
    yield Instance("Ridge", Ridge(), target="number")
    yield Instance("Ridge-columns", Ridge(), target="numbers")
    yield Instance("Ridge-dual", Ridge(solver="dual"), target="number", cannot=apart)
    yield Instance("Ridge-cg", Ridge(solver="cg", tol=1e-12), target="number")


def _kernel_methods() -> Iterator[Instance]:
    from maxmargin import (
        ExplicitFeatures,
        GaussianProcessRegressor,
        KernelLogisticRegression,
        KernelPCA,
        KernelRidge,
        KernelRidgeCV,
        Nystroem,
        RandomFourier,
    )
    from maxmargin.kernels import RBF, Polynomial, Spectrum

    indefinite = dict.fromkeys(
        ("check_positive_only_tag_during_fit", "check_estimators_dtypes"), _DISTANCES
    )
    yield Instance("KernelRidge", KernelRidge(), target="number")
    yield Instance("KernelRidge-columns", KernelRidge(kernel="rbf"), target="numbers")
    conjugate = KernelRidge(kernel="rbf", solver="cg", tol=1e-12)
    yield Instance("KernelRidge-cg", conjugate, target="number")
    given = KernelRidge(kernel="precomputed")
    yield Instance("KernelRidge-gram", given, "gram", "number", cannot=indefinite)
    strings = KernelRidge(kernel=Spectrum(3))
    yield Instance("KernelRidge-sequences", strings, "sequences", "number")
    left_out = dict.fromkeys(_WEIGHT_CHECKS, _LEFT_OUT)
    yield Instance("KernelRidgeCV", KernelRidgeCV(), target="number", cannot=left_out)
    yield Instance("KernelRidgeCV-rbf", KernelRidgeCV(kernel=RBF(0.5)), target="number")
    several = KernelRidgeCV(kernel=RBF(0.5))
    yield Instance("KernelRidgeCV-columns", several, target="numbers")
    unfitted = (
        "clone_is_not_fitted",
        "calls_before_a_fit_are_refused_by_name",
        "html_shows_the_estimator_and_its_answer",
    )
    prior = dict.fromkeys(unfitted, _PRIOR)
    process = GaussianProcessRegressor(alpha=0.1)
    yield Instance("GaussianProcessRegressor", process, target="number", cannot=prior)
    several = GaussianProcessRegressor(kernel=RBF(0.5), alpha=0.1)
    yield Instance("GaussianProcessRegressor-columns", several, target="numbers", cannot=prior)
    noisy = GaussianProcessRegressor(
        kernel=RBF(0.5), noise_level=0.1, n_restarts_optimizer=1, random_state=0
    )
    yield Instance("GaussianProcessRegressor-noise", noisy, target="number", cannot=prior)
    given = GaussianProcessRegressor(kernel="precomputed", alpha=1e4)
    yield Instance("GaussianProcessRegressor-gram", given, "gram", "number", cannot=prior)
    logistic = KernelLogisticRegression(gamma=0.5, tol=1e-20)
    yield Instance("KernelLogisticRegression", logistic)
    newton = KernelLogisticRegression(gamma=0.5, tol=1e-10, multiclass="ovr", solver="newton-cg")
    yield Instance("KernelLogisticRegression-ovr", newton)
    yield Instance("KernelPCA", KernelPCA(n_components=2, kernel="rbf"), target=None)
    given = KernelPCA(n_components=2, kernel="precomputed")
    yield Instance("KernelPCA-gram", given, "gram", None)
    lanczos = KernelPCA(n_components=2, eigen_solver="lanczos", random_state=0)
    yield Instance("KernelPCA-lanczos", lanczos, target=None)
    inverse = KernelPCA(n_components=2, kernel=RBF(0.1), fit_inverse_transform="fixed_point")
    yield Instance("KernelPCA-inverse", inverse, target=None)
    drawn = {"order_of_rows_is_nothing": _LANDMARKS}
    pivots = Nystroem(n_components=2, random_state=0)
    yield Instance("Nystroem", pivots, target=None, cannot=drawn)
    uniform = Nystroem(n_components=8, landmarks="uniform", random_state=0)
    yield Instance("Nystroem-uniform", uniform, target=None, cannot=drawn)
    yield Instance("RandomFourier", RandomFourier(n_components=4, random_state=0), target=None)
    yield Instance("ExplicitFeatures", ExplicitFeatures(Polynomial(2)), target=None)


def _ensembles() -> Iterator[Instance]:
    from maxmargin import (
        SVC,
        SVR,
        AdaBoostClassifier,
        BaggingClassifier,
        BaggingRegressor,
        DecisionStump,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        LogitBoostClassifier,
        LPBoostClassifier,
        WordStumpBooster,
    )

    two = "two classes"
    yield Instance("DecisionStump", DecisionStump(), target=two)
    yield Instance("AdaBoostClassifier", AdaBoostClassifier(n_estimators=5), target=two)
    several = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5)
    yield Instance("AdaBoostClassifier-trees", several)
    yield Instance("LogitBoostClassifier", LogitBoostClassifier(n_estimators=5), target=two)
    yield Instance("LPBoostClassifier", LPBoostClassifier(nu=0.2), target=two)
    axes = {"targets_that_are_none_are_refused": _AXES}
    yield Instance("WordStumpBooster", WordStumpBooster(20), "text", cannot=axes)
    yield Instance("WordStumpBooster-topics", WordStumpBooster(20), "text", "topics")
    discrete = WordStumpBooster(20, stump="discrete")
    yield Instance("WordStumpBooster-discrete", discrete, "counts", cannot=axes)
    yield Instance("DecisionTreeClassifier", DecisionTreeClassifier(random_state=0))
    gain = DecisionTreeClassifier(criterion="normalised_gain", splitter="random", random_state=0)
    yield Instance("DecisionTreeClassifier-random", gain)
    tree, columns = DecisionTreeClassifier(random_state=0), "columns of classes"
    yield Instance("DecisionTreeClassifier-columns", tree, target=columns)
    tree = DecisionTreeRegressor(random_state=0)
    yield Instance("DecisionTreeRegressor", tree, target="number")
    yield Instance("DecisionTreeRegressor-columns", tree, target="numbers")
    renamed = {"names_of_classes_are_nothing": _EQUAL_SPLITS}
    forest = ExtraTreesClassifier(10, random_state=0)
    yield Instance("ExtraTreesClassifier", forest, cannot=renamed)
    drawn = _no_weights(_DRAWN) | {"order_of_rows_is_nothing": _DRAWN}
    bootstrap = ExtraTreesClassifier(
        10, bootstrap=True, class_weight="balanced_subsample", random_state=0
    )
    yield Instance("ExtraTreesClassifier-bootstrap", bootstrap, cannot=drawn | renamed)
    repeated = {"weight_is_repetition": _EQUAL_SPLITS}  # a node of two rows draws one test
    yield Instance("ExtraTreesClassifier-columns", forest, target=columns, cannot=repeated)
    forest = ExtraTreesRegressor(10, random_state=0)
    equal = dict.fromkeys(("weight_is_repetition", "order_of_rows_is_nothing"), _EQUAL_SPLITS)
    yield Instance("ExtraTreesRegressor", forest, target="number", cannot=equal)
    yield Instance("ExtraTreesRegressor-columns", forest, target="numbers", cannot=equal)
    drawn = _drawn()
    bagged = BaggingClassifier(n_estimators=5, random_state=0)
    yield Instance("BaggingClassifier", bagged, cannot=drawn)
    kernel = BaggingClassifier(SVC(), n_estimators=1, random_state=0)
    yield Instance("BaggingClassifier-SVC", kernel, cannot=drawn)
    bagged = BaggingRegressor(n_estimators=5, random_state=0)
    yield Instance("BaggingRegressor", bagged, target="number", cannot=drawn)
    several = BaggingRegressor(n_estimators=5, random_state=1)
    yield Instance("BaggingRegressor-columns", several, target="numbers", cannot=drawn)
    kernel = BaggingRegressor(SVR(), n_estimators=3, random_state=0)
    yield Instance("BaggingRegressor-SVR", kernel, target="number", cannot=drawn)


def _searches() -> Iterator[Instance]:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.naive_bayes import GaussianNB

    import maxmargin as mm
    from maxmargin.multiclass import SchemeClassifier

    costs = {"C": [1, 2]}
    folds = {"order_of_rows_is_nothing": _FOLDS}
    votes = folds | {"predict_agrees_with_decision_function": _VOTES}
    grid = mm.GridSearchCV(mm.SVC(gamma=0.5), costs, cv=2)
    yield Instance("GridSearchCV", grid, cannot=votes)
    yield Instance("SVCSearchCV", mm.SVCSearchCV(param_grid=costs, cv=2), cannot=votes)
    yield Instance("SVRSearchCV", mm.SVRSearchCV(param_grid=costs, cv=2), target="number")
    some = mm.RandomizedSearchCV(mm.LogisticRegression(), costs, n_iter=2, cv=2, random_state=0)
    yield Instance("RandomizedSearchCV", some, cannot=folds)
    halving = mm.HalvingGridSearchCV(mm.LinearSVR(), costs, cv=2, min_resources=10, random_state=0)
    yield Instance("HalvingGridSearchCV", halving, target="number")
    halving = mm.HalvingRandomSearchCV(
        mm.LinearSVR(), costs, cv=2, min_resources=10, n_candidates=2, random_state=0
    )
    yield Instance("HalvingRandomSearchCV", halving, target="number")
    graph = SchemeClassifier(RidgeClassifier(), multiclass="dag")
    yield Instance("SchemeClassifier", graph)
    bayes = SchemeClassifier(GaussianNB(), multiclass="ovr")
    wrapped = {
        "weights_that_are_none_are_refused": _WRAPPED,
        "ties_have_one_rule": _CONSTANT,
    }
    yield Instance("SchemeClassifier-ovr", bayes, cannot=wrapped)

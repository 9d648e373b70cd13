"""What SVC and NuSVC share: several classes, decisions, probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from maxmargin.duals import DualProblem
from maxmargin.duals.direct import DirectProblem
from maxmargin.estimators import readings
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import takes_collections
from maxmargin.estimators.kernel import fall_back_to_cpu
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.evaluation import Evaluation, InseparableError
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel, Linear
from maxmargin.linear import LinearSVC
from maxmargin.multiclass import NAMED, Scheme, as_scheme, read_class_weights, read_labels
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Choice, RowDescent, Watch
from maxmargin.solvers.dual.direct import solve_directly
from maxmargin.svm.answers import answers_of_all
from maxmargin.svm.approximation import FeatureSpace, Posed
from maxmargin.svm.base import KernelMachine
from maxmargin.svm.out_of_fold import Found, OutOfFold, Task, deal
from maxmargin.svm.probability import (
    KINDS,
    Calibration,
    Sigmoids,
    Values,
    calibrated,
    consistent,
    kind_of,
    needs_all,
)
from maxmargin.svm.replicates import ReplicatesOfClasses

_ASKED = 40_000  # points times machines from which single questions cost less than all values


class Posing(NamedTuple):
    """The problems of a scheme's machines: rows and labels of each task, weights, and the duals."""

    tasks: list[tuple[np.ndarray, np.ndarray]]
    weights: list[np.ndarray]
    problems: list[DualProblem]


def _wants_probability(machine: Any) -> bool:
    if kind_of(machine.probability) is None:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Kernel machines for two classes, as many as a scheme asks for."""

    multiclass: Any
    scheme_: Scheme
    class_weight: Any
    probability: Any
    decision_function_shape: str
    break_ties: bool
    random_state: Any
    fit_intercept: bool

    _parameter_constraints: dict = {
        **KernelMachine._parameter_constraints,
        "probability": ["boolean", StrOptions(set(KINDS)), Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "multiclass": [StrOptions(set(NAMED)), Scheme, callable],
        "fit_intercept": ["boolean"],
        "random_state": ["random_state"],
        "solver": [*KernelMachine._parameter_constraints["solver"], RowDescent],
    }

    @property
    def _sign(self) -> float:
        return self.scheme_.sign

    def _replicate_fits(self, X: Any, y: Any) -> Any:
        """Return what fits clones of this machine to replicates of the data, or None."""
        return ReplicatesOfClasses.of(self, X, y)

    _answers_of_all = staticmethod(answers_of_all)

    @abstractmethod
    def _problem(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> DualProblem:
        """Return the dual problem of one machine: its rows, labels and their weights."""

    @abstractmethod
    def _part_of_problem(
        self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> DualProblem:
        """Return the problem on part of a machine's rows, with the costs that all of them gave."""

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Fit the machine to labelled data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values. Dense
            float32 and CSR stay as they are; pandas and polars column names are kept for kernels
            on named columns. With a kernel function, any collection of objects.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's cost. A row of weight zero takes no part.

        Returns
        -------
        self : object
        """
        kernel = self._validated_kernel()
        X, y = self._validated(X, y, kernel)
        self.classes_, index = read_labels(y)
        counts = weight = self._validated_weight(sample_weight, X)
        self.class_weight_ = read_class_weights(self.class_weight, self.classes_, index, weight)
        weight = weight * self.class_weight_[index]
        self.scheme_ = scheme = as_scheme(self.multiclass, len(self.classes_))
        if self.approximation is not None:
            return self._fit_features(X, index, weight, kernel, counts)
        gram = self._gram(X, kernel)
        if scheme.direct:
            return self._fit_directly(X, index, weight, gram, counts)
        everything = np.arange(len(index))
        self._fit_pairs(X, index, weight, counts, gram, self._pose(index, weight, everything))
        return self

    def _pose(self, index: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> Posing:
        """State the problems of the scheme's machines on some of the rows."""
        scheme = self.scheme_
        tasks = [(rows[own], signs) for own, signs in scheme.tasks(index[rows])]
        weights = [scheme.weigh(signs, weight[own]) for own, signs in tasks]
        problems = [
            self._problem(own, signs, weighed)
            for (own, signs), weighed in zip(tasks, weights, strict=True)
        ]
        return Posing(tasks, weights, problems)

    def _fit_pairs(
        self,
        X: Any,
        index: np.ndarray,
        weight: np.ndarray,
        counts: np.ndarray,
        gram: Gram,
        posing: Posing,
        known: Sequence[Evaluation | None] = (),
    ) -> None:
        """Find the machines for two; some of their answers may be ``known`` already."""
        (tasks, weights, problems), scheme = posing, self.scheme_
        solver = self._solver()
        try:
            evaluations = self._solved(gram, problems, solver, X, known)
        except InseparableError as error:
            raise self._naming_classes(error, index) from None
        self._keep_machines(X, index, evaluations)
        self._slack = [
            (rows, np.maximum(0.0, 1.0 - signs * (e.decision + e.bias)))
            for (rows, signs), e in zip(tasks, evaluations, strict=True)
        ]

        if self.norm_bound is not None:  # folds have the costs that were found
            weights = [C * own for C, own in zip(self.C_, weights, strict=True)]

        def values(number: np.ndarray, everywhere: bool) -> tuple[Any, list[Found]]:
            folds = OutOfFold(self, gram, number, solver)
            solved = zip(tasks, weights, evaluations, strict=True)
            parts = [Task(*task, own, evaluation) for task, own, evaluation in solved]
            found = folds.of_tasks(parts, everywhere)
            return folds, [(rows, scheme.sign * f) for rows, f in found]

        self._calibrate(values, index, np.where(weight > 0, counts, 0.0))

    def _fit_directly(
        self, X: Any, index: np.ndarray, weight: np.ndarray, gram: Gram, counts: np.ndarray
    ) -> KernelClassifier:
        """Find the functions of all classes in one problem."""
        problem = self._direct_problem(index, weight).over(gram)
        scheme, solver = self.scheme_, self._solver()
        monitor = solver.monitor
        known = getattr(self, "_direct_start", None)
        if self.warm_start and known is not None and known.shape == (len(index), scheme.n_classes):
            problem = problem.started_near(known.toarray())
        method = RowDescent() if self.solver == "auto" else self.solver
        if isinstance(self.kernel_, Linear):
            own = float(self.fit_intercept)
            rows = np.arange(len(index))
            monitor.readings[0] = readings.of_expansion(X, rows, lambda b, _: own * b.sum(axis=0))
        with monitor.watching(self.verbose):
            watch = Watch(self.tol, self.max_iter, ProblemMonitor(monitor, 0), self._workers())
            monitor.chosen.append(Choice(method, "all classes in one problem: row by row"))
            found = solve_directly(problem, method, watch)
            self._keep_certificate(found.certificate, [found.n_iter], monitor)
        self._warn_unfinished(found.certificate)
        self._direct_start = sp.csr_array(found.b)
        self.__dict__.pop("_free_and_bounded", None)
        rows = np.arange(len(index))
        self._slack = [(rows, self._direct_losses(index, found.values))]
        functions = found.values - found.b.sum(axis=0) * float(self.fit_intercept)
        squared_norms = (found.b * functions).sum(axis=0)
        self._warn_without_norm(squared_norms)
        self._keep_functions(X, index, found.b, squared_norms)

        def values(number: np.ndarray, everywhere: bool) -> tuple[Any, list[Found]]:
            folds = OutOfFold(self, gram, number, solver)
            return folds, folds.of_direct(problem, found.b, method)

        self._calibrate(values, index, np.where(weight > 0, counts, 0.0))
        return self

    def _fit_features(
        self, X: Any, index: np.ndarray, weight: np.ndarray, kernel: Kernel, counts: np.ndarray
    ) -> KernelClassifier:
        """Find the machines on features that stand in for the kernel."""
        scheme, paying = self.scheme_, weight > 0
        space = FeatureSpace(self, X, kernel, LinearSVC(loss="hinge"))
        if scheme.direct:
            problems = [Posed(np.flatnonzero(paying), index, self._direct_cost(weight))]
        else:
            problems = [
                self._posed_on_features(signs, np.where(signs != 0, weight, 0.0))
                for signs in scheme.signs(index)
            ]
        values = space.fit(problems)
        margins = space.margins()
        self.margin_ = float(margins[0]) if len(margins) == 1 else margins
        self._slack = self._slacks(index, values)

        def held_out(number: np.ndarray, everywhere: bool) -> tuple[Any, list[Found]]:
            folds = space.folds(problems, number)
            return folds, folds.values(everywhere)

        self._calibrate(held_out, index, np.where(paying, counts, 0.0))
        return self

    def _slacks(self, index: np.ndarray, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows of each machine and their slack, from the values of all machines at all rows."""
        if self.scheme_.direct:
            return [(np.arange(len(index)), self._direct_losses(index, values))]
        return [
            (rows, np.maximum(0.0, 1.0 - signs[rows] * f[rows]))
            for signs, f in zip(self.scheme_.signs(index), values.T, strict=True)
            for rows in [np.flatnonzero(signs)]
        ]

    def _posed_on_features(self, signs: np.ndarray, weight: np.ndarray) -> Posed:
        """Problem of one machine, whose rows have a weight."""
        rows = np.flatnonzero(weight)
        cost = np.zeros(len(weight))
        cost[rows] = self._direct_cost(self.scheme_.weigh(signs[rows], weight[rows]))
        return Posed(rows, signs, cost)

    def _direct_problem(self, index: np.ndarray, weight: np.ndarray) -> DirectProblem:
        """State the one problem of a direct form, or refuse parameters that it does not have."""
        scheme = self.scheme_
        if self.checkpoint is not None:
            raise ValueError(f"{scheme!r} keeps no checkpoint: use warm_start=True.")
        if self.solver != "auto" and not isinstance(self.solver, RowDescent):
            raise ValueError(
                f"solver={self.solver!r} is for machines for two classes; {scheme!r} is "
                'solved by solver="auto" or RowDescent().'
            )
        cost = self._direct_cost(weight)
        return DirectProblem(index, scheme.n_classes, cost, scheme.summed, self.fit_intercept)

    def _direct_losses(self, index: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Loss of every row in a direct form, whatever it weighs."""
        scheme, ones = self.scheme_, np.ones(len(index))
        return DirectProblem(index, scheme.n_classes, ones, scheme.summed, False).losses(values)

    def _direct_cost(self, weight: np.ndarray) -> np.ndarray:
        """Cost of each row in a direct form."""
        raise ValueError(
            f"{type(self).__name__} has no form for several classes at once "
            f"({self.scheme_!r}): use SVC, whose C is a cost and not a share of the rows."
        )

    def _naming_classes(self, error: InseparableError, index: np.ndarray) -> InseparableError:
        """Return the same error with the names of the classes, the machine's positive first."""
        sides = (error.positive, error.negative)[:: int(self.scheme_.sign)]
        found = [self.classes_[np.unique(index[rows])] for rows, _ in sides if len(rows)]
        named = [" or ".join(map(str, classes)) for classes in found]
        names = f"{'Classes' if len(named) == 2 else 'Class'} {' and '.join(named)}"
        return InseparableError(f"{names}: {error}", sides[0], sides[1], error.distance)

    def _keep_machines(self, X: Any, index: np.ndarray, evaluations: list[Evaluation]) -> None:
        """Set the attributes of the machines' expansions, over rows of these classes."""
        scheme = self.scheme_
        machines = [(e.rows, scheme.sign * e.coefficients) for e in evaluations]
        support, n_support, dual_coef = scheme.pack(machines, index)
        self._keep_support(X, support, dual_coef)
        self.n_support_ = n_support.astype(np.int32)
        self.intercept_ = np.array([scheme.sign * e.bias for e in evaluations])
        margins = np.array([evaluation.margin for evaluation in evaluations])
        self.margin_ = float(margins[0]) if len(margins) == 1 else margins

    def _keep_functions(
        self, X: Any, index: np.ndarray, b: np.ndarray, squared_norms: np.ndarray
    ) -> None:
        """Set the attributes of a direct form's expansions, over rows of these classes."""
        rows = np.arange(len(index))
        support, n_support, dual_coef = self.scheme_.pack([(rows, own) for own in b.T], index)
        self._keep_support(X, support, dual_coef)
        self.n_support_ = n_support.astype(np.int32)
        self.intercept_ = b.sum(axis=0) * float(self.fit_intercept)
        norms = np.sqrt(np.maximum(squared_norms, 0.0))
        self.margin_ = np.divide(1.0, norms, out=np.full_like(norms, np.inf), where=norms > 0)

    @property
    def slack_(self) -> np.ndarray:
        """``max(0, 1 - y_i f(x_i))`` of each machine's training rows; nan for rows not in it."""
        self._check_is_fitted()
        if "_slack" not in vars(self):
            raise AttributeError(
                f"slack_ of {self.shape_fit_[0]:,} rows, which lie in the partitions of a Dask "
                "collection, was not brought together: make it of decision_function(X), which is "
                "lazy."
            )
        slack = np.full((len(self._slack), self.shape_fit_[0]), np.nan)
        for k, (rows, values) in enumerate(self._slack):
            slack[k, rows] = values
        return slack[0] if len(slack) == 1 else slack

    # -- probabilities -------------------------------------------------------------------------

    def _calibrate(
        self,
        values: Callable[[np.ndarray, bool], tuple[Any, list[Found]]],
        index: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """Fit what makes probabilities of values, to values of rows that were held out.

        ``values`` makes them of each row's fold, and says in ``status`` and ``violation`` how that
        has ended; ``counts`` is what rows count in the likelihood: their weights, without those of
        classes.
        """
        self.calibration_: Calibration | None = None
        self.probA_, self.probB_ = np.empty(0), np.empty(0)
        kind, scheme = kind_of(self.probability), self.scheme_
        if kind is None:
            return
        part = np.flatnonzero(counts > 0)
        number = np.full(len(counts), -1)
        number[part] = deal(index[part], check_random_state(self.random_state))
        folds, found = values(number, needs_all(kind, scheme))
        if folds.status is not Status.CONVERGED:
            where = f"in the folds for probability={self.probability!r}: "
            self._warn_stopped(folds.status, folds.violation, where)
        known = [
            Values(f, codes[index[rows]], counts[rows])
            for (rows, f), codes in zip(found, scheme.code, strict=True)
        ]
        self.calibration_ = calibrated(kind, scheme, known, index[part])
        if isinstance(self.calibration_, Sigmoids):
            self.probA_, self.probB_ = self.calibration_.A, self.calibration_.B

    @available_if(_wants_probability)
    @takes_collections
    @takes_tensors
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (n_samples, n_classes), columns as in ``classes_``.

        By ``calibration_``, which was fitted to out-of-fold values: see ``probability``. The most
        probable class and :meth:`predict`, which follows the margins, can differ near the
        boundary and on very small data, unless ``probability="consistent"``.
        """
        self._check_is_fitted()
        if self.calibration_ is None:
            raise AttributeError(
                "predict_proba is not available when fitted with probability=False"
            )
        values = self._machine_values(X)
        asks = self.calibration_.consistent and self._asks(X)
        return self._probabilities(values, self._class_index(X) if asks else None)

    def _probabilities(self, values: np.ndarray, said: np.ndarray | None = None) -> np.ndarray:
        """Probabilities from the values of all machines, and the classes where these are known."""
        assert self.calibration_ is not None
        p = self.calibration_.probabilities(values)
        if not self.calibration_.consistent:
            return p
        return consistent(p, self._decoded(values) if said is None else said)

    @available_if(_wants_probability)
    @takes_collections
    @takes_tensors
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`; of zero, that of the next number."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    # -- decisions -----------------------------------------------------------------------------

    @takes_tensors
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the machines' values at the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        values : ndarray
            For two classes of shape (n_samples,), positive for ``classes_[1]``. For several, with
            ``decision_function_shape="ovo"`` of shape (n_samples, n_machines), those of a pair
            positive for its first class; with ``"ovr"`` of shape (n_samples, n_classes): votes plus
            confidence, or with ``multiclass="ovr"`` the value of each class's machine.
        """
        return self._decided(self._machine_values(X))

    def _decided(self, values: np.ndarray) -> np.ndarray:
        """Values of all machines, in the shape that was asked for."""
        if values.shape[1] == 1:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return self.scheme_.scores(values)

    @takes_tensors
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X, as ``scheme_`` decides, shape (n_samples,)."""
        self._check_is_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_[self._class_index(X)]

    score = takes_tensors(ClassifierMixin.score)

    def _class_index(self, X: Any) -> np.ndarray:
        """Index of each row's class; a scheme that needs few machines' values asks for those."""
        if self._asks(X):
            X, ask = self._asking(X, self._expansion_coefficients(), self.intercept_)
            if ask is not None:
                return self.scheme_.decide(ask, _num_samples(X))
        return self._decoded(self._machine_values(X))

    def _asks(self, X: Any) -> bool:
        """Whether to ask for the values of few machines, and not of all."""
        scheme, machines = self.scheme_, len(self.scheme_.code)
        few = scheme.n_asked < machines and not self.break_ties
        return few and self.feature_map_ is None and _num_samples(X) * machines >= _ASKED

    def _decoded(self, values: np.ndarray) -> np.ndarray:
        """Index of each row's class, from the values of all machines."""
        if self.break_ties and len(self.classes_) > 2:
            return np.argmax(self.scheme_.scores(values), axis=1)
        return self.scheme_.decode(values)

    def _machine_values(self, X: Any) -> np.ndarray:
        """Values of the machines, (n_samples, n_machines)."""
        self._check_is_fitted()
        by_class = self.scheme_.by_class and self.feature_map_ is None
        counts = self.n_support_ if by_class else None
        return self._expansion(X, counts=counts, finish=self.scheme_.combine) + self.intercept_

    def _expansion_coefficients(self) -> np.ndarray:
        return self.scheme_.expansions(self._dense_dual_coef(), self.n_support_)

"""Kernel logistic regression: the support vector machine's smooth neighbour, with probabilities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.estimators import readings
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.kernel import KernelEstimator, fall_back_to_cpu
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.gram import Definiteness, Gram
from maxmargin.kernels import Linear
from maxmargin.multiclass import NAMED, Scheme, as_scheme, read_class_weights, read_labels
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk.penalty import cost_per_weight
from maxmargin.solvers import KernelNewton, Method, Watch
from maxmargin.solvers.logistic.likelihood import Likelihood
from maxmargin.solvers.logistic.newton import LogisticSolution
from maxmargin.solvers.logistic.problem import LogisticCertificate, LogisticProblem
from maxmargin.solvers.select import choice_of, in_words

_METHODS = {"newton-cholesky": KernelNewton(factorised=True), "newton-cg": KernelNewton()}


class KernelLogisticRegression(ClassifierMixin, KernelEstimator):
    """Kernel logistic regression: probabilities of classes, with a coefficient for every row.

    For labels ``y_i`` of -1 or +1 and weights ``s_i`` of the rows,

        minimise  1/2 |w|^2 + C sum_i s_i log(1 + exp(-y_i f(x_i)))
        f(x) = sum_i a_i k(x, x_i) + b

    and for several classes the same with the softmax of one function for each. It is the support
    vector machine with a smooth loss: values are logarithms of odds, so that probabilities need no
    further fit, and no coefficient is zero. Where predictions should be quick, :class:`SVC` has
    sparse ones.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the likelihood against the norm.
    kernel : Kernel, name or callable, default="rbf"
        A kernel object of :mod:`maxmargin.kernels`, a name, or a function of two collections of
        points. An indefinite one is refused.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Of the named kernels, as in :class:`~maxmargin.SVC`; refused beside a kernel object.
    lam : float, optional
        The lambda form in place of C: mean loss plus ``lam |w|^2``, that is
        ``C = 1 / (2 N lam)``, N the sum of the weights.
    fit_intercept : bool, default=True
        Whether there is a b, which has no penalty.
    multiclass : {"multinomial", "ovr", "ovo", "dag", "ecoc"}, Scheme or callable
        By default ``"multinomial"``, one problem of all classes; otherwise machines for two classes
        each, as a scheme of :mod:`maxmargin.multiclass` asks for them. Two classes have one.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of each class's rows.
    solver : {"auto", "newton-cholesky", "newton-cg"} or Method, default="auto"
        Newton's method, its systems by conjugate gradients. ``"newton-cholesky"`` preconditions
        them by Cholesky factors, ``8 n^2`` bytes for the Gram matrix and for each function;
        ``"newton-cg"`` by one of low rank, and needs no matrix in memory. ``"auto"`` factorises
        up to 500 rows. ``certificate_`` says which.
    tol : float, default=1e-4
        Relative duality gap of an answer that counts as converged.
    max_iter : int, default=100
        Newton steps allowed; -1 for no limit.
    cache_size : "auto" or float, default="auto"
        Memory for Gram matrix, factors or preconditioner in MB, or a quarter of what is free.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended, if it had as many rows and classes.
    device : str, default="cpu"
        ``"cuda"`` (or ``"cuda:1"``...) to have the products with the Gram matrix, and predictions,
        on a GPU; ``"auto"`` for a GPU if there is one and the work is worth it.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which the fit stops where it is.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True.
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).

    Attributes
    ----------
    dual_coef_ : array of shape (n_machines, n_samples)
        The coefficients a: one machine for two classes, one for each of several, or as many as the
        scheme has. At the optimum ``C s_i`` times what probability the row's true class lacks, with
        its sign; zero for rows of weight zero and those that a machine does not see.
    intercept_ : array of shape (n_machines,)
    certificate_ : LogisticCertificate
        Primal and dual objective, gap and status; for several machines those of the worst, with one
        of each in ``parts``.
    scheme_ : Scheme or None
        How machines for two classes decide; None for ``"multinomial"``.
    fit_status_ : int
        0 if converged, 1 otherwise (with a warning).
    n_iter_ : int
        Newton steps of the slowest machine.
    classes_, class_weight_, kernel_, device_, support_, support_vectors_
        As in :class:`~maxmargin.SVC`; the expansion has all rows that have a weight.
    solver_, solver_why_ : str
        Method that was taken, and why.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(gamma=0.5).fit(X, y)
    >>> model.certificate_.converged
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    >>> len(model.support_), len(SVC(gamma=0.5).fit(X, y).support_) < 50
    (150, True)
    """

    dual_coef_: np.ndarray
    intercept_: np.ndarray

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "lam": [POSITIVE, None],
        "fit_intercept": ["boolean"],
        "multiclass": [StrOptions({"multinomial", *NAMED}), Scheme, callable],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({"auto", *_METHODS}), Method],
        "tol": [POSITIVE],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "warm_start": ["boolean"],
        **WATCHED,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        multiclass: Any = "multinomial",
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        cache_size: float | str = "auto",
        warm_start: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    # -- fitting -------------------------------------------------------------------------------

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRegression:
        """Fit the machine to labelled data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: one of two is that row twice.

        Returns
        -------
        self : KernelLogisticRegression
        """
        self._refuse_infinite_cost()
        kernel = self._validated_kernel()
        X, y = self._validated(X, y, kernel)
        self.classes_, index = read_labels(y)
        weight = self._validated_weight(sample_weight, X)
        self.class_weight_ = read_class_weights(self.class_weight, self.classes_, index, weight)
        weight = weight * self.class_weight_[index]
        self.scheme_ = self._scheme(len(self.classes_))
        gram = self._gram(X, kernel)
        tasks = self._tasks(index, weight)
        coefficients = np.zeros((self._machines, gram.n))
        self.intercept_, found = self._begun(coefficients), []
        with self._watched(len(tasks)) as monitor:
            for k, (rows, likelihood) in enumerate(tasks):
                own = slice(k, k + likelihood.m)  # k = 0 for the softmax of several
                one = self._solved(X, gram, rows, likelihood, coefficients[own], own, monitor, k)
                coefficients[own] = 0.0
                coefficients[own, rows] = one.coefficients.T
                self.intercept_[own] = one.intercept
                found.append(one)
                monitor.finished()
            certificate = LogisticCertificate.worst([one.certificate for one in found])
            if self.verbose:
                said = f"{certificate.status}: {certificate.claim}"
                monitor.end(said, certificate.converged)
        self.n_iter_ = max(one.n_iter for one in found)
        self.solver_, self.solver_why_ = in_words(monitor.chosen, _METHODS)
        self.dual_coef_ = coefficients
        self._keep_support_vectors(X, np.flatnonzero(weight))
        self._expansion = np.ascontiguousarray(coefficients[:, self.support_])
        self.certificate_, self.fit_status_ = certificate, int(not certificate.converged)
        self._warn_unfinished(certificate)
        return self

    def _refuse_infinite_cost(self) -> None:
        if np.isinf(self.C):
            raise ValueError(
                "C=inf has no answer where a kernel can separate the classes: longer weights are "
                "always better. Use a finite C, or SVC(C=inf), the hard margin."
            )

    def _scheme(self, classes: int) -> Scheme | None:
        """How machines for two classes tell all apart; None where one problem does."""
        if classes > 2 and isinstance(self.multiclass, str) and self.multiclass == "multinomial":
            return None
        name = "ovo" if isinstance(self.multiclass, str) and classes == 2 else self.multiclass
        scheme = as_scheme(name, classes)
        if scheme.direct:
            raise ValueError(
                f"multiclass={self.multiclass!r} is a problem of margins: use SVC for it. The "
                "logistic loss of all classes at once is multiclass='multinomial'."
            )
        return scheme

    @property
    def _machines(self) -> int:
        """Functions that the machine consists of."""
        return len(self.classes_) if self.scheme_ is None else len(self.scheme_.code)

    def _tasks(self, index: np.ndarray, weight: np.ndarray) -> list[tuple[np.ndarray, Likelihood]]:
        """Rows of each problem that have a weight, and the likelihood of their classes."""
        scheme = self.scheme_
        if scheme is None:
            rows = np.flatnonzero(weight)
            return [(rows, self._likelihood(index[rows], len(self.classes_), weight[rows]))]
        tasks = []
        for signs in scheme.signs(index):
            rows = np.flatnonzero((signs != 0) & (weight > 0))
            label, own = (signs[rows] > 0).astype(np.int64), scheme.weigh(signs[rows], weight[rows])
            tasks.append((rows, self._likelihood(label, 2, own)))
        return tasks

    def _likelihood(self, label: np.ndarray, n_classes: int, weight: np.ndarray) -> Likelihood:
        cost = cost_per_weight(self.C, self.lam, float(weight.sum()))
        return Likelihood(label, n_classes, cost * weight)

    def _begun(self, coefficients: np.ndarray) -> np.ndarray:
        """Write where to begin into the coefficients; returns the intercepts to begin with."""
        known = getattr(self, "dual_coef_", None) if self.warm_start else None
        if known is None or known.shape != coefficients.shape:
            return np.zeros(len(coefficients))
        coefficients[:] = known
        return self.intercept_.copy()

    def _solved(
        self,
        X: Any,
        gram: Gram,
        rows: np.ndarray,
        likelihood: Likelihood,
        start: np.ndarray,
        own: slice,
        monitor: Monitor,
        number: int,
    ) -> LogisticSolution:
        """Solve one problem, over its own rows of the Gram matrix."""
        if len(rows) < gram.n:
            gram = gram.take(rows)
        begun = (
            (np.ascontiguousarray(start[:, rows].T), self.intercept_[own]) if start.any() else None
        )
        problem = LogisticProblem(gram, likelihood, self.fit_intercept, begun)
        if gram.diagonal.min() < 0 or gram.definiteness is Definiteness.INDEFINITE:
            raise ValueError(problem.refusal())
        choice = choice_of(self.solver, problem, _METHODS)
        monitor.chosen.append(choice)
        count = 1 if gram.program.calls_python else thread_count(self.n_jobs)
        if isinstance(self.kernel_, Linear):
            zeros = np.zeros(likelihood.m)
            monitor.readings[number] = readings.of_expansion(
                X, rows, lambda _, values: problem.intercept(values, zeros)
            )
        watch = Watch(self.tol, self.max_iter, ProblemMonitor(monitor, number), Workers(count))
        return choice.method.solve(problem, watch)

    def _warn_unfinished(self, certificate: LogisticCertificate) -> None:
        if certificate.converged:
            return
        advice = certificate.status.advice_for("risk").format(
            max_iter=self.max_iter, time_limit=self.time_limit or 0.0
        )
        if not self.dual_coef_.any():
            why = "The kernel's values are too large for steps in float64 (scale the data)"
            why = why if self.n_iter_ else "No step was completed"
            advice += f" {why}: all rows have the same probabilities."
        warn(f"{advice} The relative gap is {certificate.relative_gap:.2g}. See certificate_.")

    # -- answers -------------------------------------------------------------------------------

    def _values(self, X: Any) -> np.ndarray:
        """Values of the machines, (n_samples, n_machines)."""
        check_is_fitted(self)
        return self._expansion_at(X, self._expansion) + self.intercept_

    @takes_tensors
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the values at the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes the logarithm of the odds of ``classes_[1]``. For several, logarithms of
            probabilities up to a number that is the same for all; with a scheme, its scores.
        """
        values = self._values(X)
        if values.shape[1] == 1:
            return values[:, 0]
        return values if self.scheme_ is None else self.scheme_.scores(values)

    @takes_tensors
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X: the most probable one, or as the scheme decides.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        values = self._values(X)
        if self.scheme_ is None:
            return self.classes_[values.argmax(axis=1)]
        return self.classes_[self.scheme_.decode(values)]

    @takes_tensors
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, columns as in ``classes_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            With a scheme those of its machines, coupled (pairs) or scaled to a sum of one.
        """
        return np.exp(self.predict_log_proba(X))

    @takes_tensors
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`, of the same shape."""
        values = self._values(X)
        if values.shape[1] == 1:
            values = np.column_stack([np.zeros(len(values)), values])
        elif self.scheme_ is not None:
            return self.scheme_.log_probabilities(values)
        values = values - values.max(axis=1, keepdims=True)  # large ones have no digits to spare
        return values - np.logaddexp.reduce(values, axis=1)[:, None]

    score = takes_tensors(ClassifierMixin.score)

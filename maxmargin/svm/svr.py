"""Support vector regression with a tube of given width."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from maxmargin import duals
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.data import column, is_table
from maxmargin.estimators.kernel import fall_back_to_cpu
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.linear import LinearSVR
from maxmargin.progress import Monitor
from maxmargin.risk import cost_per_weight, refuse_two_forms
from maxmargin.solvers import Auto, solve_certified
from maxmargin.svm.answers import answers_of_all
from maxmargin.svm.approximation import APPROXIMATION, FeatureSpace, Posed
from maxmargin.svm.base import SingleMachine
from maxmargin.svm.replicates import ReplicatesOfNumbers

_COSTS = 30.0 ** np.arange(0, 10)  # of a hard tube, over the targets' spread and the kernel's size
_BELOW = 0.99  # of its bound, a multiplier that does not reach it


class KernelRegressor(RegressorMixin, SingleMachine):
    """What SVR and NuSVR share."""

    _parameter_constraints: dict = {
        **SingleMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    def _problem(self, y: np.ndarray, weight: np.ndarray) -> duals.DualProblem:
        """Return the dual problem of these targets and weights."""
        return self._part_of_problem(y, weight, weight)

    @abstractmethod
    def _part_of_problem(
        self, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> duals.DualProblem:
        """Return the problem on part of the rows, with the costs that all of them gave."""

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRegressor:
        """Fit the machine to data with real targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. Several outputs are as many machines over one Gram matrix, solved together.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's cost, in every output.

        Returns
        -------
        self : object
        """
        kernel = self._validated_kernel()
        several = {"multi_output": True} if is_table(y) else {}  # a check that takes its time
        X, y = self._validated(X, y, kernel, y_numeric=True, **several)
        y = _targets(y)
        weight = self._validated_weight(sample_weight, X)
        outputs, one = np.atleast_2d(y.T), y.ndim == 1
        if self.approximation is not None:
            found = self._fit_features(X, outputs, weight, kernel)
        else:
            found = self._fit_outputs(X, outputs, weight, self._gram(X, kernel))
        self._keep_slack(outputs, one, *found)
        return self

    def _fit_outputs(
        self, X: Any, outputs: np.ndarray, weight: np.ndarray, gram: Gram
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fit the outputs (k, n) over a Gram matrix: their values, tubes and margins."""
        solver = self._solver()
        problems = [self._posed(gram, target, weight, solver) for target in outputs]
        found = self._solved(gram, problems, solver, X)
        self._keep_expansions(X, found)
        values = np.array([e.decision + e.bias for e in found])
        tubes = np.array([e.levels.tube for e in found])
        return values, tubes, np.array([e.margin for e in found])

    def _keep_slack(
        self,
        outputs: np.ndarray,
        one: bool,
        values: np.ndarray,
        tubes: np.ndarray,
        margins: np.ndarray,
    ) -> None:
        """Set what is said of the rows and of the outputs, a number where there is one of these."""
        tube = self._keep_tubes(one, tubes, margins)
        slack = np.maximum(0.0, np.abs(values - outputs) - np.reshape(tube, (-1, 1)))
        self.slack_ = slack[0] if one else slack.T

    def _keep_tubes(self, one: bool, tubes: np.ndarray, margins: np.ndarray) -> Any:
        """Set what is said of the outputs; returns half the width of their tubes."""
        self.margin_ = float(margins[0]) if one else margins
        self.n_iter_ = int(self.n_iter_[0]) if one else self.n_iter_
        return self._tube(tubes[0] if one else tubes)

    def _replicate_fits(self, X: Any, y: Any) -> Any:
        """Return what fits clones of this machine to replicates of the data, or None."""
        return ReplicatesOfNumbers.of(self, X, y)

    _answers_of_all = staticmethod(answers_of_all)

    def _posed(
        self, gram: Gram, y: np.ndarray, weight: np.ndarray, solver: Auto
    ) -> duals.DualProblem:
        """Return the dual problem, for which others may have to be solved first."""
        return self._problem(y, weight)

    def _fit_features(
        self, X: Any, outputs: np.ndarray, weight: np.ndarray, kernel: Kernel
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fit the outputs (k, n) on features: their values, tubes and margins."""
        raise NotImplementedError  # of machines without the parameter

    @abstractmethod
    def _tube(self, found: Any) -> Any:
        """Half width of the tube, of each output where there are several: given, or found."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    score = takes_tensors(RegressorMixin.score)

    @takes_tensors
    def predict(self, X: Any) -> np.ndarray:
        """Return the values at the rows of X, shape (n_samples,) or (n_samples, n_outputs)."""
        return self._decision(X)


def _targets(y: Any) -> np.ndarray:
    if not (type(y) is np.ndarray and y.dtype == np.float64 and np.isfinite(y).all()):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y if is_table(y) else column(y)


class SVR(KernelRegressor):
    """epsilon-support vector regression.

    With targets ``t_i`` and sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i max(0, |w . phi(x_i) + b - t_i| - epsilon)

    through its dual. ``lam`` states the same problem as mean loss plus ``lam ||w||^2``.
    ``C=numpy.inf`` is the hard tube: the shortest ``w`` with no row more than ``epsilon`` off, or a
    ValueError where there is none. Its multipliers are finite, and a cost above them all has the
    same answer: it is found by raising C until no row reaches it, and ``certificate_`` is that of
    the problem at this C.

    Parameters
    ----------
    kernel : Kernel, name or callable, default="rbf"
        A kernel object of :mod:`maxmargin.kernels` or of scikit-learn, ``"precomputed"``, a name of
        ``pairwise_kernels``, or a function of two collections of points that returns the matrix of
        its values.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Parameters of the named kernels, as in scikit-learn; refused beside a kernel object.
    tol : float, default=1e-3
        Largest KKT violation of an answer that counts as converged, as in scikit-learn.
    C : float, default=1.0
        Cost of leaving the tube; ``inf`` for the hard tube, where weights of rows play no part
        unless they are zero.
    epsilon : float, default=0.1
        Half width of the tube in which errors cost nothing.
    shrinking : bool, default=True
        Let SMO set points aside that are unlikely to change; without effect on the answer, and on
        problems so large (1,000 variables) that the working-set engine solves them.
    cache_size : "auto" or float, default="auto"
        Memory for rows of the Gram matrix in MB, or a quarter of what is free.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    max_iter : int, default=-1
        Limit on the steps of the solver for each problem; -1 for none.
    time_limit : float, optional
        Seconds after which the solver stops where it is.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    device : str, default="cpu"
        ``"cuda"`` (or ``"cuda:1"``...) for a GPU, in fitting and predicting; ``"auto"`` for a GPU
        if there is one and the work is worth it. ``device_`` says where the fit ran, and why.
    warm_start : bool, default=False
        Begin where the last fit of this object has ended, if the data have as many rows.
    checkpoint : path, optional
        File that holds the state of a long fit, renewed as it goes, and that the same fit
        goes on from when it finds it. It is deleted when the fit has converged.
    checkpoint_interval : float, default=30.0
        Seconds from one writing of the checkpoint to the next.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True. (scikit-learn's callbacks are set with ``set_callbacks``.)
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).
    lam : float, optional
        The lambda form in place of C: ``C = 1 / (2 N lam)``, N the sum of the weights.
    fit_intercept : bool, default=True
        Without it b = 0 and the dual loses the equality constraint that comes with it.
    solver : {"auto", "smo", "working_set", ...} or DualMethod, default="auto"
        The method that solves the dual problems, by name or as an object of
        :mod:`maxmargin.solvers`; one that does not take a problem says why. ``"auto"`` chooses by
        size, kernel and device (:func:`maxmargin.solvers.select_solver` says which, and why).
        Textbook methods, to compare and to watch: ``"platt"``, ``"coordinate_ascent"``,
        ``"chunking"``, ``"projected_conjugate_gradients"``, ``"decomposition"``,
        ``"qp"``, ``"projected_gradient"``, ``"frank_wolfe"``.
    norm_bound : float, optional
        The form with a bound on ``||w||`` in feature space in place of C (Ivanov's), for each
        output. ``certificate_`` is of this problem, with a relative duality gap of ``tol``;
        ``C_`` and ``lam_`` are those that have the same answer.
    approximation : {"nystroem", "random_fourier"} or FeatureMap, optional
        Replace the kernel by products of features, ``k(x, z) ~ phi(x) . phi(z)``: the machine is
        then the linear one on phi, for millions of rows. ``tol`` bounds its relative duality gap,
        and ``certificate_`` is of the approximated kernel, with its error on held-out pairs. A map
        of :mod:`maxmargin.feature_maps`, such as ``Nystroem(n_components=500)``, takes the kernel
        from the machine; a name is one with 100 components and ``random_state=0``. In place of an
        expansion (``dual_coef_``, ``support_``...) there are ``feature_map_``, ``feature_coef_``.

    Attributes
    ----------
    certificate_ : DualCertificate, or KernelRiskCertificate with ``norm_bound``
        Primal and dual objective, gap, KKT violation, status; of several outputs the worst, with
        one of each in ``parts``.
    fit_status_ : int
        0 if converged, 1 otherwise (with a warning).
    kernel_ : Kernel
        The kernel with all its parameters as numbers.
    fit_time_ : float
        Seconds.
    device_ : Placement
        Where the fit ran, and why there.
    support_ : int array of shape (n_SV,)
        Rows that have a coefficient, in any output.
    support_vectors_ : of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : int array of shape (n_outputs,)
        How many of them each output has.
    dual_coef_ : of shape (n_outputs, n_SV)
        ``alpha_i - alpha*_i``, a row for each output; sparse where X is.
    intercept_ : float array of shape (n_outputs,)
    coef_ : of shape (n_outputs, n_features)
        ``w``, for the linear kernel.
    margin_ : float or array of shape (n_outputs,)
        ``1 / ||w||``.
    slack_ : array of shape (n_samples,) or (n_samples, n_outputs)
        By how much each training row lies outside the tube.
    feature_map_, feature_coef_
        With ``approximation``, the fitted map, and w: a row for each output.
    n_iter_ : int or array of shape (n_outputs,)
    C_, lam_ : arrays of shape (n_outputs,)
        With ``norm_bound`` only: cost of a row of weight one, and what it is in the lambda form.
    solver_, solver_why_ : str
        Methods that were taken, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVR
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = SVR(kernel="rbf", gamma=1.0, C=10, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    _parameter_constraints: dict = {
        **KernelRegressor._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "lam": [POSITIVE, None],
        "norm_bound": [POSITIVE, None],
        "approximation": APPROXIMATION,
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float | str = "auto",
        verbose: bool | int = False,
        max_iter: int = -1,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_interval: float = 30.0,
        callback: Any = None,
        trace: Any = False,
        lam: float | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        norm_bound: float | None = None,
        approximation: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.device = device
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.callback = callback
        self.trace = trace
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.norm_bound = norm_bound
        self.approximation = approximation

    def _part_of_problem(
        self, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> duals.DualProblem:
        if np.isinf(self.C):
            raise ValueError(
                "The hard tube (C=inf) is found by raising C, which SVR.fit does on its own: with "
                "other costs beside it use GridSearchCV, or a large C."
            )
        cost = cost_per_weight(self.C, self.lam, float(whole.sum())) * weight
        return self._with_costs(y, cost)

    def _with_costs(self, y: np.ndarray, cost: np.ndarray) -> duals.DualProblem:
        return duals.epsilon_svr(np.arange(len(y)), y, cost, self.epsilon, bias=self.fit_intercept)

    def _posed(
        self, gram: Gram, y: np.ndarray, weight: np.ndarray, solver: Auto
    ) -> duals.DualProblem:
        refuse_two_forms(self)
        if np.isinf(self.C) and self.lam is None:
            return self._hard_tube(gram, y, (weight > 0).astype(np.float64), solver)
        return self._problem(y, weight)

    def _fit_features(
        self, X: Any, outputs: np.ndarray, weight: np.ndarray, kernel: Kernel
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        space = FeatureSpace(self, X, kernel, LinearSVR(epsilon=self.epsilon))
        cost = cost_per_weight(self.C, self.lam, float(weight.sum())) * weight
        rows = np.flatnonzero(weight)
        values = space.fit([Posed(rows, target, cost) for target in outputs])
        return values.T, np.full(len(outputs), self.epsilon), space.margins()

    def _hard_tube(
        self, gram: Gram, y: np.ndarray, counted: np.ndarray, solver: Auto
    ) -> duals.DualProblem:
        """Return the problem at a C that no row reaches, begun at its answer.

        The smallest C tried moves a value by about the spread of the targets.
        """
        centre = float(np.median(y[counted > 0])) if self.fit_intercept else 0.0
        spread = float(np.abs(y - centre)[counted > 0].max()) or 1.0
        unit = float(np.abs(gram.diagonal).max()) or 1.0
        left = None if self.time_limit is None else self.time_limit - solver.monitor.seconds
        solver, beta = replace(solver, monitor=Monitor(left)), None
        for cost in spread / unit * _COSTS:
            problem = self._with_costs(y, cost * counted)
            problem = problem if beta is None else problem.started_near(beta)
            (evaluation,), _ = solve_certified(gram, [problem], solver, self.tol, self._workers())
            beta = evaluation.solution.beta
            free = bool((np.abs(beta) < _BELOW * cost).all())
            if free or solver.monitor.stopped() is not None:
                return problem.started_near(beta)
        residual = np.abs(evaluation.decision + evaluation.bias - y) - self.epsilon
        worst = int(np.argmax(residual * counted))
        longer = max(2.0 * evaluation.certificate.dual, 0.0) ** 0.5  # a bound for every such w
        raise ValueError(
            f"The hard tube (C=inf) cannot be had: a function of the kernel {self.kernel_!r} "
            f"within epsilon={self.epsilon:g} of every target would need ||w|| >= {longer:.3g}, "
            f"and at C={cost:.3g} row {worst} is still {residual[worst]:.3g} outside. Use a finite "
            "C, a larger epsilon or a richer kernel."
        )

    def _tube(self, found: Any) -> Any:
        return self.epsilon

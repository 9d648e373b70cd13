"""Gaussian process regression: kernel ridge with a likelihood, and so with variances.

    f ~ GP(0, k),   t = f(x) + noise,   C = K + diag(alpha) + noise I
    mean(x) = k(x)' C^-1 t,   variance(x) = k(x, x) + noise - k(x)' C^-1 k(x)

The likelihood of the targets, ``N(t; 0, C)``, is maximised over every number in the kernel.

Reference: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.gaussian_process import kernels as theirs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin import memory
from maxmargin.backends.dense import NotPositiveError
from maxmargin.backends.threads import ALONE, Workers, on_one_blas_thread, thread_count
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.kernel import KernelEstimator
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.gram import Gram
from maxmargin.gram.called import CalledGram
from maxmargin.gram.parametric import ParametricGram
from maxmargin.kernel_methods.posterior import Posterior, prior
from maxmargin.kernel_methods.process_options import (
    Targets,
    box_of,
    fixed_names,
    known_noise,
    rows_to_try,
    warn_at_bounds,
)
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.kernels.parameters import KernelNumbers, Parameters
from maxmargin.kernels.scikit_learn import GivenParameters, from_scikit_learn, is_known, noise_of
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Watch
from maxmargin.solvers.likelihood import (
    Ascent,
    AverageInformation,
    Evaluation,
    LikelihoodCertificate,
    MarginalLikelihood,
    Optimizer,
    Search,
    l_bfgs_b,
    maximise,
    paired_rows,
)
from maxmargin.solvers.likelihood.problem import NOISE


class GaussianProcessRegressor(RegressorMixin, KernelEstimator):
    """Gaussian process regression: kernel ridge regression that knows how sure it is.

    Targets are values of a random function with covariance k, plus noise:

        t ~ N(0, C),   C = K + diag(alpha) + noise_level I

    ``mean(x) = k(x)' C^-1 t`` is :class:`~maxmargin.KernelRidge`'s answer, and its variance is
    ``k(x, x) + noise_level - k(x)' C^-1 k(x)``. Every number in the kernel, and the noise, are
    those under which the targets are most likely; derivatives come from the kernel's programme, so
    that this holds for every kernel and whatever is made of it.

    Parameters
    ----------
    kernel : Kernel, name or callable, optional
        A kernel object of :mod:`maxmargin.kernels`, whose numbers are where the search begins, such
        as ``1.0 * RBF(gamma=0.5)``; ``RBF().stretched()`` has a length scale for each column. Or
        one of :mod:`sklearn.gaussian_process.kernels`, with its hyperparameters, bounds and noise;
        by default ``ConstantKernel() * RBF()`` of these, as in scikit-learn.
    alpha : float or array of shape (n_samples,), default=1e-10
        Variance of the noise, of all targets or of each, as far as it is known.
    noise_level : float, optional
        Where the search for the variance of more noise begins, the same for all targets:
        scikit-learn's ``WhiteKernel(noise_level)``. By default there is no more. It is a parameter
        of the machine and no kernel, since it depends on whether two rows are the same row, not on
        where they lie. Refused beside a kernel object of scikit-learn's, which has that.
    bounds : dict, optional
        By the name of a parameter (see ``parameters_``), ``(lowest, highest)`` size or ``"fixed"``.
        By default 1e-5 and 1e5, and for a ``gamma`` what these are for a length scale. Refused
        beside a kernel object of scikit-learn's, which has bounds of its own.
    optimizer : {"average_information", "fmin_l_bfgs_b"}, callable or None
        Newton's steps with the average information by default; SciPy's L-BFGS-B; or a function by
        scikit-learn's convention, ``optimizer(obj_func, initial_theta, bounds)``, which returns
        the theta that is taken, and its value. None keeps the parameters as they are.
    n_restarts_optimizer : int, default=0
        More starts, drawn uniformly from the logarithms of the bounds.
    normalize_y : bool, default=False
        Whether targets are brought to mean zero and deviation one first; predictions are brought
        back.
    copy_X_train : bool, default=True
        Whether to keep a copy of the training points, or these themselves.
    n_targets : int, optional
        Outputs of the prior: for ``predict`` and ``sample_y`` before a fit.
    random_state : int, RandomState or None
        Of the starts, and of the rows that are tried first.
    start_rows : "auto", int or None, default="auto"
        Rows, drawn at random, on which all starts are tried first; what looks best there goes on
        with all rows (:mod:`maxmargin.solvers.likelihood.starts` says how). ``"auto"``: of 1,000
        rows and more a quarter, at most 1,000, for ``"average_information"``. None: every start
        sees all rows.
    tol : float, default=1e-6
        Largest derivative of the log-likelihood by the logarithm of a parameter, over the number of
        targets, at which it counts as maximised.
    max_iter : int, default=-1
        Limit on the steps of each ascent; -1 for none.
    cache_size : "auto" or float, default="auto"
        MB for the covariance, and products or distances that are kept; or a quarter of the free.
    n_jobs : int, optional
        Threads: -1 for one per core; by default as many as BLAS may use.
    verbose : bool or int, default=False
        Show a progress bar (by tqdm if it is installed).
    time_limit : float, optional
        Seconds after which the search for parameters stops; the model at the best of them follows.
    callback : callable, optional
        Called with a :class:`~maxmargin.progress.Progress` at times; True stops the search.
    trace : bool or Trace, default=False
        Record every step in ``trace_``, in bounded memory (:class:`~maxmargin.Trace`).

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with the numbers that were found: of this package or of scikit-learn's, as it was
        given.
    noise_level_ : float or array of shape (n_samples,)
        Variance of the noise beside alpha; zero without ``noise_level`` and ``WhiteKernel``. An
        array where a product with a ``WhiteKernel`` makes it that of each training row.
    parameters_ : dict
        The free parameters by name, with their values.
    theta_ : array of shape (n_parameters,)
        Logarithms of their sizes, in the order of ``log_marginal_likelihood``.
    log_marginal_likelihood_value_ : float
        At these.
    certificate_ : LikelihoodCertificate
        Gradient, residual, parameters at their bounds, and how the search went.
    fit_status_ : int
        0 if the likelihood is maximised to ``tol``, or so far that only rounding is left (status
        ``no_improvement``), 1 otherwise (with a warning).
    n_iter_ : int
        Steps of the ascent that was best.
    X_train_, y_train_
        Training points and targets (as normalised).
    L_ : array of shape (n_samples, n_samples)
        Lower triangle with ``L L' = C``.
    alpha_ : array of shape (n_samples,) or (n_samples, n_targets)
        ``C^-1 t``: coefficients of the mean.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Works on the CPU. The deviation that ``predict`` returns is that of a new target, noise_level
    included and alpha not, as scikit-learn's is with a ``WhiteKernel``. No jitter is added to the
    covariance: where it is not positive definite an error says so.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GaussianProcessRegressor
    >>> from maxmargin.kernels import RBF
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> model = GaussianProcessRegressor(1.0 * RBF(gamma=1.0), noise_level=0.1).fit(X, y)
    >>> sorted(model.parameters_)
    ['constant', 'gamma', 'noise_level']
    >>> mean, deviation = model.predict([[3.0], [30.0]], return_std=True)
    >>> bool(deviation[0] < 0.1 < 0.5 < deviation[1])
    True
    """

    _parameter_constraints: dict = {
        **KernelEstimator._parameter_constraints,
        "kernel": [*KernelEstimator._parameter_constraints["kernel"], None],
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "noise_level": [POSITIVE, None],
        "bounds": [dict, None],
        "optimizer": [StrOptions({"average_information", "fmin_l_bfgs_b"}), callable, None],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "normalize_y": ["boolean"],
        "copy_X_train": ["boolean"],
        "n_targets": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "start_rows": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "tol": [POSITIVE],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        **WATCHED,
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        noise_level: float | None = None,
        bounds: dict[str, Any] | None = None,
        optimizer: Any = "average_information",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
        start_rows: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.noise_level = noise_level
        self.bounds = bounds
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state
        self.start_rows = start_rows
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.requires_fit = False
        return tags

    @property
    def _given(self) -> Any:
        """The ``kernel`` parameter, or its default."""
        return theirs.ConstantKernel() * theirs.RBF() if self.kernel is None else self.kernel

    def _validated_kernel(self) -> Kernel:
        """Return the kernel where the search begins."""
        given = self._given
        if not isinstance(given, theirs.Kernel):
            return as_kernel(given)
        for name in ("noise_level", "bounds"):
            if self.kernel is not None and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} belongs to kernels of maxmargin, and {given} is scikit-learn's: its "
                    "bounds are its own, and noise is + WhiteKernel(noise_level)."
                )
        return from_scikit_learn(given)

    @property
    def _kernel_of_values(self) -> Kernel:
        return self._translated

    def _noise_of(self, kernel: Any, X: Any) -> Any:
        """Variance of the noise at the rows of X, without alpha."""
        return noise_of(kernel, X) if isinstance(kernel, theirs.Kernel) else self.noise_level_

    # -- fitting -------------------------------------------------------------------------------

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Find the parameters of the greatest likelihood, and the process given the targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several outputs share all parameters.

        Returns
        -------
        self : GaussianProcessRegressor
        """
        kernel = self._validated_kernel()
        X, y = self._validated(X, y, kernel, y_numeric=True, multi_output=True)
        self._one_output = np.ndim(y) == 1
        target, self._y_train_mean, self._y_train_std = Targets.of(
            y, self.normalize_y, self.n_targets
        )
        gram = self._gram(X, kernel)
        given = self._given
        start = given if isinstance(given, theirs.Kernel) else self.kernel_
        problem = self._posed(X, start, target, self.noise_level)
        bounds = box_of(self.bounds or {}, problem.names, problem.gram.parameters.box)
        with self._watched() as monitor:
            found = self._searched(gram, problem, bounds, monitor)
            try:
                final = problem.at(found.best.theta, self._threads(problem))
            except NotPositiveError as error:
                raise problem.refused(found.best.theta, error.row) from None
            self._keep(X, problem, final)
            self._judge(gram, problem, final, found, bounds)
            if self.verbose:
                said = f"{self.certificate_.status}: {self.certificate_.claim}"
                monitor.end(said, self.certificate_.converged)
        self._warn(problem, bounds)
        return self

    def _posed(
        self, X: Any, kernel: Any, target: np.ndarray, noise: float | None
    ) -> MarginalLikelihood:
        """Return the likelihood of the targets as a function of what is free."""
        n, alpha = len(target), known_noise(self.alpha, len(target))
        room = memory.budget(self.cache_size, 16 * n**2) - 8 * n**2
        if room < 0:
            raise ValueError(
                f"The covariance of {n} rows takes {memory.megabytes(8 * n**2)}, and "
                f"cache_size={self.cache_size!r} allows less: raise it, or take fewer rows "
                "(KernelRidge needs no matrix in memory, and has no variances)."
            )
        parameters: Parameters
        fixed: set[str] = set()
        if isinstance(kernel, theirs.Kernel):
            parameters = GivenParameters(kernel)
        else:
            known = KernelNumbers(kernel).names + ([] if noise is None else [NOISE])
            fixed = fixed_names(self.bounds or {}, known)
            parameters = KernelNumbers(kernel, fixed)
        if isinstance(parameters, GivenParameters) and not is_known(kernel):
            return MarginalLikelihood(CalledGram(X, parameters), target, alpha)
        gram = ParametricGram(X, parameters, room, workers=Workers(thread_count(self.n_jobs)))
        return MarginalLikelihood(gram, target, alpha, noise, NOISE not in fixed)

    def _searched(
        self, gram: Gram, problem: MarginalLikelihood, bounds: np.ndarray, monitor: Monitor
    ) -> Search:
        """Find the parameters."""
        theta = problem.theta
        if self.optimizer is None or not len(theta):
            said = "no parameter is free" if not len(theta) else "optimizer=None"
            return Search(Ascent(theta, np.nan, 0.0, 0, 0, Status.CONVERGED), said)
        if self.n_restarts_optimizer and not np.isfinite(bounds).all():
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
                f"finite: {dict(zip(problem.names, np.exp(bounds).tolist(), strict=True))}."
            )
        random = check_random_state(self.random_state)
        drawn = random.uniform(
            bounds[:, 0], bounds[:, 1], size=(self.n_restarts_optimizer, len(bounds))
        )
        starts = np.vstack([theta, drawn])
        monitor.problems = len(starts)
        count = rows_to_try(self.start_rows, self.optimizer, gram.n)
        rows = paired_rows(gram, count, random) if count < gram.n else None
        threads = self._threads(problem)
        watch = Watch(self.tol, self.max_iter, ProblemMonitor(monitor), threads)
        method: Any = AverageInformation()
        if self.optimizer == "fmin_l_bfgs_b":
            method = l_bfgs_b(self.tol)
        elif callable(self.optimizer):
            method = Optimizer(self.optimizer)
        return maximise(problem, starts, bounds, method, watch, rows)

    def _threads(self, problem: MarginalLikelihood) -> Workers:
        """Threads for tiles and starts; a Python function is called by one."""
        return ALONE if problem.gram.calls_python else Workers(thread_count(self.n_jobs))

    def _keep(self, X: Any, problem: MarginalLikelihood, final: Evaluation) -> None:
        """Set the attributes of the process."""
        theta, parameters = final.theta, problem.gram.parameters
        self._translated = self.kernel_ = problem.kernel_at(theta)
        self.noise_level_: Any = final.noise
        if isinstance(parameters, GivenParameters):
            self.kernel_ = parameters.given_at(theta)
            self.noise_level_ = self._noise_of(self.kernel_, problem.gram.views.X)
        self.theta_ = theta
        self.parameters_ = problem.values_at(theta)
        self.log_marginal_likelihood_value_ = np.float64(-final.value)
        self.L_ = final.factor.A
        self._expansion = np.ascontiguousarray(final.coefficients.T)
        self.alpha_ = self._as_given(final.coefficients)
        self.y_train_ = self._as_given(problem.target)
        if self.copy_X_train:
            self._keep_support_vectors(X, np.arange(len(problem.target)))
            self.X_train_ = np.array(X) if self._translated.pairwise else self.support_vectors_
        else:
            self.X_train_ = self.support_vectors_ = X
            self.support_ = np.arange(len(problem.target), dtype=np.int32)

    def _as_given(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_output else values

    def _judge(
        self,
        gram: Gram,
        problem: MarginalLikelihood,
        final: Evaluation,
        found: Search,
        bounds: np.ndarray,
    ) -> None:
        """Set the certificate: the residual is that of the kernel's own values, in float64."""
        gram = Gram.of_resolved(problem.gram.views, self._translated, memory=gram.memory)
        product = gram.matmat(final.coefficients, workers=self._threads(problem))
        noise = problem.alpha + self._noise_of(self.kernel_, problem.gram.views.X)
        product += noise[:, None] * final.coefficients
        size = float(np.linalg.norm(problem.target)) or 1.0
        wide = (bounds[:, 0] < bounds[:, 1]) & (self.optimizer is not None)  # others are fixed
        held = np.isclose(final.theta[:, None], bounds, rtol=0.0, atol=1e-3).any(axis=1) & wide
        best, status = found.best, found.best.status
        if status is Status.STALLED and 0.0 <= best.left <= _IMMATERIAL:
            status = Status.NO_IMPROVEMENT
        self.certificate_ = LikelihoodCertificate(
            objective=final.value,
            gradient_norm=best.violation,
            solver=_SOLVERS.get(str(self.optimizer), "a given optimizer") + ", " + found.how,
            residual=float(np.linalg.norm(problem.target - product)) / size,
            at_bounds=tuple(np.array(problem.names, dtype=object)[held]),
            free=int(wide.sum()),
            left=best.left,
            status=status,
            tol=self.tol,
        )
        self.fit_status_ = int(not status.finished)
        self.n_iter_ = max(best.n_iter, 1)

    def _warn(self, problem: MarginalLikelihood, bounds: np.ndarray) -> None:
        """Warn where the search has not come to its end, or against a bound."""
        certificate = self.certificate_
        if not certificate.status.finished:
            advice = certificate.status.advice_for("likelihood").format(
                max_iter=self.max_iter, time_limit=self.time_limit or 0.0, tol=self.tol
            )
            warn(f"{advice} The gradient is {certificate.violation:.2g}. See certificate_.")
        warn_at_bounds(certificate.at_bounds, self.theta_, bounds, problem)

    @on_one_blas_thread
    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the logarithm of the likelihood of the training targets.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,), optional
            Logarithms of the sizes of ``parameters_``, for a kernel of scikit-learn's its theta; by
            default those that were found.
        eval_gradient : bool, default=False
            Whether to return the derivatives by theta, too; not without theta.
        clone_kernel : bool, default=True
            False to leave the kernel in ``kernel_`` with this theta, as scikit-learn does.

        Returns
        -------
        log_likelihood : float
            ``-inf``, with a gradient of zeros, where the covariance is not positive definite.
        gradient : array of shape (n_parameters,), only with ``eval_gradient``
        """
        check_is_fitted(self, "L_")
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != self.theta_.shape:
            raise ValueError(f"theta has shape {theta.shape}; parameters_ has {len(self.theta_)}.")
        target = self.y_train_.reshape(len(self.y_train_), -1)
        noise = None if self.noise_level is None else self.noise_level_
        problem = self._posed(self.X_train_, self.kernel_, target, noise)
        if not clone_kernel:
            if isinstance(self.kernel_, theirs.Kernel):
                self.kernel_.theta = theta
            else:
                self.kernel_ = problem.kernel_at(theta)
        try:
            found = problem.at(theta, self._threads(problem))
        except NotPositiveError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf
        value = np.float64(-found.value)
        return (value, -found.gradient) if eval_gradient else value

    # -- predicting ----------------------------------------------------------------------------

    score = takes_tensors(RegressorMixin.score)

    @takes_tensors
    @on_one_blas_thread
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the targets at the rows of X; before a fit, that of the prior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_train)
        return_std : bool, default=False
            Whether to return the standard deviation at each row, too.
        return_cov : bool, default=False
            Whether to return the covariance of all rows, too.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Of one target, (n_samples,).
        deviation : array of the same shape, only with ``return_std``
        covariance : array of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Only with ``return_cov``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if not hasattr(self, "L_"):
            given, noise = self._given, self.noise_level or 0.0
            if isinstance(given, theirs.Kernel):
                noise = noise_of(given, X)
            kernel, outputs = self._validated_kernel(), self.n_targets or 1
            return prior(kernel, X, noise, outputs, return_std, return_cov)
        mean = self._expansion_at(X, self._expansion) * self._y_train_std + self._y_train_mean
        if not return_std and not return_cov:
            return _squeezed(mean)
        kernel = self._translated
        X = self._validated_points(X, kernel)
        posterior = Posterior(kernel, self.X_train_, self.L_, X, self._workers())
        noise = self._noise_of(self.kernel_, X)
        if return_std:
            deviation = np.sqrt(posterior.variance() + noise)
            return _squeezed(mean), _squeezed(deviation[:, None] * self._y_train_std)
        covariance = posterior.covariance()
        covariance[np.diag_indices_from(covariance)] += noise
        return _squeezed(mean), _squeezed(covariance[..., None] * self._y_train_std**2)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw targets at the rows of X from the process; before a fit, from the prior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        n_samples : int, default=1
            How many to draw at each row.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        samples : array of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
        """
        random = check_random_state(random_state)
        mean, covariance = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return random.multivariate_normal(mean, covariance, n_samples).T
        drawn = [
            random.multivariate_normal(mean[:, k], covariance[..., k], n_samples).T
            for k in range(mean.shape[1])
        ]
        return np.stack(drawn, axis=1)


def _squeezed(values: np.ndarray) -> np.ndarray:
    """Values without the axis of the outputs where there is one output, as in scikit-learn."""
    return values[..., 0] if values.shape[-1] == 1 else values


_IMMATERIAL = 5e-5  # of log p: parameters are within a hundredth of their standard errors
_SOLVERS = {
    "average_information": "average information",
    "fmin_l_bfgs_b": "L-BFGS-B",
    "None": "none",
}

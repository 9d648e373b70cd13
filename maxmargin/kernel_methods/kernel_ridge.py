"""Kernel ridge regression: regularised least squares through its dual representation.

    minimise  J(w) = 1/2 sum_i s_i (w . phi(x_i) - t_i)^2 + lambda/2 |w|^2,   w = sum_i a_i phi(x_i)

    a = (K + lambda S^-1)^-1 t,        y(x) = k(x)' a

Reference: seed 001, "Dual representations"; Saunders, Gammerman and Vovk, ICML 1998.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.estimators import readings
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.kernel import fall_back_to_cpu
from maxmargin.estimators.parameters import LARGEST, SMALLEST
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.estimators.warn import warn
from maxmargin.gram import Definiteness
from maxmargin.kernel_methods.base import RidgeMachine
from maxmargin.kernels import Linear
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Method, Watch
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.cholesky import Cholesky
from maxmargin.solvers.ridge.conjugate_gradients import PreconditionedCG
from maxmargin.solvers.ridge.problem import NotDefiniteError, RidgeProblem, RidgeSolution
from maxmargin.solvers.select import choice_of, in_words

_METHODS: dict[str, Method] = {"cholesky": Cholesky(), "cg": PreconditionedCG()}


class KernelRidge(RidgeMachine):
    """Kernel ridge regression: a smooth function near all targets, with a coefficient per row.

    With weights ``s_i`` of the rows and the lecture's lambda, here ``alpha``,

        minimise  1/2 sum_i s_i (f(x_i) - t_i)^2 + alpha/2 |w|^2,    f(x) = sum_i a_i k(x, x_i)

    by ``a = (K + alpha S^-1)^-1 t``. Every row has a coefficient: where predictions should be
    quick, :class:`~maxmargin.SVR` has sparse ones. There is no intercept: a kernel plus a constant,
    such as ``RBF() + 1``, has one that is regularised like the rest.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Weight lambda of the penalty, for all outputs or one for each. Zero interpolates; where the
        Gram matrix is singular, ``solver="auto"`` takes the least-squares solution of smallest norm
        and warns.
    kernel : Kernel, name or callable
        By default ``"linear"``, as in scikit-learn. A kernel object of :mod:`maxmargin.kernels` or
        of scikit-learn's; ``"precomputed"`` or a name of ``pairwise_kernels``; or a function of two
        rows (one of two collections of points is ``FunctionKernel(function)``).
    gamma : float, {"scale", "auto"} or None, default=None
        Of the named kernels. None is ``1 / n_features``, as in scikit-learn's machine.
    degree : float, default=3
    coef0 : float, default=1
        Of the named kernels; refused beside a kernel object.
    kernel_params : dict, optional
        Keyword arguments of a function of two rows.
    solver : {"auto", "cholesky", "cg"} or Method, default="auto"
        ``"cholesky"`` factorises the Gram matrix: exact, ``n^3 / 3`` operations, ``8 n^2`` bytes.
        ``"cg"``, preconditioned conjugate gradients, has no matrix in memory. ``"auto"`` factorises
        what has room in ``cache_size``; on a GPU it takes ``"cg"``. ``certificate_`` says which.
    tol : float, default=1e-4
        Largest relative residual of an answer that counts as converged: the values at the training
        rows are off by no more than this part of the targets, in the root mean square.
    max_iter : int, default=-1
        Limit on the steps of ``"cg"``; -1 for none.
    cache_size : "auto" or float, default="auto"
        Memory for the Gram matrix or the preconditioner in MB, or a quarter of what is free.
    device : str, default="cpu"
        ``"cuda"`` (or ``"cuda:1"``...) for a GPU, in fitting and predicting; ``"auto"`` for a GPU
        if there is one and the work is worth it. ``device_`` says where the fit ran, and why.
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
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        The lecture's a; zero for rows of weight zero.
    certificate_ : RidgeCertificate
        Objective, gap, residual and what they bound; for several outputs that of the worst, with
        one of each in ``parts``.
    fit_status_ : int
        0 if converged, 1 otherwise (with a warning).
    kernel_ : Kernel
        The kernel with all its parameters as numbers.
    device_ : Placement
        Where the fit ran, and why there.
    X_fit_ : array or CSR
        The training rows (empty for a precomputed kernel).
    support_, support_vectors_
        Rows of the expansion, those with a weight, and their points (empty for a precomputed
        kernel).
    n_iter_ : int
        Blocks of columns, or steps of conjugate gradients, of the slowest output.
    solver_, solver_why_ : str
        Method that was taken, and why.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    After Ctrl-C, a time limit or a callback that says stop, ``"cholesky"`` leaves the exact
    solution for the rows that it has factorised, ``"cg"`` the best point so far, and both that of
    up to 256 rows where the first step is not done; the certificate is that of all rows, and says
    how far that is from the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelRidge
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 1e-2)
    True
    """

    _parameter_constraints: dict = {
        **RidgeMachine._parameter_constraints,
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "solver": [StrOptions({"auto", *_METHODS}), Method],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = -1,
        cache_size: float | str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights of the rows: one of two is that row twice.

        Returns
        -------
        self : KernelRidge
        """
        X, problem = self._posed(X, y, sample_weight)
        alphas = alpha_of_each_output(self.alpha, problem.target.shape[1])
        groups = [np.flatnonzero(alphas == alpha) for alpha in np.unique(alphas)]
        coefficients = np.empty_like(problem.target)
        parts: list[Any] = [None] * len(alphas)
        steps = []
        with self._watched(len(groups)) as monitor:
            for k, group in enumerate(groups):
                target, alpha = problem.target[:, group], float(alphas[group[0]])
                one = replace(problem, target=target, alpha=alpha)
                if isinstance(self.kernel_, Linear):
                    monitor.readings[k] = readings.of_expansion(X, self._rows, scale=one.root)
                found = self._solved(one, ProblemMonitor(monitor, k))
                monitor.finished()
                coefficients[:, group] = one.coefficients(found.b)
                judged = found.certificate(self.tol)
                for output, part in zip(group, judged.parts or (judged,), strict=True):
                    parts[output] = part
                steps.append(found.n_iter)
            certificate = RidgeCertificate.worst(parts)
            if self.verbose:
                said = f"{certificate.status}: {certificate.claim}"
                monitor.end(said, certificate.converged)
        self.n_iter_ = max(steps)
        self.solver_, self.solver_why_ = in_words(monitor.chosen, _METHODS)
        self._keep(X, coefficients, certificate)
        return self

    def _solved(self, problem: RidgeProblem, monitor: ProblemMonitor) -> RidgeSolution:
        """Solve the system of one alpha."""
        choice = choice_of(self.solver, problem, _METHODS)
        monitor.fit.chosen.append(choice)
        watch = Watch(self.tol, self.max_iter, monitor, self._threads(problem))
        try:
            return choice.method.solve(problem, watch)
        except NotDefiniteError:
            indefinite = problem.gram.definiteness is Definiteness.INDEFINITE
            if problem.alpha or indefinite or self.solver != "auto":
                raise
            warn(
                "The Gram matrix is singular and alpha=0: the least-squares solution of smallest "
                "norm is taken. With alpha > 0 the solution is unique."
            )
            return _least_squares(problem, self.tol)


def alpha_of_each_output(alpha: Any, outputs: int) -> np.ndarray:
    """Alpha of each output, which has to be zero or positive and of a size float64 can square."""
    alphas = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    if alphas.shape not in ((1,), (outputs,)):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {alphas.size} != "
            f"{outputs}. alpha must be a number or one for each of the {outputs} outputs, got an "
            f"array of shape {alphas.shape}."
        )
    if not ((alphas == 0) | ((alphas >= SMALLEST) & (alphas <= LARGEST))).all():
        raise ValueError(
            f"alpha must be zero or between {SMALLEST:g} and {LARGEST:g}, got {alpha!r}: with a "
            "negative one there is no least, and others are beyond float64."
        )
    return np.broadcast_to(alphas, outputs)


def _least_squares(problem: RidgeProblem, tol: float) -> RidgeSolution:
    """Return the least-squares solution of smallest norm."""
    values, vectors = np.linalg.eigh(problem.matrix())
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    V = vectors[:, kept]
    b = V @ ((V.T @ problem.right) / values[kept, None])
    residual = problem.residual(b)
    exact = bool((problem.violation(residual) <= tol).all())
    status = Status.CONVERGED if exact else Status.STALLED
    return RidgeSolution(problem, b, residual, 1, status, "least squares by eigenvectors")

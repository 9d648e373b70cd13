"""The one-class machine: the region where the data are."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples

from maxmargin import duals
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.kernel import fall_back_to_cpu
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.evaluation import Evaluation
from maxmargin.svm.base import SingleMachine


class OneClassSVM(OutlierMixin, SingleMachine):
    """Unsupervised outlier detection by one-class support vector classification.

    With sample weights ``s_i`` that sum to N,

        minimise  1/2 ||w||^2 - nu N rho + sum_i s_i max(0, rho - w . phi(x_i))

    over w and rho: the hyperplane furthest from the origin of the feature space that leaves at
    most a share nu of the data on the near side. An inlier has ``w . phi(x) >= rho``.

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
    nu : float, default=0.5
        Upper bound on the share of outliers, lower bound on that of support vectors; in (0, 1].
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
    solver : {"auto", "smo", "working_set", ...} or DualMethod, default="auto"
        The method that solves the dual problems, by name or as an object of
        :mod:`maxmargin.solvers`; one that does not take a problem says why. ``"auto"`` chooses by
        size, kernel and device (:func:`maxmargin.solvers.select_solver` says which, and why).
        Textbook methods, to compare and to watch: ``"platt"``, ``"coordinate_ascent"``,
        ``"chunking"``, ``"projected_conjugate_gradients"``, ``"decomposition"``,
        ``"qp"``, ``"projected_gradient"``, ``"frank_wolfe"``.

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual objective, gap, KKT violation, status.
    fit_status_ : int
        0 if converged, 1 otherwise (with a warning).
    kernel_ : Kernel
        The kernel with all its parameters as numbers.
    fit_time_ : float
        Seconds.
    device_ : Placement
        Where the fit ran, and why there.
    support_ : int array of shape (n_SV,)
    support_vectors_ : of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : int array of shape (1,)
    dual_coef_ : of shape (1, n_SV)
    intercept_ : float array of shape (1,)
        ``-rho``.
    offset_ : float array of shape (1,)
        ``rho``: ``decision_function = score_samples - offset_``.
    coef_ : of shape (1, n_features)
        ``w``, for the linear kernel.
    margin_ : float
        ``rho / ||w||``, the distance of the hyperplane from the origin of the feature space; nan
        where w = 0.
    slack_ : array of shape (n_samples,)
        ``max(0, rho - w . phi(x_i))`` of the training rows.
    n_iter_ : int
    solver_, solver_why_ : str
        Methods that were taken, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = OneClassSVM(nu=0.2).fit(X)
    >>> model.predict([[0.5, 0.5], [9.0, 9.0]])
    array([ 1, -1])
    """

    _parameter_constraints: dict = {
        **SingleMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
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
        solver: Any = "auto",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
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
        self.solver = solver

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    @fall_back_to_cpu
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Find the region where the data are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
        y : ignored
            For compatibility.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
        """
        kernel = self._validated_kernel()
        X, _ = self._validated(X, np.ones(_num_samples(X)), kernel)
        weight = self._validated_weight(sample_weight, X)
        gram = self._gram(X, kernel)
        problem = duals.one_class(np.arange(gram.n), weight, self.nu)
        (evaluation,) = self._solved(gram, [problem], self._solver(), X)
        self._keep_region(X, evaluation)
        self.slack_ = np.maximum(0.0, self.offset_[0] - evaluation.decision)
        return self

    def _keep_region(self, X: Any, evaluation: Evaluation) -> None:
        """Set the attributes of the expansion, and of the plane."""
        self._keep_expansions(X, [evaluation])
        self.n_iter_ = int(self.n_iter_[0])
        self.offset_ = -self.intercept_
        self._noise = evaluation.noise
        plane = evaluation.squared_norm > 0  # with w = 0 there is none
        self.margin_ = self.offset_[0] * evaluation.margin if plane else np.nan

    @takes_tensors
    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``w . phi(x) - rho``, not negative for inliers, shape (n_samples,).

        Free support vectors lie exactly on the boundary: a value that is no more than rounding is
        returned as zero, so that they are inliers however the sums were ordered.
        """
        values = self._decision(X)
        values[np.abs(values) <= self._noise] = 0.0
        return values

    @takes_tensors
    def score_samples(self, X: Any) -> np.ndarray:
        """Return ``w . phi(x)``, the score before the offset, shape (n_samples,)."""
        return self.decision_function(X) + self.offset_

    @takes_tensors
    def predict(self, X: Any) -> np.ndarray:
        """Return +1 for inliers and -1 for outliers, shape (n_samples,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

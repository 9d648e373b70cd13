"""Support vector regression whose tube is as wide as it needs to be."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from maxmargin import duals
from maxmargin.svm.svr import KernelRegressor


class NuSVR(KernelRegressor):
    """nu-support vector regression.

    With targets ``t_i`` and costs ``C_i = C s_i`` (``s_i`` the sample weights),

        minimise  1/2 ||w||^2 + nu sum_i C_i e + sum_i C_i max(0, |w . phi(x_i) + b - t_i| - e)

    over w, b and the half width e of the tube: at most a share nu of the points lie outside it.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1].
    C : float, default=1.0
        Cost of leaving the tube.
    kernel : Kernel, name or callable, default="rbf"
        A kernel object of :mod:`maxmargin.kernels` or of scikit-learn, ``"precomputed"``, a name of
        ``pairwise_kernels``, or a function of two collections of points that returns the matrix of
        its values.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Parameters of the named kernels, as in scikit-learn; refused beside a kernel object.
    shrinking : bool, default=True
        Let SMO set points aside that are unlikely to change; without effect on the answer, and on
        problems so large (1,000 variables) that the working-set engine solves them.
    tol : float, default=1e-3
        Largest KKT violation of an answer that counts as converged, as in scikit-learn.
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
    fit_intercept : bool, default=True
        Without it b = 0 and the dual loses the equality constraint that comes with it.
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
    epsilon_ : float or array of shape (n_outputs,)
        Half width of the tube that was found.
    n_iter_ : int or array of shape (n_outputs,)
    solver_, solver_why_ : str
        Methods that were taken, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import NuSVR
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = NuSVR(nu=0.3, gamma=1.0, C=10).fit(X, np.sin(X[:, 0]))
    >>> bool((model.slack_ > model.tol).mean() <= 0.3)
    True
    """

    _parameter_constraints: dict = {
        **KernelRegressor._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
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
        fit_intercept: bool = True,
        solver: Any = "auto",
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
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
        self.fit_intercept = fit_intercept
        self.solver = solver

    def _part_of_problem(
        self, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> duals.DualProblem:
        return duals.nu_svr(np.arange(len(y)), y, self.C * weight, self.nu, bias=self.fit_intercept)

    def _tube(self, found: Any) -> Any:
        self.epsilon_ = found
        return found

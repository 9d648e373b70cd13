"""The nu-support vector classifier: a bound on errors and support vectors instead of a cost."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from maxmargin import duals
from maxmargin.duals import DualProblem
from maxmargin.svm.classification import KernelClassifier


class NuSVC(KernelClassifier):
    """nu-support vector classification.

    For each pair of classes (see ``multiclass``), with sample weights ``s_i`` that sum to N,

        minimise  1/2 ||w||^2 - nu N rho + sum_i s_i max(0, rho - y_i (w . phi(x_i) + b))

    over w, b and the margin rho >= 0. nu is an upper bound on the share of margin errors and a
    lower bound on that of support vectors. The machine is scaled so that its margin is one. Where
    nu is so small that only w = 0 is left, a warning says so (status ``"trivial"``).

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1], and with an intercept at most ``2 min(N+, N-) / N`` for each machine; with
        ``multiclass="ovr"`` that is ``2 / n_classes`` at best.
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
    probability : bool or {"sigmoid", "isotonic", "temperature", "consistent"}, default=False
        As in :class:`SVC`.
    tol : float, default=1e-3
        Largest KKT violation of an answer that counts as converged, as in scikit-learn.
    cache_size : "auto" or float, default="auto"
        Memory for rows of the Gram matrix in MB, or a quarter of what is free.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of each class. (scikit-learn's NuSVC ignores it.)
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
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
    break_ties : bool, default=False
    multiclass : {"ovo", "dag", "ovr", "ecoc"}, or Scheme or subclass of it, default="ovo"
    random_state : int, RandomState or None, default=None
        As in :class:`SVC`.
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
    n_support_, dual_coef_, scheme_, intercept_, coef_, margin_, slack_, n_iter_, calibration_
        As in :class:`SVC`, for the machine scaled to margin one.
    classes_, class_weight_, n_features_in_, feature_names_in_, shape_fit_, probA_, probB_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import NuSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> bool(model.n_support_.sum() >= 0.2 * len(X))
    True
    """

    _parameter_constraints: dict = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = False,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        class_weight: Any = None,
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
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        multiclass: Any = "ovo",
        random_state: Any = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
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
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.multiclass = multiclass
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.solver = solver

    def _problem(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> DualProblem:
        return duals.nu_svc(rows, y, weight, self.nu, bias=self.fit_intercept)

    def _part_of_problem(
        self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> DualProblem:
        # part of the rows may be less balanced than all of them: there nu is what is feasible
        smaller = min(weight[y > 0].sum(), weight[y < 0].sum())
        nu = min(self.nu, 2 * smaller / weight.sum()) if self.fit_intercept else self.nu
        return duals.nu_svc(rows, y, weight, nu, bias=self.fit_intercept)

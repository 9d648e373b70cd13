"""The support vector classifier: soft margin in the C and the lambda form, and hard margin."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from maxmargin import duals
from maxmargin.duals import DualProblem
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.risk import cost_per_weight, refuse_two_forms
from maxmargin.svm.approximation import APPROXIMATION
from maxmargin.svm.classification import KernelClassifier


class SVC(KernelClassifier):
    """C-support vector classification.

    For each pair of classes, or each class against the rest (``multiclass="ovr"``), with labels
    ``y_i`` of -1 or +1 and sample weights ``s_i``,

        minimise  1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i (w . phi(x_i) + b))

    through its dual. ``C=numpy.inf`` is the hard margin; ``lam`` states the same problem as mean
    loss plus ``lam ||w||^2``, that is ``C = 1 / (2 N lam)``, N the sum of its weights;
    ``norm_bound`` as least loss with ``||w|| <= norm_bound``.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack. With ``numpy.inf`` no slack is allowed, and data that cannot be separated
        raise :class:`~maxmargin.InseparableError` with a witness.
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
        What makes probabilities of values, for :meth:`predict_proba`, fitted to out-of-fold values
        of five folds. ``True`` is ``"sigmoid"``: Platt's for each machine, coupled. ``"isotonic"``:
        a rising function for each, for thousands of rows. ``"temperature"``: one scale in all,
        mostly the best for several classes. ``"consistent"``: the same, and the class that
        :meth:`predict` names is always the most probable. (scikit-learn deprecates the parameter
        in favour of ``CalibratedClassifierCV``, which takes this machine, too.)
    tol : float, default=1e-3
        Largest KKT violation of an answer that counts as converged, as in scikit-learn.
    cache_size : "auto" or float, default="auto"
        Memory for rows of the Gram matrix in MB, or a quarter of what is free.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the rows of each class, in every machine.
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
        As in scikit-learn; both concern more than two classes only.
    multiclass : str, or Scheme or subclass of it, default="ovo"
        Which machines for two tell several classes apart. ``"ovo"``: one for each pair of classes,
        and their votes, as in scikit-learn. ``"dag"``: the same machines, of which a point meets
        one for each class that it is not. ``"ovr"``: one for each class against the rest, and the
        largest value. ``"ecoc"``: splits of all classes, by an error-correcting code.
        Or one machine for all classes at once: ``"crammer_singer"`` or ``"weston_watkins"``, whose
        bias is penalised, and whose ``margin_`` is that of each class's function. Schemes with
        options, and of your own: :mod:`maxmargin.multiclass`.
    random_state : int, RandomState or None, default=None
        Of the folds for ``probability``.
    lam : float, optional
        The lambda form in place of C.
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
        machine for two classes. ``certificate_`` is of this problem, with a relative duality gap
        of ``tol``; ``C_`` and ``lam_`` are those that have the same answer, and that the folds for
        ``probability`` are fitted with.
    approximation : {"nystroem", "random_fourier"} or FeatureMap, optional
        Replace the kernel by products of features, ``k(x, z) ~ phi(x) . phi(z)``: the machine is
        then the linear one on phi, for millions of rows. ``tol`` bounds its relative duality gap,
        and ``certificate_`` is of the approximated kernel, with its error on held-out pairs. A map
        of :mod:`maxmargin.feature_maps`, such as ``Nystroem(n_components=500)``, takes the kernel
        from the machine; a name is one with 100 components and ``random_state``. In place of an
        expansion (``dual_coef_``, ``support_``...) there are ``feature_map_``, ``feature_coef_``.

    Attributes
    ----------
    certificate_ : DualCertificate, or KernelRiskCertificate with ``norm_bound``
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
    n_support_ : int array of shape (n_classes,)
        Support vectors of any machine, which are grouped by class.
    dual_coef_ : of shape (n_classes - 1, n_SV)
        ``y_i alpha_i``, in scikit-learn's layout: those of a class against the others, in order;
        with ``"ovr"`` of shape (n_classes, n_SV), a row for each machine. Sparse where X is.
    scheme_ : Scheme
        ``scheme_.expansions(dual_coef_, n_support_)`` has a row for each machine in every layout.
    intercept_ : float array of shape (n_machines,)
        ``b``: the mean over the free support vectors of ``y_i - w . phi(x_i)``; without a free one
        the middle of the interval that the KKT conditions allow.
    coef_ : of shape (n_machines, n_features)
        ``w``, for the linear kernel.
    margin_ : float, or array of shape (n_machines,)
        ``1 / ||w||``: the street is twice as wide.
    slack_ : array of shape (n_samples,) or (n_machines, n_samples)
        ``max(0, 1 - y_i f(x_i))`` of the training rows; nan for rows that are not in the pair.
    feature_map_, feature_coef_
        With ``approximation``, the fitted map, and w: a row for each machine.
    n_iter_ : int array of shape (n_machines,)
    C_, lam_ : arrays of shape (n_machines,)
        With ``norm_bound`` only: cost of a row of weight one, and what it is in the lambda form.
    solver_, solver_why_ : str
        Methods that were taken, and why.
    calibration_ : Calibration or None
        What ``probability`` asked for, as fitted: ``A`` and ``B``, ``steps`` or a ``scale``.
    classes_, class_weight_, n_features_in_, feature_names_in_, shape_fit_, probA_, probB_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import RBF, Linear
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(kernel=RBF(gamma=0.5) + 0.1 * Linear(), C=10).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    >>> model.certificate_.converged
    True
    """

    _parameter_constraints: dict = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "lam": [POSITIVE, None],
        "norm_bound": [POSITIVE, None],
        "approximation": APPROXIMATION,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
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
        lam: float | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        norm_bound: float | None = None,
        approximation: Any = None,
    ) -> None:
        self.C = C
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
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.norm_bound = norm_bound
        self.approximation = approximation

    def _problem(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> DualProblem:
        return self._part_of_problem(rows, y, weight, weight)

    def _direct_cost(self, weight: np.ndarray) -> np.ndarray:
        if self.norm_bound is not None:
            raise ValueError(
                f"norm_bound is for machines for two classes; {self.scheme_!r} is one problem for "
                "all: use C or lam, another multiclass, or LinearSVC, which has a bound for it."
            )
        if self.lam is None and np.isinf(self.C):
            raise ValueError(
                f"C=inf, the hard margin, is for machines for two classes; {self.scheme_!r} needs "
                "a finite C: one so large that no slack is left says the same."
            )
        return cost_per_weight(self.C, self.lam, float(weight.sum())) * weight

    def _part_of_problem(
        self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray, whole: np.ndarray
    ) -> DualProblem:
        if self.lam is None and np.isinf(self.C) and self.norm_bound is None:
            return duals.hard_margin(rows, y, weight, bias=self.fit_intercept)
        refuse_two_forms(self)
        cost = cost_per_weight(self.C, self.lam, float(whole.sum()))
        return duals.c_svc(rows, y, cost * weight, bias=self.fit_intercept)

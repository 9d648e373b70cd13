"""The perceptron: a step towards every example that is on the wrong side.

    while some y_i (w . x_i + b) <= 0:    w <- w + eta y_i x_i,    b <- b + eta y_i

If the data are separable it ends, after at most as many steps as :meth:`Perceptron.mistake_bound`
says. If they are not it never does, and in a fixed order its weights may come back to where they
were, which proves it. A point on the boundary counts as wrong: ``y f(x) > 0`` is right.

References: seeds 000, 002, 004; Rosenblatt, Psychological Review 65, 1958; Novikoff, 1962; Gallant,
IEEE Trans. Neural Networks 1, 1990 (pocket); Freund and Schapire, Machine Learning 37, 1999.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.certificate import MistakesCertificate
from maxmargin.estimators.base import WATCHED
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.collections import takes_collections
from maxmargin.estimators.parameters import POSITIVE, available_where
from maxmargin.estimators.warn import warn
from maxmargin.linear.base import MULTICLASS, LinearClassifier
from maxmargin.linear.kernel_perceptron import (
    KernelPerceptron,
    has_coefficients,
    learns_in_parts,
)
from maxmargin.linear.perceptron_study import StudiedPerceptron
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.perceptron.passes import (
    Examples,
    Outcome,
    Passes,
    examples_of,
    order_of_rows,
)
from maxmargin.solvers.perceptron.state import Penalty, starting_weights, state_of
from maxmargin.solvers.steps import SCHEDULES, step_sizes


class Perceptron(StudiedPerceptron, KernelPerceptron, LinearClassifier):
    """The perceptron, with a proof of what it did.

    For two classes, or a task of a scheme, with labels ``y_i`` of -1 or +1: as long as a row has
    ``y_i (w . x_i + b) <= 0``,

        w <- w + eta0 y_i x_i,    b <- b + eta0 y_i

    (the delta rule, which steps at every row by how far it is from its label, is
    ``LeastSquaresClassifier(solver="sgd", step_size=eta / 2)``).

    The weights are the start plus ``sum_i alpha_i y_i x_i``, where ``alpha_i`` is how much step a
    row was used with; ``dual_coef_`` has ``y_i alpha_i``.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Shrink the weights at every row, as in scikit-learn. Then nothing is promised: no bound
        holds and no pass is the last one, so that only ``tol`` and the limits end the fit.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        Share of L1 in the elastic net.
    fit_intercept : bool, default=True
        The bias is the weight of a feature that is always one.
    max_iter : int, default=1000
        Limit on the passes over the data.
    tol : float or None, default=1e-3
        Stop when the mean loss ``max(0, -y f(x))`` of a pass was not better than the best one by
        ``tol`` in ``n_iter_no_change`` passes, as in scikit-learn. This can be before separable
        data are separated: ``converged_`` and ``certificate_`` say whether rows are left on the
        wrong side. With None the passes go on until no row is wrong.
    shuffle : bool or None, default=None
        scikit-learn's word for ``order="shuffled"`` or ``"cyclic"``; None leaves it to ``order``.
    verbose : bool or int, default=0
        Show a progress bar (by tqdm if it is installed).
    eta0 : float, {"constant", "inverse_sqrt", "inverse"} or callable, default=1.0
        The step. From a zero start a number only scales weights and bias. A name is a schedule,
        1, ``k ** -0.5`` or ``1 / k`` for the k-th update; a callable is told k, from 1 on, and
        returns the step. A penalty needs a number.
    n_jobs : int, optional
        Threads for several classes: -1 for one per core; by default as many as BLAS may use.
        Machines of a kernel share its matrix: they learn in one thread, and predict in all.
    random_state : int, RandomState or None, default=0
        Of the order, of a random start and of the rows held out.
    early_stopping : bool, default=False
        Hold some rows out, and stop by the share of them that is right in place of the loss.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` holds out of every class.
    n_iter_no_change : int, default=5
        Passes without improvement before the fit stops; see ``tol``.
    class_weight : dict, "balanced" or None, default=None
        Factors of the step for each class; ``"balanced"`` makes all classes equally heavy.
    class_weight_on : {"positive", "rows"}, default="positive"
        What they count on where there are more than two classes: as in scikit-learn the rows of a
        class in its own machine, where it is the positive one; or (``"rows"``) in every machine.
    warm_start : bool, default=False
        Start from the weights of the last fit; with a kernel, its data have to be the same.
    order : {"shuffled", "cyclic", "random", "misclassified"} or None, default=None
        Of the rows in a pass: all in an order that is drawn anew for each pass (also for None), or
        in the given one; as many draws with replacement as there are rows; or those in the given
        order that were wrong when the pass began. In all of them only a row that is wrong when it
        is looked at makes a step.
    init : {"zero", "random"}, default="zero"
        Weights to start from; random ones are standard normal, and not for a kernel. ``fit`` and
        ``steps`` take any others.
    variant : {"last", "pocket", "averaged"}, default="last"
        Which weights to keep: the last ones; or those with the fewest training errors (by weight)
        among the ones after each pass and all that had a longer run of right answers than any
        before in their pass; or the mean over all rows looked at. The latter two are for data
        that cannot be separated.
    kernel : Kernel, name, callable or None
        The kernel perceptron: the same in the kernel's feature space. By default, None, the data
        are taken as they are. It takes no penalty.
    cache_size : "auto" or float, default="auto"
        Memory for the kernel's matrix in MB, or a quarter of what is free.
    time_limit : float, optional
        Seconds after which the fit stops where it is.
    callback : callable, optional
        Called with a :class:`~maxmargin.progress.Progress` at times; True stops the fit.
    trace : bool or Trace, default=False
        Record every update in ``trace_`` (:class:`~maxmargin.Trace`): row, loss, weights, bias. The
        weights are those at work, also with ``variant="pocket"`` or ``"averaged"``: what these
        keep is known at the end, in ``coef_``.
    multiclass : {"ovr", "ovo", "dag", "ecoc"}, Scheme or subclass of it, default="ovr"
        How several classes are told apart, by name or by a scheme of :mod:`maxmargin.multiclass`.

    Attributes
    ----------
    coef_ : float array of shape (1, n_features) or (n_machines, n_features)
        ``w``, one row for each row of ``scheme_.code``; not for a kernel.
    intercept_ : float array of shape (1,) or (n_machines,)
        ``b``.
    scheme_ : Scheme
        How the machines make several classes.
    coef_init_, intercept_init_ : as these
        Where the fit began; with a kernel, shape (n_machines, n_samples): signed coefficients.
    dual_coef_ : float array of shape (1, n_samples) or (n_machines, n_samples)
        ``y_i alpha_i``, signed as in all other estimators: ``coef_ = coef_init_ + dual_coef_ @ X``.
        Not for an L1 penalty, where the weights are no combination of the rows.
    n_updates_ : int, or int array of shape (n_machines,)
        Steps made; with ``eta0=1``, without weights, the sum of ``|dual_coef_|`` (variant "last").
    n_iter_ : int
        Passes, of the machine that took the most.
    certificate_ : MistakesCertificate
        What the passes have proven, one part per machine.
    status_ : {"separated", "no_improvement", "recurring", "max_iter", "time_limit", "interrupted"}
        How the fit ended; for several classes, the worst. ``"recurring"``: the weights at the
        beginning of a pass are exactly those of an earlier one, in a fixed order with one step.
    converged_ : bool
        Whether the last weights have every training row on its right side.
    cycle_length_ : int
        Passes after which the weights recur; 0 if they were not seen to.
    kernel_, support_, support_vectors_, device_
        For a kernel: the kernel with its parameters as numbers, the rows used, and where it ran.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> X, y = [[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1]
    >>> model = Perceptron(order="cyclic").fit(X, y)
    >>> model.status_, model.n_updates_, model.dual_coef_
    (<Status.SEPARATED: 'separated'>, 2, array([[-1.,  0.,  1.,  0.]]))
    >>> model.coef_, model.mistake_bound(X, y, [1.0, -1.0])
    (array([[ 2., -2.]]), 5.0)
    >>> for step in Perceptron(order="cyclic").steps([[0.0], [2.0]], [0, 1]):
    ...     print(step.number, step.row, step.coef, step.intercept, step.mistakes)
    0 None [0.] 0.0 2
    1 0 [0.] -1.0 1
    2 1 [2.] 0.0 1
    3 0 [2.] -1.0 0
    """

    _parameter_constraints: dict = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "shuffle": ["boolean", None],
        "eta0": [POSITIVE, StrOptions(set(SCHEDULES)), callable],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "class_weight_on": [StrOptions({"positive", "rows"})],
        "warm_start": ["boolean"],
        "order": [StrOptions({"shuffled", "cyclic", "random", "misclassified"}), None],
        "init": [StrOptions({"zero", "random"})],
        "variant": [StrOptions({"last", "pocket", "averaged"})],
        "kernel": [*KernelPerceptron._parameter_constraints["kernel"], None],
        "cache_size": [StrOptions({"auto"}), POSITIVE],
        **WATCHED,
        "multiclass": MULTICLASS,
    }

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool | None = None,
        verbose: bool | int = 0,
        eta0: Any = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        order: str | None = None,
        init: str = "zero",
        variant: str = "last",
        kernel: Any = None,
        cache_size: float | str = "auto",
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
        class_weight_on: str = "positive",
        multiclass: Any = "ovr",
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.order = order
        self.init = init
        self.variant = variant
        self.kernel = kernel
        self.cache_size = cache_size
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace
        self.class_weight_on = class_weight_on
        self.multiclass = multiclass

    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Perceptron:
        """Fit the perceptron to labelled data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            For a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        coef_init : array-like of shape (1, n_features) or (n_machines, n_features), optional
        intercept_init : array-like of shape (1,) or (n_machines,), optional
            Weights and bias to start from. With a kernel the weights are given as signed
            coefficients of the training rows, shape (1, n_samples) or (n_machines, n_samples).
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's step. A row of weight zero takes no part.

        Returns
        -------
        self : object
        """
        self._refuse_contradictions()
        kernel = None if self.kernel is None else self._validated_kernel()
        X, y = self._validated(X, y, kernel)
        index = self._classes_of(y)
        given = self._weights_and_factors(sample_weight, X, index)
        weights = self._weights_of_machines(index, *given)
        self._fit_rows(X, index, weights, coef_init, intercept_init)
        return self

    def _fit_rows(
        self,
        X: Any,
        index: np.ndarray,
        weights: list[np.ndarray],
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> None:
        """Fit to checked rows; warn if passes ended before ``tol`` or separation was reached."""
        self._learn(X, index, weights, self._start(X, coef_init, intercept_init), self.max_iter)
        if not self.status_.finished:
            linear, other = "maxmargin.is_separable(X, y)", "maxmargin.SVC(C=numpy.inf)"
            said = {
                **self.get_params(deep=False),
                "judge": linear if self.kernel is None else f"{other} with this kernel",
                "time_limit": self.time_limit or 0.0,
                "cycle_length": self.cycle_length_,
                "mistakes": self.certificate_.mistakes,
                "rows": self.certificate_.rows,
            }
            warn(self.status_.advice_for("perceptron").format(**said))

    @available_where(learns_in_parts)
    @takes_collections
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Make one pass over some rows, from the weights that are there.

        ``dual_coef_`` and ``n_updates_`` then speak of this pass. The variants, early stopping,
        kernels and ``class_weight="balanced"`` need the whole data at once: with them there is no
        ``partial_fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes there will be; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        self._refuse_contradictions()
        first = not hasattr(self, "classes_")
        X, y = self._validated(X, y, reset=first)
        index = self._classes_of_stream(y, classes)
        weights = self._weights_of_machines(index, *self._weights_of_stream(sample_weight, X))
        start = self._start(X) if first else (self._dense_coef(), self.intercept_)
        self._learn(X, index, weights, start, passes=1)
        return self

    def _penalty(self) -> Penalty:
        if self.penalty is not None and self._constant is None:
            raise ValueError(
                f"A penalty shrinks the weights by one step at every row: make eta0 a number, got "
                f"{self.eta0!r}, or leave penalty=None."
            )
        return Penalty.named(self.penalty, self.alpha, self.l1_ratio, self._constant or 1.0)

    @property
    def _constant(self) -> float | None:
        """Step of all updates; None where it depends on their number."""
        if isinstance(self.eta0, str) or callable(self.eta0):
            return 1.0 if self.eta0 == "constant" else None
        return float(self.eta0)

    def _refuse_contradictions(self) -> None:
        """Refuse parameters that cannot hold together."""
        order_of_rows(self.order, self.shuffle)
        self._penalty()
        if self.kernel is not None:
            self._refuse_weights()
        elif self.cache_size != "auto":
            raise ValueError("cache_size is for a kernel's matrix, and kernel is None.")

    def _start(self, X: Any, coef: Any = None, intercept: Any = None) -> tuple[Any, np.ndarray]:
        """Given weights and biases, those of the last fit, random ones, or zero; as copies."""
        count = len(self.scheme_.code)
        shape = count, (X.shape[1] if self.kernel is None else _num_samples(X))
        again = self.warm_start and hasattr(self, "intercept_") and coef is intercept is None
        if again and (self.kernel is not None or hasattr(self, "coef_")):
            coef = self._combination() if self.kernel is not None else self._dense_coef()
            intercept = self.intercept_
        elif self.init == "random":
            random = check_random_state(self.random_state)
            coef = random.standard_normal(shape) if coef is None else coef
            if intercept is None and self.fit_intercept:
                intercept = random.standard_normal(count)
        return starting_weights(shape, coef, intercept, self.fit_intercept)

    def _posed(
        self, X: Any, index: np.ndarray, signs: list, weights: list[np.ndarray], start: tuple
    ) -> tuple[Passes, list[Examples], list[int]]:
        """Return the method, and what each machine has to learn, with a seed for each."""
        order, penalised = order_of_rows(self.order, self.shuffle), self.penalty is not None
        method = Passes(order, self.tol, self.n_iter_no_change, self.variant, penalised)
        steps = [(self._constant or 1.0) * weight for weight in weights]
        sizes = partial(step_sizes, self.eta0, 1.0) if self._constant is None else None
        if self.kernel is not None:
            begins = self._kernel_begins(X, signs, steps, start, sizes)
        else:
            bias, penalty, state = self.fit_intercept, self._penalty(), state_of(X)
            begins = [
                partial(state, X, y, step, bias, coef, intercept, penalty, sizes)
                for y, step, coef, intercept in zip(signs, steps, *start, strict=True)
            ]
        held_out = self.validation_fraction if self.early_stopping else 0.0
        return method, *examples_of(begins, weights, index, held_out, self.random_state)

    def _learn(
        self, X: Any, index: np.ndarray, weights: list[np.ndarray], start: tuple, passes: int
    ) -> None:
        """Run one machine for each row of labels, and keep what they found."""
        self.coef_init_, self.intercept_init_ = start
        used = np.unique(np.concatenate([np.unique(weight[weight > 0]) for weight in weights]))
        constant = self._constant if self.penalty is None and len(used) == 1 else None
        self._step = None if constant is None else constant * float(used[0])
        with self._watched(len(weights)) as monitor:
            signs = self._signs(index)
            method, examples, seeds = self._posed(X, index, signs, weights, start)
            starts = enumerate(zip(*start, strict=True))
            monitor.readings = {k: self._reading(X, coef, bias) for k, (coef, bias) in starts}

            def learn(k: int) -> Outcome:
                tol, part = 1.0 / max(len(examples[k].rows), 1), ProblemMonitor(monitor, k)
                outcome = method.solve(examples[k], Watch(tol, passes, part, seed=seeds[k]))
                monitor.finished()
                return outcome

            threads = 1 if self.kernel is not None else thread_count(self.n_jobs)  # one matrix
            outcomes = Workers(threads).map(learn, range(len(weights)))
            self._keep(outcomes, [len(each.rows) for each in examples], signs)
            found = [outcome.weights for outcome in outcomes]
            if self.kernel is None:
                self.coef_ = np.array([weights.coef for weights in found])
            else:
                self._keep_expansion(X, signs, found, start[0])
            over = self.status_ is not Status.MAX_ITER
            monitor.end(f"{self.status_}: {np.sum(self.n_updates_)} updates", over)

    def _keep(self, outcomes: list[Outcome], rows: list[int], signs: list[np.ndarray]) -> None:
        """Set the attributes that a fit has with and without a kernel."""
        self.intercept_ = np.array([outcome.weights.intercept for outcome in outcomes])
        if self.penalty in ("l1", "elasticnet"):
            self.__dict__.pop("dual_coef_", None)
        else:
            alpha = np.stack([outcome.weights.dual for outcome in outcomes])
            self.dual_coef_ = np.where(alpha > 0, alpha * signs, 0.0)  # no -0
        updates = np.array([outcome.n_updates for outcome in outcomes])
        self.n_updates_ = int(updates[0]) if len(updates) == 1 else updates
        self.cycle_length_ = max(outcome.cycle_length for outcome in outcomes)
        self.n_iter_ = max(outcome.n_iter for outcome in outcomes)
        each = [outcome.certificate(count) for outcome, count in zip(outcomes, rows, strict=True)]
        self.certificate_ = MistakesCertificate.worst(each)
        self.status_ = self.certificate_.status
        self.converged_ = self.certificate_.converged

    def _values(self, X: Any) -> np.ndarray:
        return super()._values(X) if self.kernel is None else self._kernel_values(X)

    sparsify = available_where(has_coefficients)(LinearClassifier.sparsify)
    densify = available_where(has_coefficients)(LinearClassifier.densify)

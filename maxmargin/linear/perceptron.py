"""The perceptron: a step towards every example that is on the wrong side.

    while some y_i (w . x_i + b) <= 0:    w <- w + eta y_i x_i,    b <- b + eta y_i

If the data are separable it ends, after at most as many steps as :meth:`Perceptron.mistake_bound`
says. If they are not it never does, and in a fixed order its weights may come back to where they
were, which proves it. A point on the boundary counts as wrong: ``y f(x) > 0`` is right.

References: seeds 000, 002, 004; Rosenblatt, Psychological Review 65, 1958; Novikoff, Symposium on
the Mathematical Theory of Automata, 1962; Gallant, IEEE Trans. Neural Networks 1, 1990 (pocket);
Freund and Schapire, Machine Learning 37, 1999 (averaging, kernels); Tsuruoka et al., ACL 2009 (L1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numba.extending import overload
from sklearn.base import _fit_context, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.backends.threads import Workers, thread_count
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.linear.base import LinearClassifier
from maxmargin.progress import Monitor, Progress, ProgressBar

_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_ENTRIES = 1 << 25  # of the data that one compiled call looks at: some 0.05 s

# The numbers that change as a perceptron walks over the data, in one array.
BIAS, SCALE, VISITS, UPDATES, LOSS, RUN, RECORD, BIAS_SUM, SHRUNK = range(9)


class Ending(StrEnum):
    """How the passes of a perceptron ended, the best first."""

    SEPARATED = "separated"
    NO_IMPROVEMENT = "no_improvement"
    RECURRING = "recurring"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"

    @property
    def severity(self) -> int:
        """Order of the endings."""
        return list(Ending).index(self)


_ADVICE = {
    Ending.RECURRING: (
        "The data are not separable: the weights are exactly those of {cycle_length} pass(es) "
        "before, so that the perceptron never ends. Take variant='pocket' or 'averaged', a kernel, "
        "or a machine that allows slack, such as SVC."
    ),
    Ending.MAX_ITER: (
        "Maximum number of iteration reached before convergence (max_iter={max_iter}). "
        "{judge} tells whether it can converge at all: if so, raise max_iter, or scale the data; "
        "if not, take variant='pocket' or 'averaged'."
    ),
    Ending.TIME_LIMIT: "Stopped early (time_limit={time_limit:g} s): raise it, or scale the data.",
    Ending.INTERRUPTED: (
        "Stopped early, by Ctrl-C or by a callback. The model is what was found until then; fit "
        "again with warm_start=True to go on from there."
    ),
}


class Step(NamedTuple):
    """A perceptron after an update: its number, the row used, the weights and the bias."""

    number: int
    row: int | None
    coef: np.ndarray
    intercept: float


class Weights(NamedTuple):
    """A perceptron's weights, its bias and how much step each row was used with."""

    coef: np.ndarray | None
    intercept: float
    dual: np.ndarray


@dataclass(frozen=True)
class PassProgress(Progress):
    """Where a perceptron is: ``violation`` is the share of mistakes in the last part of a pass."""

    passes: int = 0

    def __str__(self) -> str:
        which = f"{self.solved} of {self.problems} done, " if self.problems > 1 else ""
        return f"{which}pass {self.passes}, {self.steps} updates, {self.violation:.2%} mistakes"


def _learns_in_parts(model: Perceptron) -> bool:
    wants = {
        "variant": model.variant != "last",
        "early_stopping": model.early_stopping,
        "kernel": model.kernel is not None,
        "class_weight": isinstance(model.class_weight, str),
    }
    named = [f"{name}={getattr(model, name)!r}" for name, wanted in wants.items() if wanted]
    if named:
        raise AttributeError(
            f"partial_fit sees a part of the data only and cannot do {', '.join(named)}: use fit, "
            "or leave the parameter at its default."
        )
    return True


class Perceptron(LinearClassifier):
    """The perceptron, with a proof of what it did.

    For two classes, or for each class against the rest, with labels ``y_i`` of -1 or +1: as long as
    a row has ``y_i (w . x_i + b) <= 0``,

        w <- w + eta0 y_i x_i,    b <- b + eta0 y_i.

    The weights are the start plus ``sum_i alpha_i y_i x_i``; ``alpha``, how much step each row was
    used with, is ``dual_coef_``.

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
        ``tol`` in ``n_iter_no_change`` passes, as in scikit-learn, without a warning. This can be
        before separable data are separated (see ``status_``): with None the passes go on until no
        row is wrong.
    shuffle : bool or None, default=None
        scikit-learn's word for the order: True is ``order="shuffled"``, False is
        ``order="cyclic"``. None leaves it to ``order``; two that contradict are refused.
    verbose : bool or int, default=0
        Show a progress bar (by tqdm if it is installed).
    eta0 : float, default=1.0
        The step. From a zero start it only scales weights and bias.
    n_jobs : int, optional
        Threads for several classes: -1 for one per core; by default as many as BLAS may use. The
        machines of a kernel share its matrix and run in one.
    random_state : int, RandomState or None, default=0
        Of the order, of a random start and of the rows held out.
    early_stopping : bool, default=False
        Hold some rows out, and stop by the share of them that is right in place of the loss.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` holds out of every class.
    n_iter_no_change : int, default=5
        Passes without improvement before the fit stops; see ``tol``.
    class_weight : dict, "balanced" or None, default=None
        Factors of the step for each class; those of the rows' own classes where there are several
        machines.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    order : {"shuffled", "cyclic", "random", "misclassified"} or None, default=None
        Of the rows in a pass: all in an order that is drawn anew for each pass (also for None), or
        in the given one; as many draws with replacement as there are rows; or those in the given
        order that were wrong when the pass began. In all of them only a row that is wrong when it
        is looked at makes a step.
    init : {"zero", "random"}, default="zero"
        Weights to start from; random ones are standard normal.
    variant : {"last", "pocket", "averaged"}, default="last"
        Which weights to keep: the last ones; or those with the fewest training errors (by weight)
        among the ones after each pass and all that had a longer run of right answers than any
        before in their pass; or the mean over all rows looked at. The latter two are for data
        that cannot be separated.
    kernel : Kernel, {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or None
        The kernel perceptron: the same in the kernel's feature space. By default, None, the data
        are taken as they are. It starts from zero and takes no penalty.
    cache_size : "auto" or float, default="auto"
        Memory for the kernel's matrix in MB, or a quarter of what is free.
    time_limit : float, optional
        Seconds after which the fit stops where it is.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the fit by
        returning True.

    Attributes
    ----------
    coef_ : float array of shape (1, n_features) or (n_classes, n_features)
        ``w``; not for a kernel.
    intercept_ : float array of shape (1,) or (n_classes,)
        ``b``.
    coef_init_, intercept_init_ : as these
        Where the fit began.
    dual_coef_ : float array of shape (1, n_samples) or (n_classes, n_samples)
        ``alpha``: ``coef_ = coef_init_ + (dual_coef_ * y) @ X``. Not for an L1 penalty, where the
        weights are no combination of the rows.
    n_updates_ : int, or int array of shape (n_classes,)
        Steps made; with ``eta0=1``, without weights, the sum of ``dual_coef_`` (variant "last").
    n_iter_ : int
        Passes, of the machine that took the most.
    status_ : {"separated", "no_improvement", "recurring", "max_iter", "time_limit", "interrupted"}
        How the fit ended; for several classes, the worst. ``"recurring"``: the weights at the
        beginning of a pass are exactly those of an earlier one, in a fixed order.
    converged_ : bool
        Whether the last weights have every training row on its right side.
    cycle_length_ : int
        Passes after which the weights recur; 0 if they were not seen to.
    kernel_, support_, support_vectors_
        For a kernel: the kernel with its parameters as numbers, and the rows used.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.linear.perceptron import Perceptron
    >>> X, y = np.array([[0.0, 2.0], [1.0, 3.0], [2.0, 0.0], [3.0, 1.0]]), [0, 0, 1, 1]
    >>> model = Perceptron(order="cyclic").fit(X, y)
    >>> model.status_, model.n_updates_, model.dual_coef_
    (<Ending.SEPARATED: 'separated'>, 2, array([[1., 0., 1., 0.]]))
    >>> model.coef_
    array([[ 2., -2.]])
    >>> model.mistake_bound(X, y, [1.0, -1.0])
    5.5
    """

    _parameter_constraints: dict = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "shuffle": ["boolean", None],
        "verbose": ["verbose"],
        "eta0": [_POSITIVE],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "order": [StrOptions({"shuffled", "cyclic", "random", "misclassified"}), None],
        "init": [StrOptions({"zero", "random"})],
        "variant": [StrOptions({"last", "pocket", "averaged"})],
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}),
            Kernel,
            callable,
            None,
        ],
        "cache_size": [StrOptions({"auto"}), _POSITIVE],
        "time_limit": [_POSITIVE, None],
        "callback": [callable, None],
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
        eta0: float = 1.0,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags

    # -- fitting -------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
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
        coef_init : array-like of shape (1, n_features) or (n_classes, n_features), optional
        intercept_init : array-like of shape (1,) or (n_classes,), optional
            Weights and bias to start from.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative factors of each row's step. A row of weight zero takes no part.

        Returns
        -------
        self : object
        """
        self._refuse_contradictions()
        X, y = self._checked(X, y)
        index = self._classes_of(y)
        weight = self._weights_with_classes(sample_weight, self.class_weight, X, index)
        start = self._start(X, coef_init, intercept_init)
        self._learn(X, self._signs(index), weight, start, index)
        if self.status_ in _ADVICE:
            self._warn(self._advice())
        return self

    @available_if(_learns_in_parts)
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
        index = self._class_indices(y, classes, first)
        weight = self._validated_weight(sample_weight, X)
        weight = weight * self._class_factors()[index]
        start = self._start(X, None, None) if first else (self.coef_, self.intercept_)
        self._learn(X, self._signs(index), weight, start, index, passes=1)
        return self

    def _refuse_contradictions(self) -> None:
        """Refuse parameters that cannot hold together."""
        by_shuffle = {True: "shuffled", False: "cyclic", None: self.order}[self.shuffle]
        if self.order not in (None, by_shuffle):
            raise ValueError(
                f"order={self.order!r} and shuffle={self.shuffle} contradict each other: shuffle "
                "is scikit-learn's word for order='shuffled' or 'cyclic'; give one of the two."
            )
        if self.penalty is not None and self.variant == "averaged":
            raise ValueError(
                f"penalty={self.penalty!r} cannot be had with variant='averaged': the mean is only "
                "kept for steps, not for shrinking. Take variant='last' or 'pocket'."
            )
        if self.penalty in ("l2", "elasticnet") and self._decay() <= 0.0:
            raise ValueError(
                f"eta0={self.eta0} times alpha={self.alpha} would shrink the weights to nothing at "
                "every row: make one of them smaller."
            )
        if self.kernel is None and self.cache_size != "auto":
            raise ValueError("cache_size is for a kernel's matrix, and kernel is None.")
        if self.kernel is not None and (self.penalty, self.init) != (None, "zero"):
            raise ValueError(
                "The kernel perceptron starts from zero and has no penalty: its weights are only "
                f"known as a combination of rows; got penalty={self.penalty!r}, init={self.init!r}."
            )

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Check X and y; a kernel may want a square matrix, or objects of any type."""
        if self.kernel is None:
            return self._validated(X, y)
        from maxmargin.linear.kernel_perceptron import validated

        return validated(self, X, y, kernel=as_kernel(self.kernel))

    def _class_indices(self, y: Any, classes: Any, first: bool) -> np.ndarray:
        """Return the class of each row, where ``classes_`` are those of the first call."""
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first:
            self._classes_of(classes)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                f"{self.classes_!r}"
            )
        index = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = np.unique(np.asarray(y)[self.classes_[index] != y])
        if len(unknown):
            raise ValueError(f"y has labels that are not among classes: {unknown.tolist()}.")
        return index

    def _class_factors(self) -> np.ndarray:
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (factors >= 0).all():
            raise ValueError(f"class_weight must not be negative, got {self.class_weight!r}.")
        return factors

    def _start(self, X: Any, coef: Any, intercept: Any) -> tuple[Any, np.ndarray]:
        """Weights and biases to start from, as copies."""
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.kernel is not None:
            if coef is not None or intercept is not None or self.warm_start:
                raise ValueError(
                    "The kernel perceptron starts from zero: it takes neither coef_init, "
                    "intercept_init nor warm_start."
                )
            return None, np.zeros(machines)
        shape = (machines, X.shape[1])
        if self.warm_start and hasattr(self, "coef_") and coef is None and intercept is None:
            coef, intercept = self.coef_, self.intercept_
        elif self.init == "random":
            random = check_random_state(self.random_state)
            coef = random.standard_normal(shape) if coef is None else coef
            if intercept is None and self.fit_intercept:
                intercept = random.standard_normal(machines)
        coef = np.zeros(shape) if coef is None else np.array(coef, dtype=np.float64)
        bias = np.zeros(machines) if intercept is None else np.array(intercept, dtype=np.float64)
        if coef.size != machines * X.shape[1] or bias.size != machines:
            raise ValueError(
                f"The weights to start from have shapes {coef.shape} and {bias.shape}, but these "
                f"data ask for {shape} and {(machines,)}: give such, or set warm_start=False."
            )
        if not self.fit_intercept and bias.any():
            raise ValueError("intercept_init must be zero (or absent) with fit_intercept=False.")
        return coef.reshape(shape), bias.reshape(machines)

    def _learn(
        self,
        X: Any,
        signs: list[np.ndarray],
        weight: np.ndarray,
        start: tuple[Any, np.ndarray],
        index: np.ndarray,
        passes: int | None = None,
    ) -> None:
        """Run one machine for each row of labels, and keep what they found."""
        self.coef_init_, self.intercept_init_ = start
        listeners: list = [] if self.callback is None else [self.callback]
        bar = ProgressBar() if self.verbose else None
        monitor = Monitor(self.time_limit, listeners + [bar] * bool(bar), problems=len(signs))
        step = self.eta0 * weight
        self._step = step[0] if (step == step[0]).all() and self.penalty is None else None
        courses = self._courses(weight, index, len(signs), passes or self.max_iter)
        walks = self._walks(X, signs, step, start)

        def run(k: int) -> Outcome:
            outcome = courses[k].run(walks[k], monitor, k)
            monitor.finished()
            return outcome

        threads = 1 if self.kernel is not None else thread_count(self.n_jobs)
        with monitor.catching_interrupts():
            outcomes = Workers(threads).map(run, range(len(signs)))
        self._keep(X, signs, outcomes)
        if bar is not None:
            bar.close(f"{self.status_}: {np.sum(self.n_updates_)} updates")

    def _courses(
        self, weight: np.ndarray, index: np.ndarray, machines: int, passes: int
    ) -> list[Course]:
        random = check_random_state(self.random_state)
        rows, held_out = self._held_out(np.flatnonzero(weight > 0), index, random)
        seeds = random.randint(np.iinfo(np.int32).max, size=machines)
        return [Course(self, rows, held_out, weight, int(seed), passes) for seed in seeds]

    def _walks(
        self, X: Any, signs: list[np.ndarray], step: np.ndarray, start: tuple[Any, np.ndarray]
    ) -> list[Walk]:
        coef, intercept = start
        keeps = {"averaged": self.variant == "averaged", "pocket": self.variant == "pocket"}
        if self.kernel is not None:
            from maxmargin.linear.kernel_perceptron import KernelWalk, gram_of

            gram = gram_of(self, X, as_kernel(self.kernel), self.cache_size)
            self.kernel_ = gram.kernel
            return [KernelWalk(gram, y, step, self.fit_intercept, **keeps) for y in signs]
        shrink = (self._decay(), self._l1_share() * self.eta0 * self.alpha)
        return [
            LinearWalk(X, y, step, self.fit_intercept, coef[k], intercept[k], shrink, **keeps)
            for k, y in enumerate(signs)
        ]

    def _l1_share(self) -> float:
        shares = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        return shares[self.penalty]

    def _decay(self) -> float:
        """Return the factor of the weights at every row."""
        if self.penalty is None:
            return 1.0
        return 1.0 - (1.0 - self._l1_share()) * self.eta0 * self.alpha

    def _penalty_of(self, coef: np.ndarray) -> float:
        """``alpha ((1 - r) ||w||^2 / 2 + r |w|_1)``, r the share of L1."""
        if self.penalty is None:
            return 0.0
        share = self._l1_share()
        return self.alpha * ((1 - share) * 0.5 * coef @ coef + share * np.abs(coef).sum())

    def _held_out(
        self, rows: np.ndarray, index: np.ndarray, random: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows to learn from, and rows to stop by."""
        if not self.early_stopping:
            return rows, rows[:0]
        learnt, held_out = train_test_split(
            rows,
            test_size=self.validation_fraction,
            stratify=index[rows],
            random_state=random.randint(np.iinfo(np.int32).max),
        )
        return np.sort(learnt), np.sort(held_out)

    def _keep(self, X: Any, signs: list[np.ndarray], outcomes: list[Outcome]) -> None:
        """Set the attributes of a fit."""
        found = [outcome.weights for outcome in outcomes]
        self.intercept_ = np.array([weights.intercept for weights in found])
        if self.penalty not in ("l1", "elasticnet"):
            self.dual_coef_ = np.stack([weights.dual for weights in found])
        else:
            self.__dict__.pop("dual_coef_", None)
        if self.kernel is None:
            self.coef_ = np.stack([weights.coef for weights in found if weights.coef is not None])
        else:
            from maxmargin.linear.kernel_perceptron import keep_support

            keep_support(self, X, self.dual_coef_ * signs)
        numbers = np.array([(o.n_updates, o.cycle_length) for o in outcomes])
        self.n_updates_ = int(numbers[0, 0]) if len(outcomes) == 1 else numbers[:, 0]
        self.cycle_length_ = int(numbers[:, 1].max())
        self.n_iter_ = max(outcome.n_iter for outcome in outcomes)
        self.status_ = max((outcome.ending for outcome in outcomes), key=lambda e: e.severity)
        self.converged_ = self.status_ is Ending.SEPARATED

    def _advice(self) -> str:
        judge = "maxmargin.linear.separability.is_separable(X, y)"
        if self.kernel is not None:
            judge = "maxmargin.SVC(C=numpy.inf) with this kernel"
        return _ADVICE[self.status_].format(
            judge=judge,
            max_iter=self.max_iter,
            time_limit=self.time_limit or 0.0,
            cycle_length=self.cycle_length_,
        )

    def _values(self, X: Any) -> np.ndarray:
        if self.kernel is None:
            return super()._values(X)
        check_is_fitted(self)
        from maxmargin.linear.kernel_perceptron import values_at

        return values_at(self, X)

    # -- what is known of it -------------------------------------------------------------------

    def mistake_bound(self, X: Any, y: Any, coef: Any, intercept: Any = 0.0) -> Any:
        """Return the largest number of updates that this fit can have needed.

        From any separator w, b of the same data, with ``beta^2 = max_i ||x_i||^2 + 1`` and
        ``gamma = min_i y_i (w . x_i + b)``: for a zero start

            n_updates_ <= beta^2 (||w||^2 + b^2) / gamma^2

        for every step size and order; and for another start ``w_1, b_1`` with step eta

            n_updates_ <= ||(w_1, b_1) / eta - (beta^2 / gamma) (w, b)||^2 / beta^2.

        Without an intercept the 1 and b are absent. With a kernel ``||x||^2`` is ``k(x, x)``.
        The bound needs a constant step: it is refused for weights that differ and for penalties.

        Parameters
        ----------
        X, y
            The training data.
        coef : array-like of shape (n_features,) or (n_classes, n_features)
            The separator; of each class from the rest where there are several. For a kernel its
            signed coefficients over the training rows, shape (n_samples,) or
            (n_classes, n_samples).
        intercept : float or array-like of shape (n_classes,), default=0.0

        Returns
        -------
        bound : float, or array of shape (n_classes,)
        """
        check_is_fitted(self)
        if self._step is None:
            raise ValueError(
                "The bound is for a constant step: it says nothing of a fit with a penalty, or "
                "with sample_weight or class_weight, which make the steps of rows differ."
            )
        classes, index = np.unique(y, return_inverse=True)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y has the classes {classes}, the fit had {self.classes_}.")
        coef, signs = np.atleast_2d(np.asarray(coef, dtype=np.float64)), self._signs(index)
        intercept = np.broadcast_to(np.asarray(intercept, dtype=np.float64).ravel(), len(signs))
        if not self.fit_intercept and intercept.any():
            raise ValueError("Without an intercept the separator cannot have one either.")
        values, squared_norms, products = self._geometry(X, y, coef)
        largest = squared_norms.max() + bool(self.fit_intercept)
        bounds = []
        for k, labels in enumerate(signs):
            margin = (labels * (values[:, k] + intercept[k])).min()
            if not margin > 0.0:
                raise ValueError(
                    "coef and intercept do not separate the data: min y (w . x + b) is "
                    f"{margin:g}. maxmargin.linear.separability.is_separable(X, y) finds a "
                    "separator if there is one."
                )
            first, both, own = products[k]
            start = self.intercept_init_[k]
            first += start**2
            both += start * intercept[k]
            own += intercept[k] ** 2
            longer = largest / margin
            distance = first / self._step**2 - 2 * longer * both / self._step + longer**2 * own
            bounds.append(distance / largest)
        return float(bounds[0]) if len(bounds) == 1 else np.array(bounds)

    def _geometry(
        self, X: Any, y: Any, coef: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[tuple[float, float, float]]]:
        """Values of ``w . x``, squared norms of x, and ``w_1 . w_1, w_1 . w, w . w``."""
        if self.kernel is not None:
            from maxmargin.linear.kernel_perceptron import gram_of

            gram = gram_of(self, self._checked(X, y)[0], self.kernel_, self.cache_size)
            values = np.stack([gram.matvec(row) for row in coef], axis=1)
            norms = [(0.0, 0.0, float(row @ values[:, k])) for k, row in enumerate(coef)]
            return values, gram.diagonal, norms
        X, _ = self._validated(X, y, reset=False)
        begun = self.coef_init_
        norms = [
            (float(v @ v), float(v @ w), float(w @ w)) for v, w in zip(begun, coef, strict=True)
        ]
        return safe_sparse_dot(X, coef.T), row_norms(X, squared=True), norms

    def steps(self, X: Any, y: Any) -> Iterator[Step]:
        """Walk through a fit update by update, for two classes and without a kernel.

        Yields the start (number 0, row None) and what is there after each update, in the order that
        :meth:`fit` takes; ends where it ends. The object itself is not fitted by it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Yields
        ------
        step : Step
            With ``number``, ``row``, ``coef`` and ``intercept``.

        Examples
        --------
        >>> from maxmargin.linear.perceptron import Perceptron
        >>> for step in Perceptron(order="cyclic").steps([[1.0], [3.0]], [0, 1]):
        ...     print(step.number, step.row, step.coef, step.intercept)
        0 None [0.] 0.0
        1 0 [-1.] -1.0
        2 1 [2.] 0.0
        3 0 [1.] -1.0
        4 0 [0.] -2.0
        5 1 [3.] -1.0
        6 0 [2.] -2.0
        7 0 [1.] -3.0
        8 1 [4.] -2.0
        9 0 [3.] -3.0
        10 0 [2.] -4.0
        """
        model = clone(self)
        model._refuse_contradictions()
        X, y = model._checked(X, y)
        index = model._classes_of(y)
        if self.kernel is not None or len(model.classes_) > 2:
            raise ValueError("Only a perceptron for two classes, without a kernel, can be watched.")
        weight = model._weights_with_classes(None, self.class_weight, X, index)
        coef, intercept = start = model._start(X, None, None)
        (course,) = model._courses(weight, index, 1, self.max_iter)
        (walk,) = model._walks(X, model._signs(index), self.eta0 * weight, start)
        yield Step(0, None, coef[0], float(intercept[0]))
        seen = 0
        for visited in course.parts(walk, 1):
            if walk.n_updates > seen:
                seen, now = walk.n_updates, walk.last()
                assert now.coef is not None
                yield Step(seen, int(visited[0]), now.coef, now.intercept)


# -- one machine at work -----------------------------------------------------------------------


class Outcome(NamedTuple):
    """What one machine found, and how it ended."""

    weights: Weights
    ending: Ending
    n_iter: int
    n_updates: int
    cycle_length: int


class Course:
    """The passes of one machine: in which order, and when they end."""

    def __init__(
        self,
        model: Perceptron,
        rows: np.ndarray,
        held_out: np.ndarray,
        weight: np.ndarray,
        seed: int,
        passes: int,
    ) -> None:
        self.model, self.rows, self.held_out, self.weight = model, rows, held_out, weight
        self.passes = passes
        self.random = np.random.default_rng(seed)
        by_shuffle = "cyclic" if model.shuffle is False else "shuffled"
        self.order = model.order or by_shuffle
        self.ending, self.n_iter, self.cycle_length = Ending.MAX_ITER, 0, 0
        self.best, self.waited = np.inf, 0
        self.pocket: tuple[float, Weights] | None = None

    def run(self, walk: Walk, monitor: Monitor, problem: int) -> Outcome:
        """Walk to the end, or to where the monitor stops it."""
        seen = 0
        for visited in self.parts(walk, walk.rows_at_once):
            if (stopped := monitor.stopped()) is not None:
                self.ending = Ending(stopped.value)
                break
            if monitor.due() and len(visited):
                share = (walk.n_updates - seen) / len(visited)
                monitor.report(self._progress(walk, problem, share))
            seen = walk.n_updates
        if self.ending is not Ending.SEPARATED and not walk.wrong(self.rows).any():
            self.ending = Ending.SEPARATED
        weights = walk.found()
        if self.pocket is not None:
            self._look(walk)  # a fit may be stopped within a pass
            weights = self.pocket[1]
        return Outcome(weights, self.ending, self.n_iter, walk.n_updates, self.cycle_length)

    def parts(self, walk: Walk, most: int) -> Iterator[np.ndarray]:
        """Walk on, so many rows at a time; yields those that were looked at."""
        fixed = self.order in ("cyclic", "misclassified") and self.model.penalty is None
        recurrence = Recurrence()
        if self.model.variant == "pocket":
            self._look(walk)
        while self.n_iter < self.passes:
            if fixed and (length := recurrence.after(walk.state())):
                self.ending, self.cycle_length = Ending.RECURRING, length
                return
            self.n_iter += 1
            order, before, place = self._order(walk), walk.n_updates, 0
            walk.begin_pass()
            while place < len(order):
                end = min(place + most, len(order))
                reached = walk.go(order, place, end)
                if reached < end:
                    self._look(walk)
                yield order[place:reached]
                place = reached
            if self.pocket is not None:
                self._look(walk)
            if self._ended(walk, walk.n_updates - before):
                return

    def _order(self, walk: Walk) -> np.ndarray:
        """Rows of the next pass, in their order."""
        if self.order == "shuffled":
            return self.random.permutation(self.rows)
        if self.order == "random":
            return self.rows[self.random.integers(len(self.rows), size=len(self.rows))]
        if self.order == "misclassified":
            return self.rows[walk.wrong(self.rows)]
        return self.rows

    def _ended(self, walk: Walk, mistakes: int) -> bool:
        """Whether the pass that is over was the last one."""
        walk.refuse_infinite()
        unpenalised = self.model.penalty is None
        if unpenalised and not mistakes and not walk.wrong(self.rows).any():
            self.ending = Ending.SEPARATED
            return True
        if self.model.tol is None:
            return False
        if len(self.held_out):
            cost = float(walk.wrong(self.held_out).mean())
        else:
            cost = walk.tally[LOSS] / len(self.rows) + walk.penalty(self.model._penalty_of)
        worse = cost > self.best - self.model.tol
        self.waited = self.waited + 1 if worse else 0
        self.best = min(self.best, cost)
        if self.waited >= self.model.n_iter_no_change:
            self.ending = Ending.NO_IMPROVEMENT
        return self.ending is Ending.NO_IMPROVEMENT

    def _look(self, walk: Walk) -> None:
        """Put the weights in the pocket if they err on fewer rows, by weight, than those there."""
        errors = float(self.weight[self.rows[walk.wrong(self.rows)]].sum())
        if self.pocket is None or errors < self.pocket[0]:
            self.pocket = errors, walk.last()

    def _progress(self, walk: Walk, problem: int, share: float) -> Any:
        def progress(solved: int, problems: int, seconds: float) -> PassProgress:
            return PassProgress(
                solved,
                problems,
                problem,
                walk.n_updates,
                share,
                1.0 / len(self.rows),
                np.nan,
                int(np.count_nonzero(walk.dual)),
                seconds,
                walk.dual,
                passes=self.n_iter,
            )

        return progress


class Recurrence:
    """Whether a state has been there before, by Brent's method: one state is kept at a time."""

    def __init__(self) -> None:
        self.kept: np.ndarray | None = None
        self.length, self.power = 0, 1

    def after(self, state: np.ndarray) -> int:
        """Return the length of the cycle if this state is the one kept, else 0."""
        if self.kept is not None:
            self.length += 1
            if np.array_equal(state, self.kept):
                return self.length
        if self.kept is None or self.length == self.power:
            self.kept, self.length, self.power = state, 0, 2 * self.power
        return 0


class Walk(ABC):
    """A perceptron on its way over the rows: what changes with every row that it looks at."""

    rows_at_once: int

    def __init__(self, y: np.ndarray, step: np.ndarray, averaged: bool, pocket: bool) -> None:
        # y_i eta_i and alpha_i side by side: rows are looked at in any order, and one miss of the
        # cache is better than two.
        self.ledger = np.column_stack([y * step, np.zeros(len(y))])
        self.averaged = averaged
        self.dual_sum = np.zeros(len(y) if averaged else 0)
        self.tally = np.zeros(9)
        self.tally[SCALE] = 1.0
        self.pocket = pocket

    @property
    def dual(self) -> np.ndarray:
        """How much step each row was used with."""
        return self.ledger[:, 1]

    @property
    def n_updates(self) -> int:
        """Steps made."""
        return int(self.tally[UPDATES])

    def begin_pass(self) -> None:
        """Forget the loss and the longest run of the last pass."""
        self.tally[LOSS] = 0.0
        self.tally[RECORD] = 0.0 if self.pocket else np.inf

    @abstractmethod
    def go(self, order: np.ndarray, place: int, end: int) -> int:
        """Look at the rows ``order[place:end]``; returns the place that was reached.

        It is before the end where the longest run of right answers has just come to one: then the
        weights are those of the run, for the pocket.
        """

    @abstractmethod
    def wrong(self, rows: np.ndarray) -> np.ndarray:
        """Which of the rows are not on their right side, as a mask."""

    @abstractmethod
    def state(self) -> np.ndarray:
        """All that the rest of the way depends on, as a copy."""

    @abstractmethod
    def last(self) -> Weights:
        """Return the weights as they are, as copies."""

    @abstractmethod
    def found(self) -> Weights:
        """Return the weights to keep: the last ones, or their mean."""

    def penalty(self, of: Any) -> float:
        """Return the penalty of the weights."""
        return 0.0

    def refuse_infinite(self) -> None:
        """Raise an error if the weights have left the range of float64."""
        if not np.isfinite(self.state()).all():
            raise ValueError(
                "Floating-point under-/overflow occurred. Scaling input data with StandardScaler "
                "or MinMaxScaler might help."
            )

    def _mean(self, last: np.ndarray, moments: np.ndarray) -> np.ndarray:
        """Mean over the rows looked at; a step of visit t is in all but the first t of them."""
        return last - moments / max(self.tally[VISITS], 1.0)


class LinearWalk(Walk):
    """A perceptron over dense rows or CSR, float32 or float64; its weights are float64."""

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        step: np.ndarray,
        bias: bool,
        coef: np.ndarray,
        intercept: float,
        shrink: tuple[float, float],
        averaged: bool,
        pocket: bool,
    ) -> None:
        super().__init__(y, step, averaged, pocket)
        self.points = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        self.bias, self.shrink = bias, shrink
        self.w = coef.copy()
        self.w_sum = np.zeros(len(coef) if averaged else 0)
        self.taken = np.zeros(len(coef) if shrink[1] else 0)
        self.tally[BIAS] = intercept
        entries = X.nnz if sp.issparse(X) else X.size
        self.rows_at_once = max(_ENTRIES * len(y) // max(entries, 1), 1)

    def go(self, order: np.ndarray, place: int, end: int) -> int:
        """Look at some rows."""
        return _walk(
            self.points,
            order,
            place,
            end,
            self.bias,
            self.averaged,
            *self.shrink,
            self.w,
            self.ledger,
            self.w_sum,
            self.dual_sum,
            self.taken,
            self.tally,
        )

    def wrong(self, rows: np.ndarray) -> np.ndarray:
        """Look at rows without learning from them."""
        out = np.empty(len(rows), dtype=np.bool_)
        for begin in range(0, len(rows), self.rows_at_once):
            part = slice(begin, begin + self.rows_at_once)
            _look_at(self.points, rows[part], self.w, self.ledger, self.tally, out[part])
        return out

    def state(self) -> np.ndarray:
        """Weights and bias."""
        return np.append(self.tally[SCALE] * self.w, self.tally[BIAS])

    def last(self) -> Weights:
        """Return the weights as they are."""
        scale = self.tally[SCALE]
        return Weights(scale * self.w, float(self.tally[BIAS]), scale * self.dual)

    def found(self) -> Weights:
        """Return the last weights, or their mean."""
        last = self.last()
        if not self.averaged:
            return last
        intercept = self._mean(self.tally[BIAS], self.tally[BIAS_SUM])
        dual = self._mean(self.dual, self.dual_sum)
        return Weights(self._mean(self.w, self.w_sum), float(intercept), dual)

    def penalty(self, of: Any) -> float:
        """Return the penalty of the weights."""
        return float(of(self.tally[SCALE] * self.w))


# -- compiled ----------------------------------------------------------------------------------
# What differs between dense data, points = (X,), and CSR, points = (values, columns, begin), is in
# the overloads. Unsigned numbers index CSR: Numba need not ask whether they count from the end.

_FAST = {"contract", "reassoc"}
_SMALLEST = 1e-9  # factor of the weights at which it is multiplied out


def _dot(points: Any, i: int, w: np.ndarray) -> float:
    """``x_i . w``."""
    raise NotImplementedError


@overload(_dot, jit_options={"fastmath": _FAST})
def _dot_of(points: Any, i: Any, w: Any) -> Any:
    def dense(points: Any, i: Any, w: Any) -> Any:
        x = points[0][i]
        total = 0.0
        for j in range(len(w)):
            total += x[j] * w[j]
        return total

    def csr(points: Any, i: Any, w: Any) -> Any:
        values, columns, begin = points
        total = 0.0
        for k in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            total += values[k] * w[np.uint64(columns[k])]
        return total

    return dense if len(points) == 1 else csr


def _add(points: Any, i: int, amount: float, w: np.ndarray) -> None:
    """``w += amount x_i`` in place."""
    raise NotImplementedError


@overload(_add, jit_options={"fastmath": _FAST})
def _add_of(points: Any, i: Any, amount: Any, w: Any) -> Any:
    def dense(points: Any, i: Any, amount: Any, w: Any) -> None:
        x = points[0][i]
        for j in range(len(w)):
            w[j] += amount * x[j]

    def csr(points: Any, i: Any, amount: Any, w: Any) -> None:
        values, columns, begin = points
        for k in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            w[np.uint64(columns[k])] += amount * values[k]

    return dense if len(points) == 1 else csr


def _clip(points: Any, i: int, due: float, scale: float, w: np.ndarray, taken: np.ndarray) -> None:
    """Take from the weights of the features of x_i what L1 has asked for so far, in place."""
    raise NotImplementedError


@overload(_clip)
def _clip_of(points: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> Any:
    def dense(points: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> None:
        for j in range(len(w)):
            _clip_one(j, due, scale, w, taken)

    def csr(points: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> None:
        for k in range(points[2][i], points[2][i + 1]):
            _clip_one(points[1][k], due, scale, w, taken)

    return dense if len(points) == 1 else csr


@njit(cache=True, nogil=True)
def _clip_one(j: int, due: float, scale: float, w: np.ndarray, taken: np.ndarray) -> None:
    """Bring one weight nearer to zero, not across; changes w and taken (Tsuruoka et al.)."""
    before = w[j]
    if before > 0.0:
        w[j] = max(0.0, before - (due + taken[j]) / scale)
    elif before < 0.0:
        w[j] = min(0.0, before + (due - taken[j]) / scale)
    taken[j] += scale * (w[j] - before)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _walk(
    points: Any,
    order: np.ndarray,
    place: int,
    end: int,
    bias: bool,
    averaged: bool,
    decay: float,
    clip: float,
    w: np.ndarray,
    ledger: np.ndarray,
    w_sum: np.ndarray,
    dual_sum: np.ndarray,
    taken: np.ndarray,
    tally: np.ndarray,
) -> int:
    """Look at ``order[place:end]`` and learn from mistakes; returns the place reached.

    Changes w, ledger, the sums, taken and tally. The weights are ``tally[SCALE] * w``.
    """
    b, scale, visits, loss, run = tally[BIAS], tally[SCALE], tally[VISITS], tally[LOSS], tally[RUN]
    while place < end:
        i = order[place]
        amount = ledger[i, 0]
        value = scale * _dot(points, i, w) + b
        wrong = not amount * value > 0.0
        if wrong and run > tally[RECORD]:
            tally[RECORD] = run
            break
        if decay < 1.0:
            scale *= decay
            if scale < _SMALLEST:
                for j in range(len(w)):
                    w[j] *= scale
                for j in range(len(ledger)):
                    ledger[j, 1] *= scale
                scale = 1.0
        if wrong:
            loss += abs(value)
            run = 0.0
            _add(points, i, amount / scale, w)
            ledger[i, 1] += abs(amount) / scale
            tally[UPDATES] += 1.0
            if bias:
                b += amount
            if averaged:
                _add(points, i, visits * amount, w_sum)
                dual_sum[i] += visits * abs(amount)
                if bias:
                    tally[BIAS_SUM] += visits * amount
        else:
            run += 1.0
        if clip > 0.0:
            tally[SHRUNK] += clip
            _clip(points, i, tally[SHRUNK], scale, w, taken)
        visits += 1.0
        place += 1
    tally[BIAS], tally[SCALE], tally[VISITS], tally[LOSS], tally[RUN] = b, scale, visits, loss, run
    return place


@njit(cache=True, nogil=True, fastmath=_FAST)
def _look_at(
    points: Any,
    rows: np.ndarray,
    w: np.ndarray,
    ledger: np.ndarray,
    tally: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write to ``out`` which of the rows are wrong."""
    for k in range(len(rows)):
        i = rows[k]
        out[k] = not ledger[i, 0] * (tally[SCALE] * _dot(points, i, w) + tally[BIAS]) > 0.0

"""Kernel ridge regression that chooses lambda by exact leave-one-out errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin.estimators import readings
from maxmargin.estimators.callbacks import observed
from maxmargin.estimators.parameters import LARGEST, SMALLEST
from maxmargin.estimators.tensors import takes_tensors
from maxmargin.kernel_methods.base import RidgeMachine
from maxmargin.kernels import Linear
from maxmargin.progress import ProblemMonitor
from maxmargin.solution import Status
from maxmargin.solvers import Watch
from maxmargin.solvers.ridge.certificate import RidgeCertificate
from maxmargin.solvers.ridge.path import LeaveOneOut, PathSolution, RidgePath
from maxmargin.solvers.ridge.problem import RidgeProblem


class KernelRidgeCV(RidgeMachine):
    """Kernel ridge regression with lambda chosen by leave-one-out errors, which are exact.

        minimise  1/2 sum_i s_i (f(x_i) - t_i)^2 + alpha/2 |w|^2,    f(x) = sum_i a_i k(x, x_i)

    for the best of several alphas. A machine that was fitted without row i is off at it by ``a_i /
    ((K + alpha S^-1)^-1)_ii``. One reduction of the Gram matrix to a narrow band, about ``8/3 n^3``
    operations, gives these for every alpha and row; scikit-learn's search refits for each alpha and
    fold. For the machine that is chosen see :class:`~maxmargin.KernelRidge`; kernels are compared
    by a search over this one.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        The lambdas to choose from, positive.
    kernel, gamma, degree, coef0
        As in :class:`~maxmargin.KernelRidge`.
    scoring : str, callable or None, default=None
        A scorer, as in scikit-learn, of the predictions of left-out rows; None is the negative mean
        of their squared errors, weighted as the rows are.
    alpha_per_target : bool, default=False
        Choose an alpha for each output; otherwise one for all.
    store_cv_results : bool, default=False
        Keep ``cv_results_``.
    tol : float, default=1e-4
        Largest relative residual of an answer that counts as converged: see
        :class:`~maxmargin.KernelRidge`. The systems are solved directly, to rounding.
    cache_size, n_jobs, verbose, time_limit, callback, trace
        As in :class:`~maxmargin.KernelRidge`. The reduction takes ``12 n^2`` bytes.

    Attributes
    ----------
    alpha_ : float, or array of shape (n_targets,) where it is per target
        The best of ``alphas``; of equals the first.
    best_score_ : float, or array of shape (n_targets,)
        Its score.
    cv_results_ : array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Squared errors of the left-out rows or, with ``scoring``, their predictions; nan for rows of
        weight zero, and where a fit was stopped before.
    dual_coef_, certificate_, fit_status_, kernel_, device_, support_, support_vectors_
        As in :class:`~maxmargin.KernelRidge`, for ``alpha_``.
    n_iter_ : int
        Blocks of columns and lambdas.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A row of weight two is the row written twice, in all but one respect: to leave it out is to
    leave out both. After Ctrl-C, a time limit or a callback that says stop, the best of the alphas
    that were reached is taken; before the first, all are compared on the first rows alone, and the
    machine knows only these. The certificate says so.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelRidgeCV
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> model = KernelRidgeCV(alphas=np.logspace(-6, 2, 9), kernel="rbf", gamma=1.0).fit(X, y)
    >>> model.alpha_
    0.01
    """

    _parameter_constraints: dict = {
        **RidgeMachine._parameter_constraints,
        "alphas": ["array-like"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "alpha_per_target": ["boolean"],
        "store_cv_results": ["boolean"],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        scoring: Any = None,
        alpha_per_target: bool = False,
        store_cv_results: bool = False,
        tol: float = 1e-4,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        time_limit: float | None = None,
        callback: Any = None,
        trace: Any = False,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.scoring = scoring
        self.alpha_per_target = alpha_per_target
        self.store_cv_results = store_cv_results
        self.tol = tol
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callback = callback
        self.trace = trace

    @takes_tensors
    @_fit_context(prefer_skip_nested_validation=True)
    @observed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose alpha and fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training points; for a precomputed kernel the square matrix of its values.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : KernelRidgeCV
        """
        alphas = _checked(self.alphas)
        X, problem = self._posed(X, y, sample_weight)
        if problem.n < 2:
            raise ValueError(
                f"KernelRidgeCV leaves rows out one by one, and has n_samples={problem.n} with a "
                "weight: use KernelRidge."
            )
        weight = None if sample_weight is None else problem.weight
        with self._watched() as monitor:
            workers = self._threads(problem)
            watch = Watch(self.tol, -1, ProblemMonitor(monitor), workers)
            if isinstance(self.kernel_, Linear):
                monitor.readings[0] = readings.of_expansion(X, self._rows, scale=problem.root)
            path = RidgePath(problem, tuple(alphas.tolist()))
            found = LeaveOneOut().solve(path, watch)
            scores = self._scores(problem, found, weight)
            best = scores.argmax(axis=0)
            b = np.take_along_axis(found.b, best[None, None, :], axis=0)[0]
            certificate = self._judged(problem, b, alphas[best], found)
        per_target = self.alpha_per_target and not self._one_output
        chosen, outputs = alphas[best], np.arange(len(best))
        self.alpha_: Any = chosen if per_target else float(chosen[0])
        self.best_score_: Any = scores[best, outputs] if per_target else float(scores[best[0], 0])
        if self.store_cv_results:
            self.cv_results_ = self._results(problem, found, len(alphas), _num_samples(X))
        self.n_iter_ = found.n_iter
        self._keep(X, problem.coefficients(b), certificate)
        return self

    def _scores(
        self, problem: RidgeProblem, found: PathSolution, weight: np.ndarray | None
    ) -> np.ndarray:
        """Score of each lambda (k, m), the same for all outputs unless each has its own."""
        seen = found.seen
        target = problem.target[:seen]
        own = problem.weight[:seen]
        if self.scoring is None:
            each = -np.einsum("i,kij->kj", own / own.sum(), found.left_out**2)
            return (
                each
                if self.alpha_per_target
                else np.broadcast_to(each.mean(axis=1, keepdims=True), each.shape)
            )
        scorer = check_scoring(_Predicted(), scoring=self.scoring)
        options = {} if weight is None else {"sample_weight": own}
        predicted = target - found.left_out

        def score(values: np.ndarray, true: np.ndarray) -> float:
            one = values.shape[1] == 1
            given = (values[:, 0], true[:, 0]) if one else (values, true)
            return float(scorer(_Predicted(), *given, **options))

        if not self.alpha_per_target:
            scores = [[score(values, target)] * target.shape[1] for values in predicted]
        else:
            outputs = [slice(k, k + 1) for k in range(target.shape[1])]
            scores = [[score(v[:, k], target[:, k]) for k in outputs] for v in predicted]
        return np.array(scores)

    def _judged(
        self, problem: RidgeProblem, b: np.ndarray, alphas: np.ndarray, found: PathSolution
    ) -> RidgeCertificate:
        """Certificate of the chosen machine, from its residual."""
        product = problem.product(b, self._threads(problem)) - problem.alpha * b
        words = "reduction to a band"
        if found.status is not Status.CONVERGED:
            words += f", of {found.seen} rows and {len(found.b)} alphas"
        parts = []
        for k, alpha in enumerate(alphas.tolist()):
            own = slice(k, k + 1)
            one = replace(problem, target=problem.target[:, own], alpha=alpha)
            residual = one.right - product[:, own] - alpha * b[:, own]
            part = one.certificate(b[:, own], residual, words, found.status, self.tol)
            if len(found.b) < np.size(self.alphas):  # exact for this alpha, not the best of all
                part = replace(part, status=found.status)
            parts.append(part)
        return RidgeCertificate.worst(parts)

    def _results(
        self, problem: RidgeProblem, found: PathSolution, alphas: int, n: int
    ) -> np.ndarray:
        """Squared errors or predictions of the left-out rows, as RidgeCV has them."""
        out = np.full((n, problem.target.shape[1], alphas), np.nan)
        values = found.left_out**2
        if self.scoring is not None:
            values = problem.target[: found.seen] - found.left_out
        out[self._rows[: found.seen], :, : len(values)] = values.transpose(1, 2, 0)
        return out[:, 0] if self._one_output else out


class _Predicted(BaseEstimator):
    """What a scorer takes for a regressor: its data are the predictions."""

    _estimator_type = "regressor"

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return them."""
        return X


def _checked(alphas: Any) -> np.ndarray:
    """Lambdas as an array; refuses what is not positive or beyond float64."""
    values = np.asarray(alphas, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"alphas must be a list of numbers, at least one, got {alphas!r}.")
    if not ((values >= SMALLEST) & (values <= LARGEST)).all():
        raise ValueError(
            f"alphas must be positive, between {SMALLEST:g} and {LARGEST:g}, got "
            f"{float(values.min()):g} to {float(values.max()):g}."
        )
    return values

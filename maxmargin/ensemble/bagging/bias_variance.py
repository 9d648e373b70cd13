"""Bias and variance of a learner on one data set, by bootstrap replicates."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _num_samples

from maxmargin.backends.data import refuse_unusable
from maxmargin.backends.threads import Workers, around_fit, thread_count
from maxmargin.ensemble.bagging.decomposition import (
    Decomposition,
    SquaredDecomposition,
    ZeroOneDecomposition,
)
from maxmargin.ensemble.bagging.members import Members, are_strings, asked, shares_fits
from maxmargin.ensemble.bagging.noise import FROM_X, Noise, estimate_noise
from maxmargin.ensemble.bagging.replicates import Replicates, replicate_size, seeds_of
from maxmargin.estimators.data import column, is_table
from maxmargin.estimators.warn import warn
from maxmargin.multiclass import read_labels
from maxmargin.progress import Monitor, watched

_LEAST = 2  # replicates, without which there is no variance
_TOGETHER = 32  # members that are asked at a time


@around_fit
def bias_variance(
    estimator: Any,
    X: Any,
    y: Any,
    n_replicates: int = 200,
    *,
    max_samples: Any = None,
    noise: str | None = None,
    n_neighbors: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool | int = False,
    time_limit: float | None = None,
    callback: Any = None,
) -> Any:
    """Estimate bias and variance of a learner, from its predictions of points it has not seen.

    A hypothesis ``h_b`` is fitted to each of B bootstrap replicates of the data, m rows drawn with
    replacement, and predicts the points that are left out of it, only those. So a point x has K of
    B predictions, for m = N about 0.37 B. For a regressor, with their mean ``hbar(x)``,

        bias      y - hbar(x)
        variance  1/(K-1) sum_k (h_k(x) - hbar(x))^2

    and for a classifier bias and variance of the 0-1 loss. Replicates of one data set stand in for
    new ones; a bias so measured contains the noise of y.

    Parameters
    ----------
    estimator : classifier or regressor
        Of this package or of scikit-learn, a pipeline, or an ensemble.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_replicates : int, default=200
        B; a few hundred are usual, and there must be two.
    max_samples : int or float, optional
        Rows m of each replicate, or the share of all rows; by default as many as there are.
    noise : {"repeated", "neighbors"}, optional
        Estimate the noise, too, from rows whose x occurs again, or from nearest neighbours: these
        only where similar x have nearly the same distribution of y.
    n_neighbors : int, optional
        Of ``noise="neighbors"``: by default 1, and for classes 10.
    random_state : int, RandomState or None, default=None
    n_jobs : int, optional
        Replicates at the same time, by threads; by default one after the other.
    verbose : bool or int, default=False
    time_limit : float, optional
        Seconds after which no further replicate is begun.
    callback : callable, optional
        Called with a :class:`maxmargin.progress.Progress` some times a second; stops the work by
        returning True.

    Returns
    -------
    decomposition : SquaredDecomposition or ZeroOneDecomposition
        Arrays over the points (``K``, ``bias``, ``variance``...), ``totals`` with standard errors,
        ``to_frame()`` and ``bagged()``; printed, it is a table.

    References
    ----------
    Domingos, A unified bias-variance decomposition and its applications, ICML 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import DecisionTreeRegressor, bias_variance
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = bias_variance(DecisionTreeRegressor(), X, y / 100, 100, random_state=0)
    >>> print(found)  # doctest: +ELLIPSIS
    DecisionTreeRegressor: 100 bootstrap replicates of 442 of 442 rows
    predictions of a point, by replicates without it: 36.9 (21 to 54, 0.37 of all)
      error             0.6...  +- 0.0...
      squared bias      0.3...  +- 0.0...   (y - mean prediction)^2, which has the noise of y in it
      variance          0.3...  +- 0.0...   of predictions about their mean, with K - 1
    """
    if not isinstance(n_replicates, Integral) or n_replicates < 2:
        raise ValueError(
            f"n_replicates={n_replicates!r}: a variance needs two replicates or more, and a point "
            "has predictions of 0.37 of them only; a few hundred are usual."
        )
    if noise is not None and noise not in FROM_X:
        raise ValueError(f"noise must be one of {list(FROM_X)} or None, got {noise!r}.")
    X, y, labels = _read(estimator, X, y)
    replicates = _replicates(X, max_samples)
    told = None if noise is None else estimate_noise(X, y[-1], noise, n_neighbors, labels)
    kind = _Votes if labels else _Moments
    counted = kind(y, len(y[0]))
    threads = n_jobs is not None or shares_fits(estimator)
    workers = Workers(thread_count(n_jobs) if threads else 1)
    with watched(time_limit, callback, verbose) as monitor:
        members = Members(estimator, X, y[0], replicates, workers)
        seeds = seeds_of(random_state, int(n_replicates))
        done = _predictions(members, seeds, counted, monitor)
        if verbose:
            monitor.end(f"{done} of {n_replicates} replicates", done == n_replicates)
    if done < n_replicates:
        warn(
            f"Bias and variance are of {done} of {n_replicates} replicates: the work was stopped, "
            "by time_limit or a callback. Totals have larger errors than asked for."
        )
    if not (counted.K >= 2).any():
        raise ValueError(
            f"No point was left out of two of {done} replicates of {replicates.size} rows, so that "
            "none has a variance: take more replicates, or smaller ones (max_samples)."
        )
    return counted.result(_name(estimator), done, replicates.size, told)


def _name(estimator: Any) -> str:
    """Name of a learner, with those that it is made of."""
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        return f"{name} of {', '.join(_name(step) for _, step in estimator.steps)}"
    inner = getattr(estimator, "estimator", None)
    return name if inner is None else f"{name} of {_name(inner)}"


def _read(estimator: Any, X: Any, y: Any) -> tuple[Any, tuple, bool]:
    """Check the data: X, the targets (of labels also classes and indices), whether labels."""
    if is_table(y):
        raise ValueError("Bias and variance are those of one target: give one column of y.")
    y, labels = column(np.asarray(y)), is_classifier(estimator)
    if not hasattr(X, "columns") and not are_strings(X):
        refuse_unusable(X)
        X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite="allow-nan")
    check_consistent_length(X, y)
    if labels:
        classes, index = read_labels(y)
        return X, (classes[index], classes, index), True
    return X, (check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"),) * 2, False


def _replicates(X: Any, max_samples: Any) -> Replicates:
    n, width = _num_samples(X), 1 if are_strings(X) else X.shape[1]
    return Replicates(n, width, replicate_size(max_samples, n), width)


def _predictions(members: Members, seeds: np.ndarray, counted: Any, monitor: Monitor) -> int:
    """Fit to replicates and predict what they leave out, some at a time; returns how many."""
    done, told = 0, 0
    at_once = max(members.at_once if monitor.time_limit is None else _LEAST, 1)

    def stopped() -> Any:
        return monitor.stopped() if told >= _LEAST else None

    def count() -> None:
        nonlocal told
        told += 1
        monitor.report_parts("bias_variance", told, len(seeds), "replicates")

    while done < len(seeds):
        if stopped():
            break
        some = seeds[done : done + at_once]
        machines = members.fit(some, done, stopped, count)
        at_once = min(2 * at_once, members.at_once)  # who is stopped loses few of them
        rows = [
            np.flatnonzero(members.replicates.counts(int(s)) == 0) for s in some[: len(machines)]
        ]
        for first in range(0, len(machines), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            none = [None] * len(machines[part])
            answers = asked(machines[part], "predict", members.X, none, members.workers, rows[part])
            for own, answer in zip(rows[part], answers, strict=True):
                if len(own):
                    counted.add(own, answer)
        done += len(machines)
        if len(machines) < len(some):
            break
    return done


class _Moments:
    """Running mean and sum of squares of each point's predictions (Welford's)."""

    def __init__(self, y: tuple, n: int) -> None:
        self.y = y[0]
        self.K = np.zeros(n, dtype=np.int64)
        self.mean, self.squares = np.zeros(n), np.zeros(n)

    def add(self, rows: np.ndarray, answer: np.ndarray) -> None:
        """Take the predictions of some points in."""
        self.K[rows] += 1
        step = np.asarray(answer, dtype=np.float64).ravel() - self.mean[rows]
        self.mean[rows] += step / self.K[rows]
        self.squares[rows] += step * (answer.ravel() - self.mean[rows])

    def result(self, name: str, count: int, size: int, noise: Noise | None) -> Decomposition:
        """Return bias and variance; nan where there is nothing to say."""
        mean = np.where(self.K > 0, self.mean, np.nan)
        variance = np.where(self.K > 1, self.squares / np.maximum(self.K - 1, 1), np.nan)
        return SquaredDecomposition(name, self.y, self.K, count, size, noise, mean, variance)


class _Votes:
    """How many of each point's predictions say each class."""

    def __init__(self, y: tuple, n: int) -> None:
        self.y, self.classes, self.index = y
        self.K = np.zeros(n, dtype=np.int64)
        self.votes = np.zeros((n, len(self.classes)), dtype=np.int64)

    def add(self, rows: np.ndarray, answer: np.ndarray) -> None:
        """Take the predictions of some points in."""
        self.K[rows] += 1
        self.votes[rows, np.searchsorted(self.classes, answer)] += 1

    def result(self, name: str, count: int, size: int, noise: Noise | None) -> Decomposition:
        """Return bias and variance; nan where there is nothing to say."""
        best = self.index
        if noise is not None:
            best = np.where(noise.best >= 0, noise.best, best)
        return ZeroOneDecomposition(
            name, self.y, self.K, count, size, noise, self.classes, self.votes, best
        )

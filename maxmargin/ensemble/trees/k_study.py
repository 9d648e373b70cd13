"""What K does to extremely randomised trees: error, bias and variance, with noise in the labels.

R times a random half of the training rows is drawn, labels are changed at random, and M trees are
grown with each K. At every test point (whose label stays as it is) one tree and the mean of the M
trees are compared over the R samples. With ``t`` the target, the class as a unit vector or the
number, and predictions ``p_r``, the shares of the classes or a number,

    squared bias   |t - mean_r p_r|^2          the same for one tree and for their mean
    variance       1/(R-1) sum_r |p_r - mean_r p_r|^2

which add up to the mean squared error of p, for classes the Brier score. Averaging M trees divides
the part of the variance that the trees do not share by M, and leaves the bias as it is:

    Var_mean = correlation Var_tree + (1 - correlation) Var_tree / M

References: seed 000; Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63,
2006, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, check_X_y

from maxmargin.backends.cpu.trees.grow import Rules
from maxmargin.backends.cpu.trees.scores import SQUARES
from maxmargin.backends.threads import StoppedError, Workers, around_fit, thread_count
from maxmargin.ensemble.trees.base import CLASS_CRITERIA, VALUE_CRITERIA
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.growth import NO_LIMIT, Grower, Target
from maxmargin.estimators.warn import warn
from maxmargin.multiclass import read_labels
from maxmargin.progress import Monitor, watched

_MEASURED = (
    "error_tree",
    "error_mean",
    "error_tree_std",
    "error_mean_std",
    "squared_bias",
    "variance_tree",
    "variance_mean",
)


@dataclass(frozen=True)
class KStudy:
    """Error, bias and variance of extremely randomised trees for each K and level of noise.

    Attributes
    ----------
    K : int array of shape (n_K,)
    noise : float array of shape (n_noise,)
        Share of training labels that were changed to another class at random, or standard deviation
        of what was added to the targets over theirs.
    error_tree, error_mean : arrays of shape (n_noise, n_K)
        Test error of one tree and of the mean of M: share of wrong answers, or mean squared error.
    error_tree_std, error_mean_std : arrays of shape (n_noise, n_K)
        Their standard errors over the samples.
    squared_bias, variance_tree, variance_mean : arrays of shape (n_noise, n_K)
        Of the shares of the classes or the predicted numbers. The bias is that of both, with the
        noise of the test labels in it; what the finite number of samples adds to it is taken away.
    n_estimators, n_samples, n_rows : int
        M, R, and the rows of a sample.
    """

    K: np.ndarray
    noise: np.ndarray
    error_tree: np.ndarray
    error_mean: np.ndarray
    error_tree_std: np.ndarray
    error_mean_std: np.ndarray
    squared_bias: np.ndarray
    variance_tree: np.ndarray
    variance_mean: np.ndarray
    n_estimators: int
    n_samples: int
    n_rows: int
    of_classes: bool

    @property
    def best_K(self) -> np.ndarray:
        """K with the least error of the mean, for each level of noise."""
        return self.K[self.error_mean.argmin(axis=1)]

    @property
    def as_good(self) -> list[np.ndarray]:
        """Every K whose error is within one standard error of the least, for each level."""
        least = self.error_mean.argmin(axis=1)
        rows = np.arange(len(least))
        limit = self.error_mean[rows, least] + self.error_mean_std[rows, least]
        return [self.K[own <= most] for own, most in zip(self.error_mean, limit, strict=True)]

    @property
    def correlation(self) -> np.ndarray:
        """Share of a tree's variance that all trees of a sample have in common."""
        M = self.n_estimators
        with np.errstate(invalid="ignore", divide="ignore"):
            shared = (self.variance_mean / self.variance_tree - 1.0 / M) / (1.0 - 1.0 / M)
        return np.where(self.variance_tree > 0, shared, 1.0)

    def to_frame(self) -> Any:
        """Return a pandas frame with a row for each K and level of noise."""
        import pandas as pd

        noise, K = np.meshgrid(self.noise, self.K, indexing="ij")
        names = [*_MEASURED, "correlation"]
        columns = {name: getattr(self, name).ravel() for name in names}
        return pd.DataFrame({"noise": noise.ravel(), "K": K.ravel(), **columns})

    def __str__(self) -> str:
        lines = [
            f"{self.n_estimators} trees from each of {self.n_samples} samples, {self.n_rows} rows",
            "noise    K   error: tree    mean (std)        bias^2   variance: tree    mean",
        ]
        for level, noise in enumerate(self.noise):
            for k, K in enumerate(self.K):
                at = level, k
                star = "*" if self.best_K[level] == K else " "
                lines.append(
                    f"{noise:5.2f} {K:4d}{star}  {self.error_tree[at]:11.4g} "
                    f"{self.error_mean[at]:7.4g} ({self.error_mean_std[at]:.2g})   "
                    f"{self.squared_bias[at]:9.4g}  {self.variance_tree[at]:14.4g} "
                    f"{self.variance_mean[at]:7.4g}"
                )
        return "\n".join(lines)


@around_fit
def k_study(
    X: Any,
    y: Any,
    *,
    K: Sequence[int] | None = None,
    noise: Sequence[float] = (0.0, 0.1, 0.2, 0.4),
    n_estimators: int = 50,
    n_samples: int = 10,
    test_size: float = 1 / 3,
    criterion: str | None = None,
    min_samples_leaf: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool | int = False,
    time_limit: float | None = None,
    callback: Any = None,
) -> KStudy:
    """Measure what K does: error, bias and variance of one random tree and of the mean of many.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Classes, or numbers to be predicted: floats are, unless ``criterion`` is one of classes.
    K : sequence of int, optional
        Columns that each node tries; by default 1, 2, ..., n_features, of more than 20 columns
        twenty of these.
    noise : sequence of float, default=(0, 0.1, 0.2, 0.4)
        Share of training labels that become another class; for numbers the standard deviation of
        what is added, over that of y. Test labels stay.
    n_estimators : int, default=50
        M, trees of a mean.
    n_samples : int, default=10
        R, random halves of the training rows; at least two.
    test_size : float, default=1/3
        Share of the rows to test on.
    criterion : str, optional
        By default the lecture's ``"normalised_gain"``, for numbers ``"squared_error"``.
    min_samples_leaf : int, default=1
    random_state, n_jobs, verbose, time_limit, callback
        As everywhere. Work that is stopped returns the levels of noise that are complete.

    Returns
    -------
    study : KStudy
        Arrays over noise and K; printed, it is a table; ``plot_k_study`` draws it.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from maxmargin.ensemble import k_study
    >>> X, y = load_wine(return_X_y=True)
    >>> study = k_study(X, y, K=[1, 4, 13], noise=[0, 0.4], n_estimators=20, random_state=0)
    >>> bool((study.variance_mean < 0.5 * study.variance_tree).all())  # washed out by averaging
    True
    >>> bool(study.squared_bias[0, 0] > study.squared_bias[0, 2])  # K = 1 has the most bias
    True
    """
    study = _Study(X, y, K, noise, n_estimators, n_samples, test_size, criterion, random_state)
    workers = Workers(thread_count(n_jobs))
    with watched(time_limit, callback, verbose) as monitor:
        found = study.levels(int(min_samples_leaf), workers, monitor)
        reason = monitor.stopped()
    if len(found) < len(study.noise):
        if not found:
            raise ValueError(
                f"Not a single level of noise was complete ({reason}): raise time_limit, or ask "
                "for fewer K, samples or trees."
            )
        warn(
            f"The study has {len(found)} of {len(study.noise)} levels of noise, since it was "
            f"stopped early ({reason})."
        )
    arrays = {name: np.array([level[name] for level in found]) for name in _MEASURED}
    return KStudy(
        K=study.K,
        noise=study.noise[: len(found)],
        n_estimators=n_estimators,
        n_samples=n_samples,
        n_rows=study.half,
        of_classes=study.of_classes,
        **arrays,
    )


class _Study:
    """The data of a study, coded once, and its measurements."""

    def __init__(
        self,
        X: Any,
        y: Any,
        K: Sequence[int] | None,
        noise: Sequence[float],
        n_estimators: int,
        n_samples: int,
        test_size: float,
        criterion: str | None,
        random_state: Any,
    ) -> None:
        real = np.asarray(y).dtype.kind == "f"
        self.of_classes = criterion not in VALUE_CRITERIA if criterion else not real
        X, y = check_X_y(X, y, dtype=[np.float64, np.float32], y_numeric=not self.of_classes)
        if n_samples < 2 or n_estimators < 2:
            raise ValueError(
                f"A variance needs two samples and two trees at least, got n_samples={n_samples} "
                f"and n_estimators={n_estimators}."
            )
        d = X.shape[1]
        self.K = np.unique(np.linspace(1, d, min(d, 20)).round().astype(int) if K is None else K)
        if not len(self.K) or self.K[0] < 1 or self.K[-1] > d:
            raise ValueError(
                f"K is a number of columns from 1 to the {d} there are, got {list(self.K)}."
            )
        self.noise = np.array(noise, dtype=np.float64)
        most = 1.0 if self.of_classes else np.inf
        if not len(self.noise) or (self.noise < 0).any() or (self.noise > most).any():
            said = "a share from 0 to 1 of the labels" if self.of_classes else "0 or more"
            raise ValueError(f"noise must be {said}, got {list(noise)}.")
        known = CLASS_CRITERIA if self.of_classes else {"squared_error": SQUARES}
        criterion = criterion or ("normalised_gain" if self.of_classes else "squared_error")
        if criterion not in known:
            raise ValueError(f"criterion must be one of {sorted(known)}, got {criterion!r}.")
        self.criterion, self.M, self.R = known[criterion], n_estimators, n_samples
        random = check_random_state(random_state)
        self.seed = int(random.randint(1 << 31))
        if self.of_classes:
            self.classes, target = read_labels(y)
        else:
            self.classes, target = np.empty(0), np.asarray(y, dtype=np.float64)
        parts = train_test_split(X, target, test_size=test_size, random_state=self.seed)
        train, self.X_test, self.y, self.y_test = parts
        self.half = max(len(train) // 2, 1)
        self.columns = BinnedColumns.of(train, lists=False)
        if self.of_classes:
            self.truth = np.eye(len(self.classes))[self.y_test]
        else:
            self.truth = self.y_test[:, None]

    def levels(self, min_samples_leaf: int, workers: Workers, monitor: Monitor) -> list[dict]:
        """Measure one level of noise after the other, for all K at once, until stopped."""
        done, whole = [0], len(self.noise) * len(self.K) * self.R

        def one(task: tuple[int, int, int]) -> tuple:
            found = self._sample(*task, min_samples_leaf, monitor)
            done[0] += 1
            monitor.report_parts("k_study", done[0], whole, "samples")
            return found

        levels = []
        for level in range(len(self.noise)):
            tasks = [(level, int(k), r) for k in self.K for r in range(self.R)]
            try:
                found = Workers(workers.count, monitor.stopped).map(one, tasks)
            except StoppedError:
                break
            by_K = [found[i * self.R : (i + 1) * self.R] for i in range(len(self.K))]
            each = [self._summary(own) for own in by_K]
            levels.append({name: np.array([one[name] for one in each]) for name in each[0]})
        return levels

    def _sample(
        self, level: int, K: int, r: int, min_samples_leaf: int, monitor: Monitor
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Grow M trees from sample r, the same for all K.

        Returns the predictions of their mean, those of each tree, the errors of the trees and that
        of the mean.
        """
        random = np.random.default_rng([self.seed, level, r])
        weight = np.zeros(len(self.y))
        weight[random.permutation(len(self.y))[: self.half]] = 1.0
        noisy = self._with_noise(self.noise[level], random)
        if self.of_classes:
            target = Target.of_classes(noisy, len(self.classes), self.criterion)
        else:
            target = Target.of_values(noisy, self.criterion)
        rules = Rules(True, K, NO_LIMIT, 2, min_samples_leaf, 0.0, 0.0)
        grower = Grower(self.columns, target)
        total = np.zeros(self.truth.shape)
        trees = np.empty((self.M, *self.truth.shape), np.float32)
        errors = np.empty(self.M)
        for m, seed in enumerate(random.integers(1 << 62, size=self.M)):
            if monitor.stopped():
                raise StoppedError
            tree, _ = grower.grow(rules, weight, int(seed))
            predicted = tree.values_at(tree.apply(self.X_test))
            total += predicted
            trees[m] = predicted
            errors[m] = self._error(predicted)
        return total / self.M, trees, errors, np.array([self._error(total / self.M)])

    def _with_noise(self, noise: float, random: np.random.Generator) -> np.ndarray:
        """Training targets of which some are changed."""
        if not self.of_classes:
            return self.y + noise * self.y.std() * random.standard_normal(len(self.y))
        turned = random.permutation(len(self.y))[: round(noise * len(self.y))]
        noisy = self.y.copy()
        count = len(self.classes)
        noisy[turned] = (noisy[turned] + random.integers(1, count, len(turned))) % count
        return noisy

    def _error(self, predicted: np.ndarray) -> float:
        if self.of_classes:
            return float(np.mean(predicted.argmax(axis=1) != self.y_test))
        return float(np.mean((predicted[:, 0] - self.y_test) ** 2))

    def _summary(self, samples: list[tuple]) -> dict[str, float]:
        """Bias, variance and errors from the R samples of one K."""
        means = np.array([mean for mean, *_ in samples])
        variance_mean = float(means.var(axis=0, ddof=1).sum(axis=1).mean())
        of_trees = np.array([trees for _, trees, _, _ in samples])  # (R, M, points, numbers)
        variance_tree = float(of_trees.var(axis=0, ddof=1, dtype=np.float64).sum(axis=2).mean())
        squared = float(((self.truth - means.mean(axis=0)) ** 2).sum(axis=1).mean())
        single = np.array([errors.mean() for _, _, errors, _ in samples])
        together = np.array([error[0] for *_, error in samples])
        return {
            "error_tree": float(single.mean()),
            "error_mean": float(together.mean()),
            "error_tree_std": float(single.std(ddof=1) / self.R**0.5),
            "error_mean_std": float(together.std(ddof=1) / self.R**0.5),
            "squared_bias": squared - variance_mean / self.R,
            "variance_tree": variance_tree,
            "variance_mean": variance_mean,
        }

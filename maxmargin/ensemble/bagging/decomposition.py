"""Errors taken apart: bias and variance of a learner, point by point and in all.

For numbers and the squared error, with the K predictions ``h_k(x)`` of replicates without x,

    mean      hbar(x) = 1/K sum_k h_k(x)
    bias      y - hbar(x)                        (the noise of y is in it)
    variance  1/(K-1) sum_k (h_k(x) - hbar(x))^2

so that ``1/K sum_k (y - h_k)^2 = bias^2 + (K-1)/K variance``. For classes and the 0-1 loss,

    main prediction  the class that most h_k(x) say
    bias             1 if that is not y (or not the best class at x, where this is known), else 0
    variance         share of the h_k(x) that differ from the main prediction

where variance *adds* to the error of points without bias, and *takes away* from that of points with
bias, as far as it brings predictions to the right class: error = bias + unbiased - biased variance.

References: Domingos, A unified bias-variance decomposition and its applications, ICML 2000. Geman,
Bienenstock and Doursat, Neural networks and the bias/variance dilemma, Neural Computation 4, 1992.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin.ensemble.bagging.noise import Noise


class Total(NamedTuple):
    """A mean over points, and its standard error as one over points."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:12.5g}  +- {self.standard_error:.2g}"


def _total(values: np.ndarray) -> Total:
    n = len(values)
    spread = float(np.std(values, ddof=1)) / n**0.5 if n > 1 else np.nan
    return Total(float(np.mean(values)), spread)


@dataclass(frozen=True)
class Decomposition:
    """What both kinds of decomposition have in common.

    Attributes
    ----------
    name : str
        The learner.
    y : array (n,)
        Targets.
    K : int array (n,)
        Number of predictions of each point: replicates that it was left out of.
    n_replicates, size : int
        Replicates, and the rows of each.
    known : bool array (n,)
        Points with K >= 2, that have a variance: totals are means over these. Others have nan.
    """

    name: str
    y: np.ndarray
    K: np.ndarray
    n_replicates: int
    size: int
    noise: Noise | None = field(default=None, repr=False)

    @property
    def known(self) -> np.ndarray:
        """Points that have a variance."""
        return self.K >= 2

    @property
    @abstractmethod
    def totals(self) -> dict[str, Total]:
        """Mean over points of each part, with its standard error."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, np.ndarray]:
        """Arrays with an entry for each point, by name."""

    @property
    @abstractmethod
    def _notes(self) -> dict[str, str]:
        """What there is to say of some totals."""

    def to_frame(self) -> Any:
        """Return the points as a pandas frame, a row for each."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        n, K = len(self.y), self.K
        lines = [
            f"{self.name}: {self.n_replicates} bootstrap replicates of {self.size} of {n} rows",
            f"predictions of a point, by replicates without it: {K.mean():.1f} "
            f"({K.min()} to {K.max()}, {K.mean() / self.n_replicates:.2f} of all)",
        ]
        width = max(map(len, self.totals))
        for name, total in self.totals.items():
            said = f"   {self._notes[name]}" if name in self._notes else ""
            lines.append(f"  {name.replace('_', ' '):{width}s} {total}{said}")
        missing = int((~self.known).sum())
        if missing:
            lines.append(
                f"  {missing} points have fewer than two predictions, and take no part: they have "
                "no variance. More replicates leave fewer of them."
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class SquaredDecomposition(Decomposition):
    """Bias and variance of a regressor, for the squared error.

    Attributes
    ----------
    mean : float array (n,)
        ``hbar(x)``: mean prediction of each point.
    variance : float array (n,)
        Sample variance of its predictions, with K - 1.
    """

    mean: np.ndarray = field(default_factory=lambda: np.empty(0))
    variance: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def bias(self) -> np.ndarray:
        """``y - hbar(x)`` of each point, noise included."""
        return self.y - self.mean

    @property
    def error(self) -> np.ndarray:
        """Mean squared error of each point's predictions."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.bias**2 + (self.K - 1) / self.K * self.variance

    @property
    def totals(self) -> dict[str, Total]:
        """``error``, ``squared_bias``, ``variance``; with noise also what is left of the bias."""
        here = self.known
        squared, variance = self.bias[here] ** 2, self.variance[here]
        totals = {
            "error": _total(self.error[here]),
            "squared_bias": _total(squared),
            "variance": _total(variance),
        }
        if self.noise is not None:
            of_row = self.noise.of_row[here]
            totals["noise"] = noise = _total(of_row[np.isfinite(of_row)])
            net = _total(squared - variance / self.K[here])
            spread = float(np.hypot(net.standard_error, noise.standard_error))
            totals["squared_bias_less_noise"] = Total(net.value - noise.value, spread)
        return totals

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """``y``, ``K``, ``mean``, ``bias``, ``variance``, ``error`` and perhaps ``noise``."""
        names = ("y", "K", "mean", "bias", "variance", "error")
        columns = {name: getattr(self, name) for name in names}
        return columns if self.noise is None else columns | {"noise": self.noise.of_row}

    @property
    def _notes(self) -> dict[str, str]:
        notes = {
            "squared_bias": "(y - mean prediction)^2, which has the noise of y in it",
            "variance": "of predictions about their mean, with K - 1",
        }
        if self.noise is None:
            return notes
        below = self.totals["squared_bias_less_noise"].value < 0
        said = "less the noise, and less variance / K of the mean itself"
        return notes | {
            "noise": f"from {self.noise.source}",
            "squared_bias_less_noise": said + ("; below zero: not to be told from it" * below),
        }

    def bagged(self) -> SquaredDecomposition:
        """Return what this estimate says of bagging: its predictions are the means themselves.

        The mean of the replicates is one prediction for each point, and has no variance; its error
        is the squared bias. Another data set would give another mean: to measure that, take
        :func:`bias_variance` of a bagged machine.
        """
        zero = np.where(np.isfinite(self.variance), 0.0, np.nan)
        return replace(self, name=f"bagged {self.name}, by this estimate", variance=zero)


@dataclass(frozen=True)
class ZeroOneDecomposition(Decomposition):
    """Bias and variance of a classifier, for the 0-1 loss (Domingos).

    Attributes
    ----------
    classes : array (n_classes,)
    votes : int array (n, n_classes)
        How many of a point's predictions say each class.
    best : int array (n,)
        The class at each point that bias is counted from, as an index: that of y or, where the
        noise was asked for and is known, the most common one.
    """

    classes: np.ndarray = field(default_factory=lambda: np.empty(0))
    votes: np.ndarray = field(default_factory=lambda: np.empty(0))
    best: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def _shares(self) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return self.votes / self.K[:, None]

    def _share_of(self, index: np.ndarray) -> np.ndarray:
        return self._shares[np.arange(len(index)), index]

    @property
    def main(self) -> np.ndarray:
        """Main prediction of each point: the class most of its predictions say, the first of such.

        Points without a prediction have the first class; ``K`` says which these are.
        """
        return self.classes[np.argmax(self.votes, axis=1)]

    @property
    def bias(self) -> np.ndarray:
        """1 where the main prediction is wrong, else 0; nan where there is none."""
        wrong = (np.argmax(self.votes, axis=1) != self.best).astype(np.float64)
        return np.where(self.K > 0, wrong, np.nan)

    @property
    def variance(self) -> np.ndarray:
        """Share of each point's predictions that differ from the main one; nan for K < 2."""
        return np.where(self.known, 1.0 - self._share_of(np.argmax(self.votes, axis=1)), np.nan)

    @property
    def error(self) -> np.ndarray:
        """Share of each point's predictions that are not y."""
        return 1.0 - self._share_of(np.searchsorted(self.classes, self.y))

    @property
    def totals(self) -> dict[str, Total]:
        """``error``, ``bias``, variances, noise: error = bias + net variance + noise effect."""
        here = self.known
        bias, variance = self.bias[here], self.variance[here]
        right = self._share_of(self.best)[here]
        unbiased, biased = np.where(bias == 0, variance, 0.0), np.where(bias == 1, right, 0.0)
        totals = {
            "error": _total(self.error[here]),
            "bias": _total(bias),
            "unbiased_variance": _total(unbiased),
            "biased_variance": _total(biased),
            "net_variance": _total(unbiased - biased),
            "variance": _total(variance),
        }
        if self.noise is not None:
            of_row = self.noise.of_row[here]
            totals["noise"] = _total(of_row[np.isfinite(of_row)])
            totals["noise_effect"] = _total(self.error[here] - (1.0 - right))
        return totals

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """``y``, ``K``, ``main``, ``bias``, ``variance``, ``error`` and perhaps ``noise``."""
        names = ("y", "K", "main", "bias", "variance", "error")
        columns = {name: getattr(self, name) for name in names}
        return columns if self.noise is None else columns | {"noise": self.noise.of_row}

    @property
    def _notes(self) -> dict[str, str]:
        main = "points whose main prediction is wrong"
        notes = {
            "bias": f"{main}, noise of y included" if self.noise is None else main,
            "unbiased_variance": "adds to the error, where the main prediction is right",
            "biased_variance": "takes from it: right, where the main prediction is wrong",
            "net_variance": "unbiased less biased; error = bias + net variance",
        }
        if self.noise is None:
            return notes
        return notes | {
            "net_variance": "unbiased less biased; error = bias + net variance + noise effect",
            "noise": f"labels that are not the best at x, from {self.noise.source}",
            "noise_effect": "what these make of the error, more or less",
        }

    def bagged(self) -> ZeroOneDecomposition:
        """Return what this estimate says of bagging: its predictions are the main ones themselves.

        The votes of the replicates make one prediction for each point, which has no variance; its
        error is the bias. Another data set would give other votes: to measure that, take
        :func:`bias_variance` of a bagged machine.
        """
        main = np.argmax(self.votes, axis=1)
        votes = np.zeros_like(self.votes)
        votes[np.arange(len(main)), main] = self.K
        return replace(self, name=f"bagged {self.name}, by this estimate", votes=votes)

"""Which words of a sequence speak for which class: a fitted machine, taken apart.

A kernel machine is ``f(x) = sum_i c_i k(x, x_i) + b``. Where the kernel is a product of features,
``f(x) = w . phi(x) + b`` with ``w = sum_i c_i phi(x_i)``: each feature has a weight, and each place
of a sequence a part of the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.columns import squared_lengths
from maxmargin.backends.data import as_table
from maxmargin.kernels.algebra import Normalized, OnColumns, Scaled, Shifted, Sum
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.sequences.alphabet import sequences_of
from maxmargin.kernels.sequences.base import FeatureKernel

_AT_ONCE = 128  # support vectors


@dataclass(frozen=True)
class FeatureWeights:
    """Weights of a fitted machine in the feature space of one of its kernels on sequences.

    Attributes
    ----------
    kernel : FeatureKernel
    columns : int array (p,)
        Features that have a weight, sorted.
    weights : float array (p,)
    """

    kernel: FeatureKernel
    columns: np.ndarray
    weights: np.ndarray
    normalized: bool
    on: tuple[int, ...] | None

    def top(self, count: int = 20) -> list[tuple[str, float]]:
        """The features with the largest weights, of either sign, as (name, weight)."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:count]
        names = self.kernel.feature_names(self.columns[order])
        return list(zip(names, self.weights[order].tolist(), strict=True))

    def at(self, X: Any) -> list[np.ndarray]:
        """Part of the value at each place of each sequence; they sum to that of the kernel."""
        column = self._column(X)
        parts = self.kernel.position_values(column, self.columns, self.weights)
        if not self.normalized:
            return parts
        lengths = np.sqrt(squared_lengths(self.kernel.features(column)))
        pairs = zip(parts, lengths, strict=True)
        return [part / length if length else part for part, length in pairs]

    def sequences(self, X: Any) -> list[str]:
        """The sequences of X that the kernel sees, as str."""
        return sequences_of(self._column(X), self.kernel)

    def _column(self, X: Any) -> np.ndarray:
        table = as_table(X)
        return table if self.on is None else table[:, list(self.on)]


def sequence_weights(machine: Any) -> FeatureWeights:
    """Weights that a fitted machine gives to the words of sequences.

    Parameters
    ----------
    machine : fitted estimator of this package, with one expansion
        A classifier of two classes, a regressor or a one-class machine, whose kernel is a product
        of features on sequences (``Spectrum``, ``Mismatch``, ``GappedKmer``, ``Substitution``,
        ``WeightedDegree``, ``BagOfWords``), also normalized, scaled, on a column of a table, or in
        a sum with other kernels, of which the parts are then those of this one.

    Returns
    -------
    FeatureWeights
        With ``columns`` and ``weights``, ``top(20)`` and the parts of each place, ``at(X)``.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import Spectrum, sequence_weights
    >>> X, y = ["ACAC", "CACA", "GGTT", "TTGG"], [0, 0, 1, 1]
    >>> model = SVC(kernel=Spectrum(2)).fit(X, y)
    >>> found = sequence_weights(model)
    >>> sorted(word for word, weight in found.top(2))
    ['AC', 'CA']
    >>> (parts,) = found.at(["GGTT"])
    >>> bool(abs(parts.sum() + model.intercept_[0] - model.decision_function(["GGTT"])[0]) < 1e-9)
    True
    """
    kernel = getattr(machine, "kernel_", None)
    coefficients: Any = getattr(machine, "dual_coef_", None)
    if kernel is None or coefficients is None:
        raise TypeError(
            f"{type(machine).__name__} is no fitted kernel machine: fit it first; the weights of a "
            "linear machine on features(X) are its coef_, which feature_names(columns) names."
        )
    expansion = getattr(machine, "_expansion", None)  # where dual_coef_ is not that of points
    coefficients = expansion if isinstance(expansion, np.ndarray) else coefficients
    c = coefficients.toarray() if sp.issparse(coefficients) else np.atleast_2d(coefficients)
    if len(c) != 1:
        raise ValueError(
            f"The machine has {len(c)} expansions, for several classes or outputs: fit one for two "
            "classes, one class against the rest, or one output."
        )
    inside, scale, normalized, on = _found(kernel)
    points = as_table(machine.support_vectors_)
    points = points if on is None else points[:, list(on)]
    c = scale * c[0]
    columns: Any = np.empty(0, dtype=np.int64)
    weights: Any = np.empty(0)
    for some in range(0, len(points), _AT_ONCE):  # all of them may have more than can be held
        part = slice(some, some + _AT_ONCE)
        features, own = inside.features(points[part]), c[part]
        if normalized:
            lengths = np.sqrt(squared_lengths(features))
            own = own * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        values = features.data * np.repeat(own, np.diff(features.indptr))
        columns, place = np.unique(np.append(columns, features.indices), return_inverse=True)
        weights = np.bincount(place, np.append(weights, values), minlength=len(columns))
    return FeatureWeights(inside, columns, weights, normalized, on)


def _found(kernel: Kernel) -> tuple[FeatureKernel, float, bool, tuple[int, ...] | None]:
    """The kernel on sequences inside of another, its factor, normalisation and column."""
    scale, normalized, on = 1.0, False, None
    whole = kernel
    while not isinstance(kernel, FeatureKernel):
        if isinstance(kernel, Sum) and not normalized:
            holding = [k for k in kernel.kernels if _holds_features(k)]
            if len(holding) != 1:
                break
            kernel = holding[0]
        elif isinstance(kernel, Scaled) and not normalized:
            scale, kernel = scale * float(kernel.constant), kernel.kernel
        elif isinstance(kernel, Shifted) and not normalized:
            kernel = kernel.kernel
        elif isinstance(kernel, Normalized):
            normalized, kernel = True, kernel.kernel
        elif isinstance(kernel, OnColumns) and on is None:
            on, kernel = tuple(kernel.columns), kernel.kernel
        else:
            break
    if not isinstance(kernel, FeatureKernel):
        raise ValueError(
            f"{whole!r} is not a sum with one product of features on sequences (Spectrum, Mismatch,"
            " GappedKmer, Substitution, WeightedDegree, BagOfWords), so that words have no weights "
            "of their own."
        )
    return kernel, scale, normalized, on


def _holds_features(kernel: Kernel) -> bool:
    try:
        _found(kernel)
    except ValueError:
        return False
    return True

"""The perceptron's steps in a feature space that is never entered, over rows of a Gram matrix.

The weights are ``w = sum_i alpha_i y_i phi(x_i)``, so all that is needed of a row is
``f(x_i) = sum_j alpha_j y_j k(x_i, x_j) + b``. These values are kept for all rows; a step on row i
adds ``eta y_i`` times row i of the Gram matrix to them. A start is a combination of rows, too.

Reference: Aizerman, Braverman and Rozonoer, Automation and Remote Control 25, 1964; Freund and
Schapire, Machine Learning 37, 1999.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from maxmargin.backends.compiled import njit
from maxmargin.gram import Gram
from maxmargin.solvers.perceptron.state import PerceptronState, Sizes, Weights

_AHEAD = 256  # rows of the matrix made at once,
_SOON = 1e8  # unless they take so many ns: then fewer
_VALUES = 1 << 25  # of the matrix that one compiled call looks at


class KernelState(PerceptronState):
    """A perceptron over the rows of a Gram matrix."""

    solves_for = "multipliers"

    def __init__(
        self,
        gram: Gram,
        y: np.ndarray,
        step: np.ndarray,
        bias: bool,
        coef: np.ndarray,
        intercept: float,
        sizes: Sizes | None,
        variant: str,
    ) -> None:
        super().__init__(y, step, sizes, variant)
        self.gram, self.has_bias, self.start = gram.host, bias, coef
        self.values = gram.matvec(coef) if coef.any() else np.zeros(gram.n)
        self.totals["bias"] = intercept
        self.rows_at_once, self.rows_measured = max(_VALUES // gram.n, 1), gram.n

    def _visit(
        self, order: np.ndarray, place: int, end: int, until: float, sizes: np.ndarray
    ) -> int:
        """Look at some rows; those of the matrix that are not there yet are made on the way."""
        store, before = self.gram.store, float(self.n_updates)
        while place < end:
            place, missing = _visit(
                order,
                place,
                end,
                until,
                before,
                sizes,
                self.has_bias,
                self.averaged,
                store.slot,
                store.data,
                self.values,
                self.examples,
                self.dual_sum,
                self.totals,
            )
            if not missing or self.stopped() is not None:
                break
            self._require_some(order[place:end])
        return place

    def _require_some(self, coming: np.ndarray) -> None:
        """Make the next row of the matrix, and rows after it that are likely to make a step too."""
        soon = int(_SOON / (self.gram.points.entry_time * self.gram.n))
        most = max(min(_AHEAD, soon, self.gram.store.capacity // 2), 1)
        likely = coming[self.wrong(coming)]
        likely = likely[self.gram.store.slot[likely] < 0]
        _, first = np.unique(likely, return_index=True)
        self.gram.require(likely[np.sort(first)[:most]])

    def margins(self, rows: np.ndarray) -> np.ndarray:
        """Look at rows without learning from them."""
        return self.examples["signed_step"][rows] * (self.values[rows] + self.bias)

    @property
    def variables(self) -> np.ndarray:
        """The signed dual variables ``y_i alpha_i``, and the start; their sum moves the bias."""
        return self.start + np.copysign(self.dual, self.examples["signed_step"])

    def snapshot(self) -> np.ndarray:
        """Values at all rows, and the bias."""
        return np.concatenate((self.values, self.totals["bias"]))

    def at(self, weights: Weights) -> KernelState:
        """Return a copy with another combination of the rows, and its values at all of them."""
        other = cast(KernelState, super().at(weights))
        signed = np.copysign(weights.dual, self.examples["signed_step"])
        other.values = self.gram.matvec(self.start + signed)
        return other

    def last(self) -> Weights:
        """Return the combination as it is."""
        return Weights(None, self.bias, self.dual.copy())


@njit(cache=True, nogil=True)
def _visit(
    order: np.ndarray,
    place: int,
    end: int,
    until: float,
    before: float,
    sizes: np.ndarray,
    bias: bool,
    averaged: bool,
    slot: np.ndarray,
    data: np.ndarray,
    values: np.ndarray,
    examples: np.ndarray,
    dual_sum: np.ndarray,
    totals: np.ndarray,
) -> tuple[int, bool]:
    """Look at ``order[place:end]`` and learn from mistakes, until there were so many updates.

    Returns the place reached, and whether a row of the matrix is missing there. Changes values,
    examples, dual_sum and totals.
    """
    now = totals[0]
    while place < end and now.updates < until:
        i = order[place]
        amount, value = examples[i].signed_step, values[i] + now.bias
        if amount * value > 0.0:
            now.current_streak += 1.0
        else:
            if slot[i] < 0:
                return place, True
            if now.current_streak > now.longest_streak:
                now.longest_streak = now.current_streak
                return place, False
            now.loss += abs(value)
            now.current_streak = 0.0
            amount *= sizes[min(int(now.updates - before), len(sizes) - 1)]
            now.updates += 1.0
            now.row = i
            row = data[slot[i]]
            for j in range(len(values)):
                values[j] += amount * row[j]
            examples[i].alpha += abs(amount)
            if bias:
                now.bias += amount
            if averaged:
                dual_sum[i] += now.visits * abs(amount)
                if bias:
                    now.bias_sum += now.visits * amount
        now.visits += 1.0
        place += 1
    return place, False

"""The kernel perceptron: the perceptron's steps in a feature space that is never entered.

The weights are ``w = sum_i alpha_i y_i phi(x_i)``, so all that is needed of a row is
``f(x_i) = sum_j alpha_j y_j k(x_i, x_j) + b``. These values are kept for all rows; a step on row i
adds ``eta y_i`` times row i of the Gram matrix to them.

Reference: Aizerman, Braverman and Rozonoer, Automation and Remote Control 25, 1964; Freund and
Schapire, Machine Learning 37, 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_consistent_length

from maxmargin import memory
from maxmargin.backends.compiled import njit
from maxmargin.backends.threads import on_one_blas_thread
from maxmargin.bounds import novikoff
from maxmargin.estimators.data import validate_data
from maxmargin.estimators.expansion import expansion_of
from maxmargin.gram import Gram
from maxmargin.kernels import Input, Kernel, as_kernel
from maxmargin.linear.perceptron_form import Form, Start
from maxmargin.solvers.perceptron.walk import (
    BIAS,
    BIAS_SUM,
    LOSS,
    RECORD,
    RUN,
    UPDATES,
    VISITS,
    Walk,
    Weights,
)

_AHEAD = 256  # rows of the matrix made at once,
_SOON = 1e8  # unless they take so many ns: then fewer
_VALUES = 1 << 25  # of the matrix that one compiled call looks at


class KernelForm(Form):
    """The perceptron as a combination of the rows."""

    judge = "maxmargin.SVC(C=numpy.inf) with this kernel"
    threads = 1  # the machines share the matrix

    def refuse_contradictions(self) -> None:
        """Refuse what needs the weights themselves, too."""
        super().refuse_contradictions()
        penalty, init = self.machine.penalty, self.machine.init
        if (penalty, init) != (None, "zero"):
            raise ValueError(
                "The kernel perceptron starts from zero and has no penalty: its weights are only "
                f"known as a combination of rows; got penalty={penalty!r}, init={init!r}."
            )

    def validated(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
        """Check X and y; a kernel may want a square matrix, or objects of any type."""
        return _validated(self.machine, X, y, kernel=as_kernel(self.machine.kernel), reset=reset)

    def start(self, X: Any, coef: Any = None, intercept: Any = None) -> Start:
        """Zero: no weights, only biases."""
        machine = self.machine
        if coef is not None or intercept is not None or machine.warm_start:
            raise ValueError(
                "The kernel perceptron starts from zero: it takes neither coef_init, "
                "intercept_init nor warm_start."
            )
        return None, np.zeros(1 if len(machine.classes_) == 2 else len(machine.classes_))

    def walks(
        self, X: Any, signs: list[np.ndarray], steps: list[np.ndarray], start: Start
    ) -> Sequence[Walk]:
        """Return a machine for each row of labels and its rows' steps, all over one Gram matrix."""
        machine = self.machine
        gram = self._gram(X, as_kernel(machine.kernel))
        machine.kernel_ = gram.kernel
        return [
            KernelWalk(gram, y, step, machine.fit_intercept, machine.variant)
            for y, step in zip(signs, steps, strict=True)
        ]

    def _gram(self, X: Any, kernel: Kernel) -> Gram:
        """Gram matrix of the training rows, within the memory allowed."""
        names = getattr(self.machine, "feature_names_in_", None)
        allowed = memory.budget(self.machine.cache_size)
        gram = Gram.of(X, kernel, feature_names=names, memory=allowed)
        gram.check()
        return gram

    def keep(self, X: Any, signs: list[np.ndarray], found: list[Weights]) -> None:
        """Set the attributes of the expansion: the rows used by any machine, with their signs."""
        machine = self.machine
        coefficients = np.array([weights.dual for weights in found]) * signs
        machine.support_ = np.flatnonzero(coefficients.any(axis=0)).astype(np.int32)
        machine._expansion = np.ascontiguousarray(coefficients[:, machine.support_])
        machine.support_vectors_ = np.empty((0, 0))
        if not machine.kernel_.pairwise:
            machine.support_vectors_ = _safe_indexing(X, machine.support_)

    def _bounds(
        self, X: Any, signs: list[np.ndarray], coef: np.ndarray, intercept: np.ndarray
    ) -> list[float]:
        """Bound the updates of each machine, in the feature space."""
        gram = self._gram(X, self.machine.kernel_)
        beta2 = float(gram.diagonal.max()) + bool(self.machine.fit_intercept)
        bounds = []
        for y, c, b in zip(signs, coef, intercept, strict=True):
            values = gram.matvec(c)
            bounds.append(novikoff(y * (values + b), beta2, float(c @ values + b**2)).value)
        return bounds


def values_at(machine: Any, X: Any) -> np.ndarray:
    """Values of a fitted machine's expansions at new points, shape (n, machines)."""
    X = _validated(machine, X, kernel=machine.kernel_, reset=False)
    parts = machine.kernel_, machine.support_vectors_, machine.support_, machine._expansion
    return expansion_of(machine, *parts).at(X) + machine.intercept_


def _validated(
    machine: Any, X: Any, y: Any = "no_validation", *, kernel: Kernel, reset: bool
) -> Any:
    """Check X, and y if there is one, as the kernel wants them."""
    if kernel.input is Input.OBJECTS:
        checked = validate_data(machine, X, y, reset=reset, skip_check_array=True)
        if reset:
            check_consistent_length(X, y)
        return checked
    if kernel.pairwise and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    checked = validate_data(
        machine,
        X,
        y,
        reset=reset,
        dtype=[np.float64, np.float32],
        order="C",
        accept_sparse="csr",
    )
    if reset and kernel.pairwise and checked[0].shape[0] != checked[0].shape[1]:
        raise ValueError(
            "Precomputed matrix must be a square matrix."
            f" Input is a {checked[0].shape[0]}x{checked[0].shape[1]} matrix."
        )
    return checked


class KernelWalk(Walk):
    """A perceptron over the rows of a Gram matrix."""

    def __init__(
        self, gram: Gram, y: np.ndarray, step: np.ndarray, bias: bool, variant: str
    ) -> None:
        super().__init__(y, step, variant)
        self.gram, self.bias = gram, bias
        self.values = np.zeros(gram.n)
        self.rows_at_once = max(_VALUES // gram.n, 1)

    @on_one_blas_thread
    def go(self, order: np.ndarray, place: int, end: int) -> int:
        """Look at some rows; those of the matrix that are not there yet are made on the way."""
        store = self.gram.store
        while place < end:
            place, missing = _walk_in_feature_space(
                order,
                place,
                end,
                self.bias,
                self.averaged,
                store.slot,
                store.data,
                self.values,
                self.ledger,
                self.dual_sum,
                self.tally,
            )
            if not missing or self.stopped() is not None:
                break
            self.gram.require(self._wanted(order[place:end]))
        return place

    def _wanted(self, coming: np.ndarray) -> np.ndarray:
        """The next row, and rows after it that are likely to make a step too."""
        soon = int(_SOON / (self.gram.points.entry_time * self.gram.n))
        most = max(min(_AHEAD, soon, self.gram.store.capacity // 2), 1)
        likely = coming[self.wrong(coming)]
        likely = likely[self.gram.store.slot[likely] < 0]
        _, first = np.unique(likely, return_index=True)
        return likely[np.sort(first)[:most]]

    def wrong(self, rows: np.ndarray) -> np.ndarray:
        """Look at rows without learning from them."""
        return ~(self.ledger[rows, 0] * (self.values[rows] + self.tally[BIAS]) > 0.0)

    def state(self) -> np.ndarray:
        """Values at all rows, and the bias."""
        return np.append(self.values, self.tally[BIAS])

    def last(self) -> Weights:
        """Return the combination as it is."""
        return Weights(None, float(self.tally[BIAS]), self.dual.copy())


@njit(cache=True, nogil=True)
def _walk_in_feature_space(
    order: np.ndarray,
    place: int,
    end: int,
    bias: bool,
    averaged: bool,
    slot: np.ndarray,
    data: np.ndarray,
    values: np.ndarray,
    ledger: np.ndarray,
    dual_sum: np.ndarray,
    tally: np.ndarray,
) -> tuple[int, bool]:
    """Look at ``order[place:end]`` and learn from mistakes.

    Returns the place reached, and whether a row of the matrix is missing there. Changes values,
    ledger, dual_sum and tally.
    """
    while place < end:
        i = order[place]
        amount, value = ledger[i, 0], values[i] + tally[BIAS]
        if amount * value > 0.0:
            tally[RUN] += 1.0
        else:
            if slot[i] < 0:
                return place, True
            if tally[RUN] > tally[RECORD]:
                tally[RECORD] = tally[RUN]
                return place, False
            tally[LOSS] += abs(value)
            tally[RUN] = 0.0
            tally[UPDATES] += 1.0
            row = data[slot[i]]
            for j in range(len(values)):
                values[j] += amount * row[j]
            ledger[i, 1] += abs(amount)
            if bias:
                tally[BIAS] += amount
            if averaged:
                dual_sum[i] += tally[VISITS] * abs(amount)
                if bias:
                    tally[BIAS_SUM] += tally[VISITS] * amount
        tally[VISITS] += 1.0
        place += 1
    return place, False

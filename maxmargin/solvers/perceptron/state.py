"""A perceptron between two rows, and its steps over some of them, compiled.

    for each row i:   if y_i (w . x_i + b) <= 0:    w <- w + eta_i y_i x_i,    b <- b + eta_i y_i

``eta_i`` is the step of the row, times a size of the k-th update where there is a schedule.
``alpha_i`` counts how much step each row was used with. The weights are kept as ``scale * w``: an
L2 penalty, which makes them smaller at every row, changes one number. An L1 penalty is made up for
when a feature is next seen. A sum beside the weights gives their mean over all rows looked at.

References: Rosenblatt, Psychological Review 65, 1958; Freund and Schapire, Machine Learning 37,
1999 (averaging); Tsuruoka et al., ACL 2009 (L1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numba.extending import overload

from maxmargin.backends.compiled import njit
from maxmargin.backends.cpu.linear.rows import FAST, add, dot, rows_of

_ENTRIES = 1 << 25  # of the data that one compiled call looks at: some 0.05 s
_MEASURED = 1 << 20  # of them that a measure looks at: about a millisecond
_SMALLEST = 1e-9  # scale of the weights at which it is multiplied out
_AHEAD = 1024  # updates whose sizes are asked for at a time
_CONSTANT = np.ones(1)  # sizes of updates that all have the size of their row

# y_i eta_i and alpha_i side by side: rows are looked at in any order, and one miss of the cache is
# better than two.
EXAMPLE = np.dtype([("signed_step", np.float64), ("alpha", np.float64)])

# A streak are rows that were right one after the other, the longest since the pass began; the
# weights are scale times what is stored; shrunk is what an L1 penalty has asked of each so far; row
# is the one that the last update was about.
_NAMES = "bias bias_sum scale shrunk visits updates row loss current_streak longest_streak"
TOTALS = np.dtype([(name, np.float64) for name in _NAMES.split()])


Sizes = Callable[[int, int], np.ndarray]  # of so many updates, after so many


class Weights(NamedTuple):
    """A perceptron's weights, its bias and how much step each row was used with."""

    coef: np.ndarray | None
    intercept: float
    dual: np.ndarray


@dataclass(frozen=True)
class Penalty:
    """``alpha ((1 - r) ||w||^2 / 2 + r |w|_1)``, a step of size ``eta`` against it at every row."""

    alpha: float = 0.0
    r: float = 0.0
    eta: float = 1.0

    @classmethod
    def named(cls, name: str | None, alpha: float, l1_ratio: float, eta: float) -> Penalty:
        """Return the penalty that scikit-learn's parameters mean; that of None is zero."""
        if name is None:
            return cls()
        penalty = cls(alpha, {"l2": 0.0, "l1": 1.0, "elasticnet": l1_ratio}[name], eta)
        if penalty.decay <= 0.0:
            raise ValueError(
                f"eta0={eta} times alpha={alpha} would shrink the weights to nothing at every row: "
                "make one of them smaller."
            )
        return penalty

    @property
    def decay(self) -> float:
        """Factor of the weights at every row, for L2."""
        return 1.0 - (1.0 - self.r) * self.eta * self.alpha

    @property
    def clip(self) -> float:
        """What is taken off every weight at every row, for L1."""
        return self.r * self.eta * self.alpha

    def __call__(self, coef: np.ndarray) -> float:
        """Return the penalty of some weights."""
        if not self.alpha:
            return 0.0
        return float(
            self.alpha * ((1.0 - self.r) * 0.5 * coef @ coef + self.r * np.abs(coef).sum())
        )


def starting_weights(
    shape: tuple[int, int], coef: Any, intercept: Any, bias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (machines, features) and biases to start from, as copies; by default zero."""
    weights = np.zeros(shape) if coef is None else np.array(coef, dtype=np.float64)
    biases = np.zeros(shape[0]) if intercept is None else np.array(intercept, dtype=np.float64)
    if weights.size != shape[0] * shape[1] or biases.size != shape[0]:
        raise ValueError(
            f"The weights to start from have shapes {weights.shape} and {biases.shape}, but these "
            f"data ask for {shape} and {shape[:1]}: give such, or set warm_start=False."
        )
    if not bias and biases.any():
        raise ValueError("intercept_init must be zero (or absent) with fit_intercept=False.")
    return weights.reshape(shape), biases.reshape(shape[0])


class PerceptronState(ABC):
    """A perceptron between two rows: what changes with every row that it looks at.

    ``examples`` has a record for each row, ``totals`` one for all of them; ``sizes`` are factors of
    the updates, by their number, None where they are all one.
    """

    solves_for = "weights"

    rows_at_once: int
    rows_measured: int

    def __init__(self, y: np.ndarray, step: np.ndarray, sizes: Sizes | None, variant: str) -> None:
        self.sizes = sizes
        self.examples = np.zeros(len(y), dtype=EXAMPLE)
        self.examples["signed_step"] = y * step
        self.averaged, self.pocket = variant == "averaged", variant == "pocket"
        self.dual_sum = np.zeros(len(y) if self.averaged else 0)
        self.totals = np.zeros(1, dtype=TOTALS)
        self.totals["scale"] = 1.0
        self.stopped: Callable[[], Any] = lambda: None  # asked where looking at rows takes long

    @property
    def dual(self) -> np.ndarray:
        """How much step each row was used with."""
        return self.examples["alpha"]

    @property
    def bias(self) -> float:
        """The bias as it is."""
        return float(self.totals["bias"][0])

    @property
    def scale(self) -> float:
        """Factor of the weights that are stored."""
        return float(self.totals["scale"][0])

    @property
    def loss(self) -> float:
        """Sum of ``max(0, -y f(x))`` over the pass."""
        return float(self.totals["loss"][0])

    @property
    def n_updates(self) -> int:
        """Steps made."""
        return int(self.totals["updates"][0])

    @property
    def row(self) -> int:
        """Row of the last of them."""
        return int(self.totals["row"][0])

    def begin_pass(self) -> None:
        """Forget the loss and the longest streak of the last pass."""
        self.totals["loss"] = 0.0
        self.totals["longest_streak"] = 0.0 if self.pocket else np.inf

    def visit(self, order: np.ndarray, place: int, end: int, until: float) -> int:
        """Look at the rows ``order[place:end]``; returns the place that was reached.

        It is before the end where ``until`` updates have been made in all, or where the longest
        streak of right answers has just come to one: then the weights are those of the streak, for
        the pocket.
        """
        if self.sizes is None:
            return self._visit(order, place, end, until, _CONSTANT)
        while True:
            before = self.n_updates
            count = int(min(until - before, max(end - place, 1), _AHEAD))
            place = self._visit(order, place, end, before + count, self.sizes(before, count))
            if place == end or self.n_updates < before + count or self.n_updates >= until:
                return place

    @abstractmethod
    def _visit(
        self, order: np.ndarray, place: int, end: int, until: float, sizes: np.ndarray
    ) -> int:
        """Do so, with the sizes of the next updates; the last one is that of all later ones."""

    @abstractmethod
    def margins(self, rows: np.ndarray) -> np.ndarray:
        """Return ``y_i f(x_i)`` of some rows, each times the row's step; learns nothing."""

    def shuffled(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Rows in an order that is drawn at random."""
        return random.permutation(rows)

    def wrong(self, rows: np.ndarray) -> np.ndarray:
        """Which of the rows are not on their right side, as a mask."""
        return ~(self.margins(rows) > 0.0)

    def mistakes_and_loss(self, rows: np.ndarray) -> tuple[float, float]:
        """Share of the rows that are wrong, and the mean of ``max(0, -y f(x))`` over them all.

        Where looking at all of them takes long, evenly spaced ones stand for them.
        """
        rows = rows[:: -(-len(rows) // self.rows_measured) or 1]
        margins, count = self.margins(rows), max(len(rows), 1)
        losses = np.maximum(-margins, 0.0) / np.abs(self.examples["signed_step"][rows])
        return np.count_nonzero(~(margins > 0.0)) / count, float(losses.sum()) / count

    @property
    @abstractmethod
    def variables(self) -> np.ndarray:
        """What is solved for, as a copy."""

    @abstractmethod
    def snapshot(self) -> np.ndarray:
        """All that later updates depend on, as a copy."""

    @abstractmethod
    def last(self) -> Weights:
        """Return the weights as they are, as copies."""

    def mean(self) -> Weights:
        """Return the mean of the weights over the rows looked at."""
        return Weights(None, self._mean_bias(), self._mean(self.dual, self.dual_sum))

    def at(self, weights: Weights) -> PerceptronState:
        """Return a copy with other weights, to compute margins with."""
        other = copy(self)
        other.totals = self.totals.copy()
        other.totals["bias"], other.totals["scale"] = weights.intercept, 1.0
        return other

    def found(self) -> Weights:
        """Return the weights to keep: the last ones, or their mean."""
        return self.mean() if self.averaged else self.last()

    def penalty(self) -> float:
        """Return the penalty of the weights."""
        return 0.0

    def refuse_infinite(self) -> None:
        """Raise an error if the weights have left the range of float64."""
        if not np.isfinite(self.snapshot()).all():
            raise ValueError(
                "Floating-point under-/overflow occurred. Scaling input data with StandardScaler "
                "or MinMaxScaler might help."
            )

    def _mean(self, last: Any, moments: Any) -> Any:
        """Mean over the rows looked at; a step of visit t is in all but the first t of them."""
        return last - moments / max(float(self.totals["visits"][0]), 1.0)

    def _mean_bias(self) -> float:
        return float(self._mean(self.bias, self.totals["bias_sum"][0]))


class LinearState(PerceptronState):
    """A perceptron over dense rows or CSR, float32 or float64; its weights are float64."""

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        step: np.ndarray,
        bias: bool,
        coef: np.ndarray,
        intercept: float,
        penalty: Penalty,
        sizes: Sizes | None,
        variant: str,
    ) -> None:
        super().__init__(y, step, sizes, variant)
        self.rows, self.has_bias, self.penalised = rows_of(X), bias, penalty
        self._begin_at(coef, intercept, len(y), X.nnz if sp.issparse(X) else X.size)

    def _begin_at(self, coef: np.ndarray, intercept: float, n: int, entries: int) -> None:
        """Be at some weights, before so many rows with so many entries."""
        self.w = coef.copy()
        self.w_sum = np.zeros(len(coef) if self.averaged else 0)
        self.taken = np.zeros(len(coef) if self.penalised.clip else 0)
        self.totals["bias"] = intercept
        self.rows_at_once = max(_ENTRIES * n // max(entries, 1), 1)
        self.rows_measured = max(_MEASURED * n // max(entries, 1), 1)

    def _visit(
        self, order: np.ndarray, place: int, end: int, until: float, sizes: np.ndarray
    ) -> int:
        """Look at some rows."""
        return visit(
            self.rows,
            order,
            place,
            end,
            until,
            sizes,
            self.has_bias,
            self.averaged,
            self.penalised.decay,
            self.penalised.clip,
            self.w,
            self.examples,
            self.w_sum,
            self.dual_sum,
            self.taken,
            self.totals,
        )

    def margins(self, rows: np.ndarray) -> np.ndarray:
        """Look at rows without learning from them."""
        out = np.empty(len(rows))
        for begin in range(0, len(rows), self.rows_at_once):
            part = slice(begin, begin + self.rows_at_once)
            look(self.rows, rows[part], self.w, self.examples, self.totals, out[part])
        return out

    @property
    def variables(self) -> np.ndarray:
        """The weights, and the bias after them."""
        return self.snapshot()

    def snapshot(self) -> np.ndarray:
        """Weights and bias."""
        return np.concatenate((self.scale * self.w, self.totals["bias"]))

    def last(self) -> Weights:
        """Return the weights as they are."""
        return Weights(self.scale * self.w, self.bias, self.scale * self.dual)

    def mean(self) -> Weights:
        """Return the mean of the weights, which no penalty has scaled."""
        return super().mean()._replace(coef=self._mean(self.w, self.w_sum))

    def at(self, weights: Weights) -> LinearState:
        """Return a copy with other weights."""
        other = cast(LinearState, super().at(weights))
        other.w = np.asarray(weights.coef)
        return other

    def penalty(self) -> float:
        """Return the penalty of the weights."""
        return self.penalised(self.scale * self.w)


@singledispatch
def state_of(X: Any) -> Callable[..., PerceptronState]:
    """Return what begins a perceptron without a kernel, over such rows."""
    return LinearState


@njit(cache=True, nogil=True, fastmath=FAST)
def visit(
    rows: Any,
    order: np.ndarray,
    place: int,
    end: int,
    until: float,
    sizes: np.ndarray,
    bias: bool,
    averaged: bool,
    decay: float,
    clip: float,
    w: np.ndarray,
    examples: np.ndarray,
    w_sum: np.ndarray,
    dual_sum: np.ndarray,
    taken: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Look at ``order[place:end]`` and learn from mistakes, until there were so many updates.

    Returns the place reached. Changes w, examples, the sums, taken and totals. The weights are
    ``scale * w``.
    """
    now = totals[0]
    b, scale, visits, loss, streak = now.bias, now.scale, now.visits, now.loss, now.current_streak
    updates, before = now.updates, now.updates
    while place < end and updates < until:
        i = order[place]
        amount = examples[i].signed_step
        value = scale * dot(rows, i, w) + b
        wrong = not amount * value > 0.0
        if wrong and streak > now.longest_streak:
            now.longest_streak = streak
            break
        if decay < 1.0:
            scale *= decay
            if scale < _SMALLEST:
                for j in range(len(w)):
                    w[j] *= scale
                for j in range(len(examples)):
                    examples[j].alpha *= scale
                scale = 1.0
        if wrong:
            loss += abs(value)
            streak = 0.0
            amount *= sizes[min(int(updates - before), len(sizes) - 1)]
            add(rows, i, amount / scale, w)
            examples[i].alpha += abs(amount) / scale
            updates += 1.0
            now.row = i
            if bias:
                b += amount
            if averaged:
                add(rows, i, visits * amount, w_sum)
                dual_sum[i] += visits * abs(amount)
                if bias:
                    now.bias_sum += visits * amount
        else:
            streak += 1.0
        if clip > 0.0:
            now.shrunk += clip
            _clip(rows, i, now.shrunk, scale, w, taken)
        visits += 1.0
        place += 1
    now.bias, now.scale, now.visits, now.loss, now.current_streak = b, scale, visits, loss, streak
    now.updates = updates
    return place


@njit(cache=True, nogil=True, fastmath=FAST)
def look(
    rows: Any,
    chosen: np.ndarray,
    w: np.ndarray,
    examples: np.ndarray,
    totals: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write ``y_i f(x_i)`` of the chosen rows to ``out``, times each row's step."""
    b, scale = totals[0].bias, totals[0].scale
    for k in range(len(chosen)):
        i = chosen[k]
        out[k] = examples[i].signed_step * (scale * dot(rows, i, w) + b)


def _clip(rows: Any, i: int, due: float, scale: float, w: np.ndarray, taken: np.ndarray) -> None:
    """Take from the weights of the features of x_i what L1 has asked for so far, in place."""
    raise NotImplementedError


@overload(_clip)
def _clip_of(rows: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> Any:
    def dense(rows: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> None:
        for j in range(len(w)):
            _clip_one(j, due, scale, w, taken)

    def csr(rows: Any, i: Any, due: Any, scale: Any, w: Any, taken: Any) -> None:
        for k in range(rows[2][i], rows[2][i + 1]):
            _clip_one(rows[1][k], due, scale, w, taken)

    return dense if len(rows) == 1 else csr


@njit(cache=True, nogil=True)
def _clip_one(j: int, due: float, scale: float, w: np.ndarray, taken: np.ndarray) -> None:
    """Bring one weight nearer to zero, not across; changes w and taken (Tsuruoka et al.)."""
    before = w[j]
    if before > 0.0:
        w[j] = max(0.0, before - (due + taken[j]) / scale)
    elif before < 0.0:
        w[j] = min(0.0, before + (due - taken[j]) / scale)
    taken[j] += scale * (w[j] - before)

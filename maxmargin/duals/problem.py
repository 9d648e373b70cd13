"""The quadratic programme of a kernel machine, and the arrays of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.cpu.dual.certificate import Readings, reading
from maxmargin.backends.cpu.dual.kkt import Variables
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.gram import Gram
from maxmargin.losses import Loss

_AT_BOUND = 1e-12  # from a bound, over the width of the box, that is rounding


class Losses(NamedTuple):
    """The losses of a primal: which one, its targets or labels on the rows, and their costs."""

    loss: Loss
    target: np.ndarray
    cost: np.ndarray


@dataclass(frozen=True)
class DualProblem:
    """One quadratic programme of the form of :mod:`maxmargin.duals`.

    Attributes
    ----------
    gram_row : int array (m,)
        Row of the Gram matrix that each variable sits on.
    orientation : float array (m,)
        ``o``, +1 or -1.
    linear, lower, upper, start : float arrays (m,)
        ``p``, the box, and a feasible point that fixes the constraints' right-hand sides.
    group : int array (m,)
        Equality constraint of each variable, counted from 0; -1 throughout when there is none.
    bias_weights, margin_weights : float arrays, one entry per group
        Bias and ``rho`` as linear functions of the levels. Machines whose margin is fixed at
        one have an empty ``margin_weights``.
    tube_weights : float array, one entry per group
        Width of the tube as a function of the levels, for nu-SVR; else empty.
    scaled : bool
        Whether the machine is divided by rho, so that its margin is one (nu-SVC, hard margin).
    hard : bool
        Whether this is the hard margin, posed as nearest points of the hulls.
    losses : Losses, optional
        The primal's losses, where these are all that it has beside the penalty (C-SVC, SVR).
    known_decision : float array, one entry per row of the Gram matrix, optional
        ``K coef`` at the start, where it is known.
    matrix : Gram, optional
        The Gram matrix: see :meth:`over`.
    """

    gram_row: np.ndarray
    orientation: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    group: np.ndarray
    bias_weights: np.ndarray
    margin_weights: np.ndarray
    tube_weights: np.ndarray
    scaled: bool = False
    hard: bool = False
    losses: Losses | None = None
    known_decision: np.ndarray | None = None
    matrix: Gram | None = None

    def over(self, gram: Gram) -> DualProblem:
        """Return the problem with the Gram matrix whose rows it is about."""
        return self if self.matrix is gram else self._changed(matrix=gram)

    @property
    def gram(self) -> Gram:
        """The Gram matrix."""
        if self.matrix is None:
            raise ValueError("This problem has no Gram matrix yet: say problem.over(gram).")
        return self.matrix

    def __len__(self) -> int:
        """Number of variables."""
        return len(self.linear)

    @cached_property
    def n_groups(self) -> int:
        """Number of equality constraints."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def variables(self) -> Variables:
        """The arrays that describe the variables, for compiled code."""
        return Variables(
            self.gram_row, self.orientation, self.linear, self.lower, self.upper, self.group
        )

    @property
    def readings(self) -> Readings:
        """How a machine is read off the levels, for compiled code."""
        return Readings(self.bias_weights, self.margin_weights, self.tube_weights)

    @cached_property
    def _ascending(self) -> bool:
        return bool((self.gram_row[1:] > self.gram_row[:-1]).all())

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the Gram matrix that the variables sit on, in order."""
        return self.gram_row if self._ascending else np.unique(self.gram_row)

    @property
    def own_row(self) -> np.ndarray:
        """Place of each variable's row among the problem's own."""
        if self._ascending:
            return np.arange(len(self))
        return np.searchsorted(self.rows, self.gram_row)

    @property
    def paired(self) -> bool:
        """Whether some row has two variables."""
        return len(self.rows) < len(self)

    @property
    def side(self) -> np.ndarray:
        """Which way from zero each variable may go, +1 or -1."""
        return np.where(self.lower < 0, -1.0, 1.0)

    @property
    def label(self) -> np.ndarray:
        """Of a classifier's problem, the class of each variable's row, +1 or -1."""
        return self.side * self.orientation

    def may_rise(self, beta: np.ndarray) -> np.ndarray:
        """Variables below their upper bound."""
        return beta < self.upper

    def may_fall(self, beta: np.ndarray) -> np.ndarray:
        """Variables above their lower bound."""
        return beta > self.lower

    def is_free(self, beta: np.ndarray) -> np.ndarray:
        """Variables between their bounds."""
        return (beta > self.lower) & (beta < self.upper)

    def on_rows(self, beta: np.ndarray, n: int | None = None) -> np.ndarray:
        """Return the coefficients of ``w`` on the n rows: the sum of ``o_t b_t`` on each."""
        n = self.gram.n if n is None else n
        if not self._ascending:
            return np.bincount(self.gram_row, weights=self.orientation * beta, minlength=n)
        coef = np.zeros(n)
        coef[self.gram_row] = self.orientation * beta + 0.0  # no negative zeros
        return coef

    def decision(self, beta: np.ndarray, workers: Workers = ALONE) -> np.ndarray:
        """``K coef`` of some variables, on all rows of the Gram matrix."""
        return self.gram.matvec(self.on_rows(beta), workers=workers)

    def values(self, coef: np.ndarray) -> np.ndarray:
        """``K coef`` on the problem's own rows of the Gram matrix, nan on the others."""
        values = np.full(self.gram.n, np.nan)
        values[self.rows] = self.gram.matvec(coef, self.rows)
        return values

    def decision_at_start(self, workers: Workers = ALONE) -> np.ndarray:
        """``K coef`` at the start."""
        if self.known_decision is not None:
            return self.known_decision.copy()
        return self.decision(self.start, workers)

    def scores(self, decision: np.ndarray) -> np.ndarray:
        """Minus the gradient, from ``decision = K coef``: which way each variable wants to go."""
        return -self.orientation * decision[self.gram_row] - self.linear

    def gap(self, beta: np.ndarray, score: np.ndarray) -> float:
        """Duality gap, given the scores less the levels of their groups.

        Variables of the hard margin have no bound but the sum of their group, one in size.
        """
        lower, upper = self.lower, self.upper
        if self.hard:
            lower, upper = np.maximum(lower, -1.0), np.minimum(upper, 1.0)
        end = np.where(score > 0, upper, np.where(score < 0, lower, beta))  # zero times infinity
        return float((score * (end - beta)).sum())

    def times(self, factor: float) -> DualProblem:
        """Return the problem at costs so many times as large, where these are all of its box."""
        if self.losses is None:
            raise ValueError("This problem has no costs of losses, that its box would grow with.")
        losses = self.losses._replace(cost=factor * self.losses.cost)
        box = {"lower": factor * self.lower, "upper": factor * self.upper}
        return self._changed(losses=losses, **box)

    def started_from(self, beta: np.ndarray, decision: np.ndarray | None = None) -> DualProblem:
        """Return the same problem with another feasible start, and its ``K coef`` if known."""
        return self._changed(start=beta, known_decision=decision)

    def started_near(self, beta: np.ndarray) -> DualProblem:
        """Return the same problem started as near to ``beta`` as the constraints allow.

        What the box or a constraint forbids is taken back over the variables of a group that are
        between their bounds, and over all of them only where these have not the room. What is at
        a bound but for rounding is put there: else solvers would take it for free.
        """
        near = np.clip(beta, self.lower, self.upper)
        width = self.upper - self.lower
        width = np.where(np.isfinite(width), width, np.abs(near).max())
        near = np.where(near - self.lower <= _AT_BOUND * width, self.lower, near)
        near = np.where(self.upper - near <= _AT_BOUND * width, self.upper, near)
        for j in range(self.n_groups):
            member = np.flatnonzero(self.group == j)
            drift = float((near - self.start)[member].sum())
            mass = float(np.abs(self.start[member]).sum())
            up = np.minimum(self.upper[member], mass) - near[member]
            down = near[member] - np.maximum(self.lower[member], -mass)
            room = np.maximum(down if drift > 0 else up, 0.0)
            rounding = 1e-12 * (float(np.abs(near[member]).sum()) + mass)
            if abs(drift) > rounding:  # less is left alone: bounds stay exact
                free = self.is_free(near)[member]
                if abs(drift) <= room[free].sum():
                    room = np.where(free, room, 0.0)
                if abs(drift) > room.sum():
                    return self  # no room: begin where we would have
                near[member] -= (drift / room.sum()) * room
        return self.started_from(np.clip(near, self.lower, self.upper))

    def restricted(self, index: np.ndarray) -> DualProblem:
        """Return the problem of some of the variables, the others staying where they are.

        Its ``linear`` does not know of the others: gradients are to be carried over.
        """
        arrays: dict[str, Any] = {name: getattr(self, name)[index] for name in _PER_VARIABLE}
        return replace(self, **arrays, losses=None, known_decision=None)

    def renumbered(self) -> DualProblem:
        """Return the same problem for the Gram matrix of its own rows."""
        known = self.known_decision
        known = known if known is None or len(known) == len(self.rows) else known[self.rows]
        other = self._changed(gram_row=self.own_row, matrix=None, known_decision=known)
        vars(other)["_ascending"] = self._ascending  # as it was
        return other

    def _changed(self, **changes: Any) -> DualProblem:
        """Do what ``dataclasses.replace`` does, in less time: fits have many small problems."""
        other, own = object.__new__(DualProblem), vars(self)
        vars(other).update({name: own[name] for name in _FIELDS}, **changes)
        return other

    def normalised(self, rho: float) -> DualProblem:
        """For the hard margin: the maximum margin problem whose solution is ``beta / rho``."""
        biased = self.n_groups == 2
        return replace(
            self,
            linear=-self.side,
            group=np.full(len(self), 0 if biased else -1),
            start=self.start / rho,
            bias_weights=np.ones(1) if biased else np.empty(0),
            margin_weights=np.empty(0),
            scaled=False,
        )


class Levels(NamedTuple):
    """What the levels of the groups say about the machine."""

    bias: float
    margin: float
    tube: float


def read_levels(problem: DualProblem, levels: np.ndarray) -> Levels:
    """Bias ``b``, margin ``rho`` (1 where it is fixed) and tube width of a solution."""
    return Levels(
        bias=reading(problem.bias_weights, levels, 0.0),
        margin=reading(problem.margin_weights, levels, 1.0),
        tube=reading(problem.tube_weights, levels, 0.0),
    )


class DualBatch(NamedTuple):
    """The arrays of several problems, one after the other: problem k has ``offset[k:k+2]``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.duals import DualBatch, one_class
    >>> batch = DualBatch.of([one_class(np.arange(n), np.ones(n), nu=0.5) for n in (2, 4)])
    >>> batch.offset, batch.arrays["start"]
    (array([0, 2, 6]), array([1., 0., 1., 1., 0., 0.]))
    """

    offset: np.ndarray
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, problems: Sequence[DualProblem]) -> DualBatch:
        """Stack problems."""
        sizes = [len(problem) for problem in problems]
        return cls(
            offset=offsets(sizes),
            arrays={
                name: np.concatenate([getattr(problem, name) for problem in problems])
                for name in _PER_VARIABLE
            },
        )


def offsets(sizes: Sequence[int]) -> np.ndarray:
    """Where each of several stretches begins, and where the last one ends."""
    return np.array([0, *accumulate(sizes)])


_FIELDS = [field.name for field in fields(DualProblem)]
_PER_VARIABLE = ("gram_row", "orientation", "linear", "lower", "upper", "start", "group")

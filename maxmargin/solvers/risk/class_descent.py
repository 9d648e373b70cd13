"""Coordinate descent on the dual of several classes at once: the variables of one row at a time.

The problem is that of :mod:`maxmargin.risk.direct`. With ``w_k = sum_i b_ik x_i`` kept up to date,
the variables of row i solve

    minimise  1/2 ||x_i||^2 ||b||^2 + B . b    over their box, of sum zero

exactly, and then all weights move along the row. Rows are visited in random order:

    repeat
        visit the liveliest rows some times, then all that are chosen; leave out who stands still
    until their parts of the gap have fallen, or often enough
    look at all rows: the duality gap; choose those with a part of it, or with variables in play

A row's part of the gap is ``c_i V_i + b_i . g_i`` with ``g = f + 1`` (``f`` for its own class): a
visit knows it, so that the sum over a sweep says when to look. *Lively* are the rows that moved the
objective more than the average when they were visited last: where rows crawl, these are few.
Beside dense rows only classes in play, or close to it, are looked at between two whole sweeps.

References: Keerthi, Sundararajan, Chang, Hsieh and Lin, KDD 2008; Fan et al., LIBLINEAR, JMLR 9,
2008.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from maxmargin.backends.cpu.linear.classes import (
    class_look,
    class_sweeps,
    csr_combinations,
    room_for,
    worth_visits,
)
from maxmargin.backends.cpu.linear.rows import rows_of
from maxmargin.certificate import RiskCertificate
from maxmargin.risk import DirectRisk, LinearSolution
from maxmargin.solution import Status
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.risk.run import RiskCache, RiskMethod, RiskRun

_BEFORE = 5  # sweeps over the liveliest rows before each over all that are chosen; later twice
_TURNS, _WHOLE = 6, 3  # sweeps over these until a look, and of which one is over all classes
_FALLEN = 0.02  # share of the gap at which to look again
_REACH = 0.3  # of a margin: classes that are further from being in play are left out
_STALE = 200  # looks in a row without a smaller gap
# looks in which the gap should become less by this factor; of 270 fits that converged on badly
# scaled data one took 514
_PATIENCE, _LESS = 1_000, 0.9
_LONG = 1 << 25  # entries times classes of one compiled call: some hundredths of a second


class ClassDescentRun(RiskRun[DirectRisk]):
    """Class descent at work; a step is as many visits of rows as there are rows."""

    def __init__(
        self,
        risk: DirectRisk,
        watch: Watch,
        start: LinearSolution | None = None,
        cache: RiskCache | None = None,
    ) -> None:
        super().__init__(risk, watch, start, cache)
        design, n, n_classes = risk.design, risk.n, risk.n_classes
        self.rows, self.limit = rows_of(design.X), watch.left(0)
        self.W = room_for(n_classes, design.features, design.sparse)
        self.bias = np.zeros(self.W.shape[1] if design.sparse else n_classes)
        self.b, self.known = np.zeros((n, n_classes)), False
        self.norms = design.squared_norms()
        if start is not None and start.s.shape == self.b.shape:
            self.known, self.b = True, risk.beta(risk.allowed(start.s))
            self._make_weights()
        self.random = np.random.default_rng(watch.seed)
        self.seed = self.random.integers(1, 1 << 63, size=1, dtype=np.uint64)
        self.order = np.flatnonzero(risk.cost > 0)
        self.moved, self.parts = np.zeros(n), np.zeros(n)
        self.on = np.ones((n, n_classes), dtype=bool)
        self.gap = self.objective = risk.nothing  # at the last look
        self.visits, self.changed = 0, True  # changed: since the weights were made known
        self.at_once = max(_LONG * n // max(design.entries * n_classes, 1), 1)

    @property
    def _problem(self) -> tuple:
        """What every compiled loop takes."""
        risk = self.risk
        scale = risk.design.constant**2
        return self.rows, self.W, self.bias, scale, self.b, risk.index, risk.cost, risk.summed

    def steps(self) -> Generator[None, None, None]:
        """Some turns over the chosen rows, then a look at all of them."""
        tol, stale, least = self.watch.tol, 0, np.inf
        goal, patient_until = np.inf, _PATIENCE
        for turn in count():
            if turn or not self.known:  # an earlier answer is looked at first
                yield from self._turns(_BEFORE * min(turn, 2))
            yield from self._look()
            if self.gap <= 0.999 * tol * self.objective:  # rounding must not matter
                return
            stale, least = 0 if self.gap < least else stale + 1, min(self.gap, least)
            if self.gap <= goal:
                goal, patient_until = _LESS * self.gap, turn + _PATIENCE
            if stale > _STALE or turn >= patient_until:
                break
        self.status = Status.STALLED

    def _turns(self, before: int) -> Generator[None, None, None]:
        """Visit the chosen rows until their parts of the gap have fallen, or often enough."""
        goal = max(_FALLEN * self.gap, self.watch.tol * self.objective)
        for turn in range(_TURNS):
            if before:
                yield from self._sweeps(before, lively=True)
            part = yield from self._sweeps(1, whole=turn % _WHOLE == 0)
            self.order = self.order[self.moved[self.order] > 0]
            if part <= goal or not len(self.order):
                break

    def _sweeps(
        self, times: int, whole: bool = False, lively: bool = False
    ) -> Generator[None, None, float]:
        """Visit the chosen rows some times; returns the sum of their parts of the gap."""
        whole |= self.risk.design.sparse
        long = times * len(self.order) > self.at_once  # then a call is for a part of a sweep
        for _ in range(times if long else 1):
            order, gap = self.order, 0.0
            if long and lively:
                moved = self.moved[order]
                order = order[moved >= moved.mean()]
            if long:
                order = self.random.permutation(order)
            for first in range(0, len(order), self.at_once if long else max(len(order), 1)):
                some = order[first : first + self.at_once] if long else order
                room = self.norms, some, self.moved, self.on, whole, _REACH, self.seed
                part, visits = class_sweeps(
                    self._problem, *room, 1 if long else times, lively and not long
                )
                gap += part
                self.visits += visits
                self.n_iter = min(-(-self.visits // self.risk.n), self.limit)
                self.changed = True
                yield
        return gap

    def _look(self) -> Generator[None, None, None]:
        """Look at all rows: the duality gap and the objective; choose whom to visit."""
        losses, n = 0.0, self.risk.n
        for start in range(0, n, self.at_once):
            stop = min(start + self.at_once, n)
            losses += class_look(self._problem, start, stop, self.parts)
            if stop < n:
                yield
        self.gap = max(float(self.parts.sum()), 0.0)
        squares = float(np.vdot(self.W, self.W))
        squares += self.risk.design.constant**2 * float(self.bias @ self.bias)
        self.objective = 0.5 * squares + losses
        self.order = worth_visits(self.parts, self.b, self.gap)

    def _make_weights(self) -> None:
        """Set the weights that belong to the variables."""
        if self.risk.design.sparse:
            csr_combinations(self.rows, self.b, 0, self.risk.n, self.W)
        else:
            features = self.risk.design.features
            self.W[:] = self.risk.design.combination(self.b)[:, :features]
        self.bias[: self.risk.n_classes] = self.b.sum(axis=0)

    @property
    def variables(self) -> np.ndarray:
        """The weights."""
        self._make_known()
        return self.theta

    @property
    def certificate(self) -> RiskCertificate:
        """Both objectives at the weights as they are, recomputed from the data; only once."""
        self._make_known()
        return super().certificate

    def _make_known(self) -> None:
        """Have the weights, and the slopes that the variables are."""
        if self.changed:
            design, n_classes = self.risk.design, self.risk.n_classes
            W = self.W[:, :n_classes].T if design.sparse else self.W
            theta = [W, design.constant * self.bias[:n_classes, None]]
            self.stand(np.hstack(theta[: 1 + bool(design.constant)]), self.risk.slopes(self.b))
            self.changed = False


@dataclass(frozen=True)
class ClassDescent(RiskMethod):
    """Coordinate descent on the dual of several classes at once, row by row.

    The watch's seed is that of the order of the rows.
    """

    run = ClassDescentRun

    def accepts(self, problem: Any) -> str | None:
        """None for hinges of several classes at once; else why not."""
        if isinstance(problem, DirectRisk):
            return None
        return (
            "Class descent is for several classes in one problem (multiclass='crammer_singer' or "
            "'weston_watkins', three classes or more): use solver='auto'."
        )

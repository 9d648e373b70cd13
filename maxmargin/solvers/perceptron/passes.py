"""The passes of a perceptron over its rows: in which order, and when they end.

    repeat:    look at every row; make a step at those that are wrong
    until      no row is wrong                                            "separated"
    or         the loss is no better than in some passes before           "no_improvement"
    or         the weights are exactly those of an earlier pass           "recurring"

In a fixed order the weights alone decide what follows, so that weights which recur prove that the
passes never end. The pocket keeps the best weights on the way.

References: seeds 000, 002; Gallant, IEEE Trans. Neural Networks 1, 1990 (pocket); Brent, BIT 20,
1980 (recurrence).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from maxmargin.progress import Monitor, Progress
from maxmargin.solvers.perceptron.walk import LOSS, Walk, Weights


class Ending(StrEnum):
    """How the passes of a perceptron ended, the best first."""

    SEPARATED = "separated"
    NO_IMPROVEMENT = "no_improvement"
    RECURRING = "recurring"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"

    @property
    def severity(self) -> int:
        """Order of the endings."""
        return list(Ending).index(self)

    @property
    def advice(self) -> str:
        """What it means and what to do about it; nothing where the end is a good one."""
        return _ADVICE.get(self, "")


_ADVICE = {
    Ending.RECURRING: (
        "The data are not separable: the weights are exactly those of {cycle_length} pass(es) "
        "before, so that the perceptron never ends. Take variant='pocket' or 'averaged', a kernel, "
        "or a machine that allows slack, such as SVC."
    ),
    Ending.MAX_ITER: (
        "Maximum number of iteration reached before convergence (max_iter={max_iter}). "
        "{judge} tells whether it can converge at all: if so, raise max_iter, or scale the data; "
        "if not, take variant='pocket' or 'averaged'."
    ),
    Ending.TIME_LIMIT: "Stopped early (time_limit={time_limit:g} s): raise it, or scale the data.",
    Ending.INTERRUPTED: (
        "Stopped early, by Ctrl-C or by a callback. The model is what was found until then; fit "
        "again with warm_start=True to go on from there."
    ),
}


_WORDS = "pass {method}, {steps} updates, {violation:.2%} mistakes"


class Step(NamedTuple):
    """A perceptron after an update: its number, the row used, the weights and the bias."""

    number: int
    row: int | None
    coef: Any
    intercept: float


class Outcome(NamedTuple):
    """What one machine found, and how it ended."""

    weights: Weights
    ending: Ending
    n_iter: int
    n_updates: int
    cycle_length: int


@dataclass(frozen=True)
class Rules:
    """How the passes are made.

    ``order`` is that of the rows, ``passes`` the most allowed, ``tol`` what counts as improvement
    (None: they go on without) and ``patience`` for how many passes to wait for one. With a penalty
    no pass proves anything.
    """

    order: str
    passes: int
    tol: float | None
    patience: int
    penalised: bool


class Passes:
    """The passes of one machine.

    Parameters
    ----------
    rules : Rules
    rows, held_out : int arrays
        Rows to learn from; rows, or none, whose errors say whether a pass was an improvement.
    weight : float array of shape (n_samples,)
        By which the pocket counts errors.
    seed : int
        Of the order.
    """

    def __init__(
        self, rules: Rules, rows: np.ndarray, held_out: np.ndarray, weight: np.ndarray, seed: int
    ) -> None:
        self.rules, self.rows, self.held_out, self.weight = rules, rows, held_out, weight
        self.random = np.random.default_rng(seed)
        self.ending, self.n_iter, self.cycle_length = Ending.MAX_ITER, 0, 0
        self.best, self.waited = np.inf, 0
        self.pocket: tuple[float, Weights] | None = None

    def run(self, walk: Walk, monitor: Monitor, problem: int) -> Outcome:
        """Walk to the end, or to where the monitor stops it."""
        seen, walk.stopped = 0, monitor.stopped
        parts = self.parts(walk, walk.rows_at_once)
        while (stopped := monitor.stopped()) is None:  # before the first, too: others may take long
            visited = next(parts, None)
            if visited is None:
                break
            if monitor.due() and len(visited):
                self._report(walk, monitor, problem, (walk.n_updates - seen) / len(visited))
            seen = walk.n_updates
        if stopped is not None:
            self.ending = Ending(stopped.value)
        if self.ending is not Ending.SEPARATED and not walk.wrong(self.rows).any():
            self.ending = Ending.SEPARATED
        weights = walk.found()
        if walk.pocket:  # a fit may be stopped within a pass
            _, weights = self._better(walk)
        monitor.finished()
        return Outcome(weights, self.ending, self.n_iter, walk.n_updates, self.cycle_length)

    def steps(self, walk: Walk) -> Iterator[Step]:
        """Walk to the end; yields the start, and what is there after each update."""
        start = walk.last()
        yield Step(0, None, start.coef, start.intercept)
        seen = 0
        for visited in self.parts(walk, 1):
            if walk.n_updates > seen:
                seen, now = walk.n_updates, walk.last()
                yield Step(seen, int(visited[0]), now.coef, now.intercept)

    def parts(self, walk: Walk, most: int) -> Iterator[np.ndarray]:
        """Walk on, so many rows at a time; yields those that were looked at."""
        fixed = self.rules.order in ("cyclic", "misclassified") and not self.rules.penalised
        recurrence = Recurrence()
        while self.n_iter < self.rules.passes:
            if fixed and (length := recurrence.after(walk.state())):
                self.ending, self.cycle_length = Ending.RECURRING, length
                return
            self.n_iter += 1
            if walk.pocket:
                self.pocket = self._better(walk)
            order, before, place = self._order(walk), walk.n_updates, 0
            walk.begin_pass()
            while place < len(order):
                end = min(place + most, len(order))
                reached = walk.go(order, place, end)
                if reached < end:
                    self.pocket = self._better(walk)
                yield order[place:reached]
                place = reached
            if self._ended(walk, walk.n_updates - before):
                return

    def _order(self, walk: Walk) -> np.ndarray:
        """Rows of the next pass, in their order."""
        if self.rules.order == "shuffled":
            return self.random.permutation(self.rows)
        if self.rules.order == "random":
            return self.rows[self.random.integers(len(self.rows), size=len(self.rows))]
        if self.rules.order == "misclassified":
            return self.rows[walk.wrong(self.rows)]
        return self.rows

    def _ended(self, walk: Walk, mistakes: int) -> bool:
        """Whether the pass that is over was the last one."""
        walk.refuse_infinite()
        if not (self.rules.penalised or mistakes or walk.wrong(self.rows).any()):
            self.ending = Ending.SEPARATED
        elif self.rules.tol is not None and self._waited(walk, self.rules.tol):
            self.ending = Ending.NO_IMPROVEMENT
        return self.ending in (Ending.SEPARATED, Ending.NO_IMPROVEMENT)

    def _waited(self, walk: Walk, tol: float) -> bool:
        """Whether there was no improvement for too many passes."""
        if len(self.held_out):
            cost = float(walk.wrong(self.held_out).mean())
        else:
            cost = walk.tally[LOSS] / len(self.rows) + walk.penalty()
        self.waited = self.waited + 1 if cost > self.best - tol else 0
        self.best = min(self.best, cost)
        return self.waited >= self.rules.patience

    def _better(self, walk: Walk) -> tuple[float, Weights]:
        """Return the weights or those in the pocket: what errs on fewer rows, by weight."""
        errors = float(self.weight[self.rows[walk.wrong(self.rows)]].sum())
        if self.pocket is None or errors < self.pocket[0]:
            return errors, walk.last()
        return self.pocket

    def _report(self, walk: Walk, monitor: Monitor, problem: int, mistakes: float) -> None:
        each, words = 1.0 / len(self.rows), _WORDS.replace("{method}", str(self.n_iter))
        monitor.report(
            lambda: Progress(
                problem,
                "Perceptron",
                walk.n_updates,
                mistakes,
                each,
                variables=walk.dual,
                words=words,
            )
        )


class Recurrence:
    """Whether a state has been there before, by Brent's method: one state is kept at a time.

    Examples
    --------
    >>> recurrence = Recurrence()
    >>> [recurrence.after(np.array([state])) for state in (5, 1, 2, 1, 2)]
    [0, 0, 0, 0, 2]
    """

    def __init__(self) -> None:
        self.kept: np.ndarray | None = None
        self.length, self.power = 0, 1

    def after(self, state: np.ndarray) -> int:
        """Return the length of the cycle if this state is the one kept, else 0."""
        if self.kept is not None:
            self.length += 1
            if np.array_equal(state, self.kept):
                return self.length
        if self.kept is None or self.length == self.power:
            self.kept, self.length, self.power = state, 0, 2 * self.power
        return 0

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
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from maxmargin.progress import Monitor, Progress
from maxmargin.solvers.perceptron.state import PerceptronState, Weights


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

    def run(self, state: PerceptronState, monitor: Monitor, problem: int) -> Outcome:
        """Go on to the end, or to where the monitor stops it."""
        seen, state.stopped = 0, monitor.stopped
        parts = self.parts(state, state.rows_at_once)
        while (stopped := monitor.stopped()) is None:  # before the first, too: others may take long
            visited = next(parts, None)
            if visited is None:
                break
            if monitor.due() and len(visited):
                self._report(state, monitor, problem, (state.n_updates - seen) / len(visited))
            seen = state.n_updates
        if stopped is not None:
            self.ending = Ending(stopped.value)
        if self.ending is not Ending.SEPARATED and not state.wrong(self.rows).any():
            self.ending = Ending.SEPARATED
        weights = state.found()
        if state.pocket:  # a fit may be stopped within a pass
            _, weights = self._better(state)
        monitor.finished()
        return Outcome(weights, self.ending, self.n_iter, state.n_updates, self.cycle_length)

    def steps(self, state: PerceptronState) -> Iterator[Step]:
        """Go on to the end; yields the start, and what is there after each update."""
        start = state.last()
        yield Step(0, None, start.coef, start.intercept)
        seen = 0
        for visited in self.parts(state, 1):
            if state.n_updates > seen:
                seen, now = state.n_updates, state.last()
                yield Step(seen, int(visited[0]), now.coef, now.intercept)

    def parts(self, state: PerceptronState, most: int) -> Iterator[np.ndarray]:
        """Go on, so many rows at a time; yields those that were looked at."""
        fixed = self.rules.order in ("cyclic", "misclassified") and not self.rules.penalised
        recurrence = Recurrence()
        while self.n_iter < self.rules.passes:
            if fixed and (length := recurrence.after(state.snapshot())):
                self.ending, self.cycle_length = Ending.RECURRING, length
                return
            self.n_iter += 1
            if state.pocket:
                self.pocket = self._better(state)
            order, before, place = self._order(state), state.n_updates, 0
            state.begin_pass()
            while place < len(order):
                end = min(place + most, len(order))
                reached = state.visit(order, place, end)
                if reached < end:
                    self.pocket = self._better(state)
                yield order[place:reached]
                place = reached
            if self._ended(state, state.n_updates - before):
                return

    def _order(self, state: PerceptronState) -> np.ndarray:
        """Rows of the next pass, in their order."""
        if self.rules.order == "shuffled":
            return self.random.permutation(self.rows)
        if self.rules.order == "random":
            return self.rows[self.random.integers(len(self.rows), size=len(self.rows))]
        if self.rules.order == "misclassified":
            return self.rows[state.wrong(self.rows)]
        return self.rows

    def _ended(self, state: PerceptronState, mistakes: int) -> bool:
        """Whether the pass that is over was the last one."""
        state.refuse_infinite()
        if not (self.rules.penalised or mistakes or state.wrong(self.rows).any()):
            self.ending = Ending.SEPARATED
        elif self.rules.tol is not None and self._waited(state, self.rules.tol):
            self.ending = Ending.NO_IMPROVEMENT
        return self.ending in (Ending.SEPARATED, Ending.NO_IMPROVEMENT)

    def _waited(self, state: PerceptronState, tol: float) -> bool:
        """Whether there was no improvement for too many passes."""
        if len(self.held_out):
            cost = float(state.wrong(self.held_out).mean())
        else:
            cost = state.loss / len(self.rows) + state.penalty()
        self.waited = self.waited + 1 if cost > self.best - tol else 0
        self.best = min(self.best, cost)
        return self.waited >= self.rules.patience

    def _better(self, state: PerceptronState) -> tuple[float, Weights]:
        """Return the weights or those in the pocket: what errs on fewer rows, by weight."""
        errors = float(self.weight[self.rows[state.wrong(self.rows)]].sum())
        if self.pocket is None or errors < self.pocket[0]:
            return errors, state.last()
        return self.pocket

    def _report(
        self, state: PerceptronState, monitor: Monitor, problem: int, mistakes: float
    ) -> None:
        each, words = 1.0 / len(self.rows), _WORDS.replace("{method}", str(self.n_iter))
        monitor.report(
            lambda: Progress(
                problem,
                "Perceptron",
                state.n_updates,
                mistakes,
                each,
                variables=state.dual,
                words=words,
            )
        )


def order_of_rows(order: str | None, shuffle: bool | None) -> str:
    """Return the order that either parameter asks for; two that contradict are refused."""
    asked = {True: "shuffled", False: "cyclic", None: order or "shuffled"}[shuffle]
    if order not in (None, asked):
        raise ValueError(
            f"order={order!r} and shuffle={shuffle} contradict each other: shuffle is "
            "scikit-learn's word for order='shuffled' or 'cyclic'; give one of the two."
        )
    return asked


def passes_over(
    rules: Rules, weights: list[np.ndarray], index: np.ndarray, held_out: float, random_state: Any
) -> list[Passes]:
    """Return the passes of several machines over the same rows, each with weights of its own.

    A share ``held_out`` of every class, by ``index``, judges the passes and is not learned from.
    """
    random = check_random_state(random_state)
    rows = np.flatnonzero(np.any([weight > 0 for weight in weights], axis=0))
    judges = rows[:0]
    if held_out:
        seed = random.randint(np.iinfo(np.int32).max)
        parts = train_test_split(rows, test_size=held_out, stratify=index[rows], random_state=seed)
        rows, judges = (np.sort(part) for part in parts)
    seeds = random.randint(np.iinfo(np.int32).max, size=len(weights))
    return [
        Passes(rules, rows[weight[rows] > 0], judges, weight, int(seed))
        for weight, seed in zip(weights, seeds, strict=True)
    ]


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

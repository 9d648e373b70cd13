"""The passes of a perceptron over its rows: in which order, and when they end.

    repeat:    look at every row; make a step at those that are wrong
    until      no row is wrong                                            "separated"
    or         the loss is no better than in some passes before           "no_improvement"
    or         the weights are exactly those of an earlier pass           "recurring"

In a fixed order the weights alone decide what follows, so that weights which recur prove that the
passes never end (with steps of one size). The pocket keeps the best weights on the way.

References: seeds 000, 002; Gallant, IEEE Trans. Neural Networks 1, 1990 (pocket); Brent, BIT 20,
1980 (recurrence).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from maxmargin.certificate import MistakesCertificate
from maxmargin.progress import Progress
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.perceptron.state import PerceptronState, Weights

_STREAKS = 16  # of a pass that are the longest so far, about: the pocket then looks at all rows


class Step(NamedTuple):
    """A perceptron after an update.

    Its number, the row used (None at the start), the weights (None with a kernel) and the bias;
    ``dual``, how much step each row was used with so far; how many rows are now on the wrong side;
    and which machine it is, of several classes.
    """

    number: int
    row: int | None
    coef: Any
    intercept: float
    dual: np.ndarray
    mistakes: int
    machine: int = 0


class Outcome(NamedTuple):
    """What one machine found, and how it ended."""

    weights: Weights
    status: Status
    n_iter: int
    n_updates: int
    cycle_length: int
    mistakes: int

    def certificate(self, rows: int) -> MistakesCertificate:
        """Return what it proves, of so many rows."""
        return MistakesCertificate(
            status=self.status,
            tol=0.0,
            rows=rows,
            updates=self.n_updates,
            passes=self.n_iter,
            mistakes=self.mistakes,
        )


@dataclass(frozen=True)
class Examples:
    """Labelled rows for one machine to learn, and where it starts.

    Parameters
    ----------
    begin : callable
        Returns a :class:`PerceptronState` before its first row; takes the variant.
    rows, held_out : int arrays
        Rows to learn from; rows, or none, whose errors say whether a pass was an improvement.
    weight : float array of shape (n_samples,)
        By which the pocket counts errors.
    """

    begin: Callable[[str], PerceptronState]
    rows: np.ndarray
    held_out: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Passes(Method[Examples, Outcome]):
    """The perceptron, in passes over its rows.

    Parameters
    ----------
    order : {"shuffled", "cyclic", "random", "misclassified"}, default="shuffled"
        Of the rows in a pass.
    tol : float or None, default=1e-3
        What counts as an improvement; None to go on without.
    patience : int, default=5
        For how many passes to wait for one.
    variant : {"last", "pocket", "averaged"}, default="last"
        Which weights to keep.
    penalised : bool, default=False
        Whether a penalty shrinks the weights: then no pass proves anything.
    """

    order: str = "shuffled"
    tol: float | None = 1e-3
    patience: int = 5
    variant: str = "last"
    penalised: bool = False

    def accepts(self, problem: Examples) -> str | None:
        """Refuse the mean of weights that a penalty shrinks."""
        if self.penalised and self.variant == "averaged":
            return (
                "A penalty cannot be had with variant='averaged': the mean is only kept for "
                "steps, not for shrinking. Take variant='last' or 'pocket'."
            )
        return None

    def begin(self, problem: Examples, watch: Watch) -> PerceptronRun:
        """Begin at the problem's start."""
        return PerceptronRun(self, problem, watch)


class PerceptronRun(Run):
    """A perceptron at work.

    ``n_iter`` counts finished passes, ``n_steps`` updates. ``variables`` are the weights as they
    are, with the bias after them, or with a kernel the signed dual variables ``y_i alpha_i``, and
    not their mean or what the pocket holds. The working set is the row of the last update.
    """

    words: ClassVar[str] = "{steps} updates, {violation:.2%} mistakes"
    in_passes: ClassVar[bool] = True

    def __init__(self, method: Passes, problem: Examples, watch: Watch) -> None:
        self.method, self.rows, self.held_out = method, problem.rows, problem.held_out
        self.weight, self.state = problem.weight[problem.rows], problem.begin(method.variant)
        self.solves_for = self.state.solves_for
        self.state.stopped = watch.stopped
        self.random = np.random.default_rng(watch.seed)
        self.begun, self.cycle_length = 0, 0  # passes
        self.best, self.waited = np.inf, 0
        self.pocket: tuple[float, Weights] | None = None

    @property
    def n_steps(self) -> int:
        """Updates made."""
        return self.state.n_updates

    @property
    def variables(self) -> np.ndarray:
        """The weights and the bias, or the signed dual variables."""
        return self.state.variables

    @property
    def working_set(self) -> np.ndarray | None:
        """The row of the last update."""
        return np.array([self.state.row]) if self.n_steps else None

    def measure(self) -> Measure:
        """Share of mistakes, and the mean loss ``max(0, -y f(x))`` with the penalty."""
        mistakes, loss = self.state.mistakes_and_loss(self.rows)
        return Measure(mistakes, loss + self.state.penalty())

    def progress(self, watch: Watch) -> Progress:
        """Where it is, with the pass."""
        return replace(super().progress(watch), words=f"pass {self.begun}, {self.words}")

    def solution(self, status: Status) -> Outcome:
        """Return the weights to keep, and count their mistakes."""
        state, rows = self.state, self.rows
        weights = self._better()[1] if state.pocket else state.found()
        mistakes = last = self.mistakes
        if state.pocket or state.averaged:
            mistakes = int(np.count_nonzero(state.at(weights).wrong(rows)))
        if not (mistakes and last):
            status = Status.SEPARATED
        length = self.cycle_length
        return Outcome(weights, status, self.begun, state.n_updates, length, mistakes)

    @property
    def mistakes(self) -> int:
        """Rows that are on the wrong side now."""
        return int(np.count_nonzero(self.state.wrong(self.rows)))

    def steps(self) -> Generator[None, None, None]:
        """Pass after pass; yields after each, after many rows and after the updates allowed."""
        state = self.state
        fixed = self.method.order in ("cyclic", "misclassified") and not self.method.penalised
        fixed &= state.sizes is None  # or the number of the update decides, too
        brief = _STREAKS * len(self.rows) <= state.rows_at_once  # nobody waits for such a pass
        recurrence = Recurrence()
        while True:
            if fixed and (length := recurrence.after(state.snapshot())):
                self.status, self.cycle_length = Status.RECURRING, length
                return
            self.begun += 1
            if state.pocket:
                self.pocket = self._better()
            order, place, before = self._order(), 0, state.n_updates
            made = before
            state.begin_pass()
            while place < len(order):
                end = min(place + state.rows_at_once, len(order))
                until = made + self.allowed
                place = state.visit(order, place, end, until)
                made = state.n_updates
                if state.pocket and place < end and made < until:  # a streak has ended
                    self.pocket = self._better()
                # a stop leaves the place where it was: only the driver can end the pass
                stopped = place < len(order) and state.stopped() is not None
                if place < len(order) and (made >= until or not brief or stopped):
                    yield
            self.status = self._ended(made - before)
            if self.status is not None:
                return
            self.n_iter += 1
            yield

    def updates(self, watch: Watch, machine: int = 0) -> Iterator[Step]:
        """Go on to the end, update by update; yields the start, and what is there after each."""
        seen = -1
        while True:
            ended = watch.look(self)
            if self.n_steps > seen:
                seen, now = self.n_steps, self.state.last()
                row = self.state.row if seen else None
                yield Step(seen, row, now.coef, now.intercept, now.dual, self.mistakes, machine)
            if ended is not None:
                return
            self.advance(1)

    def _order(self) -> np.ndarray:
        """Rows of the next pass, in their order."""
        if self.method.order == "shuffled":
            return self.state.shuffled(self.rows, self.random)
        if self.method.order == "random":
            return self.rows[self.random.integers(len(self.rows), size=len(self.rows))]
        if self.method.order == "misclassified":
            return self.rows[self.state.wrong(self.rows)]
        return self.rows

    def _ended(self, mistakes: int) -> Status | None:
        """Why the pass that is over was the last one, or None."""
        self.state.refuse_infinite()
        if not (self.method.penalised or mistakes or self.state.wrong(self.rows).any()):
            return Status.SEPARATED
        if self.method.tol is not None and self._waited(self.method.tol):
            return Status.NO_IMPROVEMENT
        return None

    def _waited(self, tol: float) -> bool:
        """Whether there was no improvement for too many passes."""
        state = self.state
        if len(self.held_out):
            cost = float(state.wrong(self.held_out).mean())
        else:
            cost = state.loss / len(self.rows) + state.penalty()
        self.waited = self.waited + 1 if cost > self.best - tol else 0
        self.best = min(self.best, cost)
        return self.waited >= self.method.patience

    def _better(self) -> tuple[float, Weights]:
        """Return the weights or those in the pocket: what errs on fewer rows, by weight."""
        errors = float(self.weight[self.state.wrong(self.rows)].sum())
        if self.pocket is None or errors < self.pocket[0]:
            return errors, self.state.last()
        return self.pocket


def order_of_rows(order: str | None, shuffle: bool | None) -> str:
    """Return the order that either parameter asks for; two that contradict are refused."""
    asked = {True: "shuffled", False: "cyclic", None: order or "shuffled"}[shuffle]
    if order not in (None, asked):
        raise ValueError(
            f"order={order!r} and shuffle={shuffle} contradict each other: shuffle is "
            "scikit-learn's word for order='shuffled' or 'cyclic'; give one of the two."
        )
    return asked


def examples_of(
    begins: Sequence[Callable[[str], PerceptronState]],
    weights: list[np.ndarray],
    index: np.ndarray,
    held_out: float,
    random_state: Any,
) -> tuple[list[Examples], list[int]]:
    """Return the same rows for several machines, with weights of their own, and seeds.

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
    examples = [
        Examples(begin, rows[weight[rows] > 0], judges[weight[judges] > 0], weight)
        for begin, weight in zip(begins, weights, strict=True)
    ]
    return examples, seeds.tolist()


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

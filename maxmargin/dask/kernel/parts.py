"""The tasks of a distributed fit: what a worker does with a partition, or with the candidates.

All are pure functions of their arguments, so that what a worker loses is made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.backends import cpu
from maxmargin.backends.device import Placement
from maxmargin.backends.threads import Workers, thread_count
from maxmargin.backends.views import Views
from maxmargin.dask.kernel.candidates import Candidates, bytes_of
from maxmargin.dask.kernel.forms import Accuracy, Arrays, Errand, Form, Solved, Stretch
from maxmargin.dask.monitors import Caller, TaskMonitor
from maxmargin.dask.rows import Block, naming_partition
from maxmargin.estimators.expansion import KernelExpansion
from maxmargin.evaluation import InseparableError
from maxmargin.gram import Definiteness, Gram, Spectrum
from maxmargin.kernels import Validity

_ANEW = 0.7  # of the support vectors, that may change before values are computed anew
_WORST = 0.1  # share of the rows sent that are the worst, where not all violators are


class Known(NamedTuple):
    """Rows of a partition that are known to have variables, by their places in the collection."""

    place: np.ndarray
    beta: np.ndarray  # (rows, variables of all tasks)


class Order(NamedTuple):
    """What the one who fits asks of a task that solves."""

    tol: float
    max_iter: int
    seconds: float | None  # that are left
    n_jobs: int | None
    near: bool = False  # whether to begin at the variables that candidates come with
    caller: Caller | None = None  # who may want to stop


def errand_of(order: Order, alone: bool = False) -> Errand:
    """Return what is asked, with the threads that there are here."""
    monitor = TaskMonitor(None if order.seconds is None else max(order.seconds, 1e-9), order.caller)
    workers = Workers(1 if alone else _threads(order.n_jobs))
    return Errand(order.tol, order.max_iter, monitor, workers, order.near)


def _threads(n_jobs: int | None) -> int:
    """Threads of the worker that a task runs on; without one, as many as were asked for."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return thread_count(n_jobs)


@contextmanager
def _placing(form: Form, y: Any, place: np.ndarray) -> Iterator[None]:
    """Say which classes cannot be separated, and by which rows of the collection.

    What some rows prove is proven for all.
    """
    try:
        yield
    except InseparableError as error:
        named = form.shell._naming_classes(error, y)
        positive, negative = (
            (place[rows], weights) for rows, weights in (named.positive, named.negative)
        )
        raise InseparableError(str(named), positive, negative, named.distance) from None


# -- a partition's own problem -------------------------------------------------------------------


def begun(block: Block, offset: int, share: float, form: Form, order: Order) -> Candidates:
    """Solve a partition's own problem where it lies; returns its support vectors."""
    with naming_partition(block.number):
        gram = copy(form.shell)._gram(block.X, form.kernel)  # which notes where it is
        errand, place = errand_of(order, alone=True), offset + np.arange(block.n)
        with _placing(form, block.y, place):
            beta, extra = form.begin(gram, block.y, block.weight, share, errand)
    everything = Candidates(place, block.X, block.y, block.weight, beta, None)
    rows = np.union1d(everything.used(form), extra)
    return everything.take(form, rows if len(rows) else _first_of_each(block.y))


def _first_of_each(y: Any) -> np.ndarray:
    """Return a row of each class, or the first: what a partition sends that was stopped at once."""
    labels = np.ndim(y) == 1 and y.dtype.kind in "iu"
    return np.unique(y, return_index=True)[1] if labels else np.zeros(1, dtype=np.intp)


def all_rows(block: Block, offset: int, form: Form) -> Candidates:
    """Return the rows of a partition, with variables that are zero."""
    place, nothing = offset + np.arange(block.n), form.nothing(block.y, block.n)
    return Candidates(place, block.X, block.y, block.weight, nothing, None)


def known_rows(block: Block, offset: int, known: Known, form: Form) -> Candidates:
    """Return the rows of a partition that are known to have variables, with these."""
    some = all_rows(block, offset, form).take(form, known.place - offset)
    first = 0
    for k, own in enumerate(form.own(some.y, some.n)):
        copies = len(some.beta[k])
        some.beta[k][:] = known.beta[own, first : first + copies].T
        first += copies
    return some


def size_of(part: Candidates) -> tuple[int, int]:
    """Rows that a partition sends, and their bytes."""
    return part.n, part.nbytes


# -- all candidates together -----------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """An answer of the candidates, and what has changed since the one before.

    ``moved`` are the rows whose coefficients have changed, and ``change`` by how much; where
    ``anew``, they are all rows with coefficients, and values begin at zero.
    """

    candidates: Candidates
    solved: Solved
    moved: np.ndarray
    change: np.ndarray
    anew: bool
    accuracy: Accuracy
    spectrum: Definiteness | Spectrum
    device: Placement


def solved(form: Form, parts: list[Candidates], before: Answer | None, order: Order) -> Answer:
    """Solve the problems of all candidates together."""
    given = parts if before is None else [before.candidates, *parts]
    candidates = Candidates.joined(form, given)
    shell, errand = copy(form.shell), errand_of(order)
    shell.n_jobs = errand.workers.count
    gram = shell._gram(candidates.X, form.kernel)
    own = candidates.y, candidates.weight, candidates.beta, candidates.decision
    with _placing(form, candidates.y, candidates.place):
        found = form.solve(gram, *own, errand)
    coef = form.coefficients(candidates.y, candidates.weight, found.beta)
    old = np.zeros_like(coef)
    if before is not None:
        old = form.coefficients(candidates.y, candidates.weight, candidates.beta)
    moved, used = (old != coef).any(axis=0), coef.any(axis=0)
    anew = before is None or moved.sum() >= _ANEW * used.sum()
    moved = np.flatnonzero(used if anew else moved)
    change = (coef if anew else coef - old)[:, moved]
    lengths = np.sqrt(np.abs(gram.diagonal[moved]))
    size, terms = np.abs(change) @ lengths, np.count_nonzero(change, axis=1).astype(float)
    if before is not None and not anew:
        size, terms = size + before.accuracy.size, terms + before.accuracy.terms
    return Answer(
        replace(candidates, beta=found.beta, decision=found.decision),
        found,
        moved,
        change,
        anew,
        Accuracy(gram.rounding, terms, size),
        _spectrum(gram),
        shell.device_,
    )


def _spectrum(gram: Gram) -> Definiteness | Spectrum:
    """What the candidates tell of the matrix of all rows: no more than a sample does."""
    if gram.kernel.validity is Validity.VALID:
        return Definiteness.PROVEN
    found = gram.definiteness
    return Definiteness.UNKNOWN if found is Definiteness.COMPUTED else found


class Message(NamedTuple):
    """What partitions must know of an answer: their own variables, and what has changed."""

    place: np.ndarray
    own: Arrays
    beta: Arrays
    decision: Arrays
    X: Any
    change: np.ndarray
    anew: bool
    shift: Any

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        arrays = [self.place, *self.own, *self.beta, *self.decision, self.change]
        return int(sum(array.nbytes for array in arrays)) + bytes_of(self.X)


def message_of(answer: Answer, form: Form) -> Message:
    """Return what partitions must know."""
    rows = answer.candidates
    return Message(
        rows.place,
        form.own(rows.y, rows.n),
        rows.beta,
        rows.decision or [],
        _safe_indexing(rows.X, answer.moved),
        answer.change,
        answer.anew,
        form.shift(rows.beta),
    )


class Summary(NamedTuple):
    """What the one who fits must know of an answer."""

    n: int
    message_bytes: int
    solved: Solved
    accuracy: Accuracy
    spectrum: Any
    device: Placement


def summary_of(answer: Answer, message: Message) -> Summary:
    """Return what is small of an answer."""
    few = replace(answer.solved, beta=[], decision=[])
    return Summary(
        answer.candidates.n,
        message.nbytes,
        few,
        answer.accuracy,
        answer.spectrum,
        answer.device,
    )


def support_of(answer: Answer, form: Form) -> Candidates:
    """Return the rows with variables."""
    rows = answer.candidates
    return replace(rows, decision=None).take(form, rows.used(form))


def known_of(answer: Answer, form: Form) -> Known:
    """Return the variables that are not zero, by the places of their rows."""
    rows = answer.candidates
    columns = []
    for own, beta in zip(form.own(rows.y, rows.n), rows.beta, strict=True):
        column = np.zeros((rows.n, len(beta)))
        column[own] = beta.T
        columns.append(column)
    used = rows.used(form)
    return Known(rows.place[used], np.hstack(columns)[used])


# -- tests of a partition's rows -------------------------------------------------------------------


class Tested(NamedTuple):
    """Variables and values of all rows of a partition, and what a look at them tells."""

    beta: Arrays
    decision: Arrays
    diagonal: np.ndarray
    rounding: float
    candidate: np.ndarray
    look: Any

    def of(self, block: Block) -> Stretch:
        """Return the rows of the partition with these."""
        return Stretch(block.y, block.weight, self.beta, self.decision, self.diagonal)


def tested(
    block: Block, offset: int, before: Tested | None, message: Message, form: Form
) -> Tested:
    """Test the rows of a partition against the KKT conditions of an answer."""
    program = form.kernel.lower()
    if before is None:
        points = cpu.Operand.prepare(program, Views(block.X))
        diagonal = cpu.finite(cpu.kernel_diagonal(program, points), form.kernel)
        rounding = points.rounding(program)
    else:
        diagonal, rounding = before.diagonal, before.rounding
    first, last = np.searchsorted(message.place, [offset, offset + block.n])
    candidate = np.zeros(block.n, dtype=bool)
    candidate[message.place[first:last] - offset] = True
    values = np.zeros((block.n, form.n_values))
    others = np.flatnonzero(~candidate)
    if len(others) and message.change.size:
        rows = np.arange(message.change.shape[1])
        expansion = KernelExpansion(form.kernel, message.X, rows, message.change)
        values[others] = expansion.at(_safe_indexing(block.X, others))
    decision = form.on_own(values, block.y)
    if before is not None and not message.anew:
        decision = [old + new for old, new in zip(before.decision, decision, strict=True)]
    beta = form.nothing(block.y, block.n)
    for k, own in enumerate(form.own(block.y, block.n)):
        here = candidate[own]
        there = (message.own[k] >= first) & (message.own[k] < last)
        decision[k][:, here] = message.decision[k][:, there]
        beta[k][:, here] = message.beta[k][:, there]
    look = form.look(Stretch(block.y, block.weight, beta, decision, diagonal), message.shift)
    return Tested(beta, decision, diagonal, rounding, candidate, look)


def look_of(result: Tested) -> Any:
    """Return what a look at a partition has told."""
    return result.look


def picked(
    block: Block,
    offset: int,
    result: Tested,
    levels: Any,
    message: Message,
    least: float,
    most: int,
    form: Form,
) -> Candidates:
    """Return the rows of a partition that violate, or nearly do, and are no candidates yet.

    Where they are more than ``most``, a tenth of these are the worst, the others any: the worst are
    often neighbours, and what is done for a few of them is done for all.
    """
    excess = form.excess(result.of(block), levels, message.shift)
    excess[result.candidate] = -np.inf
    rows = np.flatnonzero(excess > least)
    if len(rows) > most:
        order = rows[np.argsort(-excess[rows], kind="stable")]
        worst = max(int(_WORST * most), 2)
        rest = np.random.default_rng([block.number, len(rows)]).permutation(order[worst:])
        rows = np.sort(np.concatenate([order[:worst], rest[: most - worst]]))
    return Candidates(
        offset + np.arange(block.n),
        block.X,
        block.y,
        block.weight,
        result.beta,
        result.decision,
    ).take(form, rows)


def gaps_of(
    block: Block, result: Tested, levels: Any, accuracy: Accuracy, message: Message, form: Form
) -> Any:
    """Return the parts of the duality gaps that a partition's rows have."""
    exact = replace(accuracy, rounding=max(accuracy.rounding, result.rounding))
    return form.gaps(result.of(block), levels, exact, message.shift)

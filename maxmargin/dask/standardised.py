"""Means of losses over standardised columns, of rows that lie in partitions.

A mean of losses is a sum over the partitions, each with the moments of all rows: value and gradient
take one pass, and the solvers of one machine go on from there. What a partition computes is what
:mod:`maxmargin.risk.standardised` computes of rows in memory. No vector of rows leaves a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin.backends.threads import StoppedError
from maxmargin.dask.reductions import added
from maxmargin.dask.rows import Block, Partitions, naming_partition
from maxmargin.linear.base import with_weight
from maxmargin.linear.mce import SmoothedError
from maxmargin.multiclass import Scheme
from maxmargin.progress import Monitor
from maxmargin.risk.standardised import (
    Columns,
    Moments,
    Regression,
    Residual,
    RowLoss,
    SquaredError,
    Standardisation,
)
from maxmargin.solvers.risk.least_squares import triangle_of, triangular

_WIDE = 1 << 11  # columns from which their moments are sent to each worker once
_TOLD = 1 << 22  # moments of columns that the summaries of all partitions may hold
_WAVE = 8  # partitions for each thread that are factorised before somebody may say stop


@dataclass(frozen=True)
class Reading:
    """How the rows of a partition are read: who takes part, with which weights and targets.

    Parameters
    ----------
    intercept : bool
    scheme : Scheme, optional
        Whose labels -1 and +1 are the targets; without one, y itself is.
    factors : float array, optional
        Of the weights of each class.
    """

    intercept: bool
    scheme: Scheme | None = None
    factors: np.ndarray | None = None

    def rows(self, block: Block) -> tuple[Any, np.ndarray, np.ndarray]:
        """X, weights and y of the rows that have a weight; y is the class where there are some."""
        weight = block.weight if self.factors is None else block.weight * self.factors[block.y]
        return with_weight(block.X, weight, np.asarray(block.y))

    def targets(self, y: np.ndarray) -> np.ndarray:
        """What is sought at each row, (n, m)."""
        if self.scheme is not None:
            return np.column_stack(self.scheme.signs(y))
        y = np.asarray(y, dtype=np.float64)
        return y if y.ndim > 1 else y[:, None]


@dataclass(frozen=True)
class Account:
    """Moments of columns and of targets, of some rows."""

    columns: Moments | None
    targets: Moments | None

    @classmethod
    def of(cls, block: Block, reading: Reading) -> Account:
        """Account of a partition; there are no moments of rows without weight."""
        with naming_partition(block.number):
            X, weight, y = reading.rows(block)
            if not len(weight):
                return cls(None, None)
            own = Columns(X, weight, reading.intercept).moments
            Y = reading.targets(y)
            mean = weight / own.total @ Y if reading.intercept else np.zeros(Y.shape[1])
            squares = weight / own.total @ (Y - mean) ** 2
            return cls(own, Moments(own.n, own.total, mean, squares))

    @classmethod
    def together(cls, parts: list[Account]) -> Account:
        """Account of all parts; what was not centred has means of zero."""
        some = [part for part in parts if part.columns is not None]
        if not some:
            return cls(None, None)
        return cls(*(Moments.together(list(each)) for each in zip(*map(_both, some), strict=True)))


def _both(account: Account) -> tuple[Any, Any]:
    return account.columns, account.targets


class Look:
    """Moments of a partition, told with what is said of it when it is checked.

    They come to the process that fits as they are, so that wide ones wait for a pass of their own.

    Parameters
    ----------
    intercept : bool
    classes : bool
        Whether y are labels, which nobody has numbered yet: then the moments of the columns alone.
    partitions : int
    """

    def __init__(self, intercept: bool, classes: bool, partitions: int) -> None:
        self.reading, self.classes = Reading(intercept), classes
        self.widest = _TOLD // max(partitions, 1)

    def __call__(self, block: Block) -> Account | None:
        """Account of the partition."""
        if block.X.shape[1] > self.widest:
            return None
        if not self.classes:
            return Account.of(block, self.reading)
        return Account.of(block._replace(y=np.zeros(block.n)), self.reading)


def account_of(
    rows: Partitions, reading: Reading, stopped: Callable[[], Any] = lambda: None
) -> Account:
    """Account of all rows: from what was told when they were checked, or by a pass."""
    told = [summary.extra for summary in rows.summaries]
    if reading.factors is not None or not all(isinstance(one, Account) for one in told):
        return rows.reduced(Account.of, reading, combine=Account.together, stopped=stopped)
    account = Account.together(told)
    if reading.scheme is None or account.columns is None:
        return account
    share, code = rows.class_weights / rows.class_weights.sum(), reading.scheme.code.T
    mean = share @ code if reading.intercept else np.zeros(code.shape[1])
    squares = share @ (code - mean) ** 2
    return replace(account, targets=account.columns._replace(mean=mean, squares=squares))


class SpreadColumns(Standardisation):
    """Columns of rows in partitions, seen as ``(X - mean) / scale``."""

    def __init__(
        self,
        rows: Partitions,
        reading: Reading,
        moments: Moments,
        monitor: Monitor,
        standardise: bool = True,
    ) -> None:
        super().__init__(moments, rows.summaries[0].dtype, standardise)
        self.rows, self.reading, self.monitor = rows, reading, monitor

    def plain(self) -> SpreadColumns:
        """The same columns as they are, not standardised."""
        return SpreadColumns(self.rows, self.reading, self.moments, self.monitor, False)

    def log_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean logarithms of the standardised sizes that are stored, and the weight of those."""
        return self.summed(_log_sizes)

    def summed(self, function: Callable, *args: Any, combine: Callable = added) -> Any:
        """Sum of what a function makes of each partition's columns and classes or targets.

        Who wants to stop waits for the end of the pass, so that there is an answer.
        """
        return self.rows.reduced(
            function, self.seen, *map(self.rows.cluster.once, args), combine=combine
        )

    @property
    def seen(self) -> Any:
        """How partitions are seen, as an argument of their tasks."""
        if self.d < _WIDE:
            return _Seen(self.reading, self.moments, self.standardised)
        return self._seen

    @cached_property
    def _seen(self) -> Any:
        return self.rows.cluster.share(_Seen(self.reading, self.moments, self.standardised))


@dataclass(frozen=True)
class _Seen:
    """How a partition is seen: as a part of all rows."""

    reading: Reading
    moments: Moments
    standardised: bool

    def of(self, block: Block) -> tuple[Columns, np.ndarray]:
        X, weight, y = self.reading.rows(block)
        return Columns(X, weight, True, self.standardised, self.moments), y


def _log_sizes(block: Block, seen: _Seen) -> tuple[np.ndarray, np.ndarray]:
    return seen.of(block)[0].log_sizes()


# -- least squares ---------------------------------------------------------------------------------


class SpreadRegression(Regression):
    """Least squares for targets of rows in partitions."""

    def __init__(self, rows: Partitions, reading: Reading, monitor: Monitor) -> None:
        account: Any = account_of(rows, reading, lambda: monitor.interrupted)
        columns = SpreadColumns(rows, reading, account.columns, monitor)
        self._measure(account.targets.mean, account.targets.squares)
        self.error = SpreadSquares(columns, self.mean, reading.intercept, unit=self.size)

    def in_data_units(self) -> SquaredError:
        """Return the error with columns and targets as they are."""
        columns, zeros = self.error.columns.plain(), np.zeros_like(self.mean)
        return SpreadSquares(columns, zeros, self.error.intercept, size=self.size)


@dataclass(frozen=True)
class SpreadSquares(SquaredError):
    """The mean of the squared residuals of ``(y - target) / unit``, over partitions."""

    unit: np.ndarray | float = 1.0

    @property
    def n_targets(self) -> int:
        """Functions that are sought."""
        return len(self.target)

    def each(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each target, and the gradient."""
        return self.columns.summed(_each, self._spoken, V)

    @property
    def _spoken(self) -> tuple:
        return self.target, self.unit, self.intercept

    def stretches(self, entries: int, least: int) -> Iterator[tuple[int, np.ndarray]]:
        """R of the rows ``sqrt(S) [1 X y]`` of some partitions at a time."""
        columns = self.columns
        rows, monitor = columns.rows, columns.monitor
        cluster = rows.cluster
        tasks = rows.map(_triangle, columns.seen, self._spoken, name="factorise")
        done = 0
        for first in range(0, len(tasks), _WAVE * cluster.n_threads):
            some = tasks[first : first + _WAVE * cluster.n_threads]
            total = cluster.total(some, _one_triangle)
            try:
                ((triangle, n),) = cluster.run([total], monitor.stopped)
            except StoppedError:  # who has nothing yet takes the first partition, however late
                if done:
                    return
                ((triangle, n),) = cluster.run([cluster.total(some[:1], _one_triangle)])
            done += n
            yield done, triangle

    def residual(self) -> Residual:
        """Return what zero weights leave of the targets."""
        return SpreadResidual(self)

    def rows(self) -> RowLoss:
        """Return the loss of a row, of which only the curvature is known here."""
        return replace(_LIKE, target=np.zeros((0, self.n_targets)))


_LIKE = SquaredError(None, np.zeros((0, 1)), True).rows()


def _local(block: Block, seen: _Seen, spoken: tuple) -> SquaredError:
    """Return the part of a squared error that is a partition's."""
    columns, y = seen.of(block)
    mean, unit, intercept = spoken
    return SquaredError(columns, (seen.reading.targets(y) - mean) / unit, intercept)


def _each(block: Block, seen: _Seen, spoken: tuple, V: np.ndarray) -> tuple:
    return _local(block, seen, spoken).each(V)


def _triangle(block: Block, seen: _Seen, spoken: tuple) -> tuple[np.ndarray, int]:
    """R of a partition, and how many rows it is of."""
    error = _local(block, seen, spoken)
    return triangular(error), len(error.columns.weight)


def _one_triangle(parts: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """R of the rows of several."""
    some = [triangle for triangle, _ in parts]
    return triangle_of(some), sum(n for _, n in parts)


class SpreadResidual(Residual):
    """What weights leave of the targets, known by its products with the columns alone.

    A direction takes one pass: its curvature, and how the products change along it. They are made
    anew where a descent believes to have ended.
    """

    def __init__(self, error: SpreadSquares) -> None:
        self.error = error
        self.renew(np.zeros((error.n_targets, error.columns.d)))

    @property
    def square(self) -> float:
        """Mean of its squares, of all targets together."""
        return float(self._square.sum())

    def renew(self, V: np.ndarray) -> None:
        """Make it anew at some weights."""
        losses, gradient = self.error.each(np.column_stack([V, np.zeros(len(V))]))
        self._square, self.gradient = losses, -0.5 * gradient[:, :-1]

    def curvature(self, direction: np.ndarray) -> np.ndarray:
        """Mean squares (m,) of what a direction (m, d) of the weights changes of it."""
        self._along = np.einsum("ij,ij->i", direction, self.gradient)
        self._curvature, self._change = self.error.columns.summed(_products, direction)
        return self._curvature

    def move(self, step: np.ndarray) -> None:
        """Go so far (m,) in the direction that was asked about."""
        self._square = self._square - 2.0 * step * self._along + step**2 * self._curvature
        self.gradient = self.gradient - step[:, None] * self._change


def _products(block: Block, seen: _Seen, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares of ``X v`` and ``X' S X v`` of a partition, for each v."""
    columns, _ = seen.of(block)
    image = columns.values(direction)
    weighted = columns.weight[:, None] * image
    return np.einsum("ij,ij->j", weighted, image), columns.transpose_product(weighted)


# -- smoothed errors -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpreadSmoothedError(SmoothedError):
    """The smoothed count of errors, over partitions."""

    def unpenalised(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the mean loss alone."""
        return self.columns.summed(_asked, self._alone, "unpenalised", V)

    @property
    def _alone(self) -> SmoothedError:
        """The error without its rows."""
        return SmoothedError(
            None, self.index, self.n_classes, self.loss, self.eta, 0.0, self.intercept
        )

    def on_labels(self, scheme: Scheme) -> tuple[np.ndarray, SquaredError]:
        """Means of the labels -1 and +1 of each function, and their squared error about these."""
        columns, reading = self.columns, replace(self.columns.reading, scheme=scheme)
        account: Any = account_of(columns.rows, reading)
        spread = SpreadColumns(columns.rows, reading, columns.moments, columns.monitor)
        return account.targets.mean, SpreadSquares(spread, account.targets.mean, self.intercept)

    def wrong(self, V: np.ndarray, scheme: Scheme) -> tuple[float, int]:
        """Weight and number of the rows that are misclassified."""
        return self.columns.summed(_asked, self._alone, "wrong", V, scheme)

    def largest_value(self, V: np.ndarray) -> float:
        """Largest size of a row's values, the mean over its functions."""
        return self.columns.summed(_asked, self._alone, "largest_value", V, combine=max)[0]

    def log_value(self, V: np.ndarray, smallest: float) -> float:
        """Mean logarithm of the size of the rows' values, which count as so small at least."""
        return self.columns.summed(_asked, self._alone, "log_value", V, smallest)[0]

    def rows(self) -> RowLoss:
        """Return the loss of a row, of which only the curvature is known here."""
        return replace(self._alone, index=np.zeros(0, dtype=np.intp)).rows()


def _asked(block: Block, seen: _Seen, error: SmoothedError, name: str, *args: Any) -> tuple:
    """Ask the part of a smoothed error that is a partition's."""
    columns, index = seen.of(block)
    answer = getattr(replace(error, columns=columns, index=index), name)(*args)
    return answer if isinstance(answer, tuple) else (answer,)

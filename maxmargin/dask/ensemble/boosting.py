"""AdaBoost over partitions: a round is one sum of tables, whatever the number of rows.

Every worker keeps the codes of its rows and the votes on them. A round is one pass: the last
hypothesis votes, the rows' weights are made from that, and the weights of each class at each code
are added up over all workers. The best stump is found from these sums, as it is in one place; so is
its error. The rounds themselves are those of :mod:`maxmargin.ensemble.boosting.rounds`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from maxmargin.backends.cpu.trees.stump import best_of_tables, tables_of
from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.rows import Partitions
from maxmargin.ensemble.boosting.adaboost import AdaBoostClassifier
from maxmargin.ensemble.boosting.rounds import OTHER_ROWS, Rounds, Votes
from maxmargin.ensemble.boosting.stump import DecisionStump, threshold_at
from maxmargin.ensemble.boosting.weak import OWN_LIMITS
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.multiclass import read_class_weights
from maxmargin.solvers.driver import Watch

_SURE = 1e-6  # error above which sums of all weights say it well enough


class StumpOnCodes(NamedTuple):
    """A stump as a test of codes: what workers need of it."""

    feature: int
    cut: int
    left: int
    right: int

    def index(self, columns: BinnedColumns) -> np.ndarray:
        """Index of the class that it has for each row."""
        if self.feature < 0:
            return np.full(columns.n_rows, self.left)
        return np.where(columns.codes(self.feature) > self.cut, self.right, self.left)


class Facts(NamedTuple):
    """Sums over rows: weights of the classes, of wrong rows by D_1, how many count, least u."""

    total: np.ndarray
    wrong: float
    count: int
    least: float

    @classmethod
    def of(cls, votes: Votes, weights: np.ndarray, n_classes: int) -> Facts:
        """Of the rows of a worker."""
        total = np.bincount(votes.index, weights=weights, minlength=n_classes)
        used = votes.weight > 0
        least = float(np.min(votes.u, where=used, initial=np.inf))
        return cls(total, votes.wrong(), int(used.sum()), least)


# -- work of a worker ----------------------------------------------------------------------------


def begun(rows: Coded, n_classes: int, whole: float) -> Votes:
    """Votes on the rows of a worker before the first round."""
    return Votes(rows.y, rows.weight / whole, n_classes)


def cast(rows: Coded, votes: Votes, hypothesis: Any, alpha: float) -> Votes:
    """Votes after one more."""
    after = copy.copy(votes)
    for name in ("u", "votes", "leader", "most"):
        setattr(after, name, getattr(votes, name).copy())
    after.cast(hypothesis.index(rows.columns), alpha)
    return after


def stump_tables(
    rows: Coded, votes: Votes, shift: float, n_classes: int
) -> tuple[np.ndarray, Facts]:
    """Weights of the classes at each code, of two classes their difference, and what else is."""
    weights = votes.weights(shift)
    facts = Facts.of(votes, weights, n_classes)
    store = rows.columns.store
    tables = np.zeros((len(store.greatest), 1 if n_classes == 2 else n_classes))
    most = int(np.diff(store.first).max(initial=1))
    if n_classes == 2:
        weights = np.where(rows.y == 1, weights, -weights)
    tables_of(store, rows.y, weights, facts.total, tables, np.empty(4 * (most + 1)))
    return tables, facts


def added(parts: list[tuple]) -> tuple:
    """Sum of tables and facts."""
    return np.sum([tables for tables, _ in parts], axis=0), together([own for _, own in parts])


def together(parts: list[Facts]) -> Facts:
    """Facts of several workers."""
    return Facts(
        np.sum([own.total for own in parts], axis=0),
        sum(own.wrong for own in parts),
        sum(own.count for own in parts),
        min(own.least for own in parts),
    )


def facts_of(rows: Coded, votes: Votes, shift: float, n_classes: int) -> Facts:
    """Facts alone."""
    return Facts.of(votes, votes.weights(shift), n_classes)


def mistakes(rows: Coded, votes: Votes, hypothesis: Any, shift: float) -> np.ndarray:
    """Weight of the rows that a hypothesis misclassifies, and how many these are."""
    wrong = hypothesis.index(rows.columns) != rows.y
    weights = votes.weights(shift)
    return np.array([weights @ wrong, np.count_nonzero(wrong & (votes.weight > 0)), weights.sum()])


def least_margin(rows: Coded, votes: Votes) -> float:
    """Least margin of a worker's rows."""
    return votes.least_margin()


def history(rows: Coded, votes: Votes, hypotheses: list, alphas: list[float]) -> np.ndarray:
    """Weights, by D_1, and u of each row before each round and after the last: all of them."""
    said, before = [votes.weight, votes.u], votes
    for hypothesis, alpha in zip(hypotheses, alphas, strict=True):
        if np.isfinite(alpha):
            before = cast(rows, before, hypothesis, alpha)
            said.append(before.u)
    return np.array(said)


def last_of(rows: Coded, votes: Votes) -> np.ndarray:
    """Weights, by D_1, and u of each row."""
    return np.array([votes.weight, votes.u])


def replayed(rows: Coded, votes: Votes, hypotheses: list, alphas: list[float]) -> Votes:
    """Votes after rounds that were made before."""
    after = copy.deepcopy(votes)
    for hypothesis, alpha in zip(hypotheses, alphas, strict=True):
        after.cast(hypothesis.index(rows.columns), alpha)
    return after


# -- weak learners -------------------------------------------------------------------------------


class Found(NamedTuple):
    """A hypothesis, the same on codes, its error and whether it makes one, and facts."""

    hypothesis: Any
    on_codes: Any
    error: float
    flawed: bool
    facts: Facts


@dataclass
class Stumps:
    """The stump of the least error, from tables of all rows."""

    prototype: DecisionStump
    rows: CodedRows
    classes: np.ndarray

    def __post_init__(self) -> None:
        self.first, self.least, self.greatest = self.rows.first, self.rows.least, self.rows.greatest

    def on_codes(self, stump: DecisionStump) -> StumpOnCodes:
        """Return a stump that knows a threshold as a test of codes."""
        f, cut = stump.feature_, -1
        if f >= 0:
            cut = int(np.searchsorted(self.rows.ends[f][1], stump.threshold_, side="right")) - 1
        return StumpOnCodes(f, cut, *stump._sides)

    def learn(
        self, votes: list[Delayed], shift: float, seed: int, stopped: Callable[[], Any]
    ) -> Found:
        """Return the best stump for the weights that the votes make."""
        cluster, K = self.rows.cluster, len(self.classes)
        tasks = self.rows.map(stump_tables, shift, K, each=[(v,) for v in votes], name="tables")
        ((tables, facts),) = cluster.run([cluster.total(tasks, added)], stopped)
        cluster.distribution.bytes_between += tables.nbytes * len(tasks)
        total = facts.total
        most = int(np.argmax(total))
        found = np.array([-1, -1, most, most], np.int64)
        best = best_of_tables(self.first, tables, total, float(total[most]), found, np.empty(K))
        on_codes = StumpOnCodes(*found.tolist())
        stump = clone(self.prototype)
        ends = self.first, self.least, self.greatest
        threshold = threshold_at(*ends, on_codes.feature, on_codes.cut)
        sides = on_codes.left, on_codes.right
        stump._keep(on_codes.feature, threshold, sides, self.classes, self.rows.n_features)
        error = 1.0 - best / float(total.sum())
        return judged(self.rows, votes, shift, Found(stump, on_codes, error, True, facts), stopped)


def judged(
    rows: CodedRows, votes: list[Delayed], shift: float, found: Found, stopped: Callable[[], Any]
) -> Found:
    """Return what was found, with the error by the rows themselves where it may be rounding."""
    if found.error > _SURE:
        return found
    cluster = rows.cluster
    each = [(v, found.on_codes) for v in votes]
    tasks = rows.map(mistakes, shift, each=each, name="mistakes")
    (sums,) = cluster.run([cluster.total(tasks, _sum)], stopped)
    return found._replace(error=float(sums[0] / sums[2]), flawed=bool(sums[1] > 0))


def _sum(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)


# -- rounds --------------------------------------------------------------------------------------


@dataclass
class SpreadSample:
    """Rows to be boosted on that lie with the workers; see ``rounds.Sample``."""

    learner: Any
    coded: CodedRows
    partitions: Partitions
    whole: float
    seeds: np.ndarray

    @property
    def n_classes(self) -> int:
        """Classes."""
        return len(self.partitions.classes)  # type: ignore[arg-type]

    def rows(self, keep: bool, watch: Watch) -> SpreadVotes:
        """Return what the rounds know of the rows."""
        return SpreadVotes(self, keep, watch)


class SpreadVotes:
    """What the rounds know of rows that lie with the workers; see ``rounds.RowVotes``.

    A vote is cast when the next hypothesis is asked for, in the same pass; the training error after
    a round is therefore known one round later, and that of the last one in the end.
    """

    def __init__(self, problem: SpreadSample, keep: bool, watch: Watch) -> None:
        self.problem, self.keep, self.watch = problem, keep, watch
        self.rows, self.cluster = problem.coded, problem.coded.cluster
        self.train_errors: list[float] = []
        self.distributions: list[np.ndarray] = []
        self.made: list[tuple[Any, float]] = []  # hypotheses on codes, and their alphas
        self.shift, self.accounted = 0.0, True
        self.pending: tuple[Any, float] | None = None
        self.found: Found | None = None
        begin = self.rows.map(begun, problem.n_classes, problem.whole, name="begin")
        self.first = self.votes = self.cluster.keep(begin)

    def resume(self, known: Rounds, answers: Iterable[Any]) -> None:
        """Go through rounds that were made before; answers are the hypotheses themselves."""
        on_codes = [self.problem.learner.on_codes(hypothesis) for hypothesis in answers]
        self.made = list(zip(on_codes, known.alphas, strict=True))
        shared, each = self.cluster.share(on_codes), [(votes,) for votes in self.votes]
        tasks = self.rows.map(replayed, shared, known.alphas, each=each)
        self.votes = self.cluster.keep(tasks)
        kept, now = known.distributions[-1], self._last()
        if len(kept) != len(now) or np.abs(kept - now).max() > 1e-8 * kept.max():
            raise ValueError(OTHER_ROWS)
        self.train_errors = known.train_errors
        self.shift = self._facts().least

    def learn(self, seed: int) -> tuple[Any, float, bool]:
        """Return a hypothesis for the distribution, its error, and whether it makes one."""
        self._cast()
        stopped = self.watch.stopped if self.made or self.train_errors else lambda: None
        found = self.problem.learner.learn(self.votes, self.shift, seed, stopped)
        self._account(found.facts)
        self.found = found
        return found.hypothesis, found.error, found.flawed

    def vote(self, alpha: float) -> None:
        """Let the last hypothesis vote with a weight, once there is something to learn from it."""
        assert self.found is not None
        self.pending = (self.found.on_codes, alpha)
        self.made.append(self.pending)

    def _cast(self) -> None:
        if self.pending is None:
            return
        each = [(votes, *self.pending) for votes in self.votes]
        self.votes = self.cluster.keep(self.rows.map(cast, each=each, name="vote"))
        self.pending, self.accounted = None, False

    def _account(self, facts: Facts) -> None:
        """Take note of what a pass has said of the last vote."""
        if not self.accounted:
            self.train_errors.append(facts.wrong)
            self.accounted = True
        self.shift = facts.least

    def _facts(self) -> Facts:
        each = [(votes,) for votes in self.votes]
        tasks = self.rows.map(facts_of, self.shift, self.problem.n_classes, each=each, name="facts")
        (facts,) = self.cluster.run([self.cluster.total(tasks, together)])
        return facts

    def _last(self) -> np.ndarray:
        """The distribution after all votes that were cast, gathered."""
        said = self.cluster.run(self.rows.map(last_of, each=[(v,) for v in self.votes]))
        weight, u = self.rows.in_order(said)
        return _distribution(weight, u)

    def settle(self) -> float:
        """Account for all rounds; returns the least margin, in units of the alphas."""
        alone = self.pending is not None and np.isinf(self.pending[1])
        if self.keep:
            hypotheses = [hypothesis for hypothesis, _ in self.made]
            alphas = [alpha for _, alpha in self.made]
            each = [(votes,) for votes in self.first]
            shared = self.cluster.share(hypotheses)
            said = self.cluster.run(self.rows.map(history, shared, alphas, each=each))
            weight, *stages = self.rows.in_order(said)
            self.distributions = [_distribution(weight, u) for u in stages]
        elif alone:
            self.distributions = [self._last()]
        self._cast()
        if not self.accounted:
            self._account(self._facts())
        if not self.keep and not alone:
            self.distributions = [self._last()]
        tasks = self.rows.map(least_margin, each=[(v,) for v in self.votes])
        return min(self.cluster.run(tasks))


def _distribution(weight: np.ndarray, u: np.ndarray) -> np.ndarray:
    D = weight * np.exp(np.min(u, where=weight > 0, initial=np.inf) - u)
    return D / D.sum()


# -- estimators ----------------------------------------------------------------------------------


def read_classes(machine: Any, X: Any, y: Any, sample_weight: Any, stopped: Any) -> Partitions:
    """Check rows with classes, of which each has to have some weight."""
    rows = Partitions.of(machine, X, y, sample_weight, classes=True, stopped=stopped)
    assert rows.classes is not None
    read_class_weights(None, rows.classes, np.arange(len(rows.classes)), rows.class_weights)
    return rows


def gathered(machine: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit a machine that needs all rows in one place."""
    return fit_partitions.dispatch(object)(machine, X, y, sample_weight)


@fit_partitions.register(DecisionStump)
def fit_stump(machine: DecisionStump, X: Any, y: Any, sample_weight: Any = None) -> DecisionStump:
    """Find the best test from tables of all rows."""
    rows = read_classes(machine, X, y, sample_weight, lambda: None)
    coded = CodedRows.of(rows, machine.max_bins, weighed=True)
    whole = float(rows.class_weights.sum())
    votes = coded.cluster.keep(coded.map(begun, len(rows.classes), whole))  # type: ignore[arg-type]
    names = getattr(machine, "feature_names_in_", None)
    found = Stumps(machine, coded, rows.classes).learn(votes, 0.0, 0, lambda: None)  # type: ignore
    vars(machine).update(vars(found.hypothesis))
    if names is not None:
        machine.feature_names_in_ = names
    each = [(v, found.on_codes) for v in votes]
    (sums,) = coded.cluster.run(
        [coded.cluster.total(coded.map(mistakes, 0.0, each=each), _sum)]
    )
    machine.error_ = float(sums[0] / sums[2])
    machine.distribution_ = coded.cluster.distribution
    return machine


@fit_partitions.register(AdaBoostClassifier)
def fit_adaboost(
    machine: AdaBoostClassifier, X: Any, y: Any, sample_weight: Any = None
) -> AdaBoostClassifier:
    """Make the rounds over partitions; weak learners other than stumps and trees get all rows."""
    prototype = DecisionStump() if machine.estimator is None else machine.estimator
    own = any(getattr(prototype, name, None) is not None for name in OWN_LIMITS)
    if type(prototype) is not DecisionStump or own:
        return gathered(machine, X, y, sample_weight)
    prototype._validate_params()
    with machine._watched() as monitor:
        rows = read_classes(machine, X, y, sample_weight, lambda: None)
        classes, everything = rows.classes, slice(None)
        assert classes is not None
        known = machine._known(classes, everything, rows.n)
        random = check_random_state(machine.random_state)
        seeds = random.randint(1 << 31, size=machine.n_estimators)
        coded = CodedRows.of(rows, prototype.max_bins, weighed=True)
        learner = Stumps(prototype, coded, classes)
        whole = float(rows.class_weights.sum())
        sample = SpreadSample(learner, coded, rows, whole, seeds)
        answers = iter(machine.estimators_ if known else ())
        made = machine._made(sample, monitor, known, answers, machine._keeps(rows.n))
        machine._keep(made, classes, everything, rows.n)
        monitor.end(str(machine.certificate_).partition("\n")[0], machine.status_.finished)
    machine.distribution_ = coded.cluster.distribution
    machine._warn_of_stop()
    return machine

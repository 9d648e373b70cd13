"""AdaBoost over partitions: a round is one sum of tables, whatever the number of rows.

Every worker keeps the codes of its rows and the votes on them. A round is one pass: the last
hypothesis votes, the rows' weights are made from that, and the weights of each class at each code
are added up over all workers. The best stump is found from these sums, as it is in one place; so is
its error. The rounds themselves are those of :mod:`maxmargin.ensemble.boosting.rounds`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.ensemble.reading import read_classes
from maxmargin.dask.ensemble.weak import (
    Facts,
    Found,
    Stumps,
    Trees,
    facts_of,
    mistakes,
    together,
)
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import fit_gathered
from maxmargin.dask.reductions import summed
from maxmargin.dask.rows import Partitions
from maxmargin.ensemble.boosting.adaboost import AdaBoostClassifier
from maxmargin.ensemble.boosting.rounds import OTHER_ROWS, Rounds, Votes
from maxmargin.ensemble.boosting.stump import DecisionStump
from maxmargin.ensemble.boosting.weak import OWN, OWN_LIMITS
from maxmargin.ensemble.trees.base import needs_all_rows
from maxmargin.solvers.driver import Watch

# -- work of a worker ----------------------------------------------------------------------------


def begun(rows: Coded, n_classes: int, whole: float) -> Votes:
    """Votes on the rows of a worker before the first round."""
    return Votes(rows.y, rows.weight / whole, n_classes)


def cast(rows: Coded, votes: Votes, hypothesis: Any, alpha: float) -> Votes:
    """Votes after one more."""
    after = copy.copy(votes)
    for name in ("u", "votes", "leader", "most"):
        setattr(after, name, getattr(votes, name).copy())
    after.cast(hypothesis.at(rows.columns), alpha)
    return after


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
        after.cast(hypothesis.at(rows.columns), alpha)
    return after


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


@fit_partitions.register(DecisionStump)
def fit_stump(machine: DecisionStump, X: Any, y: Any, sample_weight: Any = None) -> DecisionStump:
    """Find the best test from tables of all rows."""
    rows = read_classes(machine, X, y, sample_weight)
    coded = CodedRows.of(rows, machine.max_bins, weighed=True)
    whole = float(rows.class_weights.sum())
    votes = coded.cluster.keep(coded.map(begun, len(rows.classes), whole))  # type: ignore[arg-type]
    names = getattr(machine, "feature_names_in_", None)
    found = Stumps(machine, coded, rows.classes).learn(votes, 0.0, 0, lambda: None)  # type: ignore
    for name, value in vars(found.hypothesis).items():
        setattr(machine, name, value)
    if names is not None:
        machine.feature_names_in_ = names
    each = [(v, found.on_codes) for v in votes]
    (sums,) = coded.cluster.run([coded.cluster.total(coded.map(mistakes, 0.0, each=each), summed)])
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
    if type(prototype) not in OWN or own or needs_all_rows(prototype):
        return fit_gathered(machine, X, y, sample_weight)
    prototype._validate_params()
    with machine._watched() as monitor:
        rows = read_classes(machine, X, y, sample_weight)
        classes, everything = rows.classes, slice(None)
        assert classes is not None
        known = machine._known(classes, everything, rows.n)
        random = check_random_state(machine.random_state)
        seeds = random.randint(1 << 31, size=machine.n_estimators)
        coded = CodedRows.of(rows, prototype.max_bins, weighed=True)
        kind = Stumps if type(prototype) is DecisionStump else Trees
        learner: Any = kind(prototype, coded, classes)
        whole = float(rows.class_weights.sum())
        sample = SpreadSample(learner, coded, rows, whole, seeds)
        answers = iter(machine.estimators_ if known else ())
        made = machine._made(sample, monitor, known, answers, machine._keeps(rows.n))
        machine._keep(made, classes, everything, rows.n)
        monitor.end(str(machine.certificate_).partition("\n")[0], machine.status_.finished)
    machine.distribution_ = coded.cluster.distribution
    machine._warn_of_stop()
    return machine

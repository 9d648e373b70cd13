"""AdaBoost, round by round: a distribution over the rows, a hypothesis for it, its vote.

With classes ``1..K``, weights of the rows that sum to one as the first distribution D_1, and T
rounds:

    h_t      from the weak learner, for D_t
    e_t      = sum_i D_t(i) [h_t(x_i) != y_i]
    alpha_t  = 1/2 log((1 - e_t) / e_t) + 1/2 log(K - 1)
    D_t+1(i) = D_t(i) exp(-alpha_t) / Z_t   where h_t is right,   D_t(i) exp(alpha_t) / Z_t  else
    Z_t      = (1 - e_t) exp(-alpha_t) + e_t exp(alpha_t)

For two classes it is the lecture's algorithm, ``Z_t = 2 sqrt(e_t (1 - e_t))``; for more, SAMME with
half its alpha, whose learner has to beat chance, ``e_t < 1 - 1/K``. With ``u_i`` the sum of alpha_t
with the sign of whether h_t is right, which for two classes is ``y_i g(x_i)``,

    exp(-u_i) = prod_t Z_t  D_T+1(i) / D_1(i)

at every stage. A misclassified row has ``u_i <= 0``: another class has as many votes as its own, so
that its own has at most half. Hence, for any K,

    training error  <=  sum_i D_1(i) exp(-u_i)  =  prod_t Z_t,   Z_t = K sqrt(e_t (1 - e_t) / (K-1))

which for K > 2 says something only of learners with ``e_t < 1/K``.

References: seed 000; Freund and Schapire, A decision-theoretic generalization of on-line learning
and an application to boosting, JCSS 55, 1997; Zhu, Zou, Rosset and Hastie, Multi-class AdaBoost,
Statistics and Its Interface 2, 2009 (SAMME).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from maxmargin.backends.threads import StoppedError
from maxmargin.ensemble.boosting.weak import WeakLearner, giving_up
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch

_ROUNDING = 1e-12  # of an error: a hypothesis this near to chance is chance
OTHER_ROWS = (
    "warm_start=True goes on with the rows of the last fit, and these are others, or have other "
    "labels or weights: their distribution after the rounds so far is not D_[-1]. Fit the same "
    "data again, or set warm_start=False to begin anew."
)


@dataclass(frozen=True)
class Sample:
    """Rows to be boosted on.

    Parameters
    ----------
    learner : WeakLearner
        Knows the rows.
    index : int array of shape (n,)
        The class of each.
    n_classes : int
    weight : float array of shape (n,)
        D_1, positive, of sum one.
    seeds : int array of shape (rounds,)
        For what a learner draws at random in each round.
    """

    learner: WeakLearner
    index: np.ndarray
    n_classes: int
    weight: np.ndarray
    seeds: np.ndarray

    def rows(self, keep: bool, watch: Watch) -> RowVotes:
        """Return what the rounds know of the rows."""
        return RowVotes(self, keep, watch)


@dataclass
class Rounds:
    """What the rounds have come to; lists have an entry for each.

    ``train_errors`` are those of the vote after a round, by D_1; ``distributions`` are D_1 to
    D_T+1, or the last of them where they were not to be kept. After a perfect hypothesis there is
    no D_T+1.
    """

    hypotheses: list[Any] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    normalisers: list[float] = field(default_factory=list)
    train_errors: list[float] = field(default_factory=list)
    distributions: list[np.ndarray] = field(default_factory=list)
    minimum_margin: float = -1.0
    status: Status = Status.COMPLETED

    @property
    def bound(self) -> float:
        """Product of the normalisers, above the training error; infinite beyond float64."""
        return math.prod(self.normalisers)  # NumPy's product would warn


@dataclass(frozen=True)
class AdaBoost(Method[Sample, Rounds]):
    """AdaBoost for two classes or more.

    Parameters
    ----------
    rounds : int
        Hypotheses in the vote, at most.
    learning_rate : float, default=1.0
        Factor of every alpha_t.
    keep : bool, default=True
        Whether to keep the distributions of all rounds.
    """

    rounds: int
    learning_rate: float = 1.0
    keep: bool = True

    def accepts(self, problem: Sample) -> str | None:
        """Take every sample."""
        return None

    def begin(
        self,
        problem: Sample,
        watch: Watch,
        known: Rounds | None = None,
        answers: Iterable[np.ndarray] = (),
    ) -> AdaBoostRun:
        """Begin with D_1, or go on after known rounds with their answers on the rows."""
        run = AdaBoostRun(problem, watch, self)
        if known is not None:
            run.resume(known, answers)
        return run


class Votes:
    """The votes on some rows so far: u of each, and with several classes those for each class.

    Parameters
    ----------
    index : int array of shape (n,)
        The class of each row.
    weight : float array of shape (n,)
        D_1, of these rows.
    n_classes : int
    """

    def __init__(self, index: np.ndarray, weight: np.ndarray, n_classes: int) -> None:
        self.index, self.weight = index, weight
        self.u = np.zeros(len(index))
        # a tie, u = 0, is an error of the second class only
        self.least = np.where(index == 1, np.finfo(np.float64).tiny, 0.0)
        self.votes = np.zeros((len(index), n_classes) if n_classes > 2 else (0, 0))
        self.leader = np.zeros(len(self.votes), np.intp)  # the class with most votes, and how many
        self.most = np.zeros(len(self.votes))

    def cast(self, predicted: np.ndarray, alpha: float) -> None:
        """Add the votes of a hypothesis."""
        if np.isinf(alpha):  # it decides alone
            self.u[:] = 1.0
            self.votes[:], self.most[:], self.leader[:] = 0.0, 0.0, 0
            self._count(predicted, 1.0)
            return
        self.u += np.where(predicted == self.index, alpha, -alpha)
        self._count(predicted, alpha)

    def _count(self, predicted: np.ndarray, alpha: float) -> None:
        """Add votes for one class of each row, of several; only that class can take the lead."""
        if not len(self.votes):
            return
        places = np.arange(len(predicted)) * self.votes.shape[1] + predicted
        votes = self.votes.reshape(-1)[places] + alpha
        self.votes.reshape(-1)[places] = votes
        ahead = (votes > self.most) | ((votes == self.most) & (predicted <= self.leader))
        self.leader = np.where(ahead, predicted, self.leader)
        self.most = np.where(ahead, votes, self.most)

    def weights(self, shift: float) -> np.ndarray:
        """The next distribution, but for a factor: ``D_1(i) exp(shift - u_i)``."""
        return self.weight * np.exp(shift - self.u)

    def wrong(self) -> float:
        """Weight, by D_1, of the rows that the vote misclassifies; zero is the first class's."""
        wrong = self.leader != self.index if len(self.votes) else self.u < self.least
        return float(self.weight @ wrong)

    def least_margin(self) -> float:
        """Least margin of a row of positive weight, in units of the alphas."""
        margins = self.u
        if len(self.votes):
            own = np.arange(len(self.u)), self.index
            others = self.votes.copy()
            others[own] = -np.inf
            margins = self.votes[own] - others.max(axis=1)
        return float(np.min(margins, where=self.weight > 0, initial=np.inf))


class RowVotes:
    """What the rounds know of the rows, held in memory.

    Rows that lie elsewhere have a class of their own with these methods; what a round has come to
    it may say when the next one is asked for.

    Parameters
    ----------
    problem : Sample
    keep : bool
        Whether to keep the distributions of all rounds.
    watch : Watch

    Attributes
    ----------
    train_errors : list of float
        Of the vote after each round, by D_1.
    distributions : list of arrays
        D_1 to the last, or the last alone.
    """

    def __init__(self, problem: Sample, keep: bool, watch: Watch) -> None:
        self.problem, self.keep, self.watch = problem, keep, watch
        self.train_errors: list[float] = []
        self.D = problem.weight
        self.distributions = [self.D]
        self.votes = Votes(problem.index, problem.weight, problem.n_classes)
        self.predicted = np.empty(0, np.intp)

    def resume(self, known: Rounds, answers: Iterable[np.ndarray]) -> None:
        """Go through rounds that were made before."""
        for alpha, self.predicted in zip(known.alphas, answers, strict=True):
            self._cast(alpha)
        kept = known.distributions[-1]
        if len(kept) != len(self.D) or np.abs(kept - self.D).max() > 1e-8 * kept.max():
            raise ValueError(OTHER_ROWS)
        self.train_errors = known.train_errors

    def learn(self, seed: int) -> tuple[Any, float, bool]:
        """Return a hypothesis for the distribution, its error, and whether it makes one."""
        stopped = giving_up(self.watch, bool(self.train_errors))
        hypothesis, self.predicted = self.problem.learner.learn(self.D, seed, stopped)
        wrong = self.predicted != self.problem.index
        return hypothesis, float(self.D @ wrong), bool(wrong.any())

    def vote(self, alpha: float) -> None:
        """Let the last hypothesis vote with a weight, and make the next distribution."""
        self._cast(alpha)
        self.train_errors.append(self.votes.wrong())

    def _cast(self, alpha: float) -> None:
        self.votes.cast(self.predicted, alpha)
        if np.isinf(alpha):
            return
        D = self.votes.weights(self.votes.u.min())
        self.D = D / D.sum()
        if not self.keep:
            self.distributions.clear()
        self.distributions.append(self.D)

    def settle(self) -> float:
        """Account for all rounds; returns the least margin, in units of the alphas."""
        return self.votes.least_margin()


class AdaBoostRun(Run):
    """The rounds at work. What is solved for are the alphas, of which a round moves one."""

    words: ClassVar[str] = "round {steps}, training error {violation:.3g}"

    def __init__(self, problem: Sample, watch: Watch, method: AdaBoost) -> None:
        self.problem, self.watch, self.method = problem, watch, method
        self.done = Rounds()
        self.rows = problem.rows(method.keep, watch)

    def resume(self, known: Rounds, answers: Iterable[np.ndarray]) -> None:
        """Go through rounds that were made before."""
        self.done = known
        self.rows.resume(known, answers)
        if np.isinf(known.alphas[-1:]).any():
            self.status = Status.PERFECT

    def steps(self) -> Generator[None, None, None]:
        """One round after the other; each yields."""
        problem, done, method = self.problem, self.done, self.method
        chance = 1.0 - 1.0 / problem.n_classes
        while len(done.hypotheses) < method.rounds:
            seed = int(problem.seeds[len(done.hypotheses)])
            try:
                hypothesis, error, flawed = self.rows.learn(seed)
            except StoppedError:
                self.status = self.watch.stopped() or Status.INTERRUPTED
                return
            if flawed and error >= chance - _ROUNDING:
                self.status = Status.NO_EDGE
                return
            alpha = np.inf
            if flawed:
                error = max(error, np.finfo(np.float64).tiny)
                alpha = 0.5 * np.log((1.0 - error) / error * (problem.n_classes - 1))
            done.hypotheses.append(hypothesis)
            done.errors.append(error)
            done.alphas.append(float(method.learning_rate * alpha))
            done.normalisers.append(normaliser(error, done.alphas[-1]))
            self.rows.vote(done.alphas[-1])
            self.n_iter += 1
            if np.isinf(alpha):
                self.status = Status.PERFECT
                return
            if np.isinf(done.bound):  # the learning rate is too large
                self.status = Status.DIVERGED
                return
            if len(done.hypotheses) < method.rounds:
                yield
        self.status = Status.COMPLETED

    @property
    def usable(self) -> bool:
        """Whether a round was made."""
        return bool(self.done.hypotheses)

    @property
    def share(self) -> float:
        """Share of the rounds that were made."""
        return len(self.done.hypotheses) / self.method.rounds

    @property
    def n_steps(self) -> int:
        """Rounds that were made, those of earlier fits among them."""
        return len(self.done.hypotheses)

    @property
    def variables(self) -> np.ndarray:
        """The alphas, zero for rounds to come."""
        alphas = np.zeros(self.method.rounds)
        alphas[: len(self.done.alphas)] = self.done.alphas
        return alphas

    @property
    def working_set(self) -> np.ndarray | None:
        """The alpha of the last round."""
        return np.array([self.n_steps - 1]) if self.n_steps else None

    def measure(self) -> Measure:
        """Training error, and the mean exponential loss."""
        error = self.rows.train_errors[-1] if self.rows.train_errors else 1.0
        return Measure(error, self.done.bound)

    def solution(self, status: Status) -> Rounds:
        """Return the rounds."""
        self.done.status = status
        if self.done.hypotheses:
            alphas = np.array(self.done.alphas)
            total = 1.0 if np.isinf(alphas).any() else float(alphas.sum())
            self.done.minimum_margin = self.rows.settle() / total
        self.done.train_errors = self.rows.train_errors
        self.done.distributions = self.rows.distributions
        return self.done


def normaliser(error: float, alpha: float) -> float:
    """``Z = (1 - e) exp(-alpha) + e exp(alpha)``.

    >>> round(normaliser(0.3, 0.5 * np.log(7 / 3)), 4)
    0.9165
    """
    if np.isinf(alpha):
        return 0.0
    if not error:
        return float(np.exp(-alpha))
    with np.errstate(over="ignore"):  # exp(alpha) may be beyond float64 where the product is not
        return float((1.0 - error) * np.exp(-alpha) + np.exp(np.log(error) + alpha))

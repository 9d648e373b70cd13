"""What a solver hands back, and the sentence that goes with each way a solve can end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maxmargin.backends.cpu.dual.certificate import Account

_SOUND = 1e-7  # part of what is judged that rounding may be, by its wide bound, for any tol


class Status(StrEnum):
    """How a solve ended, the best first."""

    CONVERGED = "converged"
    COMPLETED = "completed"
    PERFECT = "perfect"
    SEPARATED = "separated"
    NO_EDGE = "no_edge"
    NO_IMPROVEMENT = "no_improvement"
    RECURRING = "recurring"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    INFEASIBLE = "infeasible"
    DIVERGED = "diverged"
    TRIVIAL = "trivial"

    @property
    def advice(self) -> str:
        """What it means and what to do about it."""
        return _ADVICE[self, ""]

    def advice_for(self, family: str) -> str:
        """Return the advice in the words of a family of machines, if it has its own."""
        return _ADVICE.get((self, family), self.advice)

    @property
    def finished(self) -> bool:
        """Whether the work was done to an end that asks for no warning."""
        return self in _FINISHED

    @property
    def stopped(self) -> bool:
        """Whether someone, or the clock, did not want to wait any longer."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED)

    def beside(self, rounding: float, tol: float) -> Status:
        """Return it, or "stalled" where rounding may be more than a small part of what converged.

        Bounds on rounding are wide, so that up to 1e-7 they are no reason for doubt at any tol.

        >>> Status.CONVERGED.beside(1e-9, tol=1e-12), Status.CONVERGED.beside(1e-4, tol=1e-6)
        (<Status.CONVERGED: 'converged'>, <Status.STALLED: 'stalled'>)
        """
        doubted = self is Status.CONVERGED and rounding > max(tol, _SOUND)
        return Status.STALLED if doubted else self

    @property
    def severity(self) -> int:
        """Order of the statuses, the best first."""
        return list(Status).index(self)


_FINISHED = (
    Status.CONVERGED,
    Status.COMPLETED,
    Status.PERFECT,
    Status.SEPARATED,
    Status.NO_EDGE,
    Status.NO_IMPROVEMENT,
)
# By status and family of machines; "" is for all that have no sentence of their own.
_ADVICE = {
    (Status.CONVERGED, ""): "Every KKT condition holds to tol.",
    (Status.COMPLETED, ""): "All rounds or members that were asked for are there.",
    (Status.COMPLETED, "tree"): "The tree has grown as far as its limits let it.",
    (Status.PERFECT, ""): (
        "The last hypothesis makes no error on the training rows. Its weight in the vote would be "
        "infinite: it decides alone, and more rounds would change nothing."
    ),
    (Status.NO_EDGE, ""): (
        "The weak learner found no hypothesis that is better than chance on the last "
        "distribution: more rounds would change nothing. A richer weak learner may go on."
    ),
    (Status.SEPARATED, ""): "Every training row is on its right side.",
    (Status.NO_IMPROVEMENT, ""): "The last passes over the data were no improvement.",
    (Status.NO_IMPROVEMENT, "perceptron"): (
        "{mistakes} of {rows} training rows are still on the wrong side: the passes have ended "
        "because the last {n_iter_no_change} did not lower the mean loss by tol={tol:g}, and not "
        "because the perceptron was done. {judge} tells whether the classes can be separated: if "
        "so, tol=None goes on until they are; if not, take variant='pocket' or 'averaged'."
    ),
    (Status.RECURRING, ""): (
        "The data are not separable: the weights are exactly those of {cycle_length} pass(es) "
        "before, so that the perceptron never ends. Take variant='pocket' or 'averaged', a kernel, "
        "or a machine that allows slack, such as SVC."
    ),
    (Status.MAX_ITER, ""): (
        "Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data with "
        "StandardScaler or MinMaxScaler, or raise max_iter (-1 means no limit)."
    ),
    (Status.MAX_ITER, "perceptron"): (
        "Maximum number of iteration reached before convergence (max_iter={max_iter}). "
        "{judge} tells whether it can converge at all: if so, raise max_iter, or scale the data; "
        "if not, take variant='pocket' or 'averaged'."
    ),
    (Status.TIME_LIMIT, ""): (
        "Solver terminated early (time_limit={time_limit:g} s). Raise time_limit, raise tol, or "
        "scale the data with StandardScaler or MinMaxScaler."
    ),
    (Status.TIME_LIMIT, "perceptron"): (
        "Stopped early (time_limit={time_limit:g} s): raise it, or scale the data."
    ),
    (Status.INTERRUPTED, ""): (
        "Solver stopped early, by Ctrl-C or by a callback. The model is what was found until "
        "then; fit again with warm_start=True to go on from there."
    ),
    (Status.INTERRUPTED, "perceptron"): (
        "Stopped early, by Ctrl-C or by a callback. The model is what was found until then; fit "
        "again with warm_start=True to go on from there."
    ),
    (Status.STALLED, ""): (
        "Solver terminated early: in float64 no step improves the objective any more, and the KKT "
        "violation is still above tol. The kernel's values are too large or too ill-conditioned "
        "for this tol: scale the data with StandardScaler or MinMaxScaler, take a C nearer to 1, "
        "or raise tol."
    ),
    (Status.STALLED, "margin"): (
        "Solver terminated early: the KKT violation is below tol, but not small beside the margin "
        "rho, which is therefore not known. Scale the data with StandardScaler or MinMaxScaler, "
        "raise nu, or lower tol: that allows more steps."
    ),
    (Status.STALLED, "risk"): (
        "Solver terminated early: no step lowers the objective any more. Scale the data "
        "with StandardScaler or MinMaxScaler, take a C nearer to 1, or raise tol."
    ),
    (Status.MAX_ITER, "descent"): (
        "The descent has not converged in max_iter={max_iter} steps (for solver='sgd', passes). "
        "Raise max_iter, or raise tol={tol:g}."
    ),
    (
        Status.TIME_LIMIT,
        "descent",
    ): "The fit has reached time_limit={time_limit} s. Raise it, or raise tol.",
    (Status.INTERRUPTED, "descent"): (
        "The fit was stopped early, by Ctrl-C or by a callback. The model is what was found until "
        "then."
    ),
    (Status.STALLED, "descent"): (
        "The descent cannot go on: no step lowers the loss any more. Raise tol={tol:g} if its "
        "rounding hides what is left to win; the weights are the best on the way."
    ),
    (Status.DIVERGED, ""): (
        "The steps are too large: they have diverged, to more than a hundred times the objective "
        "of the start, or to rest on a plateau above it (step_size={step_size}). Take smaller "
        "ones, or a schedule that falls. Leave step_size=None, or take another solver, for steps "
        "that fit the data. The weights are the best on the way."
    ),
    (Status.MAX_ITER, "ridge"): (
        "Conjugate gradients have not converged in max_iter={max_iter} steps. Raise max_iter, "
        "alpha or tol={tol:g}, or use solver='cholesky'."
    ),
    (Status.TIME_LIMIT, "ridge"): (
        "The fit has reached time_limit={time_limit:g} s. Raise it, raise tol={tol:g}, or take "
        "fewer rows."
    ),
    (Status.INTERRUPTED, "ridge"): (
        "The fit was stopped early, by Ctrl-C or by a callback. The model is what was found until "
        "then."
    ),
    (Status.STALLED, "ridge"): (
        "float64 has no more digits for this system: alpha is small beside the kernel's values. "
        "Raise alpha, scale the data, or raise tol={tol:g}."
    ),
    (Status.NO_IMPROVEMENT, "likelihood"): (
        "No step raises the likelihood by more than its rounding, and a Newton step promises next "
        "to nothing."
    ),
    (Status.MAX_ITER, "likelihood"): (
        "The likelihood is not maximised after max_iter={max_iter} steps. Raise max_iter, or raise "
        "tol={tol:g}."
    ),
    (Status.TIME_LIMIT, "likelihood"): (
        "The fit has reached time_limit={time_limit:g} s. Raise it, raise tol={tol:g}, or take "
        "fewer rows or restarts."
    ),
    (Status.INTERRUPTED, "likelihood"): (
        "The fit was stopped early, by Ctrl-C or by a callback. The model has the best parameters "
        "that were found until then."
    ),
    (Status.STALLED, "likelihood"): (
        "No step raises the likelihood any more, and its gradient is still above tol={tol:g}: the "
        "optimizer has given up, or the rounding of an ill-conditioned covariance hides what is "
        "left. Raise alpha or the lower bound of noise_level, or raise tol."
    ),
    (Status.MAX_ITER, "spectral"): (
        "The components are not exact after max_iter={max_iter} passes over the Gram matrix. Raise "
        "max_iter, or tol={tol:g}."
    ),
    (Status.TIME_LIMIT, "spectral"): (
        "The fit has reached time_limit={time_limit:g} s. Raise it, raise tol={tol:g}, or take "
        "fewer rows."
    ),
    (Status.INTERRUPTED, "spectral"): (
        "The fit was stopped early, by Ctrl-C or by a callback. The components are what was found "
        "until then."
    ),
    (Status.STALLED, "spectral"): (
        "float64 has no more digits for these components: the kernel's values are large beside "
        "what differs in them. Centre the data and scale them (StandardScaler), take a "
        "larger gamma if the kernel has one, or raise tol={tol:g}."
    ),
    (Status.NO_IMPROVEMENT, "boosting"): "No weak rule lowers the bound any more.",
    (Status.DIVERGED, "boosting"): (
        "Sample weights have reached infinite values, at iteration {rounds}, causing overflow. "
        "Iterations stopped. Try lowering the learning rate."
    ),
    (Status.TIME_LIMIT, "boosting"): (
        "Stopped early (time_limit={time_limit:g} s), after {rounds} of {n_estimators} rounds. "
        "Raise time_limit, or fit again with warm_start=True to go on from there."
    ),
    (Status.INTERRUPTED, "boosting"): (
        "Stopped early, by Ctrl-C or by a callback, after {rounds} of {n_estimators} rounds. The "
        "model is what was found until then; fit again with warm_start=True to go on from there."
    ),
    (Status.TIME_LIMIT, "tree"): (
        "The tree has stopped growing at time_limit={time_limit:g} s: the nodes that were still to "
        "be parted are leaves. Raise time_limit, or limit max_depth or max_features."
    ),
    (Status.INTERRUPTED, "tree"): (
        "The tree was stopped early, by Ctrl-C or by a callback: the nodes that were still to be "
        "parted are leaves."
    ),
    (Status.TIME_LIMIT, "ensemble"): (
        "The ensemble has {there} of {wanted} {members}: it was stopped early "
        "(time_limit={time_limit:g} s). It predicts with those. Raise time_limit, or fit again "
        "with warm_start=True for the others."
    ),
    (Status.INTERRUPTED, "ensemble"): (
        "The ensemble has {there} of {wanted} {members}: it was stopped early, by Ctrl-C or by a "
        "callback. It predicts with those; fit again with warm_start=True for the others."
    ),
    (Status.MAX_ITER, "lpboost"): (
        "The largest soft margin was not reached in n_estimators={n_estimators} rounds: the gap is "
        "{gap:.3g} (tol {tol:g}). Raise n_estimators or tol."
    ),
    (Status.TIME_LIMIT, "lpboost"): (
        "The rounds have stopped at time_limit={time_limit:g} s with a gap of {gap:.3g} "
        "(tol {tol:g}). Raise time_limit or tol."
    ),
    (Status.INTERRUPTED, "lpboost"): (
        "The rounds were stopped early, by Ctrl-C or by a callback, with a gap of {gap:.3g}. The "
        "model is the best vote of the hypotheses that were found until then."
    ),
    (Status.STALLED, "lpboost"): (
        "The weak learner returns a hypothesis that is already in the vote, and the gap is still "
        "{gap:.3g} (tol {tol:g}): float64 has no more digits for this linear programme. Raise tol."
    ),
    (Status.TRIVIAL, "lpboost"): (
        "No vote of these hypotheses has a positive soft margin: its decisions mean little. Raise "
        "nu, or take a richer weak learner, such as DecisionTreeClassifier(max_depth=2)."
    ),
    (Status.INFEASIBLE, ""): (
        "The method has ended outside of the dual's constraints (certificate_.infeasibility says "
        "how far): what it has come to is the answer to no problem, and no bound. Clipping after a "
        "projection does this; take ProjectedGradient(projection='exact'), or another solver."
    ),
    (Status.TRIVIAL, ""): (
        "The only solution here is the trivial one, w = 0 with margin rho = 0, and its decisions "
        "mean nothing: with this nu the reduced convex hulls of the two classes meet or, for the "
        "one-class machine, the reduced hull of the data holds the origin of the feature space. "
        "Raise nu or use a richer kernel (RBF); with an indefinite kernel, rho itself may have no "
        "meaning: use SVC."
    ),
}


@dataclass(frozen=True)
class Solution:
    """A feasible point of a dual problem, and how the solver left it.

    ``beta`` are the signed variables; ``decision`` is the solver's own ``K coef`` where it has one,
    to its working precision; ``exact`` says that it is the one in float64 that a certificate asks
    for. ``account`` are all numbers of a certificate, where the method has taken them itself.
    """

    beta: np.ndarray
    n_iter: int
    status: Status
    decision: np.ndarray | None = None
    exact: bool = False
    account: Account | None = None

    @property
    def alpha(self) -> np.ndarray:
        """The lecture's multipliers: the variables without their signs."""
        return np.abs(self.beta)

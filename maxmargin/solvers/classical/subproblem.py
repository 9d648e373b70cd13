"""The dual in some of its variables, the others held: what chunking and decomposition solve.

With B the chosen variables and N the others, the gradient on B is ``K_BB b_B + (p_B + K_BN b_N)``:
the same form again, with the pull of the others in its linear part, and with the sums that B's
share of each group has now. So any method for duals solves it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import replace
from numbers import Integral

import numpy as np

from maxmargin.backends.cpu.dual.kkt import KKTScan
from maxmargin.duals import DualProblem
from maxmargin.solution import Status
from maxmargin.solvers.classical.row_run import ENOUGH, RowRun
from maxmargin.solvers.driver import Watch
from maxmargin.solvers.dual.method import DualMethod

_INNER, _SHARE = 0.5, 0.1  # of tol, or of the violation, that a sub-problem is solved to
_PATIENCE = 10  # sub-problems in a row that do not raise the dual


def subproblem(
    problem: DualProblem, index: np.ndarray, beta: np.ndarray, decision: np.ndarray
) -> DualProblem:
    """Return the problem of some variables, the others held where they are.

    Parameters
    ----------
    problem : DualProblem
        Over its Gram matrix.
    index : int array (q,)
        The variables.
    beta : float array (m,)
        Where all variables are; those of ``index`` are the start.
    decision : float array, one entry per row of the Gram matrix
        ``K coef`` of them.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram, duals
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.classical.subproblem import subproblem
    >>> gram = Gram.of(np.array([[0.0], [1.0], [1.5]]), Linear())
    >>> problem = duals.c_svc(np.arange(3), np.array([-1.0, 1.0, 1.0]), C=np.ones(3)).over(gram)
    >>> beta = np.array([-0.5, 0.0, 0.5])
    >>> part = subproblem(problem, np.array([0, 1]), beta, problem.decision(beta))
    >>> part.start, part.linear  # less 1 by the labels, more by what the third has done
    (array([-0.5,  0. ]), array([ 1.  , -0.25]))
    """
    part = problem.restricted(index).started_from(beta[index])
    rows, whole = part.rows, decision
    part = part.renumbered().over(problem.gram.take(rows))
    own = part.decision_at_start()
    others = part.orientation * (whole[rows] - own)[part.gram_row]
    return replace(part, linear=part.linear + others, known_decision=own)


def check_options(size: int, inner: DualMethod) -> None:
    """Refuse sets of less than two variables, and what solves no duals."""
    if not isinstance(size, Integral) or size < 2:
        raise ValueError(
            f"size must be a whole number, two at least so that their sum can stay; got {size!r}."
        )
    if not isinstance(inner, DualMethod):
        raise TypeError(f"inner must be a method for duals, such as SMO(); got {inner!r}.")


class SubproblemRun(RowRun):
    """A method that solves one sub-problem after the other.

    A step is one of the inner method's, and ``max_iter`` limits these; what is recorded is the
    state after each sub-problem.
    """

    def __init__(self, problem: DualProblem, watch: Watch, inner: DualMethod) -> None:
        super().__init__(problem, watch)
        self.inner = inner

    @abstractmethod
    def choose(self, found: KKTScan) -> np.ndarray:
        """Choose the variables of the next sub-problem, with the worst pair among them."""

    def steps(self) -> Generator[None, None, None]:
        """Choose, solve, put back, until nobody violates the KKT conditions."""
        best, idle = np.inf, 0
        while True:
            violation, found = self.scan()
            if violation <= ENOUGH * self.watch.tol:
                return
            value = self.value()
            best, idle = (value, 0) if value < best else (best, idle + 1)
            if idle >= _PATIENCE or not violation < np.inf:
                self.status = Status.STALLED
                return
            yield from self._solve(self.choose(found), violation)

    def value(self) -> float:
        """What the dual problem minimises."""
        coef = self.problem.on_rows(self.beta)
        return 0.5 * float(coef @ self.decision) + float(self.problem.linear @ self.beta)

    def _solve(self, index: np.ndarray, violation: float) -> Generator[None, None, None]:
        """Let the inner method solve the problem of some variables; what it has, is put back."""
        part = subproblem(self.problem, index, self.beta, self.decision)
        refused = self.inner.accepts(part)
        if refused is not None:
            raise ValueError(refused)
        tol = max(_INNER * self.watch.tol, _SHARE * violation)
        watch = replace(self.watch.untraced(), tol=tol, spent=self.watch.spent + self.n_iter)
        run = self.inner.begin(part, watch)
        try:
            while run.status is None and (left := watch.left(run.n_iter)):
                run.advance(left)
                yield  # to the driver, which sees the state before this sub-problem
        finally:  # also where the driver ends it here
            run.close()
            self.move(index, run.solution(run.status or Status.INTERRUPTED).beta)
            self.n_iter += max(run.n_iter, 1)
        yield


def most_violating(found: KKTScan, size: int) -> np.ndarray:
    """Return up to so many variables: half those that most want to rise, half to fall.

    Those of the worst pair (whose excess is infinite) come first. The others may be at rest: they
    are then of use to those that are not.
    """
    chosen = np.isposinf(found.excess)
    half = (size - np.count_nonzero(chosen) + 1) // 2
    for may, pull, room in (
        (found.may_rise, found.v, half),
        (found.may_fall, -found.v, size - np.count_nonzero(chosen) - half),
    ):
        others = np.flatnonzero(may & ~chosen)
        chosen[others[np.argsort(-pull[others], kind="stable")[:room]]] = True
    return np.flatnonzero(chosen)

"""The linear kernel on many rows: the linear machines' solver goes first.

With ``k(x, z) = x . z`` and many more rows than features the dual is best solved through its primal
(:mod:`maxmargin.solvers.risk.multipliers`): a system of the size of the features in place of a
working set of the rows. Its answer is where the dual's own solver starts, which looks at every
condition and goes on if one does not hold: the optimum, the certificate and all attributes are the
same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.threads import Workers
from maxmargin.duals import DualProblem
from maxmargin.kernels import Kernel, Linear
from maxmargin.progress import ProblemMonitor
from maxmargin.risk import RegularisedRisk
from maxmargin.solvers.driver import Choice, Watch
from maxmargin.solvers.risk.multipliers import Multipliers

_ROWS, _TALL = 1000, 20  # rows from which, and their ratio to the features
_FEATURES = {20_000: 1500, 0: 128}  # features up to which, with so many rows at least: the primal's
# systems are of their size, while the dual of few rows in many features is soon solved
CHOICE = Choice(Multipliers(), "tall data and the linear kernel: the dual begins at its answer")
_GAP = 1e-5  # relative: what is left takes the dual's own solver few steps


def applies(kernel: Kernel, X: Any, problem: DualProblem) -> bool:
    """Whether a problem is one of C-SVC or SVR with the linear kernel on tall data."""
    if type(kernel) is not Linear:
        return False
    known = isinstance(X, np.ndarray) or sp.issparse(X)
    if problem.losses is None or not known:
        return False
    rows, features = len(problem.losses.cost), X.shape[1]
    most = next(most for least, most in _FEATURES.items() if rows >= least)
    return rows >= max(_ROWS, _TALL * features) and features <= most


def start_from_primal(
    problem: DualProblem, X: Any, workers: Workers, monitor: ProblemMonitor, max_iter: int = -1
) -> DualProblem:
    """Return a problem with its start where the primal's solver has ended.

    A limit on the steps of a fit limits its passes over the data, too.
    """
    assert problem.losses is not None
    loss, target, cost = problem.losses
    rows = problem.gram_row[: len(cost)]
    everything = len(rows) == X.shape[0] and bool((np.diff(rows) == 1).all())
    design = Design(X if everything else X[rows], float(problem.n_groups), workers)
    risk = RegularisedRisk(design, target, cost, loss)
    solution = Multipliers().solve(risk, Watch(_GAP, max_iter, monitor).untraced())
    beta = risk.beta(risk.feasible(solution.s))
    if problem.paired:  # above and below the tube
        beta = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    return problem.started_near(beta)

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
from maxmargin.backends.threads import Workers, on_one_blas_thread
from maxmargin.duals import DualProblem
from maxmargin.kernels import Kernel, Linear
from maxmargin.losses import EpsilonInsensitive, Hinge
from maxmargin.progress import ProblemMonitor
from maxmargin.risk import RegularisedRisk
from maxmargin.solvers.risk.multipliers import Multipliers

_ROWS, _FEATURES, _TALL = 20_000, 1500, 20  # rows from which, features up to which, and their ratio
_GAP = 1e-5  # relative: what is left takes the dual's own solver few steps


def pays(kernel: Kernel, X: Any, problem: DualProblem) -> bool:
    """Whether a problem is one of C-SVC or SVR with the linear kernel on tall data."""
    if type(kernel) is not Linear:
        return False
    rows = len(problem.rows)
    known = isinstance(X, np.ndarray) or sp.issparse(X)
    fixed_margin = not problem.hard and not problem.margin_weights.size
    tall = known and rows >= max(_ROWS, _TALL * X.shape[1]) and X.shape[1] <= _FEATURES
    return fixed_margin and tall and not problem.tube_weights.size


@on_one_blas_thread
def started(
    problem: DualProblem, X: Any, workers: Workers, monitor: ProblemMonitor, max_iter: int = -1
) -> DualProblem:
    """Return a problem with its start where the primal's solver has ended.

    A limit on the steps of a fit limits its passes over the data, too.
    """
    rows = problem.rows
    m = len(rows)
    whole = m == X.shape[0]
    cost = problem.upper[:m]
    design = Design(X if whole else X[rows], float(problem.n_groups), workers)
    if rows is problem.gram_row:
        risk = RegularisedRisk(design, problem.sign, cost, Hinge())
    else:  # two variables on a row, above and below the tube
        above, below = problem.linear[:m], problem.linear[m:]
        loss = EpsilonInsensitive(0.5 * float(above[0] + below[0]))
        risk = RegularisedRisk(design, 0.5 * (below - above), cost, loss)
    solution = Multipliers(_GAP, max_iter, monitor).solve(risk)
    beta = risk.beta(risk.feasible(solution.s))
    if rows is problem.gram_row:
        alpha = problem.sign * beta
    else:
        alpha = np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
    return problem.started_near(alpha)

"""How the variables of a method become the weights and intercepts of a linear machine.

What a method solves for is its own: signed dual variables, weights of standardised columns. Each
function here returns a reading (:mod:`maxmargin.progress`), which makes ``w`` and ``b``, in the
units of the data, of the variables of some records: for a callback or a trace to say them. To make
one costs nothing; the data are looked at when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from maxmargin.backends.cpu.dual.certificate import weigh
from maxmargin.duals import DualProblem
from maxmargin.evaluation import scaling
from maxmargin.progress import Reading
from maxmargin.risk import Risk
from maxmargin.risk.standardised import Columns
from maxmargin.solution import Status
from maxmargin.solvers.ridge.linear import LinearSystem


def of_dual(problem: DualProblem, X: Any, sign: float = 1.0) -> Reading:
    """Read a machine with the linear kernel off dual variables: ``b`` off the levels of the groups.

    A machine whose margin is not fixed is divided by it, where it is positive.
    """
    rows_of_X, own = _rows(X, problem.rows), problem.renumbered()
    squares = cache(lambda: row_norms(rows_of_X(), squared=True).astype(np.float64))

    def machine(beta: np.ndarray, coef: np.ndarray, values: np.ndarray) -> tuple[float, float]:
        point = beta, own.start, coef, values, squares(), 0.0
        account = weigh(own.variables, own.n_groups, own.readings, *point)
        return account.bias, scaling(own, Status.CONVERGED, account)[1]

    def read(betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, betas = rows_of_X(), betas.astype(np.float64, copy=False)
        coef = np.array([own.on_rows(beta, len(own.rows)) for beta in betas])
        weights = safe_sparse_dot(coef, rows, dense_output=True)
        values = np.ascontiguousarray(safe_sparse_dot(rows, weights.T, dense_output=True).T)
        found = [machine(*one) for one in zip(betas, coef, values.astype(float), strict=True)]
        bias, unit = np.array(found).T
        return sign * weights / unit[:, None], sign * bias / unit

    return read


def of_expansion(
    X: Any,
    rows: np.ndarray,
    intercepts: Callable[[np.ndarray, np.ndarray], Any] | None = None,
    scale: Any = 1.0,
) -> Reading:
    """Read machines with the linear kernel off coefficients of some rows, one or m to a row.

    These are the variables times ``scale``. ``intercepts`` makes (m,) of coefficients (n, m) and
    their values at the rows; without it they are zero.
    """
    rows_of_X = _rows(X, rows)

    def machines(variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, a = rows_of_X(), scale * variables.reshape(len(rows), -1)
        weights = safe_sparse_dot(a.T, own, dense_output=True)
        if intercepts is None:
            return weights, np.zeros(len(weights))
        return weights, intercepts(a, safe_sparse_dot(own, weights.T, dense_output=True))

    def read(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights, biases = map(np.array, zip(*map(machines, records), strict=True))
        return _squeezed(weights), _squeezed(biases)

    return read


def of_risk(risk: Risk) -> Reading:
    """Read a machine off the weights of a risk, whose last is that of the intercept's column."""
    design = risk.design

    def read(thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        thetas = np.array([risk.same_for_all(theta) for theta in thetas])
        constant = design.constant
        intercepts = constant * thetas[..., -1] if constant else np.zeros(thetas.shape[:-1])
        return thetas[..., : design.features], intercepts

    return read


def of_standardised(columns: Columns, size: Any = 1.0, centre: Any = 0.0) -> Reading:
    """Read machines off weights of standardised columns, (m, d) or with c after them (m, d + 1).

    The targets were ``(Y - centre) / size``.
    """

    def read(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d = len(columns.mean)
        weights = V[..., :d] * columns.inverse * np.reshape(size, (-1, 1))
        c = V[..., d] if V.shape[-1] > d else 0.0
        return _squeezed(weights), _squeezed(centre + c * size - weights @ columns.mean)

    return read


def of_ridge(system: LinearSystem) -> Reading:
    """Read machines off the unknowns of a ridge system, primal or dual."""
    data = system.data

    def read(unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.array([system.weights(b).T for b in unknowns])
        return _squeezed(weights), _squeezed(data.target_mean[system.outputs] - weights @ data.mean)

    return read


def of_weights(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Read a machine off its weights and the intercept after them: this is a reading itself."""
    return records[:, :-1], records[:, -1]


def _rows(X: Any, rows: np.ndarray) -> Callable[[], Any]:
    """Return what takes some rows of X, once."""
    return cache(lambda: X if len(rows) == X.shape[0] else X[rows])


def _squeezed(several: np.ndarray) -> np.ndarray:
    """Without the axis of the machines where there is one."""
    return several[:, 0] if several.shape[1] == 1 else several

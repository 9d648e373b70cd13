"""Least squares, and minimum classification error, on Dask collections.

One pass checks the partitions and has the moments of their columns. A factorisation takes one more:
each partition is brought to triangular form where it lies, and triangles are put together as a tree
(TSQR). Conjugate gradients and descents take one pass a step. A last pass makes loss and gradient
anew for the certificate.

Reference: Demmel, Grigori, Hoemmen and Langou, SIAM J. Scientific Computing 34, 2012 (TSQR).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.dask.classes import factors_of_classes
from maxmargin.dask.collections import sizes_of
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.rows import Partitions
from maxmargin.dask.standardised import (
    Look,
    Reading,
    SpreadColumns,
    SpreadRegression,
    SpreadSmoothedError,
    account_of,
)
from maxmargin.estimators.warn import warn
from maxmargin.linear.mce import MCEClassifier
from maxmargin.linear.regression import LeastSquaresClassifier, LinearRegression
from maxmargin.progress import Monitor
from maxmargin.solvers import Method, StochasticDescent


@fit_partitions.register
def _(machine: LinearRegression, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a linear regression."""
    _refuse_row_by_row(machine, "'qr' or 'conjugate_gradient'")
    look = Look(machine.fit_intercept, False, len(sizes_of(X)))
    options: dict[str, Any] = {"multi_output": True, "y_numeric": True}
    rows = Partitions.of(machine, X, y, sample_weight, extra=look, **options)
    solver = machine._chosen(rows.n, rows.n_features, rows.summaries[0].sparse)
    reading = Reading(machine.fit_intercept)
    warning = machine._fit_posed(solver, lambda monitor: SpreadRegression(rows, reading, monitor))
    if not rows.summaries[0].outputs:
        machine.coef_, machine.intercept_ = machine.coef_[0], machine.intercept_[0]
    return _told(machine, rows, warning)


@fit_partitions.register
def _(machine: LeastSquaresClassifier, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a regression on labels."""
    _refuse_row_by_row(machine, "'qr' or 'conjugate_gradient'")
    rows, reading = _classes(machine, X, y, sample_weight)
    solver = machine._chosen(rows.n, rows.n_features, rows.summaries[0].sparse)
    warning = machine._fit_posed(solver, lambda monitor: SpreadRegression(rows, reading, monitor))
    return _told(machine, rows, warning)


@fit_partitions.register
def _(machine: MCEClassifier, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit the machine with the fewest errors."""
    _refuse_row_by_row(machine, "'lbfgs' or 'gradient_descent'")
    method = machine._method(machine.solver)
    last = (machine._dense_coef(), machine.intercept_) if hasattr(machine, "coef_") else (None,) * 2
    rows, reading = _classes(machine, X, y, sample_weight)

    def posed(monitor: Monitor) -> Any:
        account: Any = account_of(rows, reading, lambda: monitor.interrupted)
        columns = SpreadColumns(rows, reading, account.columns, monitor)
        return machine._error(columns, np.empty(0, dtype=np.intp), SpreadSmoothedError)

    machine.distribution_ = rows.cluster.distribution
    machine._fit_posed(method, posed, last)
    return machine


def _classes(machine: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Partitions, Reading]:
    """Check the partitions, and set ``classes_`` and ``scheme_``."""
    look = Look(machine.fit_intercept, True, len(sizes_of(X)))
    rows = Partitions.of(machine, X, y, sample_weight, classes=True, extra=look)
    assert rows.classes is not None
    machine.classes_, machine.scheme_ = rows.classes, machine._scheme_for(len(rows.classes))
    factors = factors_of_classes(machine.class_weight, rows)
    weighed = None if machine.class_weight is None else factors
    return rows, Reading(machine.fit_intercept, machine.scheme_, weighed)


def _told(machine: Any, rows: Partitions, warning: str) -> Any:
    machine.distribution_ = rows.cluster.distribution
    if warning:
        warn(warning)
    return machine


def _refuse_row_by_row(machine: Any, others: str) -> None:
    """Refuse a method that goes from row to row in a random order of them all."""
    solver: str | Method = machine.solver
    if solver == "sgd" or isinstance(solver, StochasticDescent):
        raise ValueError(
            f"solver={solver!r} goes from row to row in an order that is drawn over all of them, "
            "and these lie in the partitions of a Dask collection, some of them elsewhere: use "
            f"solver={others}, which take whole passes, or compute the collection."
        )

"""Which form each machine has: what is asked of all rows, and the tasks among some of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from maxmargin import duals
from maxmargin.dask.kernel.direct_form import DirectForm
from maxmargin.dask.kernel.dual_form import DualForm, Tasks
from maxmargin.dask.kernel.forms import Arrays, Form
from maxmargin.dask.rows import Partitions
from maxmargin.duals import DualProblem
from maxmargin.multiclass import as_scheme, read_class_weights
from maxmargin.svm.classification import KernelClassifier
from maxmargin.svm.one_class import OneClassSVM
from maxmargin.svm.svr import KernelRegressor


@singledispatch
def form_of(machine: Any, shell: Any, kernel: Any, rows: Partitions) -> Form:
    """Return the form of a machine's problems on rows that were looked at."""
    raise NotImplementedError(f"{type(machine).__name__} has no form for rows in many places.")


@dataclass(frozen=True)
class Pairs(Tasks):
    """The tasks of a scheme for machines for two classes.

    ``factors`` is what the weight of a row of each class is multiplied by in each task, and
    ``totals`` what all rows of a task weigh then.
    """

    scheme: Any
    factors: np.ndarray
    totals: np.ndarray

    def own(self, y: Any, n: int) -> Arrays:
        """Rows of the classes that each task knows."""
        return [rows for rows, _ in self.scheme.tasks(y)]

    def sides(self, k: int, mass: np.ndarray) -> np.ndarray:
        """What the two sides of a task weigh, where the rows of each class have some mass."""
        codes, weighed = self.scheme.sign * self.scheme.code[k], mass * self.factors[k]
        return np.array([weighed[codes > 0].sum(), weighed[codes < 0].sum()])

    def problem(
        self, shell: Any, k: int, rows: np.ndarray, y: Any, weight: np.ndarray
    ) -> DualProblem:
        """Problem of a task, with the costs that all rows gave."""
        index = y[rows]
        signs = (self.scheme.sign * self.scheme.code[k])[index]
        own = weight[rows] * self.factors[k][index]
        with np.errstate(invalid="ignore"):  # rows that weigh nothing
            return shell._part_of_problem(
                np.arange(len(rows)), signs, own, np.array([self.totals[k]])
            )


@form_of.register
def _(machine: KernelClassifier, shell: Any, kernel: Any, rows: Partitions) -> Form:
    assert rows.classes is not None
    machine.classes_ = rows.classes
    mass, each = rows.class_weights, np.arange(len(rows.classes))
    machine.class_weight_ = read_class_weights(machine.class_weight, rows.classes, each, mass)
    machine.scheme_ = scheme = as_scheme(machine.multiclass, len(rows.classes))
    weights = mass * machine.class_weight_
    vars(shell).update(classes_=rows.classes, scheme_=scheme, class_weight_=machine.class_weight_)
    if scheme.direct:
        shell._direct_problem(each, weights)  # refuses what it must
        cost = machine._direct_cost(weights) / np.where(weights > 0, weights, 1.0)
        return DirectForm(shell, kernel, scheme, cost * machine.class_weight_)
    factors, totals = [], []
    for codes in scheme.sign * scheme.code:
        seen = codes.nonzero()[0]
        weighed = np.zeros(len(each))
        weighed[seen] = scheme.weigh(codes[seen], weights[seen])
        factors.append(
            machine.class_weight_
            * np.divide(weighed, weights, where=weights > 0, out=np.ones(len(each)))
        )
        totals.append(weighed.sum())
    tasks = Pairs(scheme, np.array(factors), np.array(totals))
    two = np.arange(2), np.array([1.0, -1.0])
    whole = [machine._problem(*two, tasks.sides(k, mass)) for k in range(len(totals))]
    return DualForm(shell, kernel, whole, tasks)


def form_of_part(form: Form, mass: np.ndarray) -> Form:
    """Return the form of a classifier on part of its rows, of which the classes have some mass.

    Costs are those that all rows gave; the sums of the variables are the part's.
    """
    if isinstance(form, DirectForm):
        return form
    assert isinstance(form, DualForm)
    assert isinstance(form.tasks, Pairs)
    shell, tasks, whole = form.shell, form.tasks, []
    for k, total in enumerate(tasks.totals):
        sides = tasks.sides(k, mass)
        two = np.arange(2), np.array([1.0, -1.0]), sides, np.array([total])
        whole.append(shell._part_of_problem(*two))
    return DualForm(shell, form.kernel, whole, tasks)


@dataclass(frozen=True)
class Outputs(Tasks):
    """Every output of a regression sees every row."""

    n_outputs: int
    total: float

    def own(self, y: Any, n: int) -> Arrays:
        """All rows, for each output."""
        return [np.arange(n)] * self.n_outputs

    def problem(
        self, shell: Any, k: int, rows: np.ndarray, y: Any, weight: np.ndarray
    ) -> DualProblem:
        """Problem of an output."""
        target = np.ascontiguousarray(y.reshape(len(weight), -1)[:, k], dtype=np.float64)
        return shell._part_of_problem(target, weight, np.array([self.total]))


@form_of.register
def _(machine: KernelRegressor, shell: Any, kernel: Any, rows: Partitions) -> Form:
    outputs = rows.summaries[0].outputs
    several = len(outputs) == 1 and outputs[0] > 1
    total = float(sum(summary.weight for summary in rows.summaries))
    tasks = Outputs(outputs[0] if several else 1, total)
    problem = machine._problem(np.zeros(1), np.array([total]))
    return DualForm(shell, kernel, [problem] * tasks.n_outputs, tasks)


class Region(Tasks):
    """The one-class machine sees every row."""

    def own(self, y: Any, n: int) -> Arrays:
        """All rows."""
        return [np.arange(n)]

    def problem(
        self, shell: Any, k: int, rows: np.ndarray, y: Any, weight: np.ndarray
    ) -> DualProblem:
        """Its problem."""
        return duals.one_class(np.arange(len(rows)), weight, shell.nu)


@form_of.register
def _(machine: OneClassSVM, shell: Any, kernel: Any, rows: Partitions) -> Form:
    total = sum(summary.weight for summary in rows.summaries)
    return DualForm(
        shell, kernel, [duals.one_class(np.arange(1), np.array([total]), machine.nu)], Region()
    )

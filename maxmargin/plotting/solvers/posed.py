"""The dual problem that a fitted machine has solved, posed once more for a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.duals import DualProblem
from maxmargin.evaluation import Evaluation, InseparableError, evaluate
from maxmargin.gram import Definiteness, Gram
from maxmargin.plotting import checks
from maxmargin.plotting.solvers.convergence import records_of
from maxmargin.progress import Progress
from maxmargin.solution import Solution, Status
from maxmargin.svm.classification import KernelClassifier

_AWAY = 1e-8  # of the largest multiplier: what is below is none
_MOST = 5000  # rows whose Gram matrix is made for a picture


def traced(model: Any, problem: int) -> tuple[Any, list]:
    """Return the machine of a model and the records of one of its problems."""
    machine = checks.last_step(model)
    if not hasattr(machine, "trace_"):
        raise ValueError(
            f"This {type(machine).__name__} has no trace: fit it with trace=True, which leaves "
            "the way of the fit in trace_."
        )
    return machine, records_of(machine.trace_, problem)


def code_of(machine: Any, problem: int) -> np.ndarray:
    """Return the side of each class in a problem; with two classes, problems may be starts."""
    codes = machine.scheme_.code
    return codes[problem] if len(codes) > 1 else codes[0]


def names_of_sides(machine: Any, problem: int) -> tuple[str, str]:
    """Return the names of the classes where the values of a problem's machine are - and +."""
    classes, codes = machine.classes_, code_of(machine, problem)
    negative, positive = (" or ".join(map(str, classes[codes == side])) for side in (-1, 1))
    return negative, positive


def posed(
    model: Any, X: Any, y: Any, problem: int, sample_weight: Any = None
) -> tuple[DualProblem, np.ndarray]:
    """Return a problem of a fitted kernel classifier over the Gram matrix of its rows, and these.

    X and y must be those of fit, and so must the weights, if there were any.
    """
    machine = checks.last_step(model)
    if not isinstance(machine, KernelClassifier) or machine.scheme_.direct:
        raise TypeError(
            "The dual is that of SVC or NuSVC, with a problem for each pair of classes or each "
            f"class against the rest; got {machine!r}."
        )
    check_consistent_length(X, y)
    if len(y) != machine.shape_fit_[0]:
        raise ValueError(
            f"X and y must be those of fit, in the same order: got {len(y)} rows where fit had "
            f"{machine.shape_fit_[0]}."
        )
    index, X = checks.class_index(machine.classes_, y), checks.transformed(model, X)
    rows, signs = machine.scheme_.tasks(index)[problem]
    if len(rows) > _MOST:
        raise ValueError(
            f"The Gram matrix of {len(rows)} rows is too large for a picture: fit on up to {_MOST}."
        )
    weight = np.ones(len(index)) if sample_weight is None else np.asarray(sample_weight, float)
    own = machine.scheme_.weigh(signs, (weight * machine.class_weight_[index])[rows])
    points = checks.dense(X)[rows]
    gram = Gram.of(points[:, rows] if machine.kernel_.pairwise else points, machine.kernel_)
    return machine._problem(np.arange(len(rows)), signs, own).over(gram), rows


def evaluated(
    dual: DualProblem, records: list[Progress], tol: float
) -> list[tuple[Progress, Evaluation]]:
    """Return the machine that the variables of each record make, where they make one.

    The bias is not among the variables: it is what the certificate would read off them. Records
    that have none, such as those of hulls that still touch, are left out.
    """
    found = []
    for record in records:
        if record.variables is None or len(record.variables) != len(dual):
            continue
        solution = Solution(record.variables, record.steps, Status.CONVERGED)
        try:
            found.append((record, evaluate(dual, solution, tol, Definiteness.UNKNOWN)))
        except InseparableError:
            continue
    if not found:
        raise ValueError(
            "No record of this trace has the machine's dual variables: fit with a solver that "
            "works on the dual, such as solver='smo'."
        )
    return found


def away_from_zero(coefficients: np.ndarray) -> np.ndarray:
    """Return which coefficients are more than rounding beside the largest of them."""
    return np.abs(coefficients) > _AWAY * np.abs(coefficients).max()

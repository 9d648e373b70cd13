"""What a fitted machine is, in words and numbers: its problem, its answer, and who is to blame.

Everything is read off the machine from outside: the formula off its docstring, the numbers off its
parameters and attributes. What a machine does not have is left out.
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass, field
from inspect import cleandoc
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

_BLAMED = 5  # rows that are named
_BINS = 5  # of slack in units of the target
_EDGES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # of slack in margins: on the wrong side from one on
_BAR, _COLUMN, _WIDTH = 30, 18, 96  # characters of a bar, a name and a line

_STYLE = (
    "<style>.maxmargin-explanation{font-size:small;color:inherit;margin:.5em 0}"
    ".maxmargin-explanation th,.maxmargin-explanation td{text-align:left;vertical-align:top;"
    "padding:.15em .8em .15em 0;background:none;color:inherit;white-space:pre-wrap}"
    ".maxmargin-explanation th{font-weight:600;white-space:nowrap}"
    ".maxmargin-explanation .formula{font-family:monospace}</style>"
)
_FORMULAS = ("problem", "slack histogram")


class Support(NamedTuple):
    """Rows with a coefficient, in all and by class; free ones and those at their bound, if known.

    With several machines a row counts as free, or at its bound, once for each.
    """

    total: int
    rows: int
    by_class: dict[str, int]
    free: int | None
    bounded: int | None
    machines: int


class Slack(NamedTuple):
    """Slack of the training rows, the largest of any machine: ``counts[0]`` of them have none.

    ``counts[k]`` have more than ``edges[k - 1]`` and at most ``edges[k]``.
    """

    edges: np.ndarray
    counts: np.ndarray
    in_margins: bool

    @property
    def positive(self) -> int:
        """Rows with slack."""
        return int(self.counts[1:].sum())

    @property
    def wrong(self) -> int:
        """Rows on the wrong side: more slack than one."""
        return int(self.counts[1:][self.edges[:-1] >= 1.0].sum()) if self.in_margins else 0


class Blamed(NamedTuple):
    """A training row: its slack or its multiplier, and its class where that is known."""

    row: int
    value: float
    label: str | None


@dataclass(frozen=True, repr=False)
class Explanation:
    """A summary of a fitted machine: ``str`` has it as text, a notebook shows it as a table.

    Attributes are None, or empty, where the machine has nothing of the kind.

    Attributes
    ----------
    machine, problem, data, kernel, solver : str
    certificate : Certificate
    support : Support
    margin : float or array
        ``1 / ||w||`` of each machine.
    slack : Slack
    most_slack, most_alpha : list of Blamed
        Rows with the largest slack, and with the largest coefficients.
    seconds : float
        Of the fit.
    where : str
        Of a fit to Dask collections: partitions, workers, rounds, bytes.
    score : float
        Of the data that were handed in: accuracy, or R^2.
    mistakes : list of Blamed
        The worst of these data: those furthest on the wrong side, or furthest from their targets.
    """

    machine: str
    problem: str | None = None
    data: str | None = None
    kernel: str | None = None
    solver: str | None = None
    certificate: Any = None
    support: Support | None = None
    margin: Any = None
    slack: Slack | None = None
    most_slack: list[Blamed] = field(default_factory=list)
    most_alpha: list[Blamed] = field(default_factory=list)
    seconds: float | None = None
    where: str | None = None
    score: float | None = None
    scored: str = ""
    mistakes: list[Blamed] = field(default_factory=list)

    def sections(self) -> dict[str, str]:
        """Return what there is to say, by what it is about."""
        same = {one.row for one in self.most_slack} == {one.row for one in self.most_alpha}
        said = {
            "machine": self.machine,
            "problem": self.problem,
            "data": self.data,
            "kernel": self.kernel,
            "solver": self.solver,
            "certificate": self.certificate and _certified(self.certificate),
            "support vectors": self.support and _in_words(self.support),
            "margin": None if self.margin is None else _street(self.margin, self.slack),
            "slack": self.slack and _amount(self.slack),
            "slack histogram": self.slack and self.slack.positive and _histogram(self.slack),
            "most slack": _named(self.most_slack),
            "largest alpha": None if same else _named(self.most_alpha),
            "score": None if self.score is None else f"{self.score:.4g} {self.scored}",
            "worst of these": _named(self.mistakes),
            "fit time": None if self.seconds is None else in_seconds(self.seconds),
            "fitted on": self.where,
        }
        return {name: text for name, text in said.items() if isinstance(text, str) and text}

    def __str__(self) -> str:
        return "\n".join(in_lines(name, text) for name, text in self.sections().items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th>"
            f"<td{' class=formula' if name in _FORMULAS else ''}>{html.escape(text)}</td></tr>"
            for name, text in self.sections().items()
        )
        return f"{_STYLE}<table class=maxmargin-explanation><tbody>{rows}</tbody></table>"


def explain(model: Any, X: Any = None, y: Any = None) -> Explanation:
    """Summarise a fitted machine: problem, certificate, support vectors, slack, who is to blame.

    Parameters
    ----------
    model : fitted estimator
        A machine, a pipeline that ends in one, or a search with a ``best_estimator_``.
    X, y : data to be judged by, optional
        They add a score, and the rows that are furthest from right.

    Returns
    -------
    explanation : Explanation
        Prints as text, shows as a table in a notebook, and has the numbers as attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> explanation = explain(SVC(kernel="linear").fit(X[50:], y[50:]))
    >>> print(explanation)  # doctest: +ELLIPSIS
    machine           SVC: C-support vector classification.
    problem           minimise  1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i (w . phi(x_i) + b))
                      with C = 1
    data              100 rows, 4 features, 2 classes
    kernel            Linear(): ...
    ...
    >>> explanation.support.total == explanation.support.free + explanation.support.bounded
    True
    """
    if (X is None) != (y is None):
        raise ValueError("explain judges a model by X and y together: give both, or neither.")
    fitted = getattr(model, "best_estimator_", model)
    check_is_fitted(fitted)
    machine = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    support, labels = _support(machine)
    rows, alpha = _alpha(machine)
    slack = _largest_slack(machine)
    names = dict(zip(rows.tolist(), labels, strict=True)) if labels else {}
    judged: dict[str, Any] = {} if y is None else _judged(fitted, X, y)
    return Explanation(
        machine=_what(machine, fitted),
        problem=_problem(machine),
        data=_data(machine),
        kernel=_kernel(machine),
        solver=_solver(machine),
        certificate=getattr(machine, "certificate_", None),
        support=support,
        margin=getattr(machine, "margin_", None),
        slack=None if slack is None else _counted(slack, machine),
        most_slack=[] if slack is None else _largest(slack, np.arange(len(slack)), names),
        most_alpha=_largest(alpha, rows, names, None if slack is None else slack[rows]),
        seconds=getattr(machine, "fit_time_", None),
        where=str(machine.distribution_) if hasattr(machine, "distribution_") else None,
        **judged,
    )


def explained_html(machine: Any) -> str:
    """Explanation of a machine below its diagram; nothing where it is not fitted."""
    try:
        return explain(machine)._repr_html_()
    except NotFittedError:
        return ""


def in_seconds(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


# -- what a machine is ---------------------------------------------------------------------------


def _what(machine: Any, fitted: Any) -> str:
    steps = [step for _, step in fitted.steps[:-1]] if isinstance(fitted, Pipeline) else []
    first = cleandoc(type(machine).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    before = "".join(f"{type(step).__name__}, then " for step in steps)
    return f"{before}{type(machine).__name__}: {first}"


def _problem(machine: Any) -> str | None:
    """Return the formula of the docstring, with the numbers of the parameters in it."""
    scheme, parameters = getattr(machine, "scheme_", None), machine.get_params(deep=False)
    direct = getattr(scheme, "direct", False)
    formula = _formula(type(scheme if direct else machine))
    if formula is None:
        return None
    words = dict.fromkeys(re.findall(r"[A-Za-z]\w*?(?=_i\b|\b)", formula))  # C_i is of a row
    numbers = [f"{name} = {n}" for name in words if (n := _number(machine, name)) is not None]
    if parameters.get("lam") is not None:
        numbers = [one for one in numbers if not one.startswith("C = ")]
        numbers.append(f"lam = {parameters['lam']:g}: C = 1 / (2 N lam), N the sum of the weights")
    if parameters.get("norm_bound") is not None:
        said = f"||w|| <= {parameters['norm_bound']:g} in place of the penalty"
        same = "".join(f": {one} has the same answer" for one in numbers if one.startswith("C = "))
        numbers = [one for one in numbers if not one.startswith(("C = ", "l1_ratio"))]
        numbers.append(said + same)
    if "V(" in formula and "loss" in parameters:
        numbers.append(f"V the {parameters['loss']}")
    if parameters.get("fit_intercept") is False:
        numbers.append("b = 0")
    said = f"{formula}\nwith {', '.join(numbers)}" if numbers else formula
    n_classes = len(getattr(machine, "classes_", ()))
    if n_classes <= 2 or direct:
        return said
    parts = len(getattr(getattr(machine, "certificate_", None), "parts", ()))
    if scheme is None or parts != len(scheme.code):
        return f"{said}\nfor all {n_classes} classes together"
    return f"{said}\nfor each of {parts} machines, {type(scheme).__name__}"


def _formula(kind: type) -> str | None:
    """Return the first indented lines of a docstring, before its parameters."""
    text = cleandoc(kind.__doc__ or "").partition("\nParameters\n")[0].partition("\nExamples\n")[0]
    found = re.search(r"\n\n((?: {4}.*\n?)+)", text + "\n")
    return textwrap.dedent(found[1]).strip() if found else None


def _number(machine: Any, name: str) -> str | None:
    """Return a number as it was fitted or given."""
    for value in (getattr(machine, f"{name}_", None), machine.get_params(deep=False).get(name)):
        if value is None or isinstance(value, str | bool) or callable(value):
            continue
        values = np.unique(np.asarray(value, dtype=float))  # what was found is not what was given
        return f"{values[0]:g}" if len(values) == 1 else None
    return None


def _data(machine: Any) -> str | None:
    said = []
    if hasattr(machine, "shape_fit_"):
        said.append(f"{machine.shape_fit_[0]} rows")
    if hasattr(machine, "n_features_in_"):
        said.append(f"{machine.n_features_in_} features")
    if hasattr(machine, "classes_"):
        said.append(f"{len(machine.classes_)} classes")
    return ", ".join(said) or None


def _kernel(machine: Any) -> str | None:
    kernel = getattr(machine, "kernel_", None)
    if kernel is None:
        return None
    shown = re.sub(r"\d+\.\d{5,}", lambda digits: f"{float(digits[0]):.5g}", repr(kernel))
    feature_map = getattr(machine, "feature_map_", None)
    if feature_map is not None:
        width, error = machine.feature_coef_.shape[1], feature_map.approximation_error_
        name = type(feature_map).__name__
        off = f"off by {error:.2g}" if np.isfinite(error) else "how far off was not measured"
        return f"{shown}, approximated by {width} features of {name}: {off}"
    validity = machine._kernel_of_values.validity
    if validity == "valid":
        return f"{shown}: a valid kernel"
    known = getattr(getattr(machine, "certificate_", None), "definiteness", None)
    matrix = "" if known is None else f"; its matrix is {known}"
    return f"{shown}: {validity}{matrix}"


def _solver(machine: Any) -> str | None:
    certificate, steps = getattr(machine, "certificate_", None), getattr(machine, "n_iter_", None)
    said = getattr(machine, "solver_why_", "") or getattr(machine, "solver_", "")
    said = said or getattr(certificate, "solver", None) or getattr(machine, "solver", None)
    if said is None:
        return None
    return said if steps is None else f"{said} ({np.sum(steps):g} iterations)"


def _certified(certificate: Any) -> str:
    first, numbers = str(certificate).split("\n")[0], certificate.numbers()
    shown = {name: text for name, text in numbers.items() if name not in ("kernel", "solver")}
    return f"{first}\n" + ", ".join(f"{name} {text}" for name, text in shown.items())


# -- the rows ------------------------------------------------------------------------------------


def _support(machine: Any) -> tuple[Support | None, list[str]]:
    """Support vectors, and the class of each where they are grouped by it."""
    known = hasattr(machine, "n_support_") or hasattr(machine, "slack_")
    if not (known and hasattr(machine, "support_")):  # a ridge regression keeps all rows
        return None, []
    counts, rows = np.atleast_1d(getattr(machine, "n_support_", 0)), machine.support_
    classes = [str(name) for name in getattr(machine, "classes_", [])]
    grouped = len(classes) == len(counts) and counts.sum() == len(rows)
    by_class = dict(zip(classes, counts.tolist(), strict=True)) if grouped else {}
    labels = [name for name, count in by_class.items() for _ in range(count)]
    free = bounded = None
    if hasattr(machine, "_free_and_bounded"):
        free, bounded = (int(count) for count in np.sum(machine._free_and_bounded, axis=0))
    machines = len(np.atleast_1d(machine.intercept_))
    slack: Any = _largest_slack(machine)  # a linear machine has it, and no shape_fit_
    n = machine.shape_fit_[0] if hasattr(machine, "shape_fit_") else len(slack)
    return Support(len(rows), n, by_class, free, bounded, machines), labels


def _alpha(machine: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows with coefficients, and the largest size of each; empty where there are none."""
    given = getattr(machine, "dual_coef_", None)
    if given is None:
        return np.empty(0, dtype=int), np.empty(0)
    sizes = np.atleast_2d(np.abs(given.toarray() if sp.issparse(given) else given))
    rows = getattr(machine, "support_", np.arange(sizes.shape[1]))
    if len(rows) == sizes.shape[0] != sizes.shape[1]:
        sizes = sizes.T  # an output to a column
    elif len(rows) != sizes.shape[1]:
        rows = np.arange(sizes.shape[1])
    return rows, sizes.max(axis=0, initial=0.0)


def _largest_slack(machine: Any) -> np.ndarray | None:
    """Slack of each row, the largest of any machine; none below tol, and where none has seen it."""
    given = getattr(machine, "slack_", None)
    if given is None:
        return None
    known = np.nan_to_num(given, nan=0.0)
    if known.ndim > 1:
        known = known.max(axis=1 if is_regressor(machine) else 0)
    return np.where(known > (getattr(machine, "tol", None) or 0.0), known, 0.0)


def _counted(slack: np.ndarray, machine: Any) -> Slack:
    most, in_margins = float(slack.max(initial=0.0)), is_classifier(machine)
    edges = np.array([*(edge for edge in _EDGES if edge < most), most])
    if not in_margins:
        edges = np.linspace(0.0, most, _BINS + 1)
    place = np.where(slack > 0, np.searchsorted(edges, slack), 0)
    return Slack(edges, np.bincount(place, minlength=len(edges)), in_margins)


def _largest(
    values: np.ndarray, rows: np.ndarray, names: dict[int, str], then: np.ndarray | None = None
) -> list[Blamed]:
    """Rows with the largest values; of equal ones those with more of something else."""
    rounded = np.array([float(f"{value:.6g}") for value in values])
    order = np.lexsort([np.zeros(len(values)) if then is None else -then, -rounded])[:_BLAMED]
    return [
        Blamed(int(rows[i]), float(values[i]), names.get(int(rows[i])))
        for i in order
        if values[i] > 0
    ]


def _judged(fitted: Any, X: Any, y: Any) -> dict[str, Any]:
    """Score of the data, and those furthest from right."""
    rows, score = np.arange(_num_samples(X)), float(fitted.score(X, y))
    predicted = fitted.predict(X)
    if is_regressor(fitted):
        off = np.abs(np.asarray(predicted) - np.asarray(y)).reshape(len(rows), -1).max(axis=1)
        return {"score": score, "scored": "(R^2)", "mistakes": _largest(off, rows, {})}
    if isinstance(predicted, list):  # several labels for each row
        wrong = np.array([set(a) != set(b) for a, b in zip(predicted, y, strict=True)])
    else:
        y = np.asarray(y)
        wrong = (np.asarray(predicted) != y).reshape(len(rows), -1).any(axis=1)
    size = wrong.astype(float)
    if hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(X))
        values = values if values.ndim == 1 else values.max(axis=1)
        size *= np.abs(values)
    names = dict(enumerate(map(str, y)))
    said = f"({wrong.sum()} of {len(rows)} wrong)"
    return {"score": score, "scored": said, "mistakes": _largest(size, rows, names)}


# -- in words ------------------------------------------------------------------------------------


def _in_words(support: Support) -> str:
    said = f"{support.total} of {support.rows}"
    if support.free is not None:
        said += f": {support.free} free (alpha below its bound) and {support.bounded} at the bound"
        said += f", over all {support.machines} machines" if support.machines > 1 else ""
    if support.by_class:
        counts = ", ".join(f"{count} of {name}" for name, count in support.by_class.items())
        said += f"; by class {counts}"
    return said


def _street(margin: Any, slack: Slack | None) -> str:
    narrow, wide = float(np.min(margin)), float(np.max(margin))
    if np.ndim(margin):
        return f"1 / ||w|| from {narrow:.4g} to {wide:.4g} over {np.size(margin)} machines"
    said = f"1 / ||w|| = {narrow:.4g}"
    street = slack is not None and slack.in_margins
    return f"{said}: the street is {2 * narrow:.4g} wide in feature space" if street else said


def _amount(slack: Slack) -> str:
    said = f"{slack.positive} of {slack.counts.sum()} rows"
    if not slack.in_margins or not slack.positive:
        return said
    inside = slack.positive - slack.wrong
    return f"{said}: {inside} inside the street, {slack.wrong} on the wrong side (xi > 1)"


def _histogram(slack: Slack) -> str:
    """Draw the counts as bars, the longest of them as long as there is room."""
    ends = ["none", *(f"{a:.3g} to {b:.3g}" for a, b in pairwise(slack.edges))]
    unit = _BAR / max(int(slack.counts.max()), 1)
    return "\n".join(
        f"{end:<14}{count:>7} {'#' * int(np.ceil(unit * count))}".rstrip()
        for end, count in zip(ends, slack.counts.tolist(), strict=True)
    )


def _named(rows: list[Blamed]) -> str:
    return ", ".join(
        f"row {row}{'' if label is None else f' ({label})'}: {value:.4g}"
        for row, value, label in rows
    )


def in_lines(name: str, text: str) -> str:
    """Return a name and its text beside it, in lines that fit a terminal."""
    first, then = f"{name:<{_COLUMN}}", " " * _COLUMN
    wrapped = [
        textwrap.fill(line, _WIDTH, initial_indent=then, subsequent_indent=then)
        if len(line) > _WIDTH - _COLUMN
        else then + line
        for line in text.split("\n")
    ]
    return first + "\n".join(wrapped)[_COLUMN:]

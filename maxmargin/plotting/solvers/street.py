"""The street of a classifier on two features, as it moves from step to step of the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.evaluation import InseparableError, evaluate
from maxmargin.gram import Definiteness
from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.solvers.posed import (
    class_index,
    names_of_sides,
    posed,
    traced,
    transformed,
)
from maxmargin.solution import Solution, Status
from maxmargin.svm.classification import KernelClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSTEAD = (
    "Fit on two columns, or on PCA(n_components=2).fit_transform(X); animate(model.trace_) shows "
    "the gap of any machine."
)
_PADDING = 0.08  # around the data, as a share of their range
_AWAY = 1e-8  # of the largest multiplier: what is below is none


@dataclass
class StreetDisplay(MovingDisplay):
    """The decision function of a classifier after each recorded step, among its points.

    At step k it is ``f = features @ coef[k] + intercept[k]`` on the grid: the features are the
    plane's own two for a linear machine, and the kernel's values beside the training points for one
    with a kernel, computed once.

    Attributes
    ----------
    points : float array of shape (n, 2)
    positive : bool array of shape (n,)
        Of which class they are.
    names : pair of str
        Of the negative and the positive class.
    grid : two float arrays of shape (g, g)
    features : float array of shape (g * g, m)
    coef : float array of shape (n_states, m)
    intercept : float array of shape (n_states,)
    steps : int array of shape (n_states,)
    support : bool array of shape (n_states, n), or None
        Rows with a multiplier above zero, of a machine that has them.
    street : bool
        Whether f = -1 and f = +1 mean something to the machine.
    title : str
    axes_names : pair of str

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import StreetDisplay
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = SVC(solver="smo", trace=True).fit(X, y)
    >>> display = StreetDisplay.from_estimator(model, X, y)
    >>> len(display) == len(model.trace_), int(display.support[-1].sum()) == len(model.support_)
    (True, True)
    """

    points: np.ndarray
    positive: np.ndarray
    names: tuple[str, str]
    grid: tuple[np.ndarray, np.ndarray]
    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    steps: np.ndarray
    support: np.ndarray | None = None
    street: bool = True
    title: str = ""
    axes_names: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        problem: int = 0,
        sample_weight: Any = None,
        grid_resolution: int = 100,
    ) -> StreetDisplay:
        """Draw the street of a classifier that was fitted with ``trace=True``.

        Parameters
        ----------
        model : classifier or Pipeline that ends in one
            Fitted on two features with a trace: ``SVC``, ``NuSVC``, ``Perceptron`` or another
            linear classifier.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
            The training data, in the same order.
        ax : matplotlib Axes, optional
        problem : int, default=0
            Which pair of classes, or class against the rest.
        sample_weight : array-like of shape (n_samples,), optional
            Those of fit, for ``SVC`` and ``NuSVC``.
        grid_resolution : int, default=100
            Points along each axis at which f is computed.

        Returns
        -------
        display : StreetDisplay
        """
        machine, records = traced(model, problem)
        if not hasattr(machine, "classes_"):
            raise TypeError(
                "StreetDisplay draws classifiers, or a Pipeline that ends in one; got "
                f"{type(machine).__name__}. ConvergenceDisplay draws the trace of any fit."
            )
        checks.check_drawable(model, 2, "StreetDisplay", _INSTEAD)
        check_consistent_length(X, y)
        points = checks.dense(X)
        low, high = points.min(axis=0), points.max(axis=0)
        pad = _PADDING * np.where(high > low, high - low, 1.0)
        sides = np.linspace(low - pad, high + pad, grid_resolution).T
        grid = np.meshgrid(*sides)
        places = np.column_stack([side.ravel() for side in grid])
        seen = transformed(model, checks.in_container_of(X, places))
        if isinstance(machine, KernelClassifier):
            coef, intercept, support, kept = _expansions(
                model, X, y, records, problem, sample_weight
            )
            rows = np.flatnonzero(np.abs(coef).max(axis=0))
            features = machine.kernel_(
                checks.dense(seen), checks.dense(transformed(model, X))[rows]
            )
            coef, records = coef[:, rows], [records[k] for k in kept]
        else:
            trace = machine.trace_
            coef, intercept, support = trace.weights(problem), trace.intercepts(problem), None
            if coef.ndim > 2:
                raise ValueError(
                    f"Problem {problem} is one of all classes together, without a street of its "
                    "own: fit two classes, or multiclass='ovr'."
                )
            features = checks.dense(seen)
            intercept = np.broadcast_to(intercept, len(coef))
        sides_of = machine.scheme_.code[problem][class_index(machine, y)]
        shown = sides_of != 0
        loss = str(getattr(machine, "loss", ""))
        return cls(
            points=points[shown],
            positive=sides_of[shown] > 0,
            names=names_of_sides(machine, problem),
            grid=(grid[0], grid[1]),
            features=features,
            coef=coef,
            intercept=intercept,
            steps=np.array([record.steps for record in records]),
            support=None if support is None else support[:, shown],
            street=isinstance(machine, KernelClassifier) or "hinge" in loss,
            title=marks.describe(machine),
            axes_names=(checks.column_name(X, 0), checks.column_name(X, 1)),
        ).plot(ax)

    def __len__(self) -> int:
        return len(self.coef)

    def values(self, state: int) -> np.ndarray:
        """Return f on the grid in one state, shape (g, g)."""
        flat = self.features @ self.coef[state] + self.intercept[state]
        return flat.reshape(self.grid[0].shape)

    def _draw_state(self, ax: Axes, state: int) -> None:
        from matplotlib.colors import to_rgba

        values = np.nan_to_num(self.values(state))
        levels = [-1, 0, 1] if self.street else [0]
        strength = [0.28, 0.09, 0.09, 0.28] if self.street else [0.2, 0.2]
        half = len(strength) // 2
        colours = [marks.BLUE] * half + [marks.ORANGE] * half
        shades = [to_rgba(colour, s) for colour, s in zip(colours, strength, strict=True)]
        if np.ptp(values) > 0:  # a start at zero has no sides yet
            far = np.abs(values).max() + 2.0
            ax.contourf(*self.grid, values, levels=[-far, *levels, far], colors=shades)
        for level in levels:
            if values.min() < level < values.max():
                style, width = ("-", 1.8) if level == 0 else ("--", 1.0)
                ax.contour(
                    *self.grid,
                    values,
                    [level],
                    colors=marks.INK,
                    linestyles=style,
                    linewidths=width,
                )
        for side, name, colour, marker in zip(
            (False, True), self.names, (marks.BLUE, marks.ORANGE), "os", strict=True
        ):
            marks.scatter(ax, self.points, self.points[self.positive == side], colour, marker, name)
        if self.support is not None and self.support[state].any():
            marks.ring(ax, self.points, np.flatnonzero(self.support[state]))
        ax.set(
            xlim=(self.grid[0].min(), self.grid[0].max()),
            ylim=(self.grid[1].min(), self.grid[1].max()),
            xlabel=self.axes_names[0],
            ylabel=self.axes_names[1],
            title=f"{self.title}\nstep {self.steps[state]}",
        )
        ax.legend(loc="upper right", fontsize="small", edgecolor="none", framealpha=0.85)


def _expansions(
    model: Any, X: Any, y: Any, records: list, problem: int, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Coefficients on all rows, bias and support of a kernel machine after each step.

    The bias is not among the recorded variables: it is what the certificate would read off them.
    States that have none, such as hulls that still touch, are left out; the last list has the rest.
    """
    machine = checks.last_step(model)
    dual, rows = posed(model, X, y, problem, sample_weight)
    sign, n = machine.scheme_.sign, len(checks.dense(X))
    coef, intercept, support, kept = [], [], [], []
    for k, record in enumerate(records):
        if record.variables is None or len(record.variables) != len(dual):
            continue
        solution = Solution(record.variables, record.steps, Status.CONVERGED)
        try:
            found = evaluate(dual, solution, machine.tol, Definiteness.UNKNOWN)
        except InseparableError:
            continue
        whole, used = np.zeros(n), np.zeros(n, dtype=bool)
        whole[rows] = sign * found.coefficients
        used[rows] = np.abs(found.coefficients) > _AWAY * np.abs(found.coefficients).max()
        coef.append(whole)
        intercept.append(sign * found.bias)
        support.append(used)
        kept.append(k)
    if not kept:
        raise ValueError(
            "No record of this trace has the machine's dual variables: X, y and sample_weight must "
            "be those of fit, and the solver one that works on the dual."
        )
    return np.array(coef), np.array(intercept), np.array(support), kept

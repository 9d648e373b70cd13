"""The street of a classifier on two features, as it moves from step to step of the fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.machines.plane import Plane
from maxmargin.plotting.solvers.posed import (
    away_from_zero,
    code_of,
    evaluated,
    names_of_sides,
    posed,
    traced,
)
from maxmargin.svm.classification import KernelClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxmargin.trace import Trace

_INSTEAD = (
    "Fit on two columns, or on PCA(n_components=2).fit_transform(X); animate(model.trace_) shows "
    "the gap of any machine."
)


@dataclass
class MovingStreetDisplay(MovingDisplay):
    """The decision function of a classifier after each recorded step, among its points.

    At step k it is ``f = features @ coef[k] + intercept[k]`` on the grid: the features are the
    plane's own two for a linear machine, and the kernel's values beside the training points for one
    with a kernel, computed once.

    Attributes
    ----------
    plane : Plane
        The grid, the points and, as its values, f in the end.
    side : int array of shape (n,)
        +1 or -1: the class of each point.
    names : pair of str
        Of the negative side and the positive.
    features : float array of shape (g * g, m)
    coef : float array of shape (n_states, m)
    intercept : float array of shape (n_states,)
    steps : int array of shape (n_states,)
    support : bool array of shape (n_states, n), or None
        Rows with a multiplier above zero, of a machine that has them.
    street : bool
        Whether f = -1 and f = +1 mean something to the machine.
    description : str

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import MovingStreetDisplay
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = SVC(solver="smo", trace=True).fit(X, y)
    >>> display = MovingStreetDisplay.from_estimator(model, X, y)
    >>> len(display) == len(model.trace_), int(display.support[-1].sum()) == len(model.support_)
    (True, True)
    """

    plane: Plane
    side: np.ndarray
    names: tuple[str, str]
    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    steps: np.ndarray
    support: np.ndarray | None = None
    street: bool = True
    description: str = ""

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
        legend: bool = True,
    ) -> MovingStreetDisplay:
        """Draw the street of a classifier that was fitted with ``trace=True``.

        Parameters
        ----------
        model : classifier or Pipeline that ends in one
            Fitted on two features with a trace: ``SVC``, ``NuSVC``, ``Perceptron`` (also with a
            kernel) or another linear classifier.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
            The training data, in the same order.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        problem : int, default=0
            Which pair of classes, or class against the rest.
        sample_weight : array-like of shape (n_samples,), optional
            Those of fit, for ``SVC`` and ``NuSVC``.
        grid_resolution : int, default=100
            Points along each axis at which f is computed.

        Returns
        -------
        display : MovingStreetDisplay
        """
        machine, records = traced(model, problem)
        if not hasattr(machine, "classes_"):
            raise TypeError(
                "MovingStreetDisplay draws classifiers, or a Pipeline that ends in one; got "
                f"{type(machine).__name__}. ConvergenceDisplay draws the trace of any fit."
            )
        checks.check_drawable(model, 2, "MovingStreetDisplay", _INSTEAD)
        check_consistent_length(X, y)
        index = checks.class_index(machine.classes_, y)
        points, support = checks.transformed(model, X), None
        if getattr(machine, "kernel_", None) is None:
            coef, intercept = _weights(machine.trace_, problem)
        elif isinstance(machine, KernelClassifier):
            expansions = _expansions(model, X, y, records, problem, sample_weight)
            coef, intercept, support, records = expansions
        elif hasattr(machine, "mistake_bound"):  # the perceptron's bias is a feature of ones
            coef = machine.trace_.variables(problem)
            moved = (coef - coef[0]).sum(axis=1)
            intercept = machine.intercept_init_[problem] + machine.fit_intercept * moved
            support = coef != 0
        else:
            raise TypeError(
                f"The trace of {type(machine).__name__} with a kernel does not say what f was: "
                "trace SVC, NuSVC, a Perceptron or a linear classifier."
            )
        used = np.arange(2) if support is None else np.flatnonzero(support.any(axis=0))
        features = np.empty(0)

        def last(places: Any) -> np.ndarray:
            nonlocal features
            features = checks.dense(checks.transformed(model, places))
            if support is not None:
                features = machine.kernel_(features, checks.dense(points)[used])
            return features @ coef[-1][used] + intercept[-1]

        side = code_of(machine, problem)[index]
        seen = np.flatnonzero(side)
        plane = Plane.around(X, last, grid_resolution)
        return cls(
            plane=replace(plane, points=plane.points[seen]),
            side=side[seen],
            names=names_of_sides(machine, problem),
            features=features,
            coef=coef[:, used],
            intercept=intercept,
            steps=np.array([record.steps for record in records]),
            support=None if support is None else support[:, seen],
            street=checks.has_street(machine),
            description=marks.describe(machine),
        ).plot(ax, legend=legend)

    def __len__(self) -> int:
        return len(self.coef)

    def values(self, state: int) -> np.ndarray:
        """Return f on the grid in one state, shape (g, g)."""
        flat = self.features @ self.coef[state] + self.intercept[state]
        return np.nan_to_num(flat.reshape(self.plane.values.shape))

    def _draw_state(self, ax: Axes, state: int) -> None:
        plane = replace(self.plane, values=self.values(state))
        plane.frame(ax)
        if np.ptp(plane.values) > 0:  # a start at zero has no sides yet
            fill = plane.fill_street if self.street else plane.fill_sides
            fill(ax)
        for of, colour, marker, name in zip(
            (-1, 1), marks.colours(2), "os", self.names, strict=True
        ):
            group = plane.points[self.side == of]
            marks.scatter(ax, plane.points, group, colour, marker, name)
        if self.support is not None:
            marks.ring(ax, plane.points, np.flatnonzero(self.support[state]))
        ax.set_title(f"{self.description}\nstep {self.steps[state]}")
        # in no corner: a film would go from one to another as the street moves
        marks.legend_below(ax, ncols=3, fontsize="small")


def _weights(trace: Trace, problem: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of a linear machine after each step."""
    coef = trace.weights(problem)
    if coef.ndim > 2:
        raise ValueError(
            f"Problem {problem} is one of all classes together, without a street of its own: fit "
            "two classes, or multiclass='ovr'."
        )
    return coef, np.broadcast_to(trace.intercepts(problem), len(coef))


def _expansions(
    model: Any, X: Any, y: Any, records: list, problem: int, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
    """Coefficients on all rows, bias and support of a kernel machine after each step.

    States that have no bias are left out; the records are the rest's.
    """
    machine = checks.last_step(model)
    dual, rows = posed(model, X, y, problem, sample_weight)
    sign, n = machine.scheme_.sign, len(checks.dense(X))
    coef, intercept, support, kept = [], [], [], []
    for record, found in evaluated(dual, records, machine.tol):
        whole, used = np.zeros(n), np.zeros(n, dtype=bool)
        whole[rows] = sign * found.coefficients
        used[rows] = away_from_zero(found.coefficients)
        coef.append(whole)
        intercept.append(sign * found.bias)
        support.append(used)
        kept.append(record)
    return np.array(coef), np.array(intercept), np.array(support), kept

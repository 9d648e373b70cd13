"""Boosting at work: the distribution over the points, the hypothesis for it, and the vote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.machines.plane import MARKERS, Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSTEAD = "Fit one on two columns; plot_rounds and plot_margins draw boosting on any number."
_AREA, _LARGEST = 90.0, 1200.0  # of the mark of a point of mean weight, and of the heaviest


@dataclass
class BoostingDisplay(MovingDisplay):
    """The rounds of AdaBoost in the plane: points as large as their weights.

    State t shows distribution t + 1 and the two sides of the hypothesis that was found for it, with
    its mistakes; the last state the vote of all, with the distribution for a next round.

    Attributes
    ----------
    plane : Plane
        The vote on a grid.
    sides : bool array of shape (n_rounds, resolution, resolution)
        Where each hypothesis says the second class.
    D : array of shape (n_rounds + 1, n_samples)
    class_index : array of shape (n_samples,)
    class_names : list of str
    wrong : bool array of shape (n_rounds + 1, n_samples)
        Mistakes of each hypothesis, and of the vote.
    errors, alphas : arrays of shape (n_rounds,)

    Examples
    --------
    >>> from maxmargin import AdaBoostClassifier
    >>> from maxmargin.plotting import BoostingDisplay
    >>> X = [[1, 4], [2, 2], [5, 10], [7, 8], [8, 7], [3, 6], [4, 5], [6, 3], [9, 9], [10, 1]]
    >>> y = ["+"] * 5 + ["-"] * 5
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> display = BoostingDisplay.from_estimator(model, X, y, state=1)
    >>> len(display), display.ax_.get_title()
    (4, 'round 2: error 0.21, alpha 0.65')
    """

    plane: Plane
    sides: np.ndarray
    D: np.ndarray
    class_index: np.ndarray
    class_names: list[str]
    wrong: np.ndarray
    errors: np.ndarray
    alphas: np.ndarray

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        state: int = -1,
        grid_resolution: int = 200,
    ) -> BoostingDisplay:
        """Go through the rounds of a model, and draw one state.

        Parameters
        ----------
        model : AdaBoostClassifier
            Fitted on two features and two classes, with all its distributions.
        X : array-like of shape (n_samples, 2)
            The training points.
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, optional
        state : int, default=-1
            Which state; by default the last, the vote.
        grid_resolution : int, default=200
            Points along each axis at which the hypotheses are asked.

        Returns
        -------
        display : BoostingDisplay
        """
        marks.require_matplotlib()
        machine = checks.last_step(model)
        if not (hasattr(machine, "estimator_errors_") and hasattr(machine, "D_")):
            raise TypeError(f"plot_boosting draws AdaBoost; got {type(machine).__name__}.")
        if machine is not model or len(machine.classes_) != 2:
            raise ValueError(
                "plot_boosting draws an AdaBoostClassifier for two classes, and no pipeline."
            )
        checks.check_drawable(model, 2, "plot_boosting", _INSTEAD)
        check_consistent_length(X, y)
        data, rounds, D = checks.dense(X), len(model.estimators_), model.D_
        if D.shape[1] != len(data) or len(D) < rounds:
            raise ValueError(
                "plot_boosting draws the training points by their weights in every round: give the "
                "X and y of fit, and fit with store_distributions=True."
            )
        if len(D) == rounds:  # a hypothesis without an error: nothing is next
            D = np.vstack([D, D[-1:]])
        index = checks.class_index(model.classes_, y)
        plane = Plane.around(X, model.decision_function, grid_resolution)
        places = np.stack(np.meshgrid(plane.x, plane.y), axis=-1).reshape(-1, 2)
        second = model.classes_[1]
        sides = [
            (h.predict(places) == second).reshape(plane.values.shape) for h in model.estimators_
        ]
        wrong = [h.predict(data) != np.asarray(y) for h in model.estimators_]
        return cls(
            plane=plane,
            sides=np.array(sides),
            D=D,
            class_index=index,
            class_names=checks.class_names(model.classes_, None),
            wrong=np.array([*wrong, model.predict(X) != np.asarray(y)]),
            errors=model.estimator_errors_,
            alphas=model.estimator_weights_,
        ).plot(ax, state)

    def __len__(self) -> int:
        return len(self.D)

    def _draw_state(self, ax: Axes, state: int) -> None:
        last = state == len(self) - 1
        values = self.plane.values if last else np.where(self.sides[state], 1.0, -1.0)
        plane = replace(self.plane, values=values)
        plane.frame(ax)
        plane.fill_sides(ax)
        points, weight = plane.points, self.D[state] * len(plane.points)
        area = np.clip(_AREA * weight, 4.0, _LARGEST)
        for k, (name, colour) in enumerate(zip(self.class_names, marks.colours(2), strict=True)):
            own = self.class_index == k
            ax.scatter(
                points[own, 0],
                points[own, 1],
                s=area[own],
                color=colour,
                marker=MARKERS[k],
                edgecolors="white",
                linewidths=0.6,
                zorder=2,
                label=name,
            )
        wrong = self.wrong[state]
        said = "the vote" if last else f"hypothesis {state + 1}"
        marks.cross(ax, points, wrong, f"mistakes of {said}")
        if last:
            ax.set_title(f"the vote of {len(self) - 1}: {wrong.sum()} of {len(wrong)} wrong")
        else:
            alpha = self.alphas[state]
            ax.set_title(f"round {state + 1}: error {self.errors[state]:.2f}, alpha {alpha:.2f}")


def plot_boosting(model: Any, X: Any, y: Any, ax: Axes | None = None, *, state: int = -1) -> Axes:
    """Draw a round of AdaBoost, or its vote, among points that are as large as their weights.

    The short way to :class:`BoostingDisplay`, whose ``from_estimator`` has the parameters;
    ``animate`` makes a film of its states.

    Examples
    --------
    >>> from maxmargin import AdaBoostClassifier
    >>> from maxmargin.plotting import plot_boosting
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]], [0, 1, 1, 0]
    >>> plot_boosting(AdaBoostClassifier(n_estimators=2).fit(X, y), X, y, state=0).get_title()
    'round 1: error 0.25, alpha 0.55'
    """
    return BoostingDisplay.from_estimator(model, X, y, ax, state=state).ax_

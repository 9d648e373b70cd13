"""The plane as a classifier or a one-class machine divides it: regions, street, support, slack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display
from maxmargin.plotting.machines.plane import MARKERS, Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSTEAD = (
    "Choose two of them with features=(0, 1), the others held at their medians; or fit one on two "
    "columns or on PCA(n_components=2).fit_transform(X) to see it in the plane; plot_margins draws "
    "binary classifiers on any number of features."
)


@dataclass
class DecisionDisplay(Display):
    """The regions of a machine over two features, and its points.

    Attributes
    ----------
    plane : Plane
        ``f`` on a grid or, for regions, the number of the class.
    kind : {"street", "sides", "regions", "inliers"}
        Which lines and fields are drawn.
    class_index : array of shape (n_samples,)
        Number of each point's class in ``class_names``; zeros for a one-class machine.
    class_names : list of str
    support : array of int, or None
        Rows of the support vectors, of a machine that has some.
    has_slack, wrong : boolean arrays of shape (n_samples,)
        Points with slack, and those on the wrong side (of a one-class machine, outliers).
    description : str
        Kernel and cost, for the title.
    mark_support, mark_slack : bool or "auto"
    """

    plane: Plane
    kind: Literal["street", "sides", "regions", "inliers"]
    class_index: np.ndarray
    class_names: list[str]
    support: np.ndarray | None
    has_slack: np.ndarray
    wrong: np.ndarray
    description: str
    mark_support: bool | str = "auto"
    mark_slack: bool | str = "auto"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Axes | None = None,
        class_names: Sequence[str] | None = None,
        support: bool | str = "auto",
        slack: bool | str = "auto",
        grid_resolution: int = 300,
        features: Sequence[Any] | None = None,
        legend: bool = True,
    ) -> DecisionDisplay:
        """Evaluate a model and draw; parameters as in :func:`plot_decision`."""
        marks.require_matplotlib()
        machine = checks.last_step(model)
        with_support = all(hasattr(machine, name) for name in ("support_", "slack_", "shape_fit_"))
        if not (hasattr(machine, "classes_") or (with_support and not is_regressor(machine))):
            raise TypeError(
                "plot_decision draws classifiers and OneClassSVM, or a Pipeline that ends in one; "
                f"got {type(machine).__name__}. For regression, see plot_tube."
            )
        checks.check_drawable(model, 2, "plot_decision", INSTEAD, chosen=features is not None)
        if with_support:
            checks.check_training_rows(model, X, y, "plot_decision")
        has_slack = np.zeros(len(checks.dense(X)), dtype=bool)
        if with_support:
            has_slack = np.nanmax(np.atleast_2d(machine.slack_), axis=0) > machine.tol
        if not hasattr(machine, "classes_"):
            kind, respond = "inliers", model.decision_function
            names, index, wrong = ["training points"], np.zeros(len(has_slack), int), has_slack
        else:
            if y is None:
                raise ValueError("plot_decision needs y, the classes of the training points.")
            check_consistent_length(X, y)
            names = checks.class_names(machine.classes_, class_names)
            index = checks.class_index(machine.classes_, y)
            wrong = model.predict(X) != np.asarray(y)
            if len(names) == 2 and hasattr(model, "decision_function"):
                kind = "street" if checks.has_street(machine) else "sides"
                respond = model.decision_function
            else:
                kind = "regions"

                def respond(places: Any) -> np.ndarray:
                    return np.searchsorted(machine.classes_, model.predict(places))

        return cls(
            plane=Plane.around(X, respond, grid_resolution, features),
            kind=kind,  # type: ignore[arg-type]
            class_index=index,
            class_names=names,
            support=machine.support_ if with_support else None,
            has_slack=has_slack,
            wrong=wrong,
            description=marks.describe(machine),
            mark_support=support,
            mark_slack=slack,
        ).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        plane, names, points = self.plane, self.class_names, self.plane.points
        colours = marks.colours(len(names))
        plane.frame(ax)
        lines: tuple = ()
        listed = names
        if self.kind == "regions":
            listed = plane.fill_regions(ax, colours, names)
        else:
            lines = getattr(plane, f"fill_{self.kind}")(ax)
        for k, name in enumerate(names):
            group = points[self.class_index == k]
            label = f"{name} ({len(group)})" if name in listed else None
            marks.scatter(ax, points, group, colours[k], MARKERS[k % len(MARKERS)], label)
        inside, outside = {
            "street": ("slack: inside the street", "slack: wrong side"),
            "inliers": ("", "slack: outliers"),
        }.get(self.kind, ("slack in some pair", "misclassified"))
        if self.kind == "street" and self.support is None:
            outside = "misclassified"
        if self.mark_slack:
            marked = marks.few((self.has_slack | self.wrong).sum(), self.mark_slack)
            marks.dot(ax, points, self.has_slack & ~self.wrong, inside, marked)
            marks.cross(ax, points, self.wrong, outside, marked)
        if self.mark_support and self.support is not None:
            marks.ring(ax, points, self.support, marks.few(len(self.support), self.mark_support))
        said = "outliers" if self.kind == "inliers" else "misclassified"
        count = f"{self.wrong.sum()} of {len(points)} {said}"
        ax.set_title(f"{self.description}: {count}{plane.aside}")
        marks.legend(ax, points, lines)


def plot_decision(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    class_names: Sequence[str] | None = None,
    support: bool | str = "auto",
    slack: bool | str = "auto",
    grid_resolution: int = 300,
    features: Sequence[Any] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the regions of a machine on two features, its street and its training points.

    For two classes the lines are ``f = 0`` and the edges of the street, ``f = -1`` and ``f = +1``;
    for several, the regions are named; for a one-class machine, ``f = 0``. Support vectors are
    ringed. A dot marks a point with slack (more than the machine's ``tol``; for several classes, in
    any of its pairs), and a cross one on the wrong side.

    Of a classifier without support vectors (``LinearSVC``, ``LogisticRegression``, ``Perceptron``,
    any of scikit-learn's) the regions are drawn, the line ``f = 0``, the street if its loss knows
    one (``LinearSVC``), and a cross on what is misclassified.

    Parameters
    ----------
    model : classifier, OneClassSVM or Pipeline that ends in one
        Fitted on two features, or on more, of which ``features`` chooses two.
    X : array-like of shape (n_samples, n_features)
        The training points; column names become the names of the axes. For machines with support
        vectors as they were given to fit, for others any points.
    y : array-like of shape (n_samples,)
        Their classes. Not used for a one-class machine.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    class_names : sequence of str of shape (n_classes,), optional
        Names to show in place of ``classes_``.
    support : bool or "auto", default="auto"
        Whether to ring the support vectors; by default up to 400 of them: more hide the picture.
    slack : bool or "auto", default="auto"
        Whether to mark the points with slack and the misclassified; by default up to 400 of them.
    grid_resolution : int, default=300
        Number of points along each axis at which the machine is evaluated.
    features : pair of int or str, optional
        Two columns to show of more, by number or by name. The others are held at their medians over
        X, which the title says: the regions are those of a slice through the data. All points are
        drawn, and marked by what they are where they really lie, so that a point may well seem to
        be on another side than it is.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import plot_decision
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data.iloc[50:, 2:], iris.target[50:]
    >>> model = SVC(kernel="linear").fit(X, y)
    >>> ax = plot_decision(model, X, y, class_names=iris.target_names[1:])
    >>> ax.get_title()
    'Linear(), C = 1: 5 of 100 misclassified'
    """
    return DecisionDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        class_names=class_names,
        support=support,
        slack=slack,
        grid_resolution=grid_resolution,
        features=features,
        legend=legend,
    ).ax_

"""A circle in the plane that is a plane in space: ``(x . z)^2`` as a product of features.

With ``phi(x) = (x1^2, x2^2, sqrt(2) x1 x2)``, ``phi(x) . phi(z) = (x . z)^2``: a machine with this
kernel divides the space of the features by the plane ``w . phi(x) + b = 0``, whose trace in the
plane of the data is a conic, such as the circle ``x1^2 + x2^2 = 1``.

Reference: Russell and Norvig, Artificial Intelligence, 2nd edition, 2003, section 20.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from maxmargin.kernels import quadratic_features
from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import PanelDisplay
from maxmargin.plotting.machines.plane import Plane

_SAME = 1e-6  # of the largest |f|: values of the plane in space that are the machine's


@dataclass
class LiftDisplay(PanelDisplay):
    """Two classes in the plane, and lifted to where a plane separates them.

    Attributes
    ----------
    plane : Plane
        ``f`` on a grid over the data, and the points.
    lifted : array of shape (n_samples, 3)
        ``(x1^2, x2^2, sqrt(2) x1 x2)`` of the points.
    side : array of shape (n_samples,)
        +1 and -1.
    w : array of shape (3,)
    b : float
        ``f(x) = w . phi(x) + b``.
    names : pair of str
        Of the negative class and the positive.
    """

    plane: Plane
    lifted: np.ndarray
    side: np.ndarray
    w: np.ndarray
    b: float
    names: tuple[str, str]
    shape = (1, 2)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Any = None,
        grid_resolution: int = 200,
        legend: bool = True,
    ) -> LiftDisplay:
        """Lift a machine's points and draw; parameters as in :func:`plot_lift`."""
        marks.require_matplotlib()
        machine = checks.last_step(model)
        checks.check_drawable(model, 2, "plot_lift", "Fit one on two columns.")
        classes: Any = getattr(machine, "classes_", ())
        if len(classes) != 2 or not hasattr(model, "decision_function"):
            raise ValueError("plot_lift draws classifiers of two classes with a decision_function.")
        side = 2.0 * checks.class_index(classes, y) - 1.0
        plane = Plane.around(X, model.decision_function, grid_resolution)
        # f is what it is on the grid; if it is linear in the features, they say with which weights
        grid = np.stack(np.meshgrid(plane.x, plane.y), axis=-1).reshape(-1, 2)
        columns = np.column_stack([_lift(grid), np.ones(len(grid))])
        found, *_ = np.linalg.lstsq(columns, plane.values.ravel(), rcond=None)
        miss = np.abs(columns @ found - plane.values.ravel()).max()
        if miss > _SAME * max(np.abs(plane.values).max(), 1.0):
            raise ValueError(
                "plot_lift draws machines that are linear in (x1^2, x2^2, sqrt(2) x1 x2): fit one "
                'with kernel="poly", degree=2 and coef0=0, without scaling that moves the origin.'
            )
        names = (str(classes[0]), str(classes[1]))
        lifted = _lift(plane.points)
        return cls(plane, lifted, side, found[:3], float(found[3]), names).plot(ax, legend=legend)

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=(8.0, 4.2), layout="constrained")
            ax = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
        axes = super()._axes(ax)
        marks.axes_in_space(axes[0, 1], "The second panel of plot_lift")
        return axes

    def _draw(self, ax: Any) -> None:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        flat, space = ax.flat
        points, lifted = self.plane.points, self.lifted
        self.plane.frame(flat)
        flat.set_aspect("equal")
        self.plane.fill_sides(flat)
        flat.set_title("in the plane")
        cut = _cut(self.w, self.b, lifted.min(axis=0), lifted.max(axis=0))
        if len(cut):
            space.add_collection3d(
                Poly3DCollection([cut], facecolor=marks.ink(), alpha=0.2, edgecolor=marks.ink())
            )
        for of, colour, marker, name in zip(
            (-1, 1), marks.colours(2), "os", self.names, strict=True
        ):
            group = self.side == of
            label = f"{name} ({group.sum()})"
            marks.scatter(flat, points, points[group], colour, marker, label)
            space.scatter(*lifted[group].T, color=colour, marker=marker, s=0.5 * marks.size(points))
        space.set(xlabel="$x_1^2$", ylabel="$x_2^2$", zlabel=r"$\sqrt{2}\,x_1 x_2$")
        space.set_title("lifted, and cut by a plane")
        space.view_init(elev=14, azim=-22)  # nearly along the plane that a circle becomes
        space.locator_params(nbins=3)
        space.set_box_aspect((4, 4, 4), zoom=0.9)
        marks.legend(flat, points)


def _cut(w: np.ndarray, b: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the corners, in order, of the polygon that ``w . z + b = 0`` cuts from a box."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    values = corners @ w + b
    found = []
    for i, j in combinations(range(8), 2):
        if (corners[i] != corners[j]).sum() == 1 and values[i] * values[j] < 0:  # an edge, crossed
            found.append(
                corners[i] + (corners[j] - corners[i]) * values[i] / (values[i] - values[j])
            )
    if len(found) < 3:
        return np.empty((0, 3))
    polygon = np.array(found)
    spread = polygon - polygon.mean(axis=0)
    across = np.linalg.svd(spread, full_matrices=False)[2][:2]  # two directions in the plane
    return polygon[np.argsort(np.arctan2(*(spread @ across.T).T))]


def _lift(X: np.ndarray) -> np.ndarray:
    """``(x1^2, x2^2, sqrt(2) x1 x2)``, in the order of the lecture."""
    return quadratic_features(X)[:, [0, 2, 1]]


def plot_lift(
    model: Any, X: Any, y: Any, ax: Any = None, *, grid_resolution: int = 200, legend: bool = True
) -> Any:
    """Draw a quadratic machine in the plane, and where it is linear: in the space of its features.

    With ``phi(x) = (x1^2, x2^2, sqrt(2) x1 x2)`` the kernel ``(x . z)^2`` is ``phi(x) . phi(z)``.
    What is a circle, an ellipse or a hyperbola in the plane is a plane there.

    Parameters
    ----------
    model : classifier of two classes with the kernel ``(x . z)^2``, or Pipeline that ends in one
        Fitted on two features: ``SVC(kernel="poly", degree=2, coef0=0)``.
    X : array-like of shape (n_samples, 2)
        Points to show.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : array of matplotlib Axes of shape (2,), optional
        The second made with ``projection="3d"``; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    grid_resolution : int, default=200
        Number of points along each axis at which the machine is evaluated.

    Returns
    -------
    ax : array of matplotlib Axes of shape (1, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import LiftDisplay
    >>> X = np.random.default_rng(0).uniform(-1.5, 1.5, (200, 2))
    >>> y = np.where((X**2).sum(axis=1) <= 1, "inside", "outside")
    >>> model = SVC(kernel="poly", degree=2, gamma=1, coef0=0, C=1e4).fit(X, y)
    >>> display = LiftDisplay.from_estimator(model, X, y)
    >>> bool(np.allclose(display.w / -display.b, [1, 1, 0], atol=0.1))  # x1^2 + x2^2 = 1
    True
    """
    return LiftDisplay.from_estimator(
        model, X, y, ax=ax, grid_resolution=grid_resolution, legend=legend
    ).ax_

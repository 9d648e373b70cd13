"""The curve of a regression machine on one feature, in its tube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABOVE, _BELOW = "#d55e00", "#009e73"  # unlike the points


@dataclass
class TubeDisplay(Display):
    """The curve of a regression machine, its tube, and the points in it, on it and outside.

    Attributes
    ----------
    x, curve : arrays of shape (grid_resolution,)
        ``f(x)`` is the curve.
    epsilon : float
        Half the height of the tube.
    points : array of shape (n_samples, 2)
    xi, xi_hat : arrays of shape (n_samples,)
        How far each point is above the tube, and how far below; zero within ``tol``.
    support : array of int, or None
        Rows of the support vectors, of a machine that knows them.
    alpha : array of shape (n_support,), or None
        ``a - a_hat`` of each: positive for those above.
    names : pair of str
        Of the feature and the target.
    description : str
    """

    x: np.ndarray
    curve: np.ndarray
    epsilon: float
    points: np.ndarray
    xi: np.ndarray
    xi_hat: np.ndarray
    support: np.ndarray | None
    alpha: np.ndarray | None
    names: tuple[str, str]
    description: str

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        grid_resolution: int = 500,
        legend: bool = True,
    ) -> TubeDisplay:
        """Evaluate a model and draw; parameters as in :func:`plot_tube`."""
        machine = checks.last_step(model)
        if not hasattr(machine, "epsilon") and not hasattr(machine, "epsilon_"):
            raise TypeError(
                "plot_tube draws SVR, NuSVR and LinearSVR, or a Pipeline that ends in one; got "
                f"{type(machine).__name__}. For classification, see plot_decision."
            )
        if np.ndim(getattr(machine, "slack_", ())) > 1:
            raise ValueError("plot_tube draws one curve: fit a machine to one of the outputs.")
        checks.check_drawable(model, 1, "plot_tube", "Fit one on a single column to see its curve.")
        check_consistent_length(X, y)
        with_support = all(hasattr(machine, name) for name in ("support_", "shape_fit_"))
        if with_support:
            checks.check_training_rows(model, X, y, "plot_tube")
        points = np.column_stack([checks.dense(X), np.asarray(y, dtype=np.float64)])
        epsilon = machine.epsilon_ if hasattr(machine, "epsilon_") else machine.epsilon
        error = points[:, 1] - model.predict(X)
        outside = np.abs(error) > epsilon + checks.tolerance(machine)
        x = np.linspace(points[:, 0].min(), points[:, 0].max(), grid_resolution)
        return cls(
            x=x,
            curve=model.predict(checks.in_container_of(X, x[:, None])),
            epsilon=float(epsilon),
            points=points,
            xi=np.where(outside & (error > 0), error - epsilon, 0.0),
            xi_hat=np.where(outside & (error < 0), -error - epsilon, 0.0),
            support=machine.support_ if with_support else None,
            alpha=checks.dense(machine.dual_coef_).ravel() if with_support else None,
            names=(checks.column_name(X, 0), str(getattr(y, "name", None) or "target")),
            description=marks.describe(machine),
        ).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        handles = self.draw_panel(ax)
        outside = ((self.xi > 0) | (self.xi_hat > 0)).sum()
        ax.set_title(f"{self.description}: {outside} of {len(self.points)} outside the tube")
        marks.legend(ax, self.points, handles)

    def draw_panel(self, ax: Axes) -> list:
        """Draw all but title and legend; return what the legend has more."""
        from matplotlib.lines import Line2D

        x, curve, epsilon, points = self.x, self.curve, self.epsilon, self.points
        outside = (self.xi > 0) | (self.xi_hat > 0)
        text = f"tube: f(x) within {epsilon:.3g}"
        look: dict[str, Any] = {"color": marks.BLUE, "alpha": 0.15, "linewidth": 0}
        ax.fill_between(x, curve - epsilon, curve + epsilon, label=text, **look)
        for edge in (-epsilon, epsilon):
            ax.plot(x, curve + edge, color=marks.ink(), linestyle="--", linewidth=1.0)
        ax.plot(x, curve, color=marks.ink(), linewidth=1.8, label="f(x)")
        sides: dict[str, tuple[str, np.ndarray]] = {
            r"$\xi$, above the tube": (_ABOVE, self.xi),
            r"$\hat\xi$, below the tube": (_BELOW, -self.xi_hat),
        }
        for name, (colour, miss) in sides.items():
            if (out := miss != 0).any():
                top, label = points[out, 1], f"{name} ({out.sum()})"
                ax.vlines(
                    points[out, 0], top - miss[out], top, color=colour, zorder=1.5, label=label
                )
        marks.scatter(ax, points, points, marks.BLUE, label=f"training points ({len(points)})")
        handles: list = []
        if self.support is None or self.alpha is None:
            marks.cross(
                ax, points, outside, "slack: outside the tube", marks.few(outside.sum(), "auto")
            )
        else:
            marked = marks.few(len(self.support), "auto")
            marks.cross(ax, points, outside, "slack: outside the tube", marked)
            colours = np.where(self.alpha > 0, _ABOVE, _BELOW)
            marks.ring(ax, points, self.support, marked, colours)
            for colour, name, of in ((_ABOVE, "$a > 0$", 1), (_BELOW, r"$\hat a > 0$", -1)):
                if marked and (of * self.alpha > 0).any():
                    label = f"{name} ({(of * self.alpha > 0).sum()})"
                    ring: dict[str, Any] = {
                        "marker": "o",
                        "markerfacecolor": "none",
                        "markeredgecolor": colour,
                    }
                    handles.append(Line2D([], [], linestyle="none", label=label, **ring))
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return handles


def plot_tube(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    grid_resolution: int = 500,
    legend: bool = True,
) -> Axes:
    """Draw the curve of a regression machine on one feature, its tube and its training points.

    The tube holds the targets whose error costs nothing, ``|f(x) - y| <= epsilon``. Support vectors
    are ringed: they lie on its edge or, marked with a cross, outside (by more than ``tol``). The
    colour of a ring says which multiplier is positive: ``a`` of those on or above the upper edge,
    ``a-hat`` of those on or below the lower one. A segment is the slack of a point: ``xi`` above
    the tube, ``xi-hat`` below it.

    Parameters
    ----------
    model : SVR, NuSVR, LinearSVR or Pipeline that ends in one
        Fitted on one feature.
    X : array-like of shape (n_samples, 1)
        The training points, as given to fit (for LinearSVR any points); the column's name becomes
        the name of the axis.
    y : array-like of shape (n_samples,)
        Their targets.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    grid_resolution : int, default=500
        Number of points at which the curve is evaluated.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVR
    >>> from maxmargin.plotting import plot_tube
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = SVR(C=10, epsilon=0.2).fit(X, y)
    >>> ax = plot_tube(model, X, y)
    >>> ax.get_title()
    'RBF(gamma=0.3171), C = 10: 0 of 40 outside the tube'
    """
    return TubeDisplay.from_estimator(
        model, X, y, ax=ax, grid_resolution=grid_resolution, legend=legend
    ).ax_

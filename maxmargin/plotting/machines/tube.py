"""The curve of a regression machine on one feature, in its tube."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_tube(
    model: Any, X: Any, y: Any, ax: Axes | None = None, *, grid_resolution: int = 500
) -> Axes:
    """Draw the curve of a regression machine on one feature, its tube and its training points.

    The tube holds the targets whose error costs nothing, ``|f(x) - y| <= epsilon``. Support vectors
    are ringed: they lie on its edge or, marked with a cross, outside (by more than ``tol``).

    Parameters
    ----------
    model : SVR, NuSVR or Pipeline that ends in one
        Fitted on one feature.
    X : array-like of shape (n_samples, 1)
        The training points, as given to fit; the column's name becomes the name of the axis.
    y : array-like of shape (n_samples,)
        Their targets.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
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
    machine = checks.last_step(model)
    if not hasattr(machine, "slack_") or not is_regressor(machine):
        raise TypeError(
            "plot_tube draws SVR and NuSVR, or a Pipeline that ends in one; got "
            f"{type(machine).__name__}. For classification, see plot_decision."
        )
    if np.ndim(machine.slack_) > 1:
        raise ValueError("plot_tube draws one curve: fit a machine to one of the outputs.")
    checks.check_drawable(model, 1, "plot_tube", "Fit one on a single column to see its curve.")
    checks.check_training_rows(model, X, y, "plot_tube")
    ax = marks.axes_or_new(ax)
    points = np.column_stack([checks.dense(X), np.asarray(y, dtype=np.float64)])
    outside = machine.slack_ > machine.tol
    epsilon = machine.epsilon_ if hasattr(machine, "epsilon_") else machine.epsilon

    x = np.linspace(points[:, 0].min(), points[:, 0].max(), grid_resolution)
    curve = model.predict(checks.in_container_of(X, x[:, None]))
    text = f"tube: f(x) within {epsilon:.3g}"
    ax.fill_between(
        x, curve - epsilon, curve + epsilon, color=marks.BLUE, alpha=0.15, linewidth=0, label=text
    )
    for edge in (-epsilon, epsilon):
        ax.plot(x, curve + edge, color=marks.INK, linestyle="--", linewidth=1.0)
    ax.plot(x, curve, color=marks.INK, linewidth=1.8, label="f(x)")
    marks.scatter(ax, points, points, marks.BLUE, label=f"training points ({len(points)})")
    marked = marks.few(len(machine.support_), "auto")
    marks.cross(ax, points, outside, "slack: outside the tube", marked)
    marks.ring(ax, points, machine.support_, marked)
    ax.set(xlabel=checks.column_name(X, 0), ylabel=getattr(y, "name", None) or "target")
    ax.set_title(f"{marks.describe(machine)}: {outside.sum()} of {len(points)} outside the tube")
    marks.legend(ax, points)
    return ax

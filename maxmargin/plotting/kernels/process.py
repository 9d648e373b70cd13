"""A Gaussian process on one feature: its mean, how sure it is, and functions drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, check_random_state

from maxmargin.plotting import checks, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_process(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    samples: int = 3,
    grid_resolution: int = 300,
    random_state: Any = 0,
) -> Axes:
    """Draw the mean of a Gaussian process on one feature, in a band, and functions drawn from it.

    The band is two standard deviations of a new target wide on either side of the mean (95 %); the
    functions have no noise on them. A tenth of the data's range is shown beyond them.

    Parameters
    ----------
    model : GaussianProcessRegressor or Pipeline that ends in one
        Fitted on one feature, with one output.
    X : array-like of shape (n_samples, 1)
        Points to show; the column's name becomes the name of the axis.
    y : array-like of shape (n_samples,)
        Their targets.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    samples : int, default=3
        Functions to draw.
    grid_resolution : int, default=300
        Number of points at which the process is evaluated.
    random_state : int, RandomState or None, default=0
        Of the functions.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GaussianProcessRegressor
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.plotting import plot_process
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = GaussianProcessRegressor(RBF(gamma=0.5), alpha=0.01, optimizer=None).fit(X, y)
    >>> plot_process(model, X, y).get_title()
    'RBF(gamma=0.5): log-likelihood 32.49'
    """
    machine = checks.last_step(model)
    if not hasattr(machine, "log_marginal_likelihood"):
        raise TypeError(
            "plot_process draws GaussianProcessRegressor, or a Pipeline that ends in one; got "
            f"{type(machine).__name__}. For SVR, see plot_tube."
        )
    checks.check_drawable(model, 1, "plot_process", "Fit one on a single column to see its curve.")
    check_consistent_length(X, y)
    if np.ndim(machine.alpha_) > 1:
        raise ValueError("plot_process draws one output, and this process has several.")
    ax = marks.axes_or_new(ax)
    points = np.column_stack([checks.dense(X), np.asarray(y, dtype=np.float64)])
    low, high = points[:, 0].min(), points[:, 0].max()
    x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), grid_resolution)
    seen = checks.in_container_of(X, x[:, None])
    if isinstance(model, Pipeline) and len(model) > 1:
        seen = model[:-1].transform(seen)
    mean, covariance = machine.predict(seen, return_cov=True)
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    text, low, high = "two deviations of a new target", mean - 2 * deviation, mean + 2 * deviation
    ax.fill_between(x, low, high, color=marks.BLUE, alpha=0.15, linewidth=0, label=text)
    noise = machine.noise_level_ * machine._deviation[0] ** 2
    covariance[np.diag_indices_from(covariance)] -= noise
    random = check_random_state(random_state)
    for drawn in random.multivariate_normal(mean, covariance, samples, check_valid="ignore"):
        ax.plot(x, drawn, color=marks.BLUE, linewidth=0.8, alpha=0.7)
    ax.plot(x, mean, color=marks.ink(), linewidth=1.8, label="mean")
    marks.scatter(ax, points, points, marks.BLUE, label=f"targets ({len(points)})")
    ax.set(xlabel=checks.column_name(X, 0), ylabel=getattr(y, "name", None) or "target")
    value = machine.log_marginal_likelihood_value_
    ax.set_title(f"{marks.describe(machine)}: log-likelihood {value:.4g}")
    marks.legend(ax, points)
    return ax

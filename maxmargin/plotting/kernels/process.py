"""A Gaussian process on one feature: its mean, how sure it is, and functions drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class ProcessDisplay(Display):
    """The mean of a Gaussian process on one feature, a band around it, and functions drawn from it.

    Attributes
    ----------
    x, mean, deviation : arrays of shape (grid_resolution,)
        Mean and standard deviation of a new target; the band is two of them wide on either side.
    functions : array of shape (samples, grid_resolution)
        Drawn from the process, without noise.
    points : array of shape (n_samples, 2)
    names : pair of str
        Of the feature and the target.
    title : str

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GaussianProcessRegressor
    >>> from maxmargin.plotting import ProcessDisplay
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = GaussianProcessRegressor(alpha=1e-4).fit(X, np.sin(X[:, 0]))
    >>> display = ProcessDisplay.from_estimator(model, X, np.sin(X[:, 0]), samples=2)
    >>> display.functions.shape, bool(display.deviation[150] < display.deviation[-1])
    ((2, 300), True)
    """

    x: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    functions: np.ndarray
    points: np.ndarray
    names: tuple[str, str]
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        samples: int = 3,
        grid_resolution: int = 300,
        random_state: Any = 0,
        legend: bool = True,
    ) -> ProcessDisplay:
        """Evaluate a process and draw; parameters as in :func:`plot_process`."""
        machine = checks.last_step(model)
        if not hasattr(machine, "log_marginal_likelihood"):
            raise TypeError(
                "plot_process draws GaussianProcessRegressor, or a Pipeline that ends in one; got "
                f"{type(machine).__name__}. For SVR, see plot_tube."
            )
        hint = "Fit one on a single column to see its curve."
        checks.check_drawable(model, 1, "plot_process", hint)
        check_consistent_length(X, y)
        if np.ndim(machine.alpha_) > 1:
            raise ValueError("plot_process draws one output, and this process has several.")
        points = np.column_stack([checks.dense(X), np.asarray(y, dtype=np.float64)])
        low, high = points[:, 0].min(), points[:, 0].max()
        x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), grid_resolution)
        seen = checks.transformed(model, checks.in_container_of(X, x[:, None]))
        mean, covariance = machine.predict(seen, return_cov=True)
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        noise = machine._noise_of(machine.kernel_, seen) * machine._y_train_std[0] ** 2
        covariance[np.diag_indices_from(covariance)] -= noise
        random = check_random_state(random_state)
        value = machine.log_marginal_likelihood_value_
        return cls(
            x,
            mean,
            deviation,
            functions=random.multivariate_normal(mean, covariance, samples, check_valid="ignore"),
            points=points,
            names=(checks.column_name(X, 0), str(getattr(y, "name", None) or "target")),
            title=f"{marks.describe(machine)}: log-likelihood {value:.4g}",
        ).plot(ax, legend=legend)

    def _draw(self, ax: Axes) -> None:
        x, mean, band = self.x, self.mean, 2 * self.deviation
        look: dict[str, Any] = {"color": marks.BLUE, "alpha": 0.15, "linewidth": 0}
        text = "two deviations of a new target"
        ax.fill_between(x, mean - band, mean + band, label=text, **look)
        for drawn in self.functions:
            ax.plot(x, drawn, color=marks.BLUE, linewidth=0.8, alpha=0.7)
        ax.plot(x, mean, color=marks.ink(), linewidth=1.8, label="mean")
        points = self.points
        marks.scatter(ax, points, points, marks.BLUE, label=f"targets ({len(points)})")
        ax.set(xlabel=self.names[0], ylabel=self.names[1], title=self.title)
        marks.legend(ax, points)


def plot_process(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    samples: int = 3,
    grid_resolution: int = 300,
    random_state: Any = 0,
    legend: bool = True,
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
    legend : bool, default=True
        Whether there is a legend.
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
    return ProcessDisplay.from_estimator(
        model,
        X,
        y,
        ax=ax,
        samples=samples,
        grid_resolution=grid_resolution,
        random_state=random_state,
        legend=legend,
    ).ax_

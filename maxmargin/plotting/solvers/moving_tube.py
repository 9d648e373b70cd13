"""The tube of a regression machine on one feature, as it moves from step to step of the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from maxmargin.gram import Gram
from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.machines.tube import TubeDisplay
from maxmargin.plotting.solvers.posed import away_from_zero, evaluated, traced
from maxmargin.svm.svr import KernelRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class MovingTubeDisplay(MovingDisplay):
    """The curve of a regression machine and its tube after each recorded step, among its points.

    Attributes
    ----------
    last : TubeDisplay
        The picture of the fitted machine: its points, names and grid.
    curves : float array of shape (n_states, g)
        ``f(x)`` on the grid.
    fitted : float array of shape (n_states, n)
        And at the points.
    epsilon : float array of shape (n_states,)
        Half the height of the tube: of ``NuSVR`` it is found, and moves as well.
    alpha : float array of shape (n_states, n), or None
        ``a - a_hat`` of each row, of a machine that has them.
    steps : int array of shape (n_states,)
    tol : float
        How far outside of the tube a point is still on its edge.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVR
    >>> from maxmargin.plotting import MovingTubeDisplay
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = SVR(C=10, epsilon=0.2, solver="smo", trace=True).fit(X, y)
    >>> display = MovingTubeDisplay.from_estimator(model, X, y)
    >>> np.array_equal(display.alpha[-1].nonzero()[0], model.support_)
    True
    """

    last: TubeDisplay
    curves: np.ndarray
    fitted: np.ndarray
    epsilon: np.ndarray
    alpha: np.ndarray | None
    steps: np.ndarray
    tol: float

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        sample_weight: Any = None,
        grid_resolution: int = 300,
        legend: bool = True,
    ) -> MovingTubeDisplay:
        """Draw the tube of a regression machine that was fitted with ``trace=True``.

        Parameters
        ----------
        model : SVR, NuSVR, LinearSVR or Pipeline that ends in one
            Fitted on one feature, with a trace.
        X : array-like of shape (n_samples, 1)
        y : array-like of shape (n_samples,)
            The training data, in the same order.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        sample_weight : array-like of shape (n_samples,), optional
            Those of fit, for ``SVR`` and ``NuSVR``.
        grid_resolution : int, default=300
            Points at which the curve is computed.

        Returns
        -------
        display : MovingTubeDisplay
        """
        from matplotlib.figure import Figure

        machine, records = traced(model, 0)
        options: dict[str, Any] = {"ax": Figure().subplots(), "grid_resolution": grid_resolution}
        last = TubeDisplay.from_estimator(model, X, y, **options)
        grid = checks.in_container_of(X, last.x[:, None])
        rows, grid = (checks.dense(checks.transformed(model, Z)) for Z in (X, grid))
        alpha, tubes = None, np.full(len(records), last.epsilon)
        if isinstance(machine, KernelRegressor):
            weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
            gram = Gram.of(rows, machine.kernel_)
            dual = machine._problem(last.points[:, 1], weight).over(gram)
            found = evaluated(dual, records, machine.tol)
            records = [record for record, _ in found]
            coef = np.array([one.coefficients for _, one in found])
            intercept = np.array([one.bias for _, one in found])
            if hasattr(machine, "epsilon_"):
                tubes = np.array([one.levels.tube for _, one in found])
            tubes = tubes[: len(found)]
            alpha = np.where([away_from_zero(one) for one in coef], coef, 0.0)
            grid, rows = machine.kernel_(grid, rows), machine.kernel_(rows)
        else:
            coef, intercept = machine.trace_.weights(), machine.trace_.intercepts()
        return cls(
            last=last,
            curves=coef @ grid.T + intercept[:, None],
            fitted=coef @ rows.T + intercept[:, None],
            epsilon=tubes,
            alpha=alpha,
            steps=np.array([record.steps for record in records]),
            tol=checks.tolerance(machine),
        ).plot(ax, legend=legend)

    def __len__(self) -> int:
        return len(self.steps)

    def tube(self, state: int) -> TubeDisplay:
        """Return the picture of one state, not drawn."""
        points, epsilon = self.last.points, float(self.epsilon[state])
        error = points[:, 1] - self.fitted[state]
        slack = np.where(np.abs(error) > epsilon + self.tol, np.abs(error) - epsilon, 0.0)
        alpha = None if self.alpha is None else self.alpha[state]
        support = None if alpha is None else np.flatnonzero(alpha)
        return TubeDisplay(
            x=self.last.x,
            curve=self.curves[state],
            epsilon=epsilon,
            points=points,
            xi=np.where(error > 0, slack, 0.0),
            xi_hat=np.where(error < 0, slack, 0.0),
            support=support,
            alpha=None if alpha is None else alpha[support],
            names=self.last.names,
            description=self.last.description,
        )

    def _draw_state(self, ax: Axes, state: int) -> None:
        tube = self.tube(state)
        handles = tube.draw_panel(ax)
        y, edge = tube.points[:, 1], self.curves[-1]
        low = min(y.min(), edge.min() - self.epsilon[-1])
        high = max(y.max(), edge.max() + self.epsilon[-1])
        pad = 0.08 * (high - low)
        outside = ((tube.xi > 0) | (tube.xi_hat > 0)).sum()
        ax.set(ylim=(low - pad, high + pad))
        title = f"step {self.steps[state]}: {outside} of {len(y)} outside the tube"
        ax.set_title(f"{tube.description}\n{title}")
        found = [*ax.get_legend_handles_labels()[0], *handles]
        marks.legend_below(ax, ncols=3, handles=found, fontsize="small")

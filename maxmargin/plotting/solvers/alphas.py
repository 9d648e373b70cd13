"""The multipliers of a fit, from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.solvers.convergence import records_of
from maxmargin.plotting.solvers.posed import names_of_sides, traced
from maxmargin.svm.classification import KernelClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxmargin.trace import Trace


@dataclass
class AlphasDisplay(MovingDisplay):
    """The multipliers ``alpha_i`` as bars at one step, or as lines over all steps.

    Those of one class are orange, those of the other blue, and those that end at zero, of rows that
    are no support vectors, are thin.

    Attributes
    ----------
    steps : int array of shape (n_records,)
    alpha : float array of shape (n_records, m)
    rows : int array of shape (m,)
        Which variables these are.
    positive : bool array of shape (m,)
        Of which class they are.
    C : float or None
        The bound, where it was given.
    kind : {"lines", "bars"}
    count : int
        Of all variables there are.
    names : pair of str
        Of the negative and the positive class.

    Examples
    --------
    >>> from maxmargin import SVC, Trace
    >>> from maxmargin.plotting import AlphasDisplay
    >>> trace = Trace()
    >>> X, y = [[0.0], [1.0], [1.5]], [0, 1, 1]
    >>> model = SVC(kernel="linear", C=10, solver="smo", callback=trace).fit(X, y)
    >>> AlphasDisplay.from_trace(trace, C=10).alpha[-1].round(4)
    array([2., 2., 0.])
    """

    steps: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray
    positive: np.ndarray
    C: float | None = None
    kind: str = "lines"
    count: int = 0
    names: tuple[str, str] = ("negative variables", "positive variables")

    @classmethod
    def from_trace(
        cls,
        trace: Trace,
        problem: int = 0,
        ax: Axes | None = None,
        *,
        kind: str = "lines",
        most: int = 60,
        C: float | None = None,
        names: tuple[str, str] = ("negative variables", "positive variables"),
        sign: float = 1.0,
        legend: bool = True,
    ) -> AlphasDisplay:
        """Draw the multipliers that a trace of a machine with a dual has recorded.

        Parameters
        ----------
        trace : Trace
        problem : int, default=0
            Which pair of classes, or class.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        kind : {"lines", "bars"}, default="lines"
        most : int, default=60
            Multipliers to draw: of more, those that were largest at any time.
        C : float, optional
            The bound, to be drawn.
        names : pair of str, optional
            What to call the variables below and above zero.
        sign : {1.0, -1.0}, default=1.0
            What to multiply the variables with before that.

        Returns
        -------
        display : AlphasDisplay
        """
        if kind not in ("lines", "bars"):
            raise ValueError(f"kind must be 'lines' or 'bars', got {kind!r}.")
        records = records_of(trace, problem)
        records = [record for record in records if record.variables is not None]
        known = records and records[-1].solves_for == "multipliers"
        if not known or records[0].variables.ndim > 1:
            raise ValueError(
                f"Problem {problem} of this trace has no row of dual variables in its records: "
                "trace a machine that solves a dual, such as SVC."
            )
        beta = np.array([record.variables for record in records])
        largest = np.argsort(-np.abs(beta).max(axis=0), kind="stable")[:most]
        rows = np.sort(largest)
        positive = sign * beta[:, rows].sum(axis=0) > 0
        steps = np.array([record.steps for record in records])
        alpha = np.abs(beta[:, rows])
        return cls(steps, alpha, rows, positive, C, kind, beta.shape[1], names).plot(
            ax, legend=legend
        )

    @classmethod
    def from_estimator(
        cls, model: Any, problem: int = 0, ax: Axes | None = None, **options: Any
    ) -> AlphasDisplay:
        """Draw the multipliers of a kernel classifier that was fitted with ``trace=True``.

        As :meth:`from_trace`, with the names of the classes and the bound C in the picture.
        """
        machine, _ = traced(model, problem)
        if not isinstance(machine, KernelClassifier) or machine.scheme_.direct:
            raise TypeError(
                "The multipliers with their classes are those of SVC or NuSVC; AlphasDisplay."
                f"from_trace(model.trace_) draws those of {type(machine).__name__}."
            )
        cost = getattr(machine, "C", np.inf)
        known = machine.class_weight is None and getattr(machine, "lam", None) is None
        if known and np.isfinite(cost):
            options.setdefault("C", cost)
        names, sign = names_of_sides(machine, problem), machine.scheme_.sign
        return cls.from_trace(machine.trace_, problem, ax, names=names, sign=sign, **options)

    def __len__(self) -> int:
        return len(self.steps)

    def _draw_state(self, ax: Axes, state: int) -> None:
        colours = np.where(self.positive, marks.ORANGE, marks.BLUE)
        top = 1.1 * max(self.alpha.max(), self.C or 0.0, 1e-12)
        last = self.alpha[-1] > 1e-8 * top
        if self.kind == "bars":
            ax.bar(np.arange(len(self.rows)), self.alpha[state], color=colours)
            places = np.unique(np.linspace(0, len(self.rows) - 1, 12).astype(int))
            ax.set_xticks(places, [str(row) for row in self.rows[places]])
            ax.set(xlabel="row i", xlim=(-0.7, len(self.rows) - 0.3))
        else:
            lines = zip(self.alpha.T, colours, self.positive, last, strict=True)
            for values, colour, above, support in sorted(lines, key=lambda line: line[2]):
                width, strength = (1.8, 1.0) if support else (1.2, 0.6)
                width = width if above else 2 * width  # both can be seen where they are equal
                seen = slice(state + 1)
                ax.plot(
                    self.steps[seen],
                    values[seen],
                    color=colour,
                    linewidth=width,
                    alpha=strength,
                    drawstyle="steps-post",
                )
            ax.set(xlabel="steps", xlim=(self.steps[0], max(self.steps[-1], 1)))
        if self.C is not None:
            ax.axhline(self.C, color=marks.ink(), linewidth=1, linestyle="--")
            ax.text(1.0, self.C, "C ", va="bottom", ha="right", transform=ax.get_yaxis_transform())
        for name, colour in zip(self.names, (marks.BLUE, marks.ORANGE), strict=True):
            ax.plot([], [], color=colour, linewidth=4, label=name)
        ax.legend(fontsize="small", frameon=False, loc="upper left", ncols=2)
        nonzero = int((self.alpha[state] > 1e-8 * top).sum())
        shown = f", {len(self.rows)} of {self.count} drawn" if len(self.rows) < self.count else ""
        title = f"step {self.steps[state]}: {nonzero} multipliers above zero{shown}"
        ax.set(ylabel="multiplier", ylim=(0, 1.1 * top), title=title)


def plot_alphas(trace: Trace, problem: int = 0, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the multipliers of a fit from step to step.

    The short way to :class:`AlphasDisplay`, whose ``from_trace`` has the parameters.

    Examples
    --------
    >>> from maxmargin import SVC, Trace
    >>> from maxmargin.plotting import plot_alphas
    >>> trace = Trace()
    >>> model = SVC(callback=trace).fit([[0.0], [1.0], [1.5]], [0, 1, 1])
    >>> plot_alphas(trace, kind="bars").get_xlabel()
    'row i'
    """
    return AlphasDisplay.from_trace(trace, problem, ax, **options).ax_

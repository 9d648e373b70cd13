"""The way of a fit, or of several: objectives, gap and violation against steps or time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {"objective": "objective", "gap": "duality gap", "violation": "violation"}
_UNITS = {"steps": "steps", "seconds": "seconds"}
_STYLES = ("-", "--", "-.", ":")


@dataclass
class ConvergenceDisplay(MovingDisplay):
    """One number of one or more fits, from step to step or from second to second.

    The gap and the violation fall to zero and are drawn on a logarithmic scale; the objective is
    drawn with its lower bound, the dual, and the best value lies between the two.

    Attributes
    ----------
    x, y : dict of str to float array
        Steps or seconds, and the number, of each fit by its name.
    dual : dict of str to float array
        For the objective: its lower bound, where a method knows one.
    what : {"gap", "violation", "objective"}
    against : {"steps", "seconds"}
    tol : float or None
        What the violation is to reach, where that is the same for all.
    title : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, Trace
    >>> from maxmargin.plotting import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> traces = {"smo": Trace(), "working_set": Trace()}
    >>> for name, trace in traces.items():
    ...     model = SVC(solver=name, callback=trace).fit(X[50:], y[50:])
    >>> display = ConvergenceDisplay.from_trace(traces, "gap")
    >>> list(display.y), bool(display.y["smo"][-1] < display.y["smo"][0])
    (['smo', 'working_set'], True)
    """

    x: dict[str, np.ndarray]
    y: dict[str, np.ndarray]
    dual: dict[str, np.ndarray] = field(default_factory=dict)
    what: str = "gap"
    against: str = "steps"
    tol: float | None = None
    title: str = ""

    @classmethod
    def from_trace(
        cls,
        trace: Any,
        what: str = "gap",
        against: str = "steps",
        problem: int = 0,
        ax: Axes | None = None,
        *,
        legend: bool = True,
    ) -> ConvergenceDisplay:
        """Draw one trace, or several in one picture.

        Parameters
        ----------
        trace : Trace, dict of str to Trace, or what ``compare_solvers`` returns
        what : {"gap", "violation", "objective"}, default="gap"
        against : {"steps", "seconds"}, default="steps"
        problem : int, default=0
            Which pair of classes, class or start.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.

        Returns
        -------
        display : ConvergenceDisplay
        """
        if what not in _NAMES:
            raise ValueError(f"what must be 'gap', 'violation' or 'objective', got {what!r}.")
        if against not in _UNITS:
            raise ValueError(f"against must be 'steps' or 'seconds', got {against!r}.")
        if not has_traces(trace):
            raise TypeError(
                f"A Trace, a dict of them or a comparison of solvers has curves; got {trace!r}."
            )
        traces = {"": trace} if isinstance(trace, Trace) else getattr(trace, "traces", trace)
        lists = {name: records_of(one, problem) for name, one in traces.items()}
        x = {name: one.curve(against, problem).astype(float) for name, one in traces.items()}
        y = {name: one.curve(what, problem).astype(float) for name, one in traces.items()}
        unknown = [name for name, values in y.items() if not np.isfinite(values).any()]
        if unknown:
            raise ValueError(
                f"{' and '.join(unknown) or 'This method'} does not know its {_NAMES[what]}: draw "
                "what='objective' or 'violation' instead."
            )
        dual = {}
        if what == "objective":
            dual = {name: one.curve("dual", problem).astype(float) for name, one in traces.items()}
            dual = {name: low for name, low in dual.items() if np.isfinite(low).any()}
        tols = {records[-1].tol for records in lists.values()}
        tol = tols.pop() if what == "violation" and len(tols) == 1 else None
        methods = [*dict.fromkeys(record.method for record in next(iter(lists.values())))]
        title = " then ".join(methods) if isinstance(trace, Trace) else ""
        return cls(x, y, dual, what, against, tol, title).plot(ax, legend=legend)

    @cached_property
    def moments(self) -> np.ndarray:
        """Steps or seconds at which something is new: the states of the film."""
        return np.unique(np.concatenate([*self.x.values()]))

    def __len__(self) -> int:
        return len(self.moments)

    def _draw_state(self, ax: Axes, state: int) -> None:
        now, alone = self.moments[state], len(self.y) == 1
        colours = [marks.ORANGE] if alone and self.dual else marks.colours(len(self.y))
        for k, (name, y) in enumerate(self.y.items()):
            seen = self.x[name] <= now
            x, y = self.x[name][seen], self._drawn(y[seen])
            look: dict[str, Any] = {"color": colours[k], "linewidth": 2}
            label = name or (_NAMES[self.what] if self.dual else None)
            ax.plot(x, y, _STYLES[k % len(_STYLES)], label=label, **look)
            ax.plot(x[-1:], y[-1:], "o", markersize=5, color=colours[k])
            if name in self.dual:
                low, text = self.dual[name][seen], "lower bound (dual)" if alone else None
                if alone:
                    look["color"] = marks.BLUE
                    ax.fill_between(x, low, y, color=marks.BLUE, alpha=0.12, linewidth=0)
                ax.plot(x, low, "-" if alone else ":", label=text, **look)
        if self.what != "objective":
            ax.set_yscale("log")
        if self.tol is not None:
            ax.axhline(self.tol, color=marks.ink(), linewidth=1, linestyle="--")
            ax.text(self.moments[0], self.tol, " tol", va="bottom", fontsize="small")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small", frameon=False, loc="upper right")
        ax.set(xlabel=self.against, ylabel=_NAMES[self.what], title=self.title, **self._limits)

    def _drawn(self, values: np.ndarray) -> np.ndarray:
        """Return the values that a logarithmic scale has a place for, and nan for the others."""
        return values if self.what == "objective" else np.where(values > 0, values, np.nan)

    @cached_property
    def _limits(self) -> dict[str, tuple[float, float]]:
        """Limits of the axes that hold all curves."""
        values = np.concatenate([*self.y.values(), *self.dual.values()])
        values = self._drawn(values)
        values = values[np.isfinite(values)]
        if self.tol is not None:
            values = np.append(values, self.tol)
        log = self.what != "objective"
        if not len(values):  # every gap is zero
            return {}
        low, high = (np.log(end) if log else end for end in (values.min(), values.max()))
        pad = 0.05 * (high - low) or (1.0 if log else 0.05 * abs(high) or 1.0)
        y = (low - pad, high + pad)
        width = self.moments[-1] - self.moments[0]
        x = (self.moments[0] - 0.02 * width, self.moments[-1] + 0.02 * width or 1.0)
        return {"xlim": x, "ylim": (float(np.exp(y[0])), float(np.exp(y[1]))) if log else y}


def plot_trace(
    trace: Any,
    what: str = "gap",
    problem: int = 0,
    ax: Axes | None = None,
    *,
    against: str = "steps",
    legend: bool = True,
) -> Axes:
    """Draw one number of a fit, or of several, from step to step.

    The short way to :class:`ConvergenceDisplay`.

    Parameters
    ----------
    trace : Trace, dict of str to Trace, or what ``compare_solvers`` returns
    what : {"gap", "violation", "objective"}, default="gap"
        The gap and the violation, which fall to zero, on a logarithmic scale, the violation with
        the tolerance that it is to reach; or the objective with its lower bound, between which the
        best value lies.
    problem : int, default=0
        Which pair of classes, class or start.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.
    against : {"steps", "seconds"}, default="steps"

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC, Trace
    >>> from maxmargin.plotting import plot_trace
    >>> X, y = load_iris(return_X_y=True)
    >>> trace = Trace()
    >>> model = SVC(callback=trace).fit(X[:100], y[:100])
    >>> ax = plot_trace(trace)
    >>> ax.get_ylabel(), ax.get_yscale()
    ('duality gap', 'log')
    """
    return ConvergenceDisplay.from_trace(trace, what, against, problem, ax, legend=legend).ax_


def has_traces(what: Any) -> bool:
    """Whether this is a trace, a dict of them, or has such a dict as its ``traces``."""
    what = getattr(what, "traces", what)
    named = isinstance(what, Mapping) and len(what) > 0
    return isinstance(what, Trace) or (
        named and all(isinstance(one, Trace) for one in what.values())
    )


def records_of(trace: Trace, problem: int) -> list:
    """Return the records of a problem; one that the trace does not have is refused."""
    records = trace.records.get(problem)
    if not records:
        known = sorted(trace.records)
        raise ValueError(
            f"The trace has no records of problem {problem}, only of {known}: the problems are "
            "counted from 0, one for each pair of classes, class or start."
        )
    return records

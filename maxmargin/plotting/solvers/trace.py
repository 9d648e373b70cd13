"""The way of a fit: objectives, gap and violation from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.plotting import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxmargin.trace import Trace

_NAMES = {
    "objective": "objective",
    "dual": "lower bound (dual)",
    "gap": "duality gap",
    "violation": "violation",
}


def plot_trace(trace: Trace, what: str = "gap", problem: int = 0, ax: Axes | None = None) -> Axes:
    """Draw one number of a fit from step to step.

    Parameters
    ----------
    trace : Trace
        Of a fit that had it as its ``callback``.
    what : {"gap", "violation", "objective"}, default="gap"
        The gap and the violation, which fall to zero, on a logarithmic scale, the violation with
        the tolerance that it is to reach; or the objective with its lower bound, between which the
        best value lies.
    problem : int, default=0
        Which pair of classes, class or start.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

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
    if what not in ("gap", "violation", "objective"):
        raise ValueError(f"what must be 'gap', 'violation' or 'objective', got {what!r}.")
    records = trace.records.get(problem)
    if not records:
        known = sorted(trace.records)
        raise ValueError(f"The trace has no records of problem {problem}, only of {known}.")
    ax = marks.axes_or_new(ax)
    steps, values = trace.curve("steps", problem), trace.curve(what, problem)
    if what == "objective":
        ax.plot(steps, values, color=marks.ORANGE, linewidth=2, label=_NAMES[what])
        dual = trace.curve("dual", problem)
        if np.isfinite(dual).any():
            ax.plot(steps, dual, color=marks.BLUE, linewidth=2, label=_NAMES["dual"])
            ax.fill_between(steps, dual, values, color=marks.BLUE, alpha=0.12, linewidth=0)
        ax.legend(fontsize="small", frameon=False)
    else:
        ax.plot(steps, np.where(values > 0, values, np.nan), color=marks.BLUE, linewidth=2)
        ax.set_yscale("log")
    if what == "violation":
        ax.axhline(records[-1].tol, color=marks.INK, linewidth=1, linestyle="--")
        ax.text(steps[0], records[-1].tol, " tol", va="bottom", fontsize="small")
    methods = list(dict.fromkeys(record.method for record in records))
    ax.set(xlabel="steps", ylabel=_NAMES[what], title=" then ".join(methods))
    return ax

"""The step of two multipliers, in their box: what sequential minimal optimisation repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from maxmargin.plotting import marks
from maxmargin.plotting.display import MovingDisplay
from maxmargin.plotting.solvers.posed import posed, traced
from maxmargin.solvers import TwoVariableStep, two_variable_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.28  # of the box, around it: there the line and the optimum outside are seen


@dataclass
class SMOBoxDisplay(MovingDisplay):
    """Steps of two multipliers in the box ``0 <= a_1 <= C_1, 0 <= a_2 <= C_2``.

    The constraint leaves a line, of slope -1 for equal labels and +1 for different ones. On it are
    the point before the step, the optimum wherever the box ends (a cross) and the point after it:
    the optimum, or the nearer of the ends whose a_2 are L and H. A film shows the three in turn.

    Attributes
    ----------
    steps : list of TwoVariableStep
    pairs : list of pairs of int
        Rows of the two multipliers of each step, where they are known.
    numbers : list of int
        Which steps of the fit these are.

    Examples
    --------
    >>> from maxmargin.plotting import SMOBoxDisplay
    >>> from maxmargin.solvers import two_variable_step
    >>> step = two_variable_step((1, -1), (0.2, 0.5), errors=(-1, 1), K=(1, 1, 0), C=1.0)
    >>> display = SMOBoxDisplay.from_steps(step)
    >>> display.ends(0)  # L and H, as points of the box
    array([[0. , 0.3],
           [0.7, 1. ]])
    """

    phases: ClassVar[int] = 3

    steps: list[TwoVariableStep]
    pairs: list[tuple[int, int]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @classmethod
    def from_steps(
        cls,
        steps: TwoVariableStep | Sequence[TwoVariableStep],
        ax: Axes | None = None,
        *,
        legend: bool = True,
    ) -> SMOBoxDisplay:
        """Draw a step, or the last of several, of which a film shows all."""
        steps = [steps] if isinstance(steps, TwoVariableStep) else list(steps)
        if not steps or not all(isinstance(step, TwoVariableStep) for step in steps):
            raise ValueError("Give a TwoVariableStep, as two_variable_step returns it, or several.")
        return cls(steps).plot(ax, legend=legend)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ax: Axes | None = None,
        *,
        problem: int = 0,
        sample_weight: Any = None,
        legend: bool = True,
    ) -> SMOBoxDisplay:
        """Draw the recorded steps of an ``SVC`` that was fitted by SMO, with ``trace=True``.

        Parameters
        ----------
        model : SVC or Pipeline that ends in one
            Fitted with ``trace=True`` by a solver that moves two multipliers at a time.
        X, y : array-like
            The training data, in the same order.
        ax : matplotlib Axes, optional
        legend : bool, default=True
            Whether there is a legend.
        problem : int, default=0
            Which pair of classes, or class against the rest.
        sample_weight : array-like of shape (n_samples,), optional
            Those of fit.

        Returns
        -------
        display : SMOBoxDisplay
        """
        records = traced(model, problem)[1]
        dual, rows = posed(model, X, y, problem, sample_weight)
        if dual.n_groups != 1 or dual.margin_weights.size:
            raise ValueError(
                "The box is that of a soft margin with a bias: SVC with a finite C and "
                "fit_intercept=True."
            )
        label, C = dual.label, np.maximum(np.abs(dual.lower), np.abs(dual.upper))
        steps, pairs, numbers = [], [], []
        for before, after in pairwise(records):
            moved = after.working_set
            if moved is None or len(moved) != 2 or after.steps - before.steps != 1:
                continue  # thinned out, or a step of more than two
            i, j = int(moved[0]), int(moved[1])
            K = dual.gram.rows([i, j])
            errors = K @ dual.on_rows(before.variables) - label[[i, j]]
            steps.append(
                two_variable_step(
                    (label[i], label[j]),
                    (abs(before.variables[i]), abs(before.variables[j])),
                    (errors[0], errors[1]),
                    (K[0, i], K[1, j], K[0, j]),
                    (C[i], C[j]),
                )
            )
            pairs.append((int(rows[i]), int(rows[j])))
            numbers.append(after.steps)
        if not steps:
            raise ValueError(
                "The trace has no single step of two multipliers: fit with solver='smo', and with "
                "trace=Trace(limit=...) large enough for every step to be kept."
            )
        return cls(steps, pairs, numbers).plot(ax, legend=legend)

    def __len__(self) -> int:
        return self.phases * len(self.steps)

    def ends(self, which: int) -> np.ndarray:
        """Return the ends of a step's line in its box, those of L and H, shape (2, 2)."""
        step = self.steps[which]
        return np.array([_on_line(step, step.L), _on_line(step, step.H)])

    @cached_property
    def _side(self) -> float:
        """Largest coordinate that the picture has to hold."""
        known = [value for step in self.steps for value in (*step.before, *step.after, *step.C)]
        known = [value for value in known if np.isfinite(value)]
        return max(*known, 1e-12)

    def _draw_state(self, ax: Axes, state: int) -> None:
        which, phase = divmod(state, self.phases)
        step, side = self.steps[which], self._side
        pad = _MARGIN * side
        walls = [C if np.isfinite(C) else side + pad for C in step.C]
        ax.fill([0, walls[0], walls[0], 0], [0, 0, walls[1], walls[1]], color=marks.BLUE, alpha=0.1)
        ax.plot([0, walls[0], walls[0], 0, 0], [0, 0, walls[1], walls[1], 0], color=marks.ink())
        far = np.array([_on_line(step, a2) for a2 in (-3 * side, 4 * side)])
        ax.plot(*far.T, ":", color=marks.ink(), linewidth=1)
        ends = self.ends(which)
        ax.plot(*ends.T, color=marks.BLUE, linewidth=2.5, label="the constraint in the box")
        left = -pad
        for name, end in zip("LH", ends, strict=True):
            ax.plot([left, end[0]], [end[1]] * 2, "--", color=marks.BLUE, linewidth=0.8)
            ax.plot(*end, "|", color=marks.BLUE, markersize=14, markeredgewidth=2)
            ax.text(left, end[1], f" {name}", va="bottom", color=marks.BLUE, weight="bold")
        top = self._in_view(step)
        look: dict[str, Any] = {"markersize": 10, "linestyle": "none", "clip_on": False}
        look["zorder"] = 4
        self._arrows(ax, step, top, phase)
        ax.plot(
            *step.before,
            "o",
            color=marks.ground(),
            markeredgecolor=marks.ink(),
            label="before",
            **look,
        )
        label = "optimum on the line"
        if not np.isfinite(step.unclipped):
            label = "no optimum: it rises all the way"
        elif not step.L <= step.unclipped <= step.H:
            label += f", at {step.unclipped:.3g}"
        optimum = top if phase >= 1 else (np.nan, np.nan)  # in the legend from the beginning
        after = step.after if phase == 2 else (np.nan, np.nan)
        ax.plot(*optimum, "X", color=marks.ORANGE, markeredgecolor="white", label=label, **look)
        ax.plot(*after, "o", color=marks.ink(), label="after", **{**look, "markersize": 7})
        first, second = self.pairs[which] if self.pairs else (1, 2)
        number = self.numbers[which] if self.numbers else which + 1
        same = "equal" if step.y[0] == step.y[1] else "different"
        names = ["C", "C"] if step.C[0] == step.C[1] else ["C1", "C2"]
        names = [n if np.isfinite(C) else "no bound" for n, C in zip(names, step.C, strict=True)]
        ax.set_xticks([0, walls[0]], ["0", names[0]])
        ax.set_yticks([0, walls[1]], ["0", names[1]])
        ax.set(
            xlabel=f"multiplier of row {first}" if self.pairs else "first multiplier",
            ylabel=f"multiplier of row {second}" if self.pairs else "second multiplier",
            xlim=(-pad, side + pad),
            ylim=(-pad, side + pad),
            aspect="equal",
            title=f"{same} labels" + (f": step {number}" if len(self.steps) > 1 else ""),
        )
        marks.legend_below(ax, fontsize="small")

    def _in_view(self, step: TwoVariableStep) -> tuple[float, float]:
        """Return the optimum on the line, or where the line to it leaves the picture."""
        low, high = -_MARGIN * self._side, (1 + _MARGIN) * self._side
        slope, start = -step.y[0] * step.y[1], step.y[0] * step.zeta  # a_1 = start + slope a_2
        ends = sorted(slope * (end - start) for end in (low, high))
        return _on_line(step, float(np.clip(step.unclipped, max(low, ends[0]), min(high, ends[1]))))

    def _arrows(self, ax: Axes, step: TwoVariableStep, top: Any, phase: int) -> None:
        """Draw the way to the optimum and, where that is outside, back to the box."""
        for shown, start, end in ((phase >= 1, step.before, top), (phase == 2, top, step.after)):
            if shown and np.hypot(end[0] - start[0], end[1] - start[1]) > 0.05 * self._side:
                arrow = {"arrowstyle": "->", "color": marks.ink(), "shrinkA": 6, "shrinkB": 6}
                arc = {"connectionstyle": "arc3,rad=0.25"}
                ax.annotate("", xy=end, xytext=start, arrowprops=arrow | arc, zorder=3)


def _on_line(step: TwoVariableStep, a2: float) -> tuple[float, float]:
    """Return the point of a step's line with this second multiplier."""
    return step.y[0] * (step.zeta - step.y[1] * a2), a2


def plot_smo_box(
    steps: TwoVariableStep | Sequence[TwoVariableStep],
    ax: Axes | None = None,
    *,
    legend: bool = True,
) -> Axes:
    """Draw a step of two multipliers in its box.

    The short way to :class:`SMOBoxDisplay`.

    Examples
    --------
    >>> from maxmargin.plotting import plot_smo_box
    >>> from maxmargin.solvers import two_variable_step
    >>> step = two_variable_step((1, 1), (0.2, 0.5), errors=(1, -1), K=(1, 1, 0), C=1.0)
    >>> plot_smo_box(step).get_title()
    'equal labels'
    """
    return SMOBoxDisplay.from_steps(steps, ax, legend=legend).ax_

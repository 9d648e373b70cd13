"""What K does to extremely randomised trees, drawn: errors above, bias and variance below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.ensemble import KStudy
from maxmargin.plotting import marks
from maxmargin.plotting.display import PanelDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class KStudyDisplay(PanelDisplay):
    """Errors, bias and variance against K, a column of panels for each level of noise.

    Attributes
    ----------
    study : KStudy
        All that is drawn.
    """

    study: KStudy

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Two rows; as many columns as levels of noise."""
        return 2, len(self.study.noise)

    @classmethod
    def from_study(cls, study: KStudy, *, ax: Any = None, legend: bool = True) -> KStudyDisplay:
        """Draw a study; as in :func:`plot_k_study`."""
        if not isinstance(study, KStudy):
            raise TypeError(
                "plot_k_study draws what maxmargin.ensemble.k_study returns, got "
                f"{type(study).__name__}."
            )
        return cls(study).plot(ax, legend=legend)

    def _draw(self, ax: Any) -> None:
        study = self.study
        highest = float((study.error_tree + study.error_tree_std).max())
        parts = max(float(study.squared_bias.max()), float(study.variance_tree.max()))
        for level in range(len(study.noise)):
            self._draw_errors(ax[0, level], level, highest)
            self._draw_parts(ax[1, level], level, parts)
            for panel in ax[:, level]:
                panel.set_xlim(study.K[0] - 0.02 * np.ptp(study.K), study.K[-1] * 1.02)
                if level:
                    panel.tick_params(labelleft=False)
        share = f"{study.n_estimators} trees"
        ax[0, 0].set_ylabel("test error" if study.of_classes else "mean squared test error")
        ax[1, 0].set_ylabel("of shares of classes" if study.of_classes else "squared error")
        told: dict[str, Any] = {"fontsize": "small", "edgecolor": "none", "framealpha": 0.85}
        handles = {"tree": "one tree", "mean": f"mean of {share}", "best": "least"}
        ax[0, 0].legend([ax[0, 0].lines[i] for i in range(3)], list(handles.values()), **told)
        ax[1, 0].legend(**told)

    def _draw_errors(self, ax: Axes, level: int, highest: float) -> None:
        study = self.study
        sides = (
            (study.error_tree, study.error_tree_std, marks.ORANGE, "s", "--"),
            (study.error_mean, study.error_mean_std, marks.BLUE, "o", "-"),
        )
        for value, spread, colour, mark, style in sides:
            own, around = value[level], spread[level]
            ax.plot(study.K, own, style, color=colour, marker=mark, markersize=4)
            ax.fill_between(
                study.K, own - around, own + around, color=colour, alpha=0.2, linewidth=0
            )
        best = int(study.error_mean[level].argmin())
        look: dict[str, Any] = {"markersize": 11, "markerfacecolor": "none"}
        place = [study.K[best]], [study.error_mean[level, best]]
        ax.plot(*place, "o", color=marks.ink(), linestyle="none", **look)
        said = f"{100 * study.noise[level]:.0f} % of labels changed"
        if not study.of_classes:
            said = f"noise of {study.noise[level]:.2g} deviations"
        ax.set(title=said if study.noise[level] else "no noise", ylim=(0.0, 1.05 * highest))

    def _draw_parts(self, ax: Axes, level: int, highest: float) -> None:
        study = self.study
        curves = (
            ("squared bias of both", study.squared_bias, marks.ink(), "^", "-"),
            ("variance of one tree", study.variance_tree, marks.ORANGE, "s", "--"),
            ("variance of the mean", study.variance_mean, marks.BLUE, "o", "-"),
        )
        for text, value, colour, mark, style in curves:
            ax.plot(
                study.K, value[level], style, color=colour, marker=mark, markersize=4, label=text
            )
        ax.set(xlabel="K, columns that a node tries", ylim=(0.0, 1.05 * highest))


def plot_k_study(study: KStudy, ax: Any = None, *, legend: bool = True) -> Any:
    """Draw what K does to extremely randomised trees: errors above, bias and variance below.

    There is a column of panels for each level of noise. Bands are standard errors over samples; the
    ring is the K with the least error of the mean.

    Parameters
    ----------
    study : KStudy
        What :func:`maxmargin.ensemble.k_study` returns.
    ax : array of matplotlib Axes, optional
        Two rows, a column for each level of noise; by default on a new figure.
    legend : bool, default=True
        Whether there is a legend.

    Returns
    -------
    ax : array of matplotlib Axes, shape (2, n_noise)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from maxmargin.ensemble import k_study
    >>> from maxmargin.plotting import plot_k_study
    >>> X, y = load_wine(return_X_y=True)
    >>> study = k_study(X, y, K=[1, 6, 13], noise=[0, 0.4], n_estimators=5, random_state=0)
    >>> plot_k_study(study).shape
    (2, 2)
    """
    return KStudyDisplay.from_study(study, ax=ax, legend=legend).ax_

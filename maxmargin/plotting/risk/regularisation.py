"""Tikhonov's form and Ivanov's: which bound on ``||w||`` a weight of the penalty comes to.

Tikhonov minimises the mean loss plus ``lam ||w||^2``; Ivanov the mean loss subject to a bound on
``||w||``. The answer to the first is one to the second with its own norm as the bound, and this
norm falls as ``lam`` grows: the curve of one against the other takes either form to the other.

Reference: seed 002 of the lecture; Vapnik, The Nature of Statistical Learning Theory, 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LAMS = tuple(np.logspace(-5, 1, 25).tolist())


@dataclass
class RegularisationDisplay(Display):
    """The norm of a machine's weights against the weight ``lam`` of its penalty.

    Attributes
    ----------
    lam, norm : arrays of shape (n_fits,)
        ``lam``, in increasing order, and ``||w||`` of the machine fitted with it.
    bounds : array of shape (n_bounds, 2)
        Of each machine that was fitted with a bound on its norm, the ``lam`` that it came to, and
        its norm.
    asked : array of shape (n_bounds,)
        Their bounds.
    description : str
    """

    lam: np.ndarray
    norm: np.ndarray
    bounds: np.ndarray
    asked: np.ndarray
    description: str

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        ax: Axes | None = None,
        lams: Sequence[float] = _LAMS,
        norm_bounds: Sequence[float] = (),
    ) -> RegularisationDisplay:
        """Fit a machine for each ``lam`` and bound and draw; as in :func:`plot_regularisation`."""
        parameters = model.get_params()
        if "lam" not in parameters:
            raise TypeError(
                "plot_regularisation draws machines with a parameter lam, such as LinearSVC, "
                f"LogisticRegression, LinearSVR, SVC and SVR; got {type(model).__name__}."
            )
        if norm_bounds and "norm_bound" not in parameters:
            raise ValueError(f"{type(model).__name__} has no norm_bound: LinearSVC has.")
        plain: dict[str, Any] = {key: None for key in ("lam", "norm_bound") if key in parameters}
        plain["C"] = 1.0
        lams = sorted(float(lam) for lam in lams)
        fits = [clone(model).set_params(**plain | {"lam": lam}).fit(X, y) for lam in lams]
        held = [clone(model).set_params(**plain | {"norm_bound": t}).fit(X, y) for t in norm_bounds]
        return cls(
            lam=np.array(lams),
            norm=np.array([_norm(fit) for fit in fits]),
            bounds=np.array([(np.ravel(fit.lam_)[0], _norm(fit)) for fit in held]).reshape(-1, 2),
            asked=np.array(norm_bounds, dtype=np.float64),
            description=type(model).__name__,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import LogLocator

        ax.plot(self.lam, self.norm, color=marks.BLUE, marker="o", markersize=3, label="Tikhonov")
        ax.set(xscale="log", yscale="log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
        for (lam, norm), asked in zip(self.bounds, self.asked, strict=True):
            look: dict[str, Any] = {"color": marks.ORANGE, "linewidth": 1.2, "linestyle": "--"}
            ax.plot([self.lam[0], lam, lam], [norm, norm, 0.7 * self.norm.min()], **look)
            ax.plot(lam, norm, "s", color=marks.ORANGE, markeredgecolor=marks.ink(), zorder=3)
            said = f"Ivanov: ||w|| <= {asked:.3g}\ncomes to lam = {lam:.2g}"
            place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "top"}
            blank = {"facecolor": marks.ground(), "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
            ax.annotate(said, (lam, norm), (-8, -5), fontsize="small", bbox=blank, **place)
        ax.set(
            ylim=(0.7 * self.norm.min(), 1.4 * self.norm.max()),
            xlabel="lam, the weight of the penalty (Tikhonov)",
            ylabel="||w||, the bound that it comes to (Ivanov)",
            title=f"{self.description}: what lam does to the norm",
        )


def _norm(fitted: Any) -> float:
    """``||w||`` of a machine for two or one regression, linear or with a kernel."""
    machine = checks.last_step(fitted)
    margin = getattr(machine, "margin_", None)
    if margin is None:
        coef = np.asarray(machine.coef_)
        if coef.ndim > 1 and len(coef) > 1:
            raise ValueError("plot_regularisation draws one norm: machines of two classes.")
        return float(np.linalg.norm(coef))
    if np.ndim(margin):
        raise ValueError("plot_regularisation draws one norm: machines of two classes.")
    return 1.0 / float(margin)


def plot_regularisation(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    lams: Sequence[float] = _LAMS,
    norm_bounds: Sequence[float] = (),
) -> Axes:
    """Draw the norm of the weights against the weight of their penalty, from Tikhonov to Ivanov.

    For each ``lam`` a machine is fitted, which minimises the mean loss plus ``lam ||w||^2``. Of all
    weights that are not longer than its own, these have the least loss: the curve says which
    ``norm_bound`` comes to the same as which ``lam``. Machines fitted with a bound are marked.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, LogisticRegression, SVC or SVR
        For two classes or one target. It stays as it is: clones of it are fitted.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    lams : sequence of float, default=25 from 1e-5 to 10
    norm_bounds : sequence of float, optional
        Bounds on ``||w||`` with which to fit further machines, of linear ones.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.plotting import RegularisationDisplay
    >>> X, y = make_blobs(60, centers=2, cluster_std=2.0, random_state=0)
    >>> display = RegularisationDisplay.from_estimator(LinearSVC(), X, y, norm_bounds=[0.3])
    >>> bool(display.norm[0] > display.norm[-1])
    True
    """
    return RegularisationDisplay.from_estimator(
        model, X, y, ax=ax, lams=lams, norm_bounds=norm_bounds
    ).ax_

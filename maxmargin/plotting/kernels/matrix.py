"""A kernel's matrix on some points: which of them it finds alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from maxmargin.kernels.named import as_kernel
from maxmargin.plotting import checks, marks
from maxmargin.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 5000  # rows: their matrix is 200 MB, and has more entries than any screen


@dataclass
class KernelMatrixDisplay(Display):
    """A kernel matrix as an image, its rows in the order of their classes.

    Where a kernel suits the classes, the squares on the diagonal are bright and the rest is dark.

    Attributes
    ----------
    matrix : float array of shape (n, n)
        As it is drawn: ``matrix[i, j] = k(x[order[i]], x[order[j]])``.
    order : int array of shape (n,)
        The row of the data that each row of the image shows.
    ends : int array of shape (n_classes,)
        Where the rows of each class end; empty where no classes were given.
    names : list of str
        Of the classes.
    title : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.plotting import KernelMatrixDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = KernelMatrixDisplay.from_kernel(RBF(gamma=0.5), X, y)
    >>> display.matrix.shape, display.ends
    ((150, 150), array([ 50, 100, 150]))
    """

    matrix: np.ndarray
    order: np.ndarray
    ends: np.ndarray
    names: list[str] = field(default_factory=list)
    title: str = ""

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        X: Any,
        y: Any = None,
        ax: Axes | None = None,
        *,
        order: Any = None,
    ) -> KernelMatrixDisplay:
        """Draw the matrix of a kernel on some points.

        Parameters
        ----------
        kernel : Kernel, name or callable
        X : array-like of shape (n_samples, n_features)
            What the kernel takes; for ``"precomputed"`` the matrix itself.
        y : array-like of shape (n_samples,), optional
            Classes: their rows are put together, with a border around each.
        ax : matplotlib Axes, optional
        order : array-like of int of shape (n,), optional
            Rows of X to show, in this order; within a class, if y is given. By default all.

        Returns
        -------
        display : KernelMatrixDisplay
        """
        kernel = as_kernel(kernel)
        n = _num_samples(X)
        rows = np.arange(n) if order is None else np.asarray(order)
        if rows.ndim != 1 or not np.isin(rows, np.arange(n)).all():
            raise ValueError(f"order must be a list of rows of X, numbers from 0 to {n - 1}.")
        if len(rows) > _MOST:
            raise ValueError(
                f"The matrix of {len(rows)} rows is finer than any picture: give up to {_MOST} "
                "rows to draw as order=, for example numpy.random.default_rng(0).choice(len(X), "
                "1000, replace=False)."
            )
        ends, names = np.empty(0, dtype=int), []
        if y is not None:
            check_consistent_length(X, y)
            classes, index = np.unique(np.asarray(y), return_inverse=True)
            rows = rows[np.argsort(index[rows], kind="stable")]
            ends = np.cumsum(np.bincount(index[rows], minlength=len(classes)))
            names = [str(name) for name in classes]
        given = _safe_indexing(X, rows)
        if kernel.pairwise:
            given = given[:, rows]
        matrix, title = kernel(given), "" if kernel.pairwise else marks.rounded(kernel)
        return cls(matrix, rows, ends, names, title).plot(ax)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, ax: Axes | None = None, **options: Any
    ) -> KernelMatrixDisplay:
        """Draw the matrix of a fitted machine's kernel, ``kernel_``.

        ``model`` may be a Pipeline, whose transformers come before the kernel; the other
        parameters are those of :meth:`from_kernel`.
        """
        machine = checks.last_step(model)
        if getattr(machine, "kernel_", None) is None:
            raise TypeError(
                "KernelMatrixDisplay.from_estimator needs a machine with a kernel, or a Pipeline "
                f"that ends in one; got {type(machine).__name__}. Give the kernel itself to "
                "from_kernel."
            )
        X = checks.transformed(model, X)
        return cls.from_kernel(machine.kernel_, X, y, ax, **options)

    def _draw(self, ax: Axes) -> None:
        most = np.abs(self.matrix).max(initial=0.0)
        signed = bool(self.matrix.min(initial=0.0) < -1e-12 * most)
        look = {"cmap": "PuOr", "vmin": -most, "vmax": most} if signed else {"cmap": "viridis"}
        image = ax.imshow(self.matrix, **look)
        where: dict[str, Any] = {"ax": ax, "shrink": 0.85, "panchor": (0.0, 0.5)}
        if ax.figure.get_layout_engine() is not None:  # which makes room: as high as the matrix
            ax.set_anchor("W")  # the layout then knows where the names on the left begin
            where = {"cax": ax.inset_axes((1.03, 0.0, 0.05, 1.0))}
        ax.figure.colorbar(image, label="k(x, z)", **where)
        for end in self.ends[:-1]:
            for line in (ax.axhline, ax.axvline):
                line(end - 0.5, color="white", linewidth=1.8)  # seen on dark and on bright ground
                line(end - 0.5, color=marks.INK, linewidth=0.7)
        if len(self.ends):
            middles = (np.concatenate([[0], self.ends[:-1]]) + self.ends - 1) / 2
            ax.set_xticks(middles, self.names, rotation=30 if len(self.names) > 4 else 0)
            ax.set_yticks(middles, self.names)
            ax.tick_params(length=0)
        else:
            ax.set(xlabel="row", ylabel="row")
        ax.set_title(self.title)


def plot_kernel_matrix(
    kernel: Any, X: Any, y: Any = None, ax: Axes | None = None, **options: Any
) -> Axes:
    """Draw the matrix of a kernel on some points, put together by class.

    The short way to :class:`KernelMatrixDisplay`, whose ``from_kernel`` has the parameters.

    Examples
    --------
    >>> from maxmargin.plotting import plot_kernel_matrix
    >>> ax = plot_kernel_matrix("linear", [[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> ax.images[0].get_array().tolist()
    [[0.0, 0.0, 0.0], [0.0, 4.0, 2.0], [0.0, 2.0, 1.0]]
    """
    return KernelMatrixDisplay.from_kernel(kernel, X, y, ax, **options).ax_

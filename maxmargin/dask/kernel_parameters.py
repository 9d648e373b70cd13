"""Parameters of a kernel that depend on the data, from partitions that stay where they are.

``gamma="scale"`` is made of the variance of all entries, through whatever columns, factors and
feature maps the kernel sees them. A kernel is resolved twice: once on a description of the rows,
which notes whose variance is asked for, and, when one pass over the partitions has brought their
moments, again with the answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.backends.cpu import variance
from maxmargin.backends.program import View
from maxmargin.backends.views import Views
from maxmargin.dask.rows import Block, Partitions, naming_partition
from maxmargin.kernels import Input, Kernel
from maxmargin.kernels.algebra import Mapped
from maxmargin.kernels.sequences import LocalAlignment


class Moments(NamedTuple):
    """Entries of some data: how many, their mean, and the sum of squares about it."""

    size: int
    mean: float
    squares: float

    @classmethod
    def of(cls, X: Any) -> Moments:
        """Moments of rows in memory."""
        size = int(np.prod(X.shape))
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is for the kernel to refuse
            return cls(size, float(X.sum(dtype=np.float64)) / size, variance(X) * size)

    @classmethod
    def together(cls, parts: list[Moments]) -> Moments:
        """Moments of all parts (Chan, Golub and LeVeque, 1983)."""
        size = sum(part.size for part in parts)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = sum(part.mean * (part.size / size) for part in parts)
            about = [part.squares + part.size * np.square(part.mean - mean) for part in parts]
            return cls(size, float(mean), float(sum(about)))


def resolve_kernel(machine: Any, kernel: Kernel, rows: Partitions) -> Kernel:
    """Return a kernel in which what depends on the rows of all partitions is a number.

    Parameters
    ----------
    machine : KernelEstimator
        Knows the names of the columns.
    kernel : Kernel
    rows : Partitions

    Returns
    -------
    kernel : Kernel
        The same as :meth:`maxmargin.kernels.Kernel.resolve` makes of all rows in one place.
    """
    refuse_pairs(kernel)
    names = vars(machine).get("feature_names_in_")
    if kernel.input is Input.VECTORS and not any(isinstance(k, Mapped) for k in _inside(kernel)):
        first = np.ones((1, rows.n_features), dtype=rows.summaries[0].dtype)
    else:
        (first,) = rows.cluster.run([rows.map(_first_row)[0]])
    asked = _Asked()
    seen = _DescribedViews(first, rows.n, asked)
    resolved = kernel.resolve(seen, names)
    if not asked.views:
        return resolved
    asked.answers = rows.reduced(_moments, asked.views, combine=_together)
    return kernel.resolve(seen, names)


class _Asked:
    """Views whose moments somebody asks for, and the answers when they are there."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.answers: list[Moments] = []

    def about(self, view: View) -> Moments:
        """Moments of all rows through a view; of anything, while they are not known."""
        if view not in self.views:
            self.views.append(view)
        return self.answers[self.views.index(view)] if self.answers else Moments(1, 0.0, 1.0)


class _DescribedViews(Views):
    """Views of rows that lie elsewhere; the first of them is here, and stands for their shape."""

    def __init__(self, first: Any, n: int, asked: _Asked, view: View = ()) -> None:
        super().__init__(first)
        self.rows, self.asked, self.view = n, asked, view

    @property
    def n(self) -> int:
        """Number of points."""
        return self.rows

    def after(self, step: Any) -> Views:
        """Views of the rows after one more step."""
        seen = Views(self.X).after(step).X
        return _DescribedViews(seen, self.rows, self.asked, (*self.view, step))

    @property
    def numbers(self) -> Any:
        """What can be asked of the rows of numbers."""
        return _DescribedRows(Views(self.X).numbers, self)


class _DescribedRows:
    """Rows that lie elsewhere: their shape and type, and their variance once it is known."""

    ndim = 2

    def __init__(self, first: Any, views: _DescribedViews) -> None:
        self.shape, self.dtype, self.views = (views.rows, first.shape[1]), first.dtype, views

    def __getattr__(self, name: str) -> Any:
        raise ValueError(
            f"A parameter of the kernel asks for X.{name} of all rows, which lie in the partitions "
            "of a Dask collection; of those, the shape and the variance are known (gamma='scale', "
            "'auto'). Give the parameter as a number, for example kernel.resolve(X_some) for some "
            "rows in memory."
        )

    def __array__(self, *options: Any, **more: Any) -> Any:
        return self.__getattr__("__array__")

    def __getitem__(self, which: Any) -> Any:
        return self.__getattr__("__getitem__")


@variance.register
def _(X: _DescribedRows) -> float:
    """Variance of the rows, or a note that somebody asks for it."""
    found = X.views.asked.about(X.views.view)
    return found.squares / found.size


def _inside(kernel: Kernel) -> list[Kernel]:
    """A kernel, and all that it is made of."""
    own = [value for value in kernel.get_params(deep=False).values() if isinstance(value, Kernel)]
    return [kernel, *(one for part in own for one in _inside(part))]


def refuse_pairs(whole: Kernel) -> None:
    """Refuse a kernel that has, or whose parameters are made of, values of all pairs of rows."""
    for kernel in _inside(whole):
        if isinstance(kernel, LocalAlignment) and kernel.logarithm and kernel.shift == "auto":
            raise ValueError(
                f"{kernel!r} has shift='auto', which is made of the kernel's values between all "
                "rows, and these lie in the partitions of a Dask collection: give shift as a "
                "number, for example LocalAlignment().resolve(X_some).shift for some rows in "
                "memory."
            )
        if kernel.pairwise:
            raise ValueError(
                "A precomputed kernel is a matrix of all rows against all rows, which partitions "
                "of rows do not have: give the data and a kernel, or compute the matrix and fit in "
                "memory."
            )


def _first_row(block: Block) -> Any:
    return _safe_indexing(block.X, [0])


def _moments(block: Block, asked: list[View]) -> list[Moments]:
    """Moments of a partition through each of some views."""
    with naming_partition(block.number):
        views = Views(block.X)
        return [Moments.of(views.seen(view).numbers) for view in asked]


def _together(parts: list[list[Moments]]) -> list[Moments]:
    return [Moments.together(list(some)) for some in zip(*parts, strict=True)]
